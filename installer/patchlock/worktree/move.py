"""Bring a working tree from one patched commit to another, keeping every edit of the user's by three-way merge.

Private refs remember what is ours: `applied` is the patched commit that the tree was last brought to, `pending` the one
that it is on its way to, `passed/*` those that it was on its way to when moves were killed, `before` holds the files as
they were before a move that ended in conflicts. Everything is worked out before the first byte is written. A killed
move leaves each file in one of two known states, so the next move finishes it, or turns back.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.core.atomic_files import atomic_write
from patchlock.model.errors import GitFirstError, SourceConflictError
from patchlock.model.identities import CommitId
from patchlock.worktree import _branch_state, _index, _move_plan, trees
from patchlock.worktree._branch_state import BranchState
from patchlock.worktree._move_plan import Plan
from patchlock.worktree.trees import Tree, commit_of
from patchlock.worktree.upstream_cache import git

APPLIED, PENDING, _PASSED, _BEFORE, ABORTED = "applied", "pending", "passed", "before", "aborted"
_RECORD = "conflicts.json"
_SHOWN = 5
"""Paths that a message names at most."""


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What a move did, by path from the root of the tree."""

    written: tuple[PurePosixPath, ...]
    merged: tuple[PurePosixPath, ...] = ()
    """Files where the user's edits and ours were joined."""
    kept: tuple[PurePosixPath, ...] = ()
    """Files that upstream no longer has and that the user had changed: they stay."""
    removed: tuple[PurePosixPath, ...] = ()
    """Files that the user removed or renamed with git, and that would have been written: they stay away."""
    conflicts: tuple[PurePosixPath, ...] = ()
    """Files that were left with both sides between markers; empty unless that was asked for."""
    left_by_git: tuple[PurePosixPath, ...] = ()
    """Those of `conflicts` that are git's own: neither the files nor their rows in the index were touched."""


def applied(tree: Tree) -> CommitId | None:
    """Name the patched commit that a tree was last brought to, or None."""
    return commit_of(tree.repository, tree.ref(APPLIED)) if tree.has_repository else None


def move(
    tree: Tree,
    target: CommitId,
    *,
    restore_all: bool = False,
    leave_conflicts: bool = False,
    beside_git: bool = False,
    is_way_back: bool = False,
) -> Moved:
    """Bring the working tree from the applied commit to another, joining the user's edits by three-way merge.

    A patched file that is missing comes back, unless the user removed it with git. Where the user pulled, rebased or
    checked out another commit himself, the version that is nearest to his file is what his edits are counted from.

    Args:
        tree: the working tree.
        target: the patched commit.
        restore_all: bring every missing file of upstream back, not only patched ones.
        leave_conflicts: where the user's edits and ours meet, leave both between markers, as git does; see `abort`.
        beside_git: git has brought the branch there: leave the files in which it left conflicts to the user, and write
            the others; nothing at all in the middle of a merge or the like, which must be able to go on or back.
        is_way_back: a move that failed is taken back, so do not refuse; the branch follows only where it can.

    Raises:
        GitFirstError: upstream changes what a move does not carry over, or git's own conflict is one for us too, and
            `beside_git` was not asked for; nothing was changed.
        SourceConflictError: names the files where the user's edits and ours touch the same lines; nothing was written.
        UnsafePathError: a path leaves the tree.
    """
    if not is_way_back:
        require_carried(tree, target)
    _finish_conflicts(tree)
    base = commit_of(tree.repository, tree.ref(APPLIED))
    where = _branch_state.read(tree, base) if tree.is_clone else None
    pending = commit_of(tree.repository, tree.ref(PENDING))
    if pending is not None and pending != target:
        git("update-ref", tree.ref(f"{_PASSED}/{pending}"), pending, repository=tree.repository)
    passed = [commit for commit in _passed(tree) if commit != target] if pending is not None else []
    plan = _move_plan.work_out(tree, base or target, target, where, passed=passed, restore_all=restore_all)
    if plan.left_by_git and not beside_git:
        raise git_first(tree, sorted(plan.left_by_git))
    left = tuple(sorted(where.unmerged.keys() - {*plan.resolved})) if where and beside_git else ()
    if left and where and where.unfinished:
        return Moved(written=(), conflicts=left, left_by_git=left)
    if plan.conflicts and not leave_conflicts:
        raise SourceConflictError(
            f"your edits and ours meet in {', '.join(map(str, sorted(plan.conflicts)))}, so nothing was written",
            where=str(tree.root),
            remedy=f"see yours with `git -C {tree.repository} diff {tree.ref(APPLIED)}`, undo or move them, and "
            "run this again",
        )
    modes = trees.entries(tree.repository, target)
    if plan.conflicts:
        _remember(tree, plan, base, target)
    if pending is not None:
        trees.clear(tree, plan.looked_at)
    git("update-ref", tree.ref(PENDING), target, repository=tree.repository)
    for path, data in plan.writes.items():
        is_executable = path in modes and modes[path].is_executable
        trees.write(tree, path, data, is_executable=is_executable)
    if tree.is_clone:
        _follow(tree, base or target, target)
        _tell_index(tree, plan, where)
    if left:
        _apply_without(tree, target, left)
    else:
        git("update-ref", tree.ref(APPLIED), target, repository=tree.repository)
    if pending is not None:
        _forget_passed(tree)
    git("update-ref", "-d", tree.ref(PENDING), repository=tree.repository)
    return Moved(
        written=tuple(plan.writes),
        merged=tuple(plan.merged),
        kept=tuple(plan.kept),
        removed=tuple(plan.removed),
        conflicts=tuple(sorted({*plan.conflicts, *left})),
        left_by_git=left,
    )


