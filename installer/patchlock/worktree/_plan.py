"""Plan a move: join the user's working tree with a patched commit by git's own merge; writes no file of the user's."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from patchlock.model.errors import GitFirstError, UnsafePathError
from patchlock.patches.edited_file import ReplacedEdit
from patchlock.worktree import _git_conflicts, _known_versions, _merge, _snapshot, _tree_merge, trees
from patchlock.worktree._branch_state import BranchState
from patchlock.worktree._git_conflicts import GitConflicts
from patchlock.worktree._goal import Goal, OwnVersion, OwnVersions
from patchlock.worktree._known_versions import KnownVersions, renamed
from patchlock.worktree._snapshot import Snapshot
from patchlock.worktree._tree_merge import Sides, Versions
from patchlock.worktree.trees import Entries, Entry, Tree


@dataclasses.dataclass(slots=True, kw_only=True)
class Plan:
    """What a move will do; nothing has been done yet."""

    puts: dict[PurePosixPath, Entry] = dataclasses.field(default_factory=dict)
    """What is written."""
    removes: list[PurePosixPath] = dataclasses.field(default_factory=list)
    merged: list[PurePosixPath] = dataclasses.field(default_factory=list)
    kept: list[PurePosixPath] = dataclasses.field(default_factory=list)
    removed: list[PurePosixPath] = dataclasses.field(default_factory=list)
    conflicts: dict[PurePosixPath, Versions] = dataclasses.field(default_factory=dict)
    """Path → what both sides come from, the user's side, ours."""
    resolved: dict[PurePosixPath, Entry | None] = dataclasses.field(default_factory=dict)
    """Files in which git had left a conflict that is none for us, and what becomes of them."""
    edited: set[PurePosixPath] = dataclasses.field(default_factory=set)
    """Files that the user has changed."""
    unstaged: dict[PurePosixPath, Entry] = dataclasses.field(default_factory=dict)
    """Files whose staged version meets what upstream has changed, or makes room for a conflict, and that version."""
    staged_in: str = ""
    """The commit that keeps those staged versions."""
    left_by_git: list[PurePosixPath] = dataclasses.field(default_factory=list)
    """Files in which git had left a conflict that is one for us too: the user ends it with git."""
    by_meaning: dict[PurePosixPath, OwnVersion] = dataclasses.field(default_factory=dict)
    """Files of the user's that were patched by meaning, or in which he has the patches' side to choose."""
    replaced: list[ReplacedEdit] = dataclasses.field(default_factory=list)
    """Edits of his that patches have replaced there."""
    renames: dict[PurePosixPath, PurePosixPath] = dataclasses.field(default_factory=dict)
    """Upstream's name of a file that the user has renamed with git → his, under which all else here names it."""

    def upstreams_name(self, path: PurePosixPath) -> PurePosixPath:
        """Give the name under which upstream has a file."""
        return next((old for old, his in self.renames.items() if his == path), path)

    def leave(self, paths: Collection[PurePosixPath]) -> None:
        """Write nothing of some files after all."""
        self.puts = {path: entry for path, entry in self.puts.items() if path not in paths}
        self.by_meaning = {path: own for path, own in self.by_meaning.items() if path not in paths}
        self.conflicts = {path: sides for path, sides in self.conflicts.items() if path not in paths}
        self.removes = [path for path in self.removes if path not in paths]
        self.merged = [path for path in self.merged if path not in paths]


