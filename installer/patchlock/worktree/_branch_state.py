"""Where the user's branch stands, and what a pull of his left half done; reads the clone and changes nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.model.identities import CommitId
from patchlock.worktree import _merge, trees
from patchlock.worktree.upstream_cache import blobs, commit_of, git

_MARKERS = re.compile(rb"^(<{7}|\|{7}|>{7})[^\r\n]*", re.MULTILINE)
_OURS = re.compile(rb"^(?:<{7}|>{7}) patchlock/(?:worktrees/[^\s/]+/)?(?:yours|patched|unpatched)\r?$", re.MULTILINE)


_PATCHED = re.compile(rb"^={7}\r?\n(.*?)^>{7} patchlock/(?:worktrees/[^\s/]+/)?patched", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Unmerged:
    """The three versions of a file that git could not merge; None where one has no such file."""

    base: bytes | None
    ours: bytes | None
    theirs: bytes | None
    is_executable: bool


@dataclass(frozen=True, kw_only=True)
class BranchState:
    """What the user's branch is built on."""

    head: CommitId | None
    upstream: CommitId | None
    """The newest commit of upstream that his branch, or the merge or rebase that he is in, contains."""
    commits: int
    """How many commits of his own stand on it."""
    behind: CommitId | None
    """The newest commit of upstream behind the one that was last patched, if that is one of his own."""
    unfinished: str
    """`merge`, `rebase`, `cherry-pick`, `revert`, `am`, or "" where he is in none."""
    unmerged: Mapping[PurePosixPath, Unmerged]


def read(tree: trees.Tree, applied: CommitId | None) -> BranchState:
    """Find out where a clone stands.

    Args:
        tree: the clone.
        applied: the patched commit that it was last brought to, if any; its parent is upstream's, or one of the user's
            own, who has not committed our patches in it.
    """
    repository = tree.repository
    head = commit_of(repository, "HEAD")
    if head is None:
        return BranchState(head=None, upstream=None, commits=0, behind=None, unfinished="", unmerged={})
    name, other = unfinished(repository)
    tips = _tips(repository)
    patched = trees.upstream_of(repository, applied) if applied else None
    shared = _newest(repository, _common(repository, patched, tips)) if patched else None
    tips += [patched] if patched and patched not in tips else []
    upstream = _upstreams(tree, _common(repository, other or head, tips), applied, shared)
    if upstream and patched and other is None and _holds_still(tree, head, upstream, applied):
        upstream = patched
    commits = _count(repository, head, tips) if tips else 0
    return BranchState(
        head=head,
        upstream=upstream or head,
        commits=commits,
        behind=shared if shared != patched else None,
        unfinished=name,
        unmerged=_unmerged(repository),
    )


def unfinished(repository: Path) -> tuple[str, CommitId | None]:
    """Name what the user is in the middle of, as `BranchState.unfinished` does, and the commit of the other side."""
    merged, head = commit_of(repository, "MERGE_HEAD"), commit_of(repository, "HEAD")
    # While a post-merge hook runs, git has committed the merge, and has not removed the file.
    if merged is not None and not (head and trees.is_ancestor(repository, merged, head)):
        return "merge", merged
    names = ("rebase-apply/applying", "rebase-merge/onto", "rebase-apply/onto", "sequencer/todo")
    applying, *onto, todo = _git_files(repository, *names)
    if applying.exists():
        return "am", None
    for file in onto:
        if file.is_file():
            return "rebase", CommitId(file.read_text(encoding="ascii").strip())
    for name, ref in (("cherry-pick", "CHERRY_PICK_HEAD"), ("revert", "REVERT_HEAD")):
        if commit_of(repository, ref) is not None:
            return name, None
    if todo.is_file():  # between two of many commits
        is_revert = todo.read_text(encoding="utf-8", errors="replace").startswith("revert")
        return "revert" if is_revert else "cherry-pick", None
    return "", None


def _git_files(repository: Path, *names: str) -> list[Path]:
    words = [word for name in names for word in ("--git-path", name)]
    return [repository / path for path in git("rev-parse", *words, repository=repository).text.splitlines()]


