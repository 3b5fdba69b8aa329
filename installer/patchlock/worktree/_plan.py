"""Join the user's working tree with a new patched commit by git's own merge; writes no file of the user's."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.model.errors import GitFirstError, UnsafePathError
from patchlock.model.identities import CommitId
from patchlock.patches.edited_file import EditedFile, ReplacedEdit
from patchlock.worktree import _branch_state, _merge, _snapshot, trees
from patchlock.worktree._branch_state import BranchState
from patchlock.worktree._snapshot import Snapshot
from patchlock.worktree.trees import Entries, Entry, Tree
from patchlock.worktree.upstream_cache import blobs, commit_of, git, quoted

YOURS, OURS = "yours", "patched"
"""Refs, while both sides are joined: their names stand behind the markers of a conflict."""
_BASE = "base"
_OLDEST = (2, 38)
"""Version of git that has `merge-tree --write-tree`."""

ByMeaning = Callable[[PurePosixPath, bytes], EditedFile | None]
"""Apply the patches to the user's version of a file; None where one of them cannot do what it says there."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """From where to where a tree is brought."""

    base: CommitId | None
    """The patched commit that the tree was last brought to."""
    target: CommitId
    """The patched commit, or upstream's, that it is brought to."""
    restore_all: bool = False
    """Bring every missing file of upstream back, not only patched ones."""
    by_meaning: ByMeaning | None = None
    own: OwnVersions = dataclasses.field(default_factory=dict)
    """What the last move has patched by meaning."""


@dataclass(frozen=True, kw_only=True)
class OwnVersion:
    """A file of the user's in whose edited lines patches were applied, so that no merge gives his lines back."""

    his: Entry
    """Without the patches."""
    patched: Entry
    """As the move left it; where it left a conflict, with the patches' side of that."""


OwnVersions = Mapping[PurePosixPath, OwnVersion]
"""By path, as the user names it."""


@dataclasses.dataclass(slots=True, kw_only=True)
class Plan:
    """What a move will do; nothing has been done yet."""

    puts: dict[PurePosixPath, Entry] = dataclasses.field(default_factory=dict)
    """What is written."""
    removes: list[PurePosixPath] = dataclasses.field(default_factory=list)
    merged: list[PurePosixPath] = dataclasses.field(default_factory=list)
    kept: list[PurePosixPath] = dataclasses.field(default_factory=list)
    removed: list[PurePosixPath] = dataclasses.field(default_factory=list)
    conflicts: dict[PurePosixPath, tuple[Entry | None, Entry | None, Entry | None]] = dataclasses.field(
        default_factory=dict
    )
    """Path → what both sides come from, the user's side, ours."""
    resolved: dict[PurePosixPath, Entry | None] = dataclasses.field(default_factory=dict)
    """Files in which git had left a conflict that is none for us, and what becomes of them."""
    bases: dict[PurePosixPath, list[Entry | None]] = dataclasses.field(default_factory=dict)
    """Of those whose user's side comes from git's index: what it may come from."""
    edited: set[PurePosixPath] = dataclasses.field(default_factory=set)
    """Files that the user has changed."""
    unstaged: dict[PurePosixPath, Entry] = dataclasses.field(default_factory=dict)
    """Files whose staged version meets what upstream has changed, or makes room for a conflict, and that version."""
    left_by_git: list[PurePosixPath] = dataclasses.field(default_factory=list)
    """Files in which git had left a conflict that is one for us too: the user ends it with git."""
    by_meaning: dict[PurePosixPath, OwnVersion] = dataclasses.field(default_factory=dict)
    """Files of the user's that were patched by meaning, or in which he has the patches' side to choose."""
    replaced: list[ReplacedEdit] = dataclasses.field(default_factory=list)
    """Edits of his that patches have replaced there."""
    renames: dict[PurePosixPath, PurePosixPath] = dataclasses.field(default_factory=dict)
    """Upstream's name of a file that the user has renamed with git → his, under which all else here names it."""

    def leave(self, paths: Collection[PurePosixPath]) -> None:
        """Write nothing of some files after all."""
        self.puts = {path: entry for path, entry in self.puts.items() if path not in paths}
        self.by_meaning = {path: own for path, own in self.by_meaning.items() if path not in paths}
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
    repository = tree.repository
    new = trees.everything(repository, goal.target)
    wanted = trees.everything(repository, trees.upstream_of(repository, goal.target))
    states = _States.of(tree, goal, where)
    snapshot, plan = _look(tree, states, new, where, work, goal)
    if renames := {} if goal.restore_all else _users_renames(tree, states, new, snapshot):
        states, new, wanted = states.renamed(renames), _renamed(renames, new), _renamed(renames, wanted)
        snapshot, plan = _look(tree, states, new, where, work, goal)
        files = {path: entry for path, entry in snapshot.files.items() if path not in renames}
        snapshot = dataclasses.replace(snapshot, files=files, missing=snapshot.missing - renames.keys())
        plan.renames = renames
    mine: dict[PurePosixPath, Entry] = dict(snapshot.files)
    own = {renames.get(path, path): version for path, version in goal.own.items()}
    own = {path: version for path, version in own.items() if path in mine and path not in plan.resolved}
    changed = [p for p in {**mine, **new} if new.get(p) != mine.get(p) or p in plan.resolved or p in own]
    changed = [p for p in changed if p in plan.resolved or p not in snapshot.unmerged]
    crlf = _unconverted(tree, mine, states, changed)
    takes_out = trees.upstream_of(repository, goal.target) == goal.target
    stands = dict(mine)
    if takes_out or goal.by_meaning is not None:
        own = {path: own[path] for path in changed if path in own}
        # Of the others he has taken another version himself.
        own = {p: one for p, one in own.items() if mine[p] == one.patched or mine[p] not in states.of_path(p)}
        if not takes_out:
            plan.by_meaning = _still_chosen(tree, states, new, wanted, own, renames, goal)
            own = {path: version for path, version in own.items() if path not in plan.by_meaning}
        new = _go_back_to_own(tree, plan, mine, states, new, own, is_last=takes_out)
    base = _bases(tree, mine, states, new, changed, plan.bases, restore_all=goal.restore_all, takes_out=takes_out)
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
        _join(tree, plan, result, {path: (base[path], mine.get(path), new.get(path)) for path in both}, goal)
    _decide(tree, plan, snapshot, result, stands, new, wanted, goal, crlf)
    return snapshot, plan