def work_out(tree: Tree, goal: Goal, where: BranchState | None, work: Path) -> tuple[Snapshot, Plan]:
    """Decide about every path that a move may have to write.

    Args:
        tree: the working tree.
        goal: where it goes.
        where: where the user's branch stands; None in a folder that is no clone.
        work: a folder for indexes of ours.

    Raises:
        UnsafePathError: a link or a folder of the user's stands where a file belongs.
        GitFirstError: the user's edits and ours have to be merged, and git is too old for that.
    """
    new = trees.everything(tree.repository, goal.target)
    upstream = trees.upstream_of(tree.repository, goal.target)
    wanted = trees.everything(tree.repository, upstream)
    known = KnownVersions.of(tree, goal, where)
    snapshot, left = _look(tree, known, new, where, work, goal)
    if renames := {} if goal.restore_all else _users_renames(tree, known, new, snapshot):
        known, new, wanted = known.renamed(renames), renamed(renames, new), renamed(renames, wanted)
        snapshot, left = _look(tree, known, new, where, work, goal)
        files = {path: entry for path, entry in snapshot.files.items() if path not in renames}
        snapshot = dataclasses.replace(snapshot, files=files, missing=snapshot.missing - renames.keys())
    plan = Plan(resolved=dict.fromkeys(left.sides), left_by_git=left.unsolved, renames=renames)
    mine = snapshot.files
    own = {renames.get(path, path): version for path, version in goal.own.items()}
    own = {path: version for path, version in own.items() if path in mine and path not in plan.resolved}
    changed = [p for p in {**mine, **new} if new.get(p) != mine.get(p) or p in plan.resolved or p in own]
    changed = [p for p in changed if p in plan.resolved or p not in snapshot.unmerged]
    stands = {**mine, **(crlf := _known_versions.without_crlf(tree, mine, known, changed))}
    mine, bases, takes_out = stands, left.bases, upstream == goal.target
    if takes_out or goal.by_meaning is not None:
        own = {path: own[path] for path in changed if path in own}
        # Of the others he has taken another version himself.
        own = {p: one for p, one in own.items() if mine[p] == one.patched or mine[p] not in known.of_path(p)}
        if not takes_out:
            plan.by_meaning = _still_chosen(tree, plan, known, new, wanted, own, goal)
            own = {path: version for path, version in own.items() if path not in plan.by_meaning}
        back, forward = _go_back_to_own(tree, mine, known, new, own, is_last=takes_out)
        mine, new = {**mine, **back}, {**new, **forward}
        bases |= {path: [known.origin.get(path), known.pulled.get(path)] for path in back}
        bases |= {path: [own[path].patched] for path in forward}
        forks = trees.everything(tree.repository, where.head if where and goal.fork_of else None)
        _note_same(plan, mine, known, new, wanted, back, changed, forks)
    base = _known_versions.bases(
        tree, mine, known, new, changed, bases, restore_all=goal.restore_all, takes_out=takes_out
    )
    both = []
    result: dict[PurePosixPath, Entry | None] = {}
    for path in changed:
        if mine.get(path) == base[path]:
            result[path] = new.get(path)
            continue
        plan.edited.add(path)
        if path not in mine and path in new and wanted.get(path) != new[path]:
            plan.removed.append(path)
        if new.get(path) in {base[path], mine.get(path)}:
            result[path] = mine.get(path)
            if path in new and path in mine:
                plan.merged.append(path)
        else:
            both.append(path)
    if both:
        sides = {path: (base[path], mine.get(path), new.get(path)) for path in both}
        _join(tree, plan, result, sides, goal, takes_out=takes_out)
    _decide(tree, plan, snapshot, result, stands, new, wanted, goal, crlf)
    return snapshot, plan


def _still_chosen(
    tree: Tree,
    plan: Plan,
    known: KnownVersions,
    new: Entries,
    wanted: Entries,
    own: OwnVersions,
    goal: Goal,
) -> dict[PurePosixPath, OwnVersion]:
    """Find the files whose conflict the user has ended and would meet again, so that he is not asked again.

    Returns:
        Them, brought along with upstream and the patches as far as they can be.
    """
    found = {}
    for path, version in own.items():
        his = _tree_merge.merge_file(tree, path, (known.origin.get(path), version.his, wanted.get(path)))
        data = trees.content(tree.repository, his) if his is not None else None
        if data is None or goal.by_meaning is None or goal.by_meaning(plan.upstreams_name(path), data) is None:
            made = _tree_merge.merge_file(tree, path, (known.before.get(path), version.patched, new.get(path)))
            found[path] = OwnVersion(his=his, patched=made) if his is not None and made is not None else version
    return found


def _note_same(
    plan: Plan,
    mine: Entries,
    known: KnownVersions,
    new: Entries,
    wanted: Entries,
    back: Collection[PurePosixPath],
    changed: Collection[PurePosixPath],
    forks: Entries,
) -> None:
    """Note the files that the user himself has made what the patches make of them: they stay when the patches go.

    What the commit of a fork with patches holds, he has not.
    """
    same = {p for p in mine if forks.get(p) != mine[p] == new.get(p) != wanted.get(p) and p not in plan.resolved}
    same = {p for p in same if p in back or mine[p] not in known.of_path(p)}
    plan.by_meaning |= {path: OwnVersion(his=mine[path], patched=mine[path]) for path in same}
    plan.merged += same - {*changed}


