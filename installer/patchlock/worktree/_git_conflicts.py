"""Conflicts that git has left in the user's clone: which of them the move ends, and which are his to end with git."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.worktree import _branch_state, _merge, _snapshot, _tree_merge, trees
from patchlock.worktree._branch_state import BranchState, Unmerged
from patchlock.worktree._goal import ByMeaning
from patchlock.worktree._known_versions import KnownVersions
from patchlock.worktree.trees import Entries, Entry, Tree


@dataclass(frozen=True, slots=True)
class GitConflicts:
    """What becomes of the files in which git has left a conflict that has something of ours in it."""

    sides: dict[PurePosixPath, Entry | None] = dataclasses.field(default_factory=dict)
    """The user's side of a conflict that is none for us; None where git has moved the file aside from its place."""
    bases: dict[PurePosixPath, list[Entry | None]] = dataclasses.field(default_factory=dict)
    """Of those whose side comes from git's index: what it may come from."""
    unsolved: list[PurePosixPath] = dataclasses.field(default_factory=list)
    """Conflicts that are ones for us too: the user ends them with git."""


def read(
    tree: Tree, known: KnownVersions, new: Entries, where: BranchState | None, by_meaning: ByMeaning | None
) -> GitConflicts:
    """Find the user's side of each file in which git has left a conflict, where it can be told.

    Args:
        tree: the working tree.
        known: what may stand in it.
        new: what the move brings.
        where: where the user's branch stands; None in a folder that is no clone.
        by_meaning: applies the patches to a version of a file.
    """
    found = GitConflicts()
    for path, unmerged in (where.unmerged if where else {}).items():
        if (aside := _moved_aside(tree, path, unmerged, known)) is not None:
            found.sides[path], found.bases[path] = aside, [aside]
            if (place := _place_of(path)) in known.pulled:
                found.sides[place], found.bases[place] = None, [None]
            continue
        # The patches may have been committed, here or elsewhere, in another version than the one known to be applied.
        made = by_meaning(path, unmerged.base) if by_meaning and unmerged.base is not None else None
        patched = made.data if made is not None and made.data != unmerged.base else None
        before, pulled, origin = known.before.get(path), known.pulled.get(path), known.origin.get(path)
        if new.get(path) == before == pulled and patched is None:
            continue  # nothing of ours is in it
        side = _users_side(tree, path, unmerged, pulled)
        if side is None:
            found.unsolved.append(path)
            continue
        data, is_staged = side
        is_merging = where is not None and bool(where.unfinished)
        if is_merging and not _has_patches(tree, path, unmerged, known, patched):
            continue  # what meets there is the user's own work and upstream's
        found.sides[path] = _stored(tree, data, unmerged)
        if is_staged:  # it comes from before what git has brought, so its edits are not counted from that
            base = _stored(tree, unmerged.base, unmerged) if unmerged.base is not None else None
            bases = [base] if origin == pulled else [before, base, origin]
            found.bases[path] = [*bases, *([_stored(tree, patched, unmerged)] if patched is not None else [])]
    return found


def _has_patches(
    tree: Tree, path: PurePosixPath, unmerged: Unmerged, known: KnownVersions, patched: bytes | None
) -> bool:
    """Tell whether patches are committed in a version of a file that git could not merge, or in what both come from."""
    stored = [entry for entry in (known.origin.get(path), known.before.get(path)) if entry and entry.is_file]
    data = trees.contents(tree.repository, stored)
    pairs = [(data[stored[0].blob], data[stored[1].blob])] if len(stored) == 2 else []
    pairs += [(unmerged.base, patched)] if patched is not None and unmerged.base is not None else []
    sides = [side for side in (unmerged.base, unmerged.ours, unmerged.theirs) if side is not None]
    return any(old != new and _merge.has(tree.repository, path, side, old, new) for old, new in pairs for side in sides)


def _users_side(tree: Tree, path: PurePosixPath, unmerged: Unmerged, pulled: Entry | None) -> tuple[bytes, bool] | None:
    """Give the user's side of a file in which git left a conflict, None where he has begun to resolve it himself.

    Returns:
        His side, and whether it is one of the versions in git's index.
    """
    mine = _snapshot.stored(tree, [path])[path]
    if mine is None:
        return None
    if (
        unmerged.ours is None or unmerged.theirs is None
    ):  # one side has removed it: where upstream has, the other is his
        return (mine, True) if pulled is None and mine in {unmerged.ours, unmerged.theirs} else None
    if not _is_untouched(tree, path, unmerged, mine):
        return None if _branch_state.has_markers(mine) else (mine, False)
    known = trees.content(tree.repository, pulled) if pulled and pulled.is_file else None
    if unmerged.ours == known:
        return unmerged.theirs, True
    return (unmerged.ours, True) if unmerged.theirs == known else None


def _is_untouched(tree: Tree, path: PurePosixPath, unmerged: Unmerged, mine: bytes) -> bool:
    """Tell whether a file is as git has left it; its merges find changed lines in another way than its stashes."""
    ours, theirs = unmerged.ours or b"", unmerged.theirs or b""
    wanted = _branch_state.without_labels(mine)
    if (
        _branch_state.without_labels(_merge.merge(tree.repository, path, ours, unmerged.base or b"", theirs).data)
        == wanted
    ):
        return True
    if not _tree_merge.is_possible():
        return False
    base = None if unmerged.base is None else _stored(tree, unmerged.base, unmerged)
    joined, _ = _tree_merge.merge_paths(
        tree, {path: (base, _stored(tree, ours, unmerged), _stored(tree, theirs, unmerged))}
    )
    entry = joined[path]
    return entry is not None and _branch_state.without_labels(trees.content(tree.repository, entry)) == wanted


def _place_of(path: PurePosixPath) -> PurePosixPath:
    """Say where a file belongs that git has moved aside as `NAME~SIDE`, because a folder stands there."""
    return PurePosixPath(str(path).rpartition("~")[0])


def _moved_aside(tree: Tree, path: PurePosixPath, unmerged: Unmerged, known: KnownVersions) -> Entry | None:
    """Give a file that git has moved aside, where it is a known version; None where the user's edits are in it."""
    sides = [side for side in (unmerged.ours, unmerged.theirs) if side is not None]
    blobs = {entry.blob for entry in known.of_path(_place_of(path)) if entry is not None}
    if not blobs or unmerged.base is not None or sides != [_snapshot.stored(tree, [path])[path]]:
        return None
    entry = _stored(tree, sides[0], unmerged)
    return entry if entry.blob in blobs else None


def _stored(tree: Tree, data: bytes, unmerged: Unmerged) -> Entry:
    return trees.stored_file(tree, data, "100755" if unmerged.is_executable else "100644")