def _still_chosen(
    tree: Tree,
    states: _States,
    new: Entries,
    wanted: Entries,
    own: OwnVersions,
    renames: Mapping[PurePosixPath, PurePosixPath],
    goal: Goal,
) -> dict[PurePosixPath, OwnVersion]:
    """Find the files whose conflict the user has ended and would meet again, so that he is not asked again.

    Returns:
        Them, brought along with upstream and the patches as far as they can be.
    """
    found = {}
    upstreams = {his: path for path, his in renames.items()}
    for path, version in own.items():
        his = _merged(tree, path, (states.origin.get(path), version.his, wanted.get(path)))
        data = blobs(tree.repository, [his.blob])[his.blob] if his is not None else None
        if data is None or goal.by_meaning is None or goal.by_meaning(upstreams.get(path, path), data) is None:
            made = _merged(tree, path, (states.before.get(path), version.patched, new.get(path)))
            found[path] = OwnVersion(his=his, patched=made) if his is not None and made is not None else version
    return found


def _go_back_to_own(
    tree: Tree,
    plan: Plan,
    mine: dict[PurePosixPath, Entry],
    states: _States,
    new: Entries,
    own: OwnVersions,
    *,
    is_last: bool,
) -> Entries:
    """Take the user's own version of files that were patched by meaning, with his edits since, as his side.

    Where his edits since meet the lines that the patches had replaced, only the last move, which takes the patches
    out, brings these lines back, as what it writes: that is a conflict for him to end.

    Returns:
        What the move writes.
    """
    found = dict(new)
    for path, version in own.items():
        if (back := _merged(tree, path, (version.patched, mine[path], version.his))) is not None:
            mine[path] = back
            plan.bases[path] = [states.origin.get(path), states.pulled.get(path)]
        elif is_last:
            sides = (states.origin.get(path), version.his, new.get(path))
            if (forward := _merged(tree, path, sides)) is not None:
                found[path] = forward
                plan.bases[path] = [version.patched]
    return found