def _go_back_to_own(
    tree: Tree, mine: Entries, known: KnownVersions, new: Entries, own: OwnVersions, *, is_last: bool
) -> tuple[dict[PurePosixPath, Entry], dict[PurePosixPath, Entry]]:
    """Take the user's own version of files that were patched by meaning, with his edits since, as his side.

    Where his edits since meet the lines that the patches had replaced, only the last move, which takes the patches
    out, brings these lines back, as what it writes: that is a conflict for him to end.

    Returns:
        The user's side of files that go back, and what the last move writes of others.
    """
    back, forward = {}, {}
    for path, version in own.items():
        if (his := _tree_merge.merge_file(tree, path, (version.patched, mine[path], version.his))) is not None:
            back[path] = his
        elif is_last:
            versions = (known.origin.get(path), version.his, new.get(path))
            if (made := _tree_merge.merge_file(tree, path, versions)) is not None:
                forward[path] = made
    return back, forward


def _look(
    tree: Tree, known: KnownVersions, new: Entries, where: BranchState | None, work: Path, goal: Goal
) -> tuple[Snapshot, GitConflicts]:
    """Read the working tree, and the conflicts that git has left in it."""
    left = _git_conflicts.read(tree, known, new, where, goal.by_meaning)
    wanted = [
        path
        for path in {**known.before, **new}
        if not known.before.get(path) == new.get(path) == known.pulled.get(path) or path not in known.origin
    ]
    return _snapshot.take(tree, known.start, [*wanted, *left.sides], work, left.sides), left


def _users_renames(
    tree: Tree, known: KnownVersions, new: Entries, snapshot: Snapshot
) -> dict[PurePosixPath, PurePosixPath]:
    """Find the files that the user has renamed with git, and that are still to be had."""
    upstreams = {**known.before, **known.pulled, **known.origin}
    there = (snapshot.files.keys() | snapshot.unmerged.keys()) - snapshot.missing
    gone = {path for path in new if path in upstreams and path not in there}
    added = {path for path in snapshot.index if path not in upstreams and path not in new} if gone else set()
    if not added:
        return {}
    found = _snapshot.renames(tree, known.start)
    return {old: his for old, his in found.items() if old in gone and his in added}


def _join(
    tree: Tree,
    plan: Plan,
    result: dict[PurePosixPath, Entry | None],
    sides: Sides,
    goal: Goal,
    *,
    takes_out: bool,
) -> None:
    """Join the paths that both sides have changed, and tell what became of each."""
    if not _tree_merge.is_possible():
        raise GitFirstError(
            f"your edits in {', '.join(map(str, sides))} have to be merged, which git before 2.38 cannot do by itself, "
            "so nothing was changed",
            where=str(tree.root),
            remedy="upgrade git to 2.38 or later (`git --version` says what you have), then run this again",
        )
    for path, (_, mine, new) in sides.items():
        if "120000" in {mine and mine.mode, new and new.mode} and mine and new and mine.mode != new.mode:
            raise _is_link(tree, path)
    joined, conflicts = _tree_merge.merge_paths(tree, sides, takes_out=takes_out)
    for path, (base, mine, new) in sides.items():
        stages = conflicts.get(path, set())
        if not stages:
            result[path] = _beside_own_part(tree, plan, path, (base, mine, new), joined[path], goal)
            plan.merged.append(path)
        elif stages == {1, 3}:
            result[path] = None
            plan.removed += [path] if path not in plan.removed else []
        elif stages == {1, 2}:
            result[path] = mine
            plan.kept.append(path)
        elif clean := _by_other_means(tree, plan, path, (base, mine, new), goal):
            result[path] = clean
            plan.merged.append(path)
        elif path in plan.resolved:
            del plan.resolved[path]
            plan.by_meaning.pop(path, None)
            plan.left_by_git.append(path)
            result[path] = mine
        else:
            plan.conflicts[path] = (base, mine, new)
            result[path] = joined[path]


