"""Bring a working tree from one patched commit to another, keeping every edit of the user's by three-way merge.

Private refs remember what is ours: `applied` is the patched commit that the tree was last brought to, `pending` the one
that it is on its way to, `passed/*` those that it was on its way to when moves were killed, `before` holds the files as
they were before a move that ended in conflicts. Everything is worked out before the first byte is written. A killed
move leaves each file in one of two known states, so the next move finishes it, or turns back.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from patchlock import merging, standing, trees
from patchlock.checkout import git
from patchlock.errors import SourceConflictError, UnsafePathError
from patchlock.model import CommitId
from patchlock.standing import Standing
from patchlock.trees import Entries, Tree, commit_of

APPLIED, PENDING, _PASSED, _BEFORE, ABORTED = "applied", "pending", "passed", "before", "aborted"
_RECORD = "conflicts.json"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """What a move did, by path from the root of the tree."""

    written: tuple[PurePosixPath, ...]
    merged: tuple[PurePosixPath, ...]
    """Files where the user's edits and ours were joined."""
    kept: tuple[PurePosixPath, ...]
    """Files that upstream no longer has and that the user had changed: they stay."""
    removed: tuple[PurePosixPath, ...]
    """Files that the user removed or renamed with git, and that would have been written: they stay away."""
    conflicts: tuple[PurePosixPath, ...]
    """Files that were left with both sides between markers; empty unless that was asked for."""


@dataclasses.dataclass(slots=True)
class _Plan:
    """What a move will write; nothing has been written yet."""

    writes: dict[PurePosixPath, bytes | None] = dataclasses.field(default_factory=dict)
    merged: list[PurePosixPath] = dataclasses.field(default_factory=list)
    kept: list[PurePosixPath] = dataclasses.field(default_factory=list)
    removed: list[PurePosixPath] = dataclasses.field(default_factory=list)
    conflicts: dict[PurePosixPath, tuple[bytes | None, bytes, bytes]] = dataclasses.field(default_factory=dict)
    """Path → what both sides come from, the user's side, ours."""
    resolved: list[PurePosixPath] = dataclasses.field(default_factory=list)
    """Files in which git had left a conflict that is none for us."""
    looked_at: tuple[PurePosixPath, ...] = ()
    """All files that the move may write, and a killed one may have been writing."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
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


def applied(tree: Tree) -> CommitId | None:
    """Name the patched commit that a tree was last brought to, or None."""
    return commit_of(tree.repository, tree.ref(APPLIED)) if tree.has_repository else None


def move(tree: Tree, target: CommitId, *, restore_all: bool = False, leave_conflicts: bool = False) -> Moved:
    """Bring the working tree from the applied commit to another, joining the user's edits by three-way merge.

    A patched file that is missing comes back, unless the user removed it with git. Where the user pulled, rebased or
    checked out another commit himself, the version that is nearest to his file is what his edits are counted from.

    Args:
        tree: the working tree.
        target: the patched commit.
        restore_all: bring every missing file of upstream back, not only patched ones.
        leave_conflicts: where the user's edits and ours meet, leave both between markers, as git does; see `abort`.

    Raises:
        SourceConflictError: names the files where the user's edits and ours touch the same lines; nothing was written.
        UnsafePathError: a path leaves the tree.
    """
    _finish_conflicts(tree)
    base = commit_of(tree.repository, tree.ref(APPLIED))
    where = standing.of(tree, base) if tree.is_clone else None
    pending = commit_of(tree.repository, tree.ref(PENDING))
    if pending is not None and pending != target:
        git("update-ref", tree.ref(f"{_PASSED}/{pending}"), pending, repository=tree.repository)
    plan = _plan(tree, base or target, target, where, restore_all=restore_all)
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
    git("update-ref", tree.ref(APPLIED), target, repository=tree.repository)
    if pending is not None:
        _forget_passed(tree)
    git("update-ref", "-d", tree.ref(PENDING), repository=tree.repository)
    return Moved(
        written=tuple(plan.writes),
        merged=tuple(plan.merged),
        kept=tuple(plan.kept),
        removed=tuple(plan.removed),
        conflicts=tuple(sorted(plan.conflicts)),
    )


def _passed(tree: Tree) -> list[CommitId]:
    listed = git("for-each-ref", "--format=%(objectname)", tree.ref(f"{_PASSED}/"), repository=tree.repository).text
    return [CommitId(line) for line in listed.splitlines()]


def _forget_passed(tree: Tree) -> None:
    for commit in _passed(tree):
        git("update-ref", "-d", tree.ref(f"{_PASSED}/{commit}"), repository=tree.repository)


def _plan(tree: Tree, base: CommitId, target: CommitId, where: Standing | None, *, restore_all: bool) -> _Plan:
    repository = tree.repository
    origin = trees.entries(repository, trees.upstream_of(repository, base))
    is_cut = commit_of(repository, tree.ref(PENDING)) is not None
    passed = [commit for commit in _passed(tree) if commit != target] if is_cut else []
    states = _States(
        before=trees.entries(repository, base),
        passed=tuple(trees.entries(repository, commit) for commit in passed),
        pulled=trees.entries(repository, _pulled(tree, target, where)) if where else origin,
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
    plan = _Plan(removed=sorted(removed), looked_at=tuple(changed))
    for path in (path for path in changed if path not in removed):
        new = data[states.after[path].blob] if path in states.after else None
        versions = [data[blob] if blob else None for blob in states.versions(path)]
        _decide(tree, plan, path, versions, new, where)
    return plan


def _pulled(tree: Tree, target: CommitId, where: Standing) -> CommitId | None:
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
    plan: _Plan,
    path: PurePosixPath,
    known: list[bytes | None],
    new: bytes | None,
    where: Standing | None,
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
            plan.conflicts[path] = (known[0], mine or b"", new or b"")
            return
        mine = side
        plan.resolved.append(path)
    if merging.is_converted(mine, [*known, new]):  # git gave the file the line endings of this machine
        stored = merging.stored(mine)
        _decide_text(plan, tree, path, stored, known, new)
        if (data := plan.writes.get(path)) is not None:
            plan.writes[path] = merging.converted(data)
        return
    _decide_text(plan, tree, path, mine, known, new)


def _decide_text(
    plan: _Plan, tree: Tree, path: PurePosixPath, mine: bytes | None, known: list[bytes | None], new: bytes | None
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
    tree: Tree, path: PurePosixPath, mine: bytes | None, unmerged: standing.Unmerged, pulled: bytes | None
) -> bytes | None:
    """Give the user's side of a file in which git left a conflict; None where he has begun to resolve it himself."""
    if mine is None or unmerged.ours is None or unmerged.theirs is None:
        return None
    left = merging.merge(tree.repository, path, unmerged.ours, unmerged.base or b"", unmerged.theirs)
    if standing.without_labels(left.data) != standing.without_labels(mine):
        return None if standing.has_markers(mine) else mine
    if unmerged.ours == pulled:
        return unmerged.theirs
    return unmerged.ours if unmerged.theirs == pulled else None