def _merged(
    tree: Tree,
    path: PurePosixPath,
    sides: tuple[Entry | None, Entry | None, Entry | None],
    *,
    takes_new: bool = False,
) -> Entry | None:
    """Join two versions of a file: what both come from, the one whose mode stays, the other; None where they meet.

    Where they meet, `takes_new` takes the other.
    """
    base, mine, new = sides
    if mine is None or new in (mine, base):
        return mine
    if base is None or new is None or not (base.is_file and mine.is_file and new.is_file):
        return None
    if mine.blob == base.blob:
        return Entry(mode=mine.mode, blob=new.blob)
    data = blobs(tree.repository, [entry.blob for entry in (mine, base, new)])
    joined = _merge.merge(tree.repository, path, data[mine.blob], data[base.blob], data[new.blob], takes_new=takes_new)
    return trees.stored_file(tree, joined.data, mine.mode) if joined.is_clean else None


def _users_renames(tree: Tree, states: _States, new: Entries, snapshot: Snapshot) -> dict[PurePosixPath, PurePosixPath]:
    """Find the files that the user has renamed with git, and that are still to be had."""
    known = {**states.before, **states.pulled, **states.origin}
    there = (snapshot.files.keys() | snapshot.unmerged.keys()) - snapshot.missing
    gone = {path for path in new if path in known and path not in there}
    added = {path for path in snapshot.index if path not in known and path not in new} if gone else set()
    if not added:
        return {}
    found = _snapshot.renames(tree, states.start)
    return {old: his for old, his in found.items() if old in gone and his in added}


def _renamed(renames: Mapping[PurePosixPath, PurePosixPath], entries: Entries) -> Entries:
    return {renames.get(path, path): entry for path, entry in entries.items()}


@dataclass(frozen=True, kw_only=True)
class _States:
    """All the commits whose files may stand in the tree without being an edit of the user's."""

    before: Entries
    """What the tree was last brought to."""
    pulled: Entries
    """Upstream, as the user's branch has it now."""
    origin: Entries
    """Upstream, as it was when the tree was last patched."""
    joined: Entries | None
    """What a merge or a stash of the user's has made of what was patched and what git brought."""
    start: CommitId
    is_pulled: bool
    """Git has brought the clone forward since the tree was last patched."""

    @classmethod
    def of(cls, tree: Tree, goal: Goal, where: BranchState | None) -> _States:
        repository = tree.repository
        last = trees.upstream_of(repository, goal.base or goal.target)
        pulled, behind, to = last, None, trees.upstream_of(repository, goal.target)
        if where is not None:
            pulled = (where.head if to == where.head else where.upstream) or last
            last = last if goal.base else pulled
            # Where the goal lacks commits of the user's own, they are edits of his.
            is_without = where.head not in (to, last) or bool(where.unfinished)
            behind = where.behind if is_without and not trees.is_ancestor(repository, last, to) else None
        start = goal.base or last
        is_empty = goal.base is None and where is not None and where.head is None  # nothing was ever checked out
        known = (start, None, None) if is_empty else (start, behind or last, pulled)
        before, origin, now = (trees.everything(repository, commit) for commit in known)
        joined = _merge_commits(tree, last, start, pulled) if origin not in (now, before) else None
        if behind is not None:
            before, last = _merge_commits(tree, last, start, behind), behind
        is_pulled = pulled != last and trees.is_ancestor(repository, last, pulled)
        return cls(before=before, pulled=now, origin=origin, joined=joined, start=start, is_pulled=is_pulled)

    def renamed(self, renames: Mapping[PurePosixPath, PurePosixPath]) -> _States:
        """Give the same, with some files under the user's names."""
        return dataclasses.replace(
            self,
            before=_renamed(renames, self.before),
            pulled=_renamed(renames, self.pulled),
            origin=_renamed(renames, self.origin),
            joined=_renamed(renames, self.joined) if self.joined is not None else None,
        )

    def is_users_choice(self, path: PurePosixPath, new: Entries) -> bool:
        """Tell whether no patch is in a file, and git has brought upstream's version: what differs, the user chose."""
        is_patched = self.before.get(path) != self.origin.get(path)
        return self.is_pulled and not is_patched and self.pulled.get(path) == new.get(path)

    def of_path(self, path: PurePosixPath) -> list[Entry | None]:
        states = (self.before, self.pulled, self.origin, self.joined)
        return [state.get(path) for state in states if state is not None]


