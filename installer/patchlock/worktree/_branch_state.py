"""Where the user's branch stands, and what a pull of his left half done; reads the clone and changes nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.model.identities import CommitId
from patchlock.worktree import trees
from patchlock.worktree.upstream_cache import blobs, commit_of, git

_MARKERS = re.compile(rb"^(<{7}|\|{7}|>{7})[^\r\n]*", re.MULTILINE)
_OURS = re.compile(rb"^(?:<{7}|>{7}) patchlock/(?:worktrees/[^\s/]+/)?(?:yours|patched|unpatched)\r?$", re.MULTILINE)


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
    shared = _newest_common(repository, patched, tips) if patched else None
    tips += [patched] if patched and patched not in tips else []
    upstream = _newest_common(repository, other or head, tips)
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
    merged = commit_of(repository, "MERGE_HEAD")
    if merged is not None:
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


def _newest_common(repository: Path, commit: CommitId, tips: Iterable[CommitId]) -> CommitId | None:
    """Give the newest commit that a branch shares with upstream; None where no commit is known to be upstream's."""
    tips = tuple(tips)
    if not tips:
        return None
    done = git("merge-base", "--all", commit, *tips, repository=repository, allowed=(0, 1, 128)).text.split()
    if len(done) < 2:
        return CommitId(done[0]) if done else None
    newest = git("rev-list", "--max-count=1", "--date-order", *done, repository=repository).text
    return CommitId(newest)


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


def without_labels(data: bytes) -> bytes:
    """Give a file with the words behind conflict markers taken away, to compare what two tools left."""
    return _MARKERS.sub(rb"\1", data)