def _join(tree: Tree, plan: _Plan, path: PurePosixPath, mine: bytes, known: list[bytes | None], new: bytes) -> None:
    bases = merging.by_nearness(mine, known)
    for base in [base for i, base in enumerate(bases) if i == 0 or base != new]:
        joined = merging.merge(tree.repository, path, mine, base, new)
        if joined.is_clean:
            if joined.data != mine or path in plan.resolved:
                plan.writes[path] = joined.data
            plan.merged.append(path)
            return
    nearest = bases[0] if bases else None
    plan.conflicts[path] = (nearest, mine, new)
    plan.resolved = [other for other in plan.resolved if other != path]
    plan.writes[path] = merging.merge(tree.repository, path, mine, nearest or b"", new).data


def _follow(tree: Tree, base: CommitId, target: CommitId) -> None:
    """Move the user's branch along where he has not committed anything: it stands on the commit that we put there."""
    old, new = (trees.upstream_of(tree.repository, commit) for commit in (base, target))
    head = commit_of(tree.repository, "HEAD")
    if old != new and head == old:
        git("update-ref", "HEAD", new, old, repository=tree.repository)
        _move_index(tree, old, new)


def _move_index(tree: Tree, old: CommitId, new: CommitId) -> None:
    """Let the index follow from one commit to another; what the user has staged stays staged."""
    staged = _staged(tree, old)
    before, after = (trees.entries(tree.repository, commit) for commit in (old, new))
    changed = [p for p in before.keys() | after.keys() if before.get(p) != after.get(p) and p not in staged]
    rows = [_row("0", "0" * 40, 0, path) for path in changed if path not in after]
    rows += [_row(_mode(after[path]), after[path].blob, 0, path) for path in changed if path in after]
    _write_index(tree, rows)