def _merge_commits(tree: Tree, base: CommitId, one: CommitId, other: CommitId) -> Entries:
    """Join what two commits have made of a third one, as far as they do not meet."""
    before, mine, new = (trees.everything(tree.repository, commit) for commit in (base, one, other))
    found = dict(new)
    both = {}
    for path in mine.keys() | before.keys():
        if mine.get(path) == before.get(path) or mine.get(path) == new.get(path):
            continue
        if new.get(path) != before.get(path):
            both[path] = (before.get(path), mine.get(path), new.get(path))
        elif path in mine:
            found[path] = mine[path]
        else:
            found.pop(path, None)
    if both and _git_version() >= _OLDEST:
        joined, conflicts = _merge_entries(tree, both)
        found |= {path: entry for path, entry in joined.items() if entry is not None and path not in conflicts}
    return found


def _look(
    tree: Tree, states: _States, new: Entries, where: BranchState | None, work: Path, goal: Goal
) -> tuple[Snapshot, Plan]:
    """Read the working tree; of files in which git has left a conflict, the user's side, where it can be told."""
    plan = Plan()
    sides: dict[PurePosixPath, Entry | None] = {}
    for path, unmerged in (where.unmerged if where else {}).items():
        if (aside := _moved_aside(tree, path, unmerged, states)) is not None:
            place = _place_of(path)
            sides[path], plan.resolved[path], plan.bases[path] = aside, None, [aside]
            if place in states.pulled:
                plan.resolved[place], plan.bases[place] = None, [None]
            continue
        # The patches may have been committed, here or elsewhere, in another version than the one known to be applied.
        made = goal.by_meaning(path, unmerged.base) if goal.by_meaning and unmerged.base is not None else None
        patched = made.data if made is not None and made.data != unmerged.base else None
        if new.get(path) == states.before.get(path) == states.pulled.get(path) and patched is None:
            continue  # nothing of ours is in it
        found = _users_side(tree, path, unmerged, states.pulled.get(path))
        if found is None:
            plan.left_by_git.append(path)
            continue
        side, is_staged = found
        is_merging = where is not None and bool(where.unfinished)
        if is_merging and not _has_patches(tree, path, unmerged, states, patched):
            continue  # what meets there is the user's own work and upstream's
        sides[path] = _stored(tree, side, unmerged)
        plan.resolved[path] = None
        if is_staged:  # it comes from before what git has brought, so its edits are not counted from that
            base = _stored(tree, unmerged.base, unmerged) if unmerged.base is not None else None
            before, pulled, origin = states.of_path(path)[:3]
            plan.bases[path] = [base] if origin == pulled else [before, base, origin]
            plan.bases[path] += [_stored(tree, patched, unmerged)] if patched is not None else []
    wanted = [
        path
        for path in {**states.before, **new}
        if not states.before.get(path) == new.get(path) == states.pulled.get(path) or path not in states.origin
    ]
    snapshot = _snapshot.take(tree, states.start, [*wanted, *sides], work, sides)
    return snapshot, plan


def _has_patches(
    tree: Tree, path: PurePosixPath, unmerged: _branch_state.Unmerged, states: _States, patched: bytes | None
) -> bool:
    """Tell whether patches are committed in a version of a file that git could not merge, or in what both come from."""
    known = [entry for entry in (states.origin.get(path), states.before.get(path)) if entry and entry.is_file]
    data = blobs(tree.repository, [entry.blob for entry in known])
    pairs = [(data[known[0].blob], data[known[1].blob])] if len(known) == 2 else []
    pairs += [(unmerged.base, patched)] if patched is not None and unmerged.base is not None else []
    sides = [side for side in (unmerged.base, unmerged.ours, unmerged.theirs) if side is not None]
    return any(old != new and _merge.has(tree.repository, path, side, old, new) for old, new in pairs for side in sides)