def _tips(repository: Path) -> list[CommitId]:
    """Give the commits that are known to be upstream's: remote branches, and what was pulled from an address."""
    listed = git("for-each-ref", "--format=%(objectname)", "refs/remotes", repository=repository).text.split()
    (file,) = _git_files(repository, "FETCH_HEAD")
    if file.is_file():
        listed += re.findall(r"^[0-9a-f]{40,64}", file.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    return [CommitId(commit) for commit in dict.fromkeys(listed)]


def _common(repository: Path, commit: CommitId, tips: Iterable[CommitId]) -> list[CommitId]:
    """Give the newest commits that a branch shares with upstream: one of each remote branch that was merged there."""
    words = ("merge-base", "--all", commit, *tips)
    if len(words) < 4:
        return []
    return [CommitId(one) for one in git(*words, repository=repository, allowed=(0, 1, 128)).text.split()]


def _newest(repository: Path, commits: Sequence[CommitId]) -> CommitId | None:
    if len(commits) < 2:
        return next(iter(commits), None)
    return CommitId(git("rev-list", "--max-count=1", "--date-order", *commits, repository=repository).text)


def _upstreams(
    tree: trees.Tree, commits: Sequence[CommitId], applied: CommitId | None, shared: CommitId | None
) -> CommitId | None:
    """Choose upstream's commit where several were merged, as a fork's own remote branch has not only upstream's.

    Nothing goes back behind upstream's commit that was last patched, and a commit that holds the patches is the fork's.
    """
    if len(commits) > 1 and applied is not None and shared is not None:
        commits = [one for one in commits if trees.is_ancestor(tree.repository, shared, one)] or commits
    if len(commits) > 1 and applied is not None:
        held = {
            one: sum(held for _, held in _patched_files(tree, applied, trees.entries(tree.repository, one)))
            for one in commits
        }
        commits = [one for one in commits if held[one] == min(held.values())]
    return _newest(tree.repository, commits)


def _holds_still(tree: trees.Tree, head: CommitId, behind: CommitId, applied: CommitId | None) -> bool:
    """Tell whether a branch has the files of upstream's commit that was last patched, though not that commit.

    So has one whose commits were amended or squashed: what it shares with upstream is an older commit.
    """
    repository = tree.repository
    patched = trees.upstream_of(repository, applied) if applied else behind
    if patched == behind or not trees.is_ancestor(repository, behind, patched):
        return False
    old, new, ours, mine = (trees.entries(repository, commit) for commit in (behind, patched, applied, head))
    changed = [path for path in {**old, **new} if old.get(path) != new.get(path)]
    newer = [path for path in changed if path in mine and mine[path] in {new.get(path), ours.get(path)}]
    older = [path for path in changed if mine.get(path) == old.get(path)]
    return len(newer) >= len(older)


def has_committed(tree: trees.Tree, applied: CommitId, head: CommitId, *, mostly: bool = False) -> bool:
    """Tell whether a commit holds what we patched, edited since or not, in at least one file, or in most of them."""
    held = [held for _, held in _patched_files(tree, applied, trees.entries(tree.repository, head))]
    return any(held) and (2 * sum(held) > len(held) or not mostly)


def still_staged(tree: trees.Tree, applied: CommitId) -> tuple[PurePosixPath, ...]:
    """Name the files whose staged version, other than the commit's, holds what we patched, edited since or not."""
    asked = ("diff-index", "--cached", "--raw", "--no-abbrev", "--no-renames", "-z", "--diff-filter=AM", "HEAD")
    words = git(*asked, repository=tree.repository, allowed=(0, 128)).stdout.split(b"\0")[:-1]
    staged = {}
    for row, name in zip(words[::2], words[1::2], strict=True):
        _, mode, _, blob, _ = row.decode().split()
        staged[PurePosixPath(os.fsdecode(name))] = trees.Entry(mode=mode, blob=blob)
    return tuple(sorted(patched_in(tree, applied, staged)))


def patched_in(
    tree: trees.Tree, applied: CommitId, now: Mapping[PurePosixPath, trees.Entry]
) -> Iterator[PurePosixPath]:
    """Name the files of some versions that hold what we patched, edited since or not."""
    return (path for path, held in _patched_files(tree, applied, now) if held)


def _patched_files(
    tree: trees.Tree, applied: CommitId, now: Mapping[PurePosixPath, trees.Entry]
) -> Iterator[tuple[PurePosixPath, bool]]:
    """Give each file that we patched of those that are there, and whether it holds that, edited since or not."""
    repository = tree.repository
    before, after = (trees.entries(repository, c) for c in (trees.upstream_of(repository, applied), applied))
    ours = [path for path in after if before.get(path) != after[path] and path in now]
    listed = [state[path] for state in (before, after, now) for path in ours if path in state]
    data = trees.contents(repository, listed)
    for path in ours:
        if path not in before:  # only we have made such a file
            yield path, True
            continue
        mine, old, new = (data[state[path].blob] for state in (now, before, after))
        yield path, _merge.has_most(repository, path, mine, old, new)


def _count(repository: Path, head: CommitId, tips: Iterable[CommitId]) -> int:
    done = git("rev-list", "--count", head, "--not", *tips, repository=repository, allowed=(0, 128)).text
    return int(done or 0)


def _unmerged(repository: Path) -> dict[PurePosixPath, Unmerged]:
    if git("rev-parse", "--is-bare-repository", repository=repository).text == "true":
        return {}
    stages: dict[PurePosixPath, dict[str, str]] = {}
    executable: set[PurePosixPath] = set()
    for row in git("ls-files", "--unmerged", "-z", repository=repository).stdout.split(b"\0"):
        if row:
            head, _, name = row.partition(b"\t")
            mode, blob, stage = head.decode().split()
            path = PurePosixPath(os.fsdecode(name))
            if mode in {"100644", "100755"}:
                stages.setdefault(path, {})[stage] = blob
                executable |= {path} if mode == "100755" else set()
    found = blobs(repository, [blob for rows in stages.values() for blob in rows.values()])
    return {
        path: Unmerged(
            base=found.get(rows.get("1", "")),
            ours=found.get(rows.get("2", "")),
            theirs=found.get(rows.get("3", "")),
            is_executable=path in executable,
        )
        for path, rows in stages.items()
    }


def has_markers(data: bytes) -> bool:
    """Tell whether a file still has both ends of a conflict in it."""
    found = {match[1] for match in _MARKERS.finditer(data)}
    return {b"<" * 7, b">" * 7} <= found


def our_markers(data: bytes) -> tuple[int, ...]:
    """Give the lines, from 1, on which markers of a conflict stand that a move of ours has left."""
    return tuple(data.count(b"\n", 0, match.start()) + 1 for match in _OURS.finditer(data))


def patched_sides(data: bytes) -> tuple[bytes, ...]:
    """Give what stands on our side of the conflicts that a move of ours has left in a file, where that is any line."""
    return tuple(filter(None, _PATCHED.findall(data)))


def without_labels(data: bytes) -> bytes:
    """Give a file with the words behind conflict markers taken away, to compare what two tools left."""
    return _MARKERS.sub(rb"\1", data)