def require_carried(tree: Tree, target: CommitId, by_git: str = "", again: str = "run this again") -> None:
    """Refuse to bring a clone over changes of upstream's links, submodules or modes: a move writes contents alone.

    Where git itself has brought the user's branch there, they are right already.

    Args:
        tree: the clone; any other folder has none of these.
        target: the commit to go to, patched or upstream's.
        by_git: the words of git that bring the branch there; "" for those that name the commit.
        again: what to do after that.

    Raises:
        GitFirstError: says what changed, and what to do.
    """
    repository, new = tree.repository, trees.upstream_of(tree.repository, target)
    head = commit_of(repository, "HEAD")
    if not tree.is_clone or head is None or head == new:
        return
    base = applied(tree)
    where = _branch_state.read(tree, base)
    changed = trees.not_carried(repository, where.upstream, new) if where.upstream else ()
    if not changed:
        return
    root = shlex.quote(str(tree.root))
    undo = f"`patchlock patch undo --source {root}`, " if base else ""
    is_back = trees.is_ancestor(repository, new, head)
    is_merge = trees.is_ancestor(repository, head, new) or (where.commits and not is_back)
    by_git = by_git or f"{'merge --autostash' if is_merge else 'checkout'} {new[:12]}"
    raise GitFirstError(
        "upstream changes symbolic links, submodules or modes of files, which only git brings, so nothing was changed",
        where=str(tree.root),
        remedy=f"{undo}`git -C {root} {by_git}`, then {again}",
        evidence=_shown(changed),
    )


def _shown(changed: Sequence[str]) -> list[str]:
    rest = len(changed) - _SHOWN
    return [*changed[:_SHOWN], *([f"and {rest} more"] if rest > 0 else [])]


def _apply_without(tree: Tree, target: CommitId, left: Collection[PurePosixPath]) -> None:
    """Note as applied a patched commit without its patches of some files, which are still to be put there."""
    upstream = trees.upstream_of(tree.repository, target)
    before, after = (trees.entries(tree.repository, commit) for commit in (upstream, target))
    ours = {path: after[path] for path in after if before.get(path) != after[path] and path not in left}
    data = trees.contents(tree.repository, ours.values())
    trees.commit_files(
        tree.repository,
        {path: data[entry.blob] for path, entry in ours.items()},
        parent=upstream,
        message="patched, but for files with conflicts of git's\n",
        ref=tree.ref(APPLIED),
        executable=[path for path, entry in ours.items() if entry.is_executable],
    )


def _passed(tree: Tree) -> list[CommitId]:
    listed = git("for-each-ref", "--format=%(objectname)", tree.ref(f"{_PASSED}/"), repository=tree.repository).text
    return [CommitId(line) for line in listed.splitlines()]


def _forget_passed(tree: Tree) -> None:
    for commit in _passed(tree):
        git("update-ref", "-d", tree.ref(f"{_PASSED}/{commit}"), repository=tree.repository)


def _follow(tree: Tree, base: CommitId, target: CommitId) -> None:
    head = commit_of(tree.repository, "HEAD")
    new = _next_head(tree, base, target)
    if head and new and head != new:
        git("update-ref", "HEAD", new, head, repository=tree.repository)
        _index.follow(tree, head, new)