def _users_side(
    tree: Tree, path: PurePosixPath, unmerged: _branch_state.Unmerged, pulled: Entry | None
) -> tuple[bytes, bool] | None:
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
    left = _merge.merge(tree.repository, path, unmerged.ours, unmerged.base or b"", unmerged.theirs)
    if _branch_state.without_labels(left.data) != _branch_state.without_labels(mine):
        return None if _branch_state.has_markers(mine) else (mine, False)
    known = blobs(tree.repository, [pulled.blob])[pulled.blob] if pulled and pulled.is_file else None
    if unmerged.ours == known:
        return unmerged.theirs, True
    return (unmerged.ours, True) if unmerged.theirs == known else None


def _place_of(path: PurePosixPath) -> PurePosixPath:
    """Say where a file belongs that git has moved aside as `NAME~SIDE`, because a folder stands there."""
    return PurePosixPath(str(path).rpartition("~")[0])


def _moved_aside(tree: Tree, path: PurePosixPath, unmerged: _branch_state.Unmerged, states: _States) -> Entry | None:
    """Give a file that git has moved aside, where it is a known version; None where the user's edits are in it."""
    sides = [side for side in (unmerged.ours, unmerged.theirs) if side is not None]
    known = {entry.blob for entry in states.of_path(_place_of(path)) if entry is not None}
    if not known or unmerged.base is not None or sides != [_snapshot.stored(tree, [path])[path]]:
        return None
    entry = _stored(tree, sides[0], unmerged)
    return entry if entry.blob in known else None


def _stored(tree: Tree, data: bytes, unmerged: _branch_state.Unmerged) -> Entry:
    return trees.stored_file(tree, data, "100755" if unmerged.is_executable else "100644")


def _unconverted(
    tree: Tree, mine: dict[PurePosixPath, Entry], states: _States, changed: Iterable[PurePosixPath]
) -> set[PurePosixPath]:
    """Find files that an editor has given CRLF, where each known version has LF alone; take them as if it had not."""
    edited = {}
    for path in changed:
        known = [entry for entry in states.of_path(path) if entry is not None]
        if path in mine and mine[path].is_file and known and mine[path] not in known:
            edited[path] = [mine[path], *(entry for entry in known if entry.is_file)]
    data = blobs(tree.repository, {entry.blob for listed in edited.values() for entry in listed}) if edited else {}
    found = set()
    for path, (first, *known) in edited.items():
        if _merge.is_converted(data[first.blob], [data[entry.blob] for entry in known]):
            stdin = _merge.to_lf(data[first.blob]) or b""
            mine[path] = trees.stored_file(tree, stdin, first.mode)
            found.add(path)
    return found


def _bases(
    tree: Tree,
    mine: Entries,
    states: _States,
    new: Entries,
    changed: Iterable[PurePosixPath],
    others: Mapping[PurePosixPath, list[Entry | None]],
    *,
    restore_all: bool,
    takes_out: bool,
) -> dict[PurePosixPath, Entry | None]:
    """Choose for each path what the user's edits are counted from: the known version that is nearest to his file.

    Where patches are taken out, a line that he has chosen himself may be as far from both: then its words decide.
    """
    found: dict[PurePosixPath, Entry | None] = {}
    unknown: dict[PurePosixPath, list[Entry]] = {}
    for path in changed:
        known = others.get(path) or states.of_path(path)
        have = mine.get(path)
        if have in known:
            found[path] = have
        elif have is None:
            is_upstreams = path in states.pulled or path in states.origin
            found[path] = next((e for e in known if e), None) if is_upstreams and not restore_all else None
        elif path not in others and states.is_users_choice(path, new):
            found[path] = new.get(path)
        elif same := next((entry for entry in known if entry and entry.blob == have.blob), None):
            found[path] = same  # the user has changed its mode
        else:
            unknown[path] = list(dict.fromkeys(entry for entry in known if entry and entry.is_file))
    data = blobs(tree.repository, {e.blob for path, es in unknown.items() for e in (mine[path], *es) if e.is_file})
    for path, candidates in unknown.items():
        if not mine[path].is_file or not candidates:
            found[path] = candidates[0] if candidates else next((e for e in states.of_path(path) if e), None)
            continue
        versions = [data[entry.blob] for entry in candidates]
        order = _merge.by_nearness(data[mine[path].blob], versions, by_characters=takes_out)
        found[path] = next(entry for entry in candidates if data[entry.blob] == order[0])
    return found


# --- git's merge ------------------------------------------------------------------------------------------------------