def _staged(tree: Tree, commit: CommitId | None) -> dict[PurePosixPath, str]:
    """Give the index rows of all files that the user has staged since a commit; "" for one that he removed."""
    listed = git("ls-files", "--stage", "-z", repository=tree.repository).stdout.split(b"\0")
    have = {
        PurePosixPath(os.fsdecode(name)): head.decode() for row in listed for head, _, name in [row.partition(b"\t")]
    }
    have.pop(PurePosixPath("."), None)
    entries = trees.entries(tree.repository, commit)
    same = {path: f"{_mode(entry)} {entry.blob} 0" for path, entry in entries.items()}
    return {path: have.get(path, "") for path in have.keys() | same.keys() if have.get(path, "") != same.get(path, "")}


def _mode(entry: trees.Entry) -> str:
    return "100755" if entry.is_executable else "100644"


def _tell_index(tree: Tree, plan: _Plan, where: Standing | None) -> None:
    """Make the index say what git's own would: conflicts with their three versions, and what is none any more."""
    rows: list[str] = []
    for path, (base, mine, new) in plan.conflicts.items():
        stages = [(stage, data) for stage, data in ((1, base), (2, mine), (3, new)) if data is not None]
        rows.append(_row("0", "0" * 40, 0, path))
        rows += [_row("100644", _blob(tree, data), stage, path) for stage, data in stages]
    head = trees.entries(tree.repository, commit_of(tree.repository, "HEAD"))
    for path in plan.resolved:
        data = plan.writes.get(path)
        is_committed_next = bool(where and where.unfinished) and data is not None
        blob = _blob(tree, data) if is_committed_next and data is not None else head[path].blob if path in head else ""
        rows.append(_row("0", "0" * 40, 0, path))
        rows += [_row("100644", blob, 0, path)] if blob else []
    _write_index(tree, rows)


def _row(mode: str, blob: str, stage: int, path: PurePosixPath) -> str:
    return f"{mode} {blob} {stage}\t{path}"


def _blob(tree: Tree, data: bytes) -> str:
    return git("hash-object", "-w", "--stdin", repository=tree.repository, stdin=data).text


def _write_index(tree: Tree, rows: Iterable[str]) -> None:
    stdin = "".join(f"{row}\0" for row in rows).encode("utf-8", errors="surrogateescape")
    if stdin:
        git("update-index", "-z", "--index-info", repository=tree.repository, stdin=stdin)


# --- conflicts --------------------------------------------------------------------------------------------------------


def _remember(tree: Tree, plan: _Plan, base: CommitId | None, target: CommitId) -> None:
    """Keep the files as they are, so that one command brings them back."""
    paths = sorted(plan.writes.keys() | plan.conflicts.keys())
    head = commit_of(tree.repository, "HEAD") if tree.is_clone else None
    files = {path: trees.read(tree, path) for path in paths}
    staged = _staged(tree, head) if tree.is_clone else {}
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
        "before": saved,
        "paths": [str(path) for path in paths],
        "missing": [str(path) for path, data in files.items() if data is None],
        "conflicts": [str(path) for path in sorted(plan.conflicts)],
        "staged": {str(path): staged[path] for path in plan.conflicts if path in staged},
    }
    _record(tree).write_text(json.dumps(record, indent=1), encoding="utf-8")


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
    return tuple(path for path in paths if standing.has_markers(trees.read(tree, path) or b""))


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
        paths = [PurePosixPath(str(path)) for path in _listed(record, "conflicts")]
        kept = record.get("staged")
        staged = kept if isinstance(kept, dict) else {}
        rows = [_row("0", "0" * 40, 0, path) for path in paths]
        rows += [f"{row}\t{path}" for path, row in staged.items() if row.endswith(" 0")]
        rows += [_row(_mode(head[p]), head[p].blob, 0, p) for p in paths if p in head and str(p) not in staged]
        _write_index(tree, rows)
    _record(tree).unlink(missing_ok=True)


def abort(tree: Tree) -> tuple[PurePosixPath, ...]:
    """Go back to the files as they were before a move that met conflicts, byte for byte.

    What stands there now is kept under the ref `aborted`.

    Returns:
        The files that were brought back; none where no move left conflicts.
    """
    record = _read_record(tree)
    if record is None:
        return ()
    repository = tree.repository
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
    head = record.get("head")
    now_head = commit_of(repository, "HEAD")
    if isinstance(head, str) and now_head is not None and now_head != head:
        git("update-ref", "HEAD", head, repository=repository)
        _move_index(tree, now_head, CommitId(head))
    applied = record.get("applied")
    words = [tree.ref(APPLIED), applied] if isinstance(applied, str) else ["-d", tree.ref(APPLIED)]
    git("update-ref", *words, repository=repository)
    _forget_passed(tree)
    git("update-ref", "-d", tree.ref(PENDING), repository=repository)
    _forget(tree, record)
    return tuple(paths)
