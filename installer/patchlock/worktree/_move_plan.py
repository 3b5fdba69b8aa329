"""Work out what a move of the working tree from one patched commit to another will write; writes nothing of it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.model.errors import UnsafePathError
from patchlock.model.identities import CommitId
from patchlock.worktree import _branch_state, _merge, trees
from patchlock.worktree._branch_state import BranchState
from patchlock.worktree.trees import Entries, Tree
from patchlock.worktree.upstream_cache import git


@dataclasses.dataclass(slots=True)
class Plan:
    """What a move will write; nothing has been written yet."""

    writes: dict[PurePosixPath, bytes | None] = dataclasses.field(default_factory=dict)
    merged: list[PurePosixPath] = dataclasses.field(default_factory=list)
    kept: list[PurePosixPath] = dataclasses.field(default_factory=list)
    removed: list[PurePosixPath] = dataclasses.field(default_factory=list)
    conflicts: dict[PurePosixPath, tuple[bytes | None, bytes, bytes]] = dataclasses.field(default_factory=dict)
    """Path → what both sides come from, the user's side, ours."""
    resolved: list[PurePosixPath] = dataclasses.field(default_factory=list)
    """Files in which git had left a conflict that is none for us."""
    left_by_git: list[PurePosixPath] = dataclasses.field(default_factory=list)
    """Files in which git had left a conflict that is one for us too: the user ends it with git."""
    is_pulled: bool = False
    """Git has brought the clone forward since the last move."""
    looked_at: tuple[PurePosixPath, ...] = ()
    """All files that the move may write, and a killed one may have been writing."""


@dataclass(frozen=True, kw_only=True)
class _States:
    """All the commits whose files may stand in the tree without being an edit of the user's."""

    before: Entries
    """What the tree was last brought to."""
    passed: tuple[Entries, ...]
    """What killed moves were bringing it to, if that was elsewhere: the user's edits were joined with that."""
    pulled: Entries
    """Upstream, as the user's branch has it now."""
    origin: Entries
    """Upstream, as it was when the tree was last patched."""
    after: Entries
    """Where it goes."""

    def versions(self, path: PurePosixPath) -> list[str | None]:
        """Give the blob of a file in each state, None where it lacks it; that which it was brought to comes first."""
        known = (self.before, self.pulled, self.origin, *self.passed)
        return [state[path].blob if path in state else None for state in known]


def work_out(
    tree: Tree,
    base: CommitId,
    target: CommitId,
    where: BranchState | None,
    *,
    passed: Iterable[CommitId],
    restore_all: bool,
) -> Plan:
    """Decide about every file that a move may have to write.

    Args:
        tree: the working tree.
        base: the patched commit that it was last brought to, or the target where there is none.
        target: the patched commit that it is brought to.
        where: where the user's branch stands; None in a folder that is no clone.
        passed: what killed moves were bringing the tree to.
        restore_all: bring every missing file of upstream back, not only patched ones.

    Raises:
        UnsafePathError: a path leaves the tree.
    """
    repository = tree.repository
    last = trees.upstream_of(repository, base)
    origin = trees.entries(repository, last)
    pulled = _pulled(tree, target, where) if where else last
    states = _States(
        before=trees.entries(repository, base),
        passed=tuple(trees.entries(repository, commit) for commit in passed),
        pulled=trees.entries(repository, pulled),
        origin=origin,
        after=trees.entries(repository, target),
    )
    wanted = trees.entries(repository, trees.upstream_of(repository, target))
    known = (states.before, states.pulled, states.after, *states.passed)
    paths = set().union(*(state.keys() for state in known))
    changed = [path for path in sorted(paths) if _is_changed(tree, states, wanted, path, restore_all=restore_all)]
    everything = (*known, states.origin)
    listed = [state[path] for state in everything for path in changed if path in state]
    data = trees.contents(repository, listed)
    removed = set() if where is None or restore_all else _removed(tree, states, changed)
    plan = Plan(removed=sorted(removed), looked_at=tuple(changed))
    plan.is_pulled = pulled not in {None, last} and trees.is_ancestor(repository, last, pulled)
    for path in (path for path in changed if path not in removed):
        new = data[states.after[path].blob] if path in states.after else None
        versions = [data[blob] if blob else None for blob in states.versions(path)]
        _decide(tree, plan, path, versions, new, where)
    return plan


def _pulled(tree: Tree, target: CommitId, where: BranchState) -> CommitId | None:
    """Name what git last checked out: the user's own branch where that is what is patched, or upstream's commit."""
    return where.head if trees.upstream_of(tree.repository, target) == where.head else where.upstream