Sides = Mapping[PurePosixPath, tuple[Entry | None, Entry | None, Entry | None]]
"""Path → what both sides come from, one side, the other."""


def _merge_entries(tree: Tree, sides: Sides) -> tuple[dict[PurePosixPath, Entry | None], dict[PurePosixPath, set[int]]]:
    """Join both sides of some paths with `git merge-tree`.

    Returns:
        What each path becomes, with markers where both sides meet; and the stages of each conflict.
    """
    repository = tree.repository
    names = [tree.ref(name) for name in (_BASE, YOURS, OURS)]
    stream = []
    for number, name in enumerate(names):
        stream.append(f"reset {name}\ncommit {name}\nmark :{number + 1}\n".encode())
        stream.append(b"committer patchlock <%s> 0 +0000\ndata 0\n" % trees.OURS.encode())
        stream.append(b"from :1\ndeleteall\n" if number else b"")
        for where, entries in sides.items():
            if (entry := entries[number]) is not None:
                stream.append(f"M {entry.mode} {entry.blob} ".encode() + quoted(where) + b"\n")
    git("fast-import", "--quiet", "--force", repository=repository, stdin=b"".join(stream))
    labels = [name.removeprefix("refs/") for name in names[1:]]
    settings = ("-c", "merge.renames=false", "-c", "merge.directoryRenames=false")
    done = git(
        *settings, "merge-tree", "--write-tree", "-z", "--no-messages", *labels, repository=repository, allowed=(0, 1)
    )
    rows = "".join(f"delete {name}\n" for name in names)
    git("update-ref", "--stdin", repository=repository, stdin=rows.encode())
    made, *listed = done.stdout.split(b"\0")
    conflicts: dict[PurePosixPath, set[int]] = {}
    for row in filter(None, listed):
        head, _, path = row.partition(b"\t")
        conflicts.setdefault(PurePosixPath(os.fsdecode(path)), set()).add(int(head.split()[2]))
    found = trees.everything(repository, CommitId(made.decode()))
    return {one: found.get(one) for one in sides}, conflicts


@functools.cache
def _git_version() -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)", git("version", repository=Path.cwd()).text)
    return tuple(map(int, found.groups())) if found else (0, 0)


def _join(
    tree: Tree,
    plan: Plan,
    result: dict[PurePosixPath, Entry | None],
    sides: Sides,
    goal: Goal,
) -> None:
    """Join the paths that both sides have changed, and tell what became of each."""
    if _git_version() < _OLDEST:
        raise GitFirstError(
            f"your edits in {', '.join(map(str, sides))} have to be merged, which git before 2.38 cannot do by itself, "
            "so nothing was changed",
            where=str(tree.root),
            remedy="upgrade git to 2.38 or later (`git --version` says what you have), then run this again",
        )
    for path, (_, mine, new) in sides.items():
        if "120000" in {mine and mine.mode, new and new.mode} and mine and new and mine.mode != new.mode:
            raise _is_link(tree, path)
    joined, conflicts = _merge_entries(tree, sides)
    upstreams = {his: path for path, his in plan.renames.items()}
    for path, (base, mine, new) in sides.items():
        stages = conflicts.get(path, set())
        if not stages:
            result[path] = joined[path]
            plan.merged.append(path)
        elif stages == {1, 3}:
            result[path] = None
            plan.removed += [path] if path not in plan.removed else []
        elif stages == {1, 2}:
            result[path] = mine
            plan.kept.append(path)
        elif clean := _by_other_means(tree, plan, path, upstreams.get(path, path), (base, mine, new), goal):
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


def _upstream(tree: Tree, goal: Goal) -> CommitId:
    return trees.upstream_of(tree.repository, goal.target)