def _by_other_means(tree: Tree, plan: Plan, path: PurePosixPath, versions: Versions, goal: Goal) -> Entry | None:
    """Join a file whose lines meet: as text where git takes it for binary, or by patching the user's version.

    Where that is no way, his version without the patches is kept beside what he gets where he chooses them.
    """
    base, mine, new = versions
    if mine is None or new is None or not (mine.is_file and new.is_file):
        return None
    upstreams = plan.upstreams_name(path)
    data = trees.contents(tree.repository, (entry for entry in (base, mine, new) if entry and entry.is_file))
    common = data[base.blob] if base and base.is_file else b""
    joined = _merge.merge_wide(tree.repository, upstreams, data[mine.blob], common, data[new.blob])
    if joined is not None:
        return trees.stored_file(tree, joined, mine.mode)
    if goal.by_meaning is None:
        return None
    without, his = _without_patches(tree, upstreams, base, mine, goal)
    if his is None or (without is None and upstreams in goal.dropped):  # else what was dropped would stay in his lines
        return None
    made = goal.by_meaning(upstreams, trees.content(tree.repository, his))
    chosen: Entry | None
    if made is not None:
        chosen = trees.stored_file(tree, made.data, mine.mode)
        plan.replaced += [dataclasses.replace(edit, path=path) for edit in made.replaced]
    elif base is not None:
        chosen = _tree_merge.merge_file(tree, upstreams, versions, takes_new=True)
    else:
        chosen = Entry(mode=mine.mode, blob=new.blob)
    if without is not None and chosen is not None:
        plan.by_meaning[path] = OwnVersion(his=his, patched=chosen)
    return chosen if made is not None else None


def _beside_own_part(
    tree: Tree, plan: Plan, path: PurePosixPath, versions: Versions, joined: Entry | None, goal: Goal
) -> Entry | None:
    """Give a file whose lines do not meet: patched by meaning where the user has done a part of what the patches do.

    A merge would write that part a second time, where his lines are beside those of the patches. Where they are the
    same, it would come out with the patches: his version without these is kept, too.
    """
    base, mine, new = versions
    if goal.by_meaning is None or mine is None or new is None or not (mine.is_file and new.is_file):
        return joined
    upstreams = plan.upstreams_name(path)
    now = trees.everything(tree.repository, trees.upstream_of(tree.repository, goal.target)).get(upstreams)
    without, his = _without_patches(tree, upstreams, base, mine, goal)
    if without is None or his is None or joined is None:
        return joined
    made = goal.by_meaning(upstreams, trees.content(tree.repository, his))
    if made is not None and made.has_part:
        joined = trees.stored_file(tree, made.data, mine.mode)
        plan.replaced += [dataclasses.replace(edit, path=path) for edit in made.replaced]
    elif new == now or _tree_merge.merge_file(tree, upstreams, (new, joined, now)) == his:
        return joined
    plan.by_meaning[path] = OwnVersion(his=his, patched=joined)
    return joined


def _without_patches(
    tree: Tree, upstreams: PurePosixPath, base: Entry | None, mine: Entry, goal: Goal
) -> tuple[Entry | None, Entry | None]:
    """Give the user's version of a file without the patches of the last move, and that with what upstream has changed.

    None for the first where his edits meet those patches, and for the second where they meet upstream's changes.
    """
    repository = tree.repository
    commits = (
        goal.base,
        goal.base and trees.upstream_of(repository, goal.base),
        trees.upstream_of(repository, goal.target),
    )
    before, origin, now = (trees.everything(repository, commit).get(upstreams) for commit in commits)
    is_patched = goal.base is not None and base == before != origin
    old = origin if is_patched else base
    without = _tree_merge.merge_file(tree, upstreams, (base, mine, origin)) if is_patched else mine
    return without, _tree_merge.merge_file(tree, upstreams, (old, without or mine, now))