def _is_changed(tree: Tree, states: _States, wanted: Entries, path: PurePosixPath, *, restore_all: bool) -> bool:
    """Tell whether a file may have to be written."""
    after = states.after.get(path)
    if any(state.get(path) != after for state in (states.before, states.pulled, *states.passed)):
        return True
    is_ours = after is not None and wanted.get(path) != after
    return after is not None and (restore_all or is_ours) and not trees.exists(tree, path)


def _removed(tree: Tree, states: _States, paths: Iterable[PurePosixPath]) -> set[PurePosixPath]:
    """Choose the files that the user removed with git: his upstream has them, and neither his tree nor his index."""
    known = states.pulled.keys() | states.origin.keys()
    missing = {path for path in paths if path in known and path in states.after and not trees.exists(tree, path)}
    if not missing:
        return missing
    listed = git("ls-files", "-z", repository=tree.repository).stdout.split(b"\0")
    return missing - {PurePosixPath(os.fsdecode(name)) for name in listed}


def _decide(
    tree: Tree,
    plan: Plan,
    path: PurePosixPath,
    known: list[bytes | None],
    new: bytes | None,
    where: BranchState | None,
) -> None:
    """Decide about one file: write ours, keep the user's, join both, or tell that they meet."""
    if trees.is_link(tree, path) and new is not None:
        raise UnsafePathError(
            f"{path} is a link of yours, where a file of upstream belongs",
            where=str(tree.root),
            remedy="put a file in its place, or undo the link with git, and run this again",
        )
    mine = trees.read(tree, path)
    if where is not None and path in where.unmerged:
        side = _users_side(tree, path, mine, where.unmerged[path], known[1])
        if side is None:
            plan.left_by_git.append(path)
            return
        if side != mine:  # it comes from before what git has brought, so its edits are not counted from that
            before, pulled, origin = known[:3]
            base = where.unmerged[path].base
            known = [base, base, base] if origin == pulled else [before, base, origin]
        mine = side
        plan.resolved.append(path)
    if _merge.is_converted(mine, [*known, new]):  # git gave the file the line endings of this machine
        stored = _merge.to_lf(mine)
        _decide_text(plan, tree, path, stored, known, new)
        if (data := plan.writes.get(path)) is not None:
            plan.writes[path] = _merge.to_crlf(data)
        return
    _decide_text(plan, tree, path, mine, known, new)


def _decide_text(
    plan: Plan, tree: Tree, path: PurePosixPath, mine: bytes | None, known: list[bytes | None], new: bytes | None
) -> None:
    if mine == new:
        if path in plan.resolved:
            plan.writes[path] = new
        return
    if mine is None:
        if trees.exists(tree, path):  # a folder or a broken link of the user's stands there
            plan.conflicts[path] = (known[0], b"", new or b"")
        else:
            plan.writes[path] = new
    elif mine in known:
        plan.writes[path] = new
    elif new is None:
        plan.kept.append(path)
    else:
        _join(tree, plan, path, mine, known, new)


def _users_side(
    tree: Tree, path: PurePosixPath, mine: bytes | None, unmerged: _branch_state.Unmerged, pulled: bytes | None
) -> bytes | None:
    """Give the user's side of a file in which git left a conflict; None where he has begun to resolve it himself."""
    if mine is None or unmerged.ours is None or unmerged.theirs is None:
        return None
    left = _merge.merge(tree.repository, path, unmerged.ours, unmerged.base or b"", unmerged.theirs)
    if _branch_state.without_labels(left.data) != _branch_state.without_labels(mine):
        return None if _branch_state.has_markers(mine) else mine
    if unmerged.ours == pulled:
        return unmerged.theirs
    return unmerged.ours if unmerged.theirs == pulled else None


def _join(tree: Tree, plan: Plan, path: PurePosixPath, mine: bytes, known: list[bytes | None], new: bytes) -> None:
    bases = _merge.by_nearness(mine, known)
    for base in [base for i, base in enumerate(bases) if i == 0 or base != new]:
        joined = _merge.merge(tree.repository, path, mine, base, new)
        if joined.is_clean:
            if joined.data != mine or path in plan.resolved:
                plan.writes[path] = joined.data
            plan.merged.append(path)
            return
    before, pulled, origin = known[:3]
    # No patch is in it, and git has brought upstream's version already: what differs is what the user chose then.
    if plan.is_pulled and before == origin and pulled == new:
        if path in plan.resolved:
            plan.writes[path] = mine
        plan.merged.append(path)
        return
    if path in plan.resolved:
        plan.resolved.remove(path)
        plan.left_by_git.append(path)
        return
    nearest = bases[0] if bases else None
    plan.conflicts[path] = (nearest, mine, new)
    plan.writes[path] = _merge.merge(tree.repository, path, mine, nearest or b"", new).data