def _next_head(tree: Tree, base: CommitId, target: CommitId) -> CommitId | None:
    """Say where a move leaves the user's branch: it follows where it stands on the commit that we put there."""
    old, new = (trees.upstream_of(tree.repository, commit) for commit in (base, target))
    head = commit_of(tree.repository, "HEAD")
    return new if head == old and not trees.not_carried(tree.repository, old, new) else head


def _tell_index(tree: Tree, plan: Plan, where: BranchState | None) -> None:
    """Make the index say what git's own would: conflicts with their three versions, and what is none any more."""
    rows = [*map(_index.removal_row, plan.conflicts), *_conflict_rows(tree, plan)]
    head = trees.entries(tree.repository, commit_of(tree.repository, "HEAD"))
    for path in plan.resolved:
        data = plan.writes.get(path)
        is_committed_next = bool(where and where.unfinished) and data is not None
        entry = head.get(path)
        if is_committed_next and data is not None:
            entry = _index.store_blob(tree, data, like=entry)
        rows.append(_index.removal_row(path))
        rows += [_index.entry_row(path, entry)] if entry else []
    _index.write(tree, rows)


def _conflict_rows(tree: Tree, plan: Plan) -> list[str]:
    return [
        _index.entry_row(path, _index.store_blob(tree, data), stage=stage)
        for path, versions in plan.conflicts.items()
        for stage, data in enumerate(versions, start=1)
        if data is not None
    ]


# --- conflicts --------------------------------------------------------------------------------------------------------


def _remember(tree: Tree, plan: Plan, base: CommitId | None, target: CommitId) -> None:
    """Keep the files as they are, so that one command brings them back."""
    paths = sorted(plan.writes.keys() | plan.conflicts.keys())
    head = commit_of(tree.repository, "HEAD") if tree.is_clone else None
    files = {path: trees.read(tree, path) for path in paths}
    staged = _index.staged(tree, head) if tree.is_clone else {}
    unmerged = _index.unmerged(tree) if tree.is_clone else []
    saved = trees.commit_files(
        tree.repository,
        files,
        parent=base or target,
        message="before a move that met conflicts\n",
        ref=tree.ref(_BEFORE),
    )
    record = {
        "applied": base,
        "head": head,
        "next_head": _next_head(tree, base or target, target) if tree.is_clone else None,
        "before": saved,
        "paths": [str(path) for path in paths],
        "missing": [str(path) for path, data in files.items() if data is None],
        "conflicts": [str(path) for path in sorted(plan.conflicts)],
        "staged": {str(path): staged[path] for path in plan.conflicts if path in staged},
        "ours": _conflict_rows(tree, plan) if tree.is_clone else [],
        "resolved": [row for row in unmerged if _index.path_of(row) in plan.resolved],
    }
    atomic_write(_record(tree), json.dumps(record, indent=1))


def _record(tree: Tree) -> Path:
    return trees.repository_file(tree.repository, _RECORD)