def rejoin(tree: Tree, sides: Sides, *, takes_out: bool) -> Plan:
    """Join what the user has changed while a move was cut off with what it was to write.

    Args:
        tree: the working tree.
        sides: path → what stood there when the move was worked out, what stands there now, what it writes.
        takes_out: the move takes the patches out.
    """
    plan = Plan()
    both = {}
    for path, (base, mine, new) in sides.items():
        plan.edited.add(path)
        if mine == base and new is not None:
            plan.puts[path] = new
        elif mine == base:
            plan.removes.append(path)
        elif mine != new:
            both[path] = (base, mine, new)
    joined, conflicts = _tree_merge.merge_paths(tree, both, takes_out=takes_out) if both else ({}, {})
    for path, versions in both.items():
        stages = conflicts.get(path, set())
        entry = joined[path]
        if stages in ({1, 2}, {1, 3}):
            plan.kept.append(path)
            continue
        if stages:
            plan.conflicts[path] = versions
        if entry is not None and entry != versions[1]:
            plan.puts[path] = entry
    return plan


# --- what is written --------------------------------------------------------------------------------------------------


def _decide(
    tree: Tree,
    plan: Plan,
    snapshot: Snapshot,
    result: Mapping[PurePosixPath, Entry | None],
    mine: Entries,
    new: Entries,
    wanted: Entries,
    goal: Goal,
    crlf: Collection[PurePosixPath],
) -> None:
    """Turn what each path becomes into what is written and removed."""
    for path, entry in result.items():
        if path in plan.resolved:
            plan.resolved[path] = entry
        if path in snapshot.sparse or path in plan.left_by_git:
            continue
        have = mine.get(path)
        is_gone = path in snapshot.missing and not goal.restore_all and new.get(path) == wanted.get(path)
        if entry == have and path not in plan.resolved and not (path in snapshot.missing and not is_gone):
            continue
        if entry is None:
            plan.removes.append(path)
        else:
            plan.puts[path] = _with_crlf(tree, entry) if path in crlf and entry.is_file else entry
    for path in snapshot.missing - result.keys():
        entry = new.get(path)
        if entry is not None and path not in snapshot.sparse and (goal.restore_all or entry != wanted.get(path)):
            plan.puts[path] = entry
    plan.removes = [path for path in plan.removes if snapshot.files.get(path) is not None or path in snapshot.missing]
    for one in (plan.removes, plan.merged, plan.kept, plan.removed, plan.left_by_git):
        one.sort()
    _require_room(tree, plan, snapshot)


def _with_crlf(tree: Tree, entry: Entry) -> Entry:
    data = _merge.to_crlf(trees.content(tree.repository, entry))
    return trees.stored_file(tree, data, entry.mode)


def _require_room(tree: Tree, plan: Plan, snapshot: Snapshot) -> None:
    """Refuse to write where a link or a folder of the user's stands, or behind one."""
    gone = {*plan.removes}
    for path in plan.puts:
        place = tree.root / path
        known = snapshot.files.get(path)
        for parent in (p for p in path.parents if p.parts):
            folder = tree.root / parent
            if parent in gone or not os.path.lexists(folder):
                continue
            if folder.is_symlink():
                raise UnsafePathError(
                    f"{path} is behind a link that leaves the tree"
                    if not folder.resolve().is_relative_to(tree.root.resolve())
                    else f"{path} is behind a link of yours",
                    where=str(tree.root),
                    remedy=f"replace the link by a folder: {parent}",
                )
            if not folder.is_dir():
                raise _stands(tree, parent, "a file")
        if place.is_symlink() and (known is None or known.mode != "120000"):
            raise _is_link(tree, path)
        if place.is_dir() and not place.is_symlink() and plan.puts[path].mode != "160000":
            inside = {one.relative_to(tree.root) for one in place.rglob("*") if one.is_symlink() or not one.is_dir()}
            if {PurePosixPath(one.as_posix()) for one in inside} - gone:
                raise _stands(tree, path, "a folder")


def _is_link(tree: Tree, path: PurePosixPath) -> UnsafePathError:
    return UnsafePathError(
        f"{path} is a link of yours, where a file of upstream belongs",
        where=str(tree.root),
        remedy="put a file in its place, or undo the link with git, and run this again",
    )


def _stands(tree: Tree, path: PurePosixPath, what: str) -> UnsafePathError:
    return UnsafePathError(
        f"{path} is {what} of yours, where upstream has something else, so nothing was changed",
        where=str(tree.root),
        remedy=f"move {path} elsewhere, and run this again",
    )