def _by_other_means(
    tree: Tree,
    plan: Plan,
    own_path: PurePosixPath,
    path: PurePosixPath,
    sides: tuple[Entry | None, Entry | None, Entry | None],
    goal: Goal,
) -> Entry | None:
    """Join a file whose lines meet: as text where git takes it for binary, or by patching the user's version.

    Where that is no way, his version without the patches is kept beside what he gets where he chooses them.
    """
    base, mine, new = sides
    if mine is None or new is None or not (mine.is_file and new.is_file):
        return None
    repository = tree.repository
    before, origin, now = (
        trees.everything(repository, commit).get(path)
        for commit in (goal.base, goal.base and trees.upstream_of(repository, goal.base), _upstream(tree, goal))
    )
    data = blobs(repository, {entry.blob for entry in (base, mine, new) if entry and entry.is_file})
    common = data[base.blob] if base and base.is_file else b""
    joined = _merge.merge_wide(repository, path, data[mine.blob], common, data[new.blob])
    if joined is not None:
        return trees.stored_file(tree, joined, mine.mode)
    if goal.by_meaning is None:
        return None
    is_patched = goal.base is not None and base == before != origin
    old = origin if is_patched else base
    without = _merged(tree, path, (base, mine, origin)) if is_patched else mine
    his = _merged(tree, path, (old, without or mine, now))  # upstream may have changed it too
    made = goal.by_meaning(path, blobs(repository, [his.blob])[his.blob]) if his is not None else None
    if his is None:
        return None
    if made is None:
        chosen = (
            _merged(tree, path, sides, takes_new=True) if base is not None else Entry(mode=mine.mode, blob=new.blob)
        )
    else:
        chosen = trees.stored_file(tree, made.data, mine.mode)
        plan.replaced += [dataclasses.replace(edit, path=own_path) for edit in made.replaced]
    if without is not None and chosen is not None:
        plan.by_meaning[own_path] = OwnVersion(his=his, patched=chosen)
    return chosen if made is not None else None


def rejoin(tree: Tree, sides: Sides) -> Plan:
    """Join what the user has changed while a move was cut off with what it was to write.

    Args:
        tree: the working tree.
        sides: path → what stood there when the move was worked out, what stands there now, what it writes.
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
    joined, conflicts = _merge_entries(tree, both) if both else ({}, {})
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
    data = _merge.to_crlf(blobs(tree.repository, [entry.blob])[entry.blob])
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


def index_changes(
    tree: Tree,
    plan: Plan,
    snapshot: Snapshot,
    old: CommitId | None,
    new: CommitId | None,
    *,
    is_merging: bool,
    patched: tuple[CommitId, ...] = (),
    is_of_stash: bool = False,
) -> tuple[dict[PurePosixPath, tuple[str, ...]], dict[PurePosixPath, str]]:
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
        is_of_stash: a stash of git's has staged them, with the user's edits where he had some.

    Returns:
        Path → its new rows; and of each conflict the row that it would have without one, "" for none.
    """

    def everything(commit: CommitId | None) -> Entries:
        found = trees.everything(tree.repository, commit)
        return {**found, **{his: found[path] for path, his in plan.renames.items() if path in found}}

    rows: dict[PurePosixPath, tuple[str, ...]] = {}
    if old and new and old != new:
        before, after = everything(old), everything(new)
        staged: dict[PurePosixPath, tuple[Entry | None, Entry | None, Entry | None]] = {}
        for path in {**before, **after}:
            was, now, have = before.get(path), after.get(path), snapshot.index.get(path)
            if was == now or path in snapshot.unmerged or have == now:
                continue
            if have == was:
                rows[path] = _row(now)
            elif have is not None and now is not None:
                staged[path] = (was, have, now)
        if staged:
            joined, conflicts = _merge_entries(tree, staged)
            rows |= {p: _row(joined[p] if p not in conflicts else after[p]) for p in staged}
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
            if made != upstreams.get(path) and is_gits and have != after.get(path):
                rows[path] = _row(after.get(path))
    for path, entry in plan.resolved.items():
        rows[path] = _row(entry if is_merging else head.get(path))
    normal = {}
    for path, versions in plan.conflicts.items():
        have = snapshot.index.get(path)
        normal[path] = next(iter(rows.get(path, _row(have))), "")
        if have is not None and have not in (*versions, head.get(path), *(ours.get(path) for ours in patches)):
            plan.unstaged[path] = have  # the stages take its place, and the user's `git add` takes theirs
        rows[path] = tuple(f"{e.mode} {e.blob} {stage}" for stage, e in enumerate(versions, start=1) if e)
    return rows, normal


def _row(entry: Entry | None) -> tuple[str, ...]:
    return (f"{entry.mode} {entry.blob} 0",) if entry else ()