def _read_record(tree: Tree) -> Mapping[str, object] | None:
    try:
        record = json.loads(_record(tree).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return record if isinstance(record, dict) else None


def conflicted(tree: Tree) -> tuple[PurePosixPath, ...] | None:
    """Name the files that still hold both sides of a conflict that a move left; None where no move left any."""
    record = _read_record(tree)
    if record is None:
        return None
    paths = [PurePosixPath(str(path)) for path in _listed(record, "conflicts")]
    return tuple(path for path in paths if _branch_state.has_markers(trees.read(tree, path) or b""))


def _listed(record: Mapping[str, object], key: str) -> list[object]:
    value = record.get(key)
    return value if isinstance(value, list) else []


def _finish_conflicts(tree: Tree) -> None:
    """Take note that the user has resolved what the last move left; or undo a move that was killed in the middle."""
    record = _read_record(tree)
    if record is None:
        return
    if commit_of(tree.repository, tree.ref(PENDING)) is not None:
        abort(tree)
        return
    left = conflicted(tree)
    if left:
        raise SourceConflictError(
            f"{', '.join(map(str, left))} still has conflict markers",
            where=str(tree.root),
            remedy="choose between the two sides in each, or go back with --abort; then run this again",
        )
    _forget(tree, record)


def _forget(tree: Tree, record: Mapping[str, object]) -> None:
    if tree.is_clone:
        head = trees.entries(tree.repository, commit_of(tree.repository, "HEAD"))
        others = {*map(_index.path_of, _not_ours(tree, record))}
        paths = [path for name in _listed(record, "conflicts") if (path := PurePosixPath(str(name))) not in others]
        kept = record.get("staged")
        staged = kept if isinstance(kept, dict) else {}
        rows = [_index.removal_row(path) for path in paths]
        rows += [f"{staged[str(path)]}\t{path}" for path in paths if staged.get(str(path), "").endswith(" 0")]
        rows += [_index.entry_row(path, head[path]) for path in paths if path in head and str(path) not in staged]
        _index.write(tree, rows)
    _record(tree).unlink(missing_ok=True)


def abort(tree: Tree) -> tuple[PurePosixPath, ...]:
    """Go back to the files as they were before a move that met conflicts, byte for byte.

    What stands there now is kept under the ref `aborted`.

    Returns:
        The files that were brought back; none where no move left conflicts.

    Raises:
        GitFirstError: git's own conflict stands there, or the user has moved his branch; nothing was changed.
    """
    record = _read_record(tree)
    if others := _not_ours(tree, record or {}):
        raise git_first(tree, sorted({*map(_index.path_of, others)}))
    if record is None:
        return ()
    repository = tree.repository
    head, now_head = record.get("head"), commit_of(repository, "HEAD")
    if tree.is_clone and now_head not in {head, record.get("next_head")}:
        is_cut = commit_of(repository, tree.ref(PENDING)) is not None
        raise GitFirstError(
            "your branch has moved since your edits and the patches met, so nothing was changed",
            where=str(tree.root),
            remedy=("" if is_cut else "choose between the two sides in each file and leave --abort out, or ")
            + f"`git -C {shlex.quote(str(tree.root))} checkout {str(head)[:12]}`, then run this again",
        )
    saved = CommitId(str(record["before"]))
    listed = trees.entries(repository, saved)
    paths = [PurePosixPath(str(path)) for path in _listed(record, "paths")]
    now = {path: trees.read(tree, path) for path in paths}
    trees.commit_files(
        repository, now, parent=saved, message="what was left when it was aborted\n", ref=tree.ref(ABORTED)
    )
    missing = set(_listed(record, "missing"))
    data = trees.contents(repository, [listed[path] for path in paths if path in listed])
    for path in paths:
        old = None if str(path) in missing else data[listed[path].blob]
        if old != now[path]:
            is_executable = path in listed and listed[path].is_executable
            trees.write(tree, path, old, is_executable=is_executable)
    if isinstance(head, str) and now_head is not None and now_head != head:
        git("update-ref", "HEAD", head, repository=repository)
        _index.follow(tree, now_head, CommitId(head))
    applied = record.get("applied")
    words = [tree.ref(APPLIED), applied] if isinstance(applied, str) else ["-d", tree.ref(APPLIED)]
    git("update-ref", *words, repository=repository)
    _forget_passed(tree)
    git("update-ref", "-d", tree.ref(PENDING), repository=repository)
    resolved = [str(row) for row in _listed(record, "resolved")]
    _index.write(tree, [*map(_index.removal_row, {*map(_index.path_of, resolved)}), *resolved])
    _forget(tree, record)
    return tuple(paths)


def _not_ours(tree: Tree, record: Mapping[str, object]) -> list[str]:
    """List the rows of git's own conflicts in the index, other than those that a move was to end."""
    known = {*_listed(record, "ours"), *_listed(record, "resolved")}
    return [row for row in _index.unmerged(tree) if row not in known] if tree.is_clone else []


def git_first(tree: Tree, paths: Sequence[PurePosixPath], *, is_part: bool = False) -> GitFirstError:
    """Say that git's own conflict in some files has to be ended first, and how; the others may have been written."""
    name, _ = _branch_state.unfinished(tree.repository)
    is_all = {*map(_index.path_of, _index.unmerged(tree))} <= {*paths}
    clone = shlex.join(["git", "-C", str(tree.root)])
    files = shlex.join(map(str, paths))
    finish = f"choose between the two sides in each, `{clone} add {files}`"
    if name:
        finish += f", `{clone} {name} --continue`" if is_all else ""
        give_up = f"go back with `{clone} {name} --abort`"
    else:
        give_up = f"where `git stash` left it, take `{clone} checkout HEAD -- {files}`: your side stays in the stash"
    so = "so no patch was put there" if is_part else "so nothing was changed"
    return GitFirstError(
        f"git's own conflict stands in {', '.join(map(str, paths))}, {so}",
        where=str(tree.root),
        remedy=f"{finish}, or {give_up}; then run this again",
    )
