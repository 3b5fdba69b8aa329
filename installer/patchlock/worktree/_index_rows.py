"""Rows of the user's index, each `mode blob stage`, and which of them a move changes."""

from __future__ import annotations

from pathlib import PurePosixPath

from patchlock.model.identities import CommitId
from patchlock.worktree import _tree_merge, trees
from patchlock.worktree._goal import OwnVersions
from patchlock.worktree._plan import Plan
from patchlock.worktree._snapshot import Snapshot
from patchlock.worktree._tree_merge import Versions
from patchlock.worktree.trees import Entries, Entry, Tree
from patchlock.worktree.upstream_cache import commit_of


def changes(
    tree: Tree,
    plan: Plan,
    snapshot: Snapshot,
    old: CommitId | None,
    new: CommitId | None,
    *,
    is_merging: bool,
    patched: tuple[CommitId, ...] = (),
    own: OwnVersions,
    is_of_stash: bool = False,
) -> tuple[dict[PurePosixPath, list[str]], dict[PurePosixPath, str]]:
    """Say which rows of the user's index change.

    Args:
        tree: the clone.
        plan: of the move.
        snapshot: of what stands there.
        old: where the user's branch stands, if it follows.
        new: where it goes then.
        is_merging: the user is in the middle of a merge or the like, whose next commit has what was resolved.
        patched: commits whose patched files are to be staged no longer, where git or the user has staged them as they
            are: the patches go, or a stash of git's has staged them.
        own: what the last move has patched by meaning; where the user's own version is staged, it stays so.
        is_of_stash: a stash of git's has staged them, with the user's edits where he had some.

    Returns:
        Path → its new rows; and of each conflict the row that it would have without one, "" for none.
    """

    def everything(commit: CommitId | None) -> Entries:
        found = trees.everything(tree.repository, commit)
        return {**found, **{his: found[path] for path, his in plan.renames.items() if path in found}}

    rows: dict[PurePosixPath, list[str]] = {}
    if old and new and old != new:
        before, after = everything(old), everything(new)
        staged: dict[PurePosixPath, Versions] = {}
        for path in {**before, **after}:
            was, now, have = before.get(path), after.get(path), snapshot.index.get(path)
            if was == now or path in snapshot.unmerged or have == now:
                continue
            if have == was:
                rows[path] = _of_entry(now)
            elif have is not None and now is not None:
                staged[path] = (was, have, now)
        if staged:
            joined, conflicts = _tree_merge.merge_paths(tree, staged)
            rows |= {p: _of_entry(joined[p] if p not in conflicts else after[p]) for p in staged}
            plan.unstaged = {path: snapshot.index[path] for path in staged if path in conflicts}
    head = everything(commit_of(tree.repository, "HEAD"))
    after = everything(new) if new else head
    patches = []
    for commit in patched:
        ours = everything(commit)
        patches.append(ours)
        upstreams = everything(trees.upstream_of(tree.repository, commit))
        for path, made in ours.items():
            have = snapshot.index.get(path)
            is_gits = have == made or (is_of_stash and have is not None and have == snapshot.files.get(path))
            is_his = path in own and have == own[path].his
            if made != upstreams.get(path) and is_gits and not is_his and have != after.get(path):
                rows[path] = _of_entry(after.get(path))
    for path, entry in plan.resolved.items():
        rows[path] = _of_entry(entry if is_merging else head.get(path))
    normal = {}
    for path, versions in plan.conflicts.items():
        have = snapshot.index.get(path)
        normal[path] = next(iter(rows.get(path, _of_entry(have))), "")
        if have is not None and have not in (*versions, head.get(path), *(ours.get(path) for ours in patches)):
            plan.unstaged[path] = have  # the stages take its place, and the user's `git add` takes theirs
        rows[path] = of_conflict(versions)
    return rows, normal


def stands(snapshot: Snapshot, path: PurePosixPath) -> list[str]:
    """Give the rows of a path as they are."""
    return [*snapshot.unmerged[path]] if path in snapshot.unmerged else _of_entry(snapshot.index.get(path))


def _of_entry(entry: Entry | None) -> list[str]:
    return [entry.row()] if entry else []


def of_conflict(versions: Versions) -> list[str]:
    """Give the rows of a file in which both sides meet."""
    return [entry.row(stage) for stage, entry in enumerate(versions, start=1) if entry]
