"""Bring a working tree from one patched commit to another, keeping every edit of the user's by git's three-way merge.

Private refs remember what is ours: `applied` is the patched commit that the tree was last brought to, `own` the user's
versions of files that were patched by meaning then, `before` holds the user's files as they were before the last move
that wrote over edits of his, `aborted` what stood there when a move was taken back. The tree is snapshotted, joined and
laid ready before the first byte is written; see `_journal`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.core import command_lines
from patchlock.core.atomic_files import remove_tree
from patchlock.model.errors import GitFirstError, SourceConflictError
from patchlock.model.identities import CommitId
from patchlock.patches.edited_file import ReplacedEdit
from patchlock.worktree import _branch_state, _index_rows, _journal, _plan, _snapshot, _tree_merge, trees
from patchlock.worktree._branch_state import BranchState
from patchlock.worktree._goal import ByMeaning, Goal, OwnVersion, OwnVersions
from patchlock.worktree._journal import Journal
from patchlock.worktree._plan import Plan
from patchlock.worktree._snapshot import Snapshot
from patchlock.worktree.trees import Entry, Tree
from patchlock.worktree.upstream_cache import commit_of, git

APPLIED, BEFORE, ABORTED, OWN = "applied", "before", "aborted", "own"
_OWN_NEXT = "own-next"
_BEFORE_WHY = "your files, before patchlock wrote there"
_ABORTED_WHY = "what stood there, before patchlock took a move back"


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What a move did, by path from the root of the tree."""

    written: tuple[PurePosixPath, ...]
    merged: tuple[PurePosixPath, ...] = ()
    """Files where the user's edits and ours were joined."""
    layout: tuple[PurePosixPath, ...] = ()
    """Those of `merged` that differ from the patched ones by white space and line ends alone."""
    kept: tuple[PurePosixPath, ...] = ()
    """Files that upstream no longer has and that the user had changed: they stay."""
    removed: tuple[PurePosixPath, ...] = ()
    """Files that the user removed or renamed with git, and that would have been written: they stay away."""
    conflicts: tuple[PurePosixPath, ...] = ()
    """Files that were left with both sides between markers; empty unless that was asked for."""
    unstaged: tuple[PurePosixPath, ...] = ()
    """Files whose staged version met what upstream has changed, or makes room for a conflict."""
    staged_in: str = ""
    """The commit, behind the ref `before`, that keeps those versions; "" where there are none."""
    replaced: tuple[ReplacedEdit, ...] = ()
    """Edits of the user's that patches have replaced, in lines that both change."""
    left_stash: bool = False
    """Conflicts of git's autostash were ended, and git has kept that stash."""
    left_by_git: tuple[PurePosixPath, ...] = ()
    """Those of `conflicts` that are git's own: neither the files nor their rows in the index were touched."""


def applied(tree: Tree) -> CommitId | None:
    """Name the patched commit that a tree was last brought to, or None."""
    return commit_of(tree.repository, tree.ref(APPLIED)) if tree.has_repository else None


@dataclass(frozen=True, kw_only=True)
class Backup:
    """Files of the user's that were kept before something was written over them."""

    ref: str
    what: str
    count: int
    """How often; each is a commit behind the ref."""
    last: str
    """When: RFC 3339."""


def backups(tree: Tree) -> tuple[Backup, ...]:
    """List what is kept of the user's files; it stays until he deletes the ref."""
    found = []
    for name, what in ((BEFORE, _BEFORE_WHY), (ABORTED, _ABORTED_WHY)):
        ref = tree.ref(name)
        if tree.has_repository and commit_of(tree.repository, ref) is not None:
            asked = ("log", "--format=%cI", f"--author={trees.OURS}", "--fixed-strings", f"--grep={what}", ref)
            times = git(*asked, repository=tree.repository).text.splitlines()
            found.append(Backup(ref=ref, what=what, count=len(times), last=times[0]))
    return tuple(found)


def waits_for_undo(tree: Tree) -> bool:
    """Tell whether the conflicts that wait for the user are those of taking the patches out."""
    journal = _journal.read(tree, _journal.CONFLICTS) if tree.has_repository else None
    return journal is not None and journal.applied[1] is None


def is_unfinished(tree: Tree) -> bool:
    """Tell whether a killed patchlock has left something that has to be finished first; costs a look at folders."""
    return tree.has_repository and _journal.is_unfinished(tree)


def finishing_words(tree: Tree) -> str:
    """Give the words after `patchlock patch` that finish a move that was cut off, or "" where there is none."""
    if not is_unfinished(tree):
        return ""
    if _journal.folder(tree, _journal.ABORTING).exists():
        return "apply --abort"
    journal = _journal.read(tree, _journal.REJOIN) or _journal.read(tree, _journal.MOVE)
    return "undo" if journal is not None and journal.applied[1] is None else "apply"


def pending(tree: Tree) -> CommitId | None:
    """Name the patched commit that a tree is on its way to, or None where no move was cut off."""
    for name in (_journal.REJOIN, _journal.MOVE):
        journal = _journal.read(tree, name)
        if journal is not None and journal.applied[1] is not None:
            return CommitId(journal.applied[1])
    return None


def move(
    tree: Tree,
    target: CommitId,
    *,
    restore_all: bool = False,
    leave_conflicts: bool = False,
    beside_git: bool = False,
    brings_branch: bool = False,
    forget: bool = False,
    by_meaning: ByMeaning | None = None,
    dropped: Collection[PurePosixPath] = (),
    fork_of: CommitId | None = None,
    app: str = "",
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
        brings_branch: bring the user's branch to upstream's commit too, wherever it stands; otherwise it follows only
            from the commit that the tree was last patched at.
        forget: the patches are taken out: nothing is applied afterwards.
        by_meaning: applies the patches to the user's version of a file, where his lines and ours meet.
        dropped: as in `Goal`.
        fork_of: as in `Goal`.
        app: the app that is installed there, for messages; "" where it is a folder of the user's.

    Raises:
        GitFirstError: git's own conflict is one for us too, and `beside_git` was not asked for; or a merge or the like
            is not done; or git is too old to merge; nothing was changed.
        SourceConflictError: names the files where the user's edits and ours touch the same lines; nothing was written.
        UnsafePathError: a path leaves the tree, or something of the user's stands in the way.
    """
    recover(tree)
    end_conflicts(tree, app)
    base = commit_of(tree.repository, tree.ref(APPLIED))
    where = _branch_state.read(tree, base) if tree.is_clone else None
    goal = Goal(
        base=base,
        target=target,
        fork_of=fork_of,
        restore_all=restore_all,
        by_meaning=by_meaning,
        dropped=dropped,
        own=_own_versions(tree, base, where.head if where and fork_of else None),
    )
    place = _journal.begin(tree)
    try:
        snapshot, plan = _plan.work_out(tree, goal, where, place)
        if plan.left_by_git and not beside_git:
            raise git_first(tree, sorted(plan.left_by_git))
        if plan.conflicts and not leave_conflicts:
            clone = command_lines.joined(["git", "-C", str(tree.repository)])
            raise SourceConflictError(
                f"your edits conflict with ours in {', '.join(map(str, sorted(plan.conflicts)))}; nothing was written",
                where=str(tree.root),
                remedy=f"see yours with `{clone} diff {tree.ref(APPLIED)}`, undo or move them, and run this again",
            )
        left = tuple(sorted(snapshot.unmerged.keys() - plan.resolved.keys())) if beside_git else ()
        if left and where and where.unfinished:
            return Moved(written=(), conflicts=left, left_by_git=left)
        if where and where.unfinished and (waiting := {*plan.puts, *plan.removes} - plan.resolved.keys()):
            if not plan.resolved:
                raise not_done(tree, where.unfinished)
            plan.leave(waiting)  # git's command goes on only where nothing else has changed
            left = tuple(sorted(waiting))
        after = None if forget else _without(tree, target, left) if left else target
        journal = _journal_of(tree, plan, snapshot, goal, where, after, brings_branch=brings_branch)
        _journal.write(tree, place, journal, target, snapshot.checked_out)
        _journal.decide(tree, place)
    finally:
        if place.exists():
            remove_tree(place)
    late = recover(tree)
    left = () if where and where.unfinished else left
    if plan.by_meaning:
        git("update-ref", "-d", tree.ref(_OWN_NEXT), repository=tree.repository)
    merged = _with_edits(tree, plan, snapshot, goal, where, plan.merged)
    return Moved(
        written=tuple(sorted({*plan.puts, *plan.removes})),
        merged=merged,
        layout=_in_other_layout(tree, plan, snapshot, goal, merged),
        kept=_with_edits(tree, plan, snapshot, goal, where, plan.kept),
        removed=tuple(plan.removed),
        replaced=tuple(sorted(plan.replaced, key=lambda edit: (edit.path, edit.line))),
        unstaged=tuple(sorted(plan.unstaged)),
        staged_in=plan.staged_in,
        conflicts=tuple(sorted({*plan.conflicts, *left, *late})),
        left_by_git=left,
        left_stash=bool(plan.resolved) and not left and _is_autostash(tree),
    )


def _with_edits(
    tree: Tree, plan: Plan, snapshot: Snapshot, goal: Goal, where: BranchState | None, paths: Iterable[PurePosixPath]
) -> tuple[PurePosixPath, ...]:
    """Leave out of some files those that are as committed, with upstream's lines and the patches and nothing else."""
    of_branch = (where.upstream, where.head) if where else (None, None)
    commits = (trees.upstream_of(tree.repository, goal.target), goal.target, *of_branch)
    before, after, newest, head = (trees.everything(tree.repository, commit) for commit in commits)
    found = []
    for path in paths:
        name, there = plan.upstreams_name(path), plan.puts.get(path, snapshot.files.get(path))
        known = [after.get(name), *([newest.get(name)] if before.get(name) == after.get(name) else [])]
        found += [path] if there != head.get(path) or there not in known else []
    return tuple(found)


def _in_other_layout(
    tree: Tree, plan: Plan, snapshot: Snapshot, goal: Goal, merged: Iterable[PurePosixPath]
) -> tuple[PurePosixPath, ...]:
    """Name the joined files that have what the patches write with other white space, and nothing else of their own."""
    upstream = trees.upstream_of(tree.repository, goal.target)
    before, after = (trees.everything(tree.repository, commit) for commit in (upstream, goal.target))
    names = {path: plan.upstreams_name(path) for path in merged}
    ours = {path: after[name] for path, name in names.items() if name in after and after[name] != before.get(name)}
    pairs = {
        path: (there, made) for path, made in ours.items() if (there := plan.puts.get(path, snapshot.files.get(path)))
    }
    data = trees.contents(tree.repository, (one for pair in pairs.values() for one in pair if one.is_file))
    words = {blob: content.split() for blob, content in data.items()}
    return tuple(
        path
        for path, (there, made) in pairs.items()
        if there.blob != made.blob and b"".join(words.get(there.blob, ())) == b"".join(words.get(made.blob, ()))
    )


def _is_autostash(tree: Tree) -> bool:
    """Tell whether the newest stash is one that `git pull --autostash` could not put back without conflicts."""
    asked = ("log", "--walk-reflogs", "-1", "--format=%gs", "refs/stash")
    return git(*asked, repository=tree.repository, allowed=(0, 128)).text == "autostash"


def _journal_of(
    tree: Tree,
    plan: Plan,
    snapshot: Snapshot,
    goal: Goal,
    where: BranchState | None,
    after: CommitId | None,
    *,
    brings_branch: bool,
) -> Journal:
    """Write down what a plan means for the files, the index and the refs."""
    head = where.head if where else None
    new = trees.upstream_of(tree.repository, goal.target)
    is_merging = bool(where and where.unfinished)
    is_there = goal.base is not None and head == trees.upstream_of(tree.repository, goal.base)
    follows = brings_branch or (is_there and not is_merging)
    to = new if head and follows else head
    rows: dict[PurePosixPath, list[str]] = {}
    normal: dict[PurePosixPath, str] = {}
    start, before = goal.base or goal.target, tree.ref(BEFORE)
    if tree.is_clone:
        # Where git's stash has met a conflict, it has staged the rest, and our patches with it.
        is_of_stash = bool(snapshot.unmerged) and not is_merging
        patched = tuple(commit for commit in (goal.base, after) if commit and (after is None or is_of_stash))
        rows, normal = _index_rows.changes(
            tree,
            plan,
            snapshot,
            head,
            to,
            is_merging=is_merging,
            patched=patched,
            own=goal.own,
            is_of_stash=is_of_stash,
        )
        if plan.unstaged:
            _journal.save(tree, plan.unstaged, start, before, _BEFORE_WHY + ", as you had staged them")
            plan.staged_in = commit_of(tree.repository, before) or ""
    touched = {*plan.puts, *plan.removes}
    edited = {path: snapshot.files[path] for path in touched & plan.edited if path in snapshot.files}
    if edited:
        _journal.save(tree, edited, start, before, _BEFORE_WHY)
    journal = _of_files(tree, plan, snapshot)
    return dataclasses.replace(
        journal,
        index=[(str(path), _index_rows.stands(snapshot, path), changed) for path, changed in rows.items()],
        sparse=[str(path) for path in rows if path in snapshot.sparse],
        normal={str(path): row for path, row in normal.items()},
        head=(head, to or head) if head else None,
        applied=(goal.base, after),
        own=(commit_of(tree.repository, tree.ref(OWN)), _keep_own(tree, plan.by_meaning, after)),
    )


def _keep_own(tree: Tree, versions: OwnVersions, after: CommitId | None) -> CommitId | None:
    """Keep the files that were patched by meaning, as the move leaves them, behind them the user's own versions."""
    if after is None or not versions:
        return None
    ref = tree.ref(_OWN_NEXT)
    git("update-ref", "-d", ref, repository=tree.repository)
    his = {path: own.his for path, own in versions.items()}
    _journal.save(tree, his, after, ref, "your own versions", is_alone=True)
    made = {path: own.patched for path, own in versions.items()}
    _journal.save(tree, made, after, ref, "the same, patched by meaning", is_alone=True)
    return commit_of(tree.repository, ref)


def _own_versions(tree: Tree, base: CommitId | None, forks: CommitId | None = None) -> OwnVersions:
    """Read what `_keep_own` has kept for the patched commit that the tree was last brought to.

    Of a file whose patches the commit of a fork's holds, what he has done as they do is no work of his own any more.
    """
    repository, ref = tree.repository, tree.ref(OWN)
    kept = commit_of(repository, ref)
    if base is None or kept is None or commit_of(repository, f"{ref}^1") != base:
        return {}
    patched, own = (trees.everything(repository, commit) for commit in (kept, commit_of(repository, f"{ref}^2")))
    known = {path: OwnVersion(his=own[path], patched=entry) for path, entry in patched.items()}
    origin = trees.everything(repository, trees.upstream_of(repository, base))
    held = {*_branch_state.patched_in(tree, base, trees.entries(repository, forks))} & known.keys()
    done = {
        path
        for path in held
        if (one := known[path]).patched == _tree_merge.merge_file(tree, path, (origin.get(path), one.patched, one.his))
    }
    return {path: one for path, one in known.items() if path not in done}


def _of_files(tree: Tree, plan: Plan, snapshot: Snapshot) -> Journal:
    stats = snapshot.stats
    touched = {*plan.puts, *plan.removes}
    stood = {path: stats[path] if path in stats else _snapshot.stat_of(tree.root / path) for path in touched}
    files = {path: entry for path, entry in plan.puts.items() if entry.mode != "160000"}
    return Journal(
        puts={str(path): stood[path] for path in files},
        folders=[str(path) for path in plan.puts if path not in files],
        removes={str(path): stood[path] for path in plan.removes},
        entries={str(path): [entry.mode, entry.blob] for path, entry in files.items()},
        mine={str(p): [entry.mode, entry.blob] for p in touched if (entry := snapshot.files.get(p))},
        index=[],
        sparse=[],
        conflicts=sorted(map(str, plan.conflicts)),
        normal={},
        head=None,
        taken_back={str(path): stood[path] is not None for path in (*files, *plan.removes)},
        applied=(None, None),
    )


def _without(tree: Tree, target: CommitId, left: Collection[PurePosixPath]) -> CommitId:
    """Make a patched commit without its patches of some files, still to be put there, unless HEAD has them."""
    upstream, head = trees.upstream_of(tree.repository, target), commit_of(tree.repository, "HEAD")
    left = {*left} - {*_branch_state.patched_in(tree, target, trees.entries(tree.repository, head))}
    before, after = (trees.entries(tree.repository, commit) for commit in (upstream, target))
    ours = {path: after[path] for path in after if before.get(path) != after[path] and path not in left}
    data = trees.contents(tree.repository, ours.values())
    return trees.commit_files(
        tree.repository,
        {path: data[entry.blob] for path, entry in ours.items()},
        parent=upstream,
        message="patched, but for files with conflicts of git's\n",
        ref=tree.ref("partly"),
        executable=[path for path, entry in ours.items() if entry.is_executable],
    )


def recover(tree: Tree) -> tuple[PurePosixPath, ...]:
    """Finish what a killed patchlock has begun in a tree; what the user has changed since is joined with it.

    Returns:
        Files in which his changes since and ours meet: they are left with both sides between markers.
    """
    if not tree.has_repository:
        return ()
    if _journal.folder(tree, _journal.ABORTING).exists():
        _keep_aborted(tree, _journal.ABORTING)
        _journal.take_back(tree)
    _journal.end_replacing(tree)
    late: list[PurePosixPath] = []
    while (journal := _journal.read(tree, _journal.MOVE)) is not None:
        changed = _journal.roll(tree, journal)
        if not changed:
            _journal.finish(tree, journal)
            break
        late += _go_over(tree, journal, changed)
    return tuple(late)


def _go_over(tree: Tree, first: Journal, changed: Collection[PurePosixPath]) -> list[PurePosixPath]:
    """Make of a move that met newer changes of the user's one that joins them."""
    place = _journal.begin(tree)
    start = CommitId(first.applied[0] or first.applied[1] or "")
    snapshot = _snapshot.take(tree, start, changed, place)

    def entry(kept: dict[str, list[str]], path: PurePosixPath) -> Entry | None:
        return Entry(mode=kept[str(path)][0], blob=kept[str(path)][1]) if str(path) in kept else None

    sides = {p: (entry(first.mine, p), snapshot.files.get(p), entry(first.entries, p)) for p in changed}
    plan = _plan.rejoin(tree, sides, takes_out=first.applied[1] is None)
    for path in [path for path in plan.puts if _journal.is_blocked(tree, tree.root / path)]:
        del plan.puts[path]  # what the user has put in its way stays
    own = _of_files(tree, plan, snapshot)
    done = {name for name in first.entries if PurePosixPath(name) not in changed}
    index = {name: (old, new) for name, old, new in first.index}
    for path, versions in plan.conflicts.items():
        old, _ = index.get(str(path), (_index_rows.stands(snapshot, path), []))
        index[str(path)] = (old, _index_rows.of_conflict(versions))
    normal = {str(path): next(iter(_index_rows.stands(snapshot, path)), "") for path in plan.conflicts if tree.is_clone}
    journal = dataclasses.replace(
        own,
        index=[(name, *rows) for name, rows in index.items()] if tree.is_clone else [],
        sparse=first.sparse,
        conflicts=[*dict.fromkeys([*first.conflicts, *own.conflicts])],
        normal={**normal, **first.normal},
        left={name: stat for name, stat in first.left.items() if name in done},
        head=first.head,
        applied=first.applied,
        own=first.own,
        taken_back={**first.taken_back, **own.taken_back},
    )
    target = CommitId(first.applied[1] or first.applied[0] or "")
    _journal.write(tree, place, journal, target, snapshot.checked_out)
    _journal.replace_move(tree, place)
    return sorted(plan.conflicts)


# --- conflicts --------------------------------------------------------------------------------------------------------


def conflicted(tree: Tree) -> tuple[PurePosixPath, ...] | None:
    """Name the files that still hold both sides of a conflict that a move left; None where no move left any."""
    journal = _journal.read(tree, _journal.CONFLICTS)
    return _journal.open_conflicts(tree, journal) if journal is not None else None


def open_conflicts(tree: Tree) -> Collection[PurePosixPath]:
    """Name the files in which both sides of a conflict stand, of a move or of git's own."""
    if not tree.has_repository:
        return ()
    return {*(conflicted(tree) or ()), *map(PurePosixPath, _journal.others(tree, None))}


def without_markers(tree: Tree, paths: Iterable[PurePosixPath]) -> tuple[PurePosixPath, ...]:
    """Give those of some conflicts between whose sides git puts no markers: binary files and submodules."""
    return tuple(path for path in paths if not _branch_state.has_markers(trees.read(tree, path) or b""))


def marker_lines(tree: Tree, path: PurePosixPath) -> tuple[int, ...]:
    """Give the lines of a file, from 1, on which markers of a conflict stand that a move has left there."""
    file = tree.root / path
    return _branch_state.our_markers(file.read_bytes()) if file.is_file() and not file.is_symlink() else ()


def upstreams_own(tree: Tree, paths: Iterable[PurePosixPath], patched: CommitId | None) -> tuple[PurePosixPath, ...]:
    """Give those of some conflicts in which the user's edits meet what upstream has changed, and no patch.

    Args:
        tree: the folder.
        paths: the files with the conflicts of a move.
        patched: the commit that it went to.
    """
    upstream = trees.upstream_of(tree.repository, patched) if patched else None
    before, after = (trees.entries(tree.repository, commit) for commit in (upstream, patched))
    listed = [path for path in paths if path in before]
    data = trees.contents(tree.repository, [before[path] for path in listed])
    found = []
    for path in listed:
        sides = _branch_state.patched_sides(trees.read(tree, path) or b"")
        if before[path] == after.get(path) or (sides and all(side in data[before[path].blob] for side in sides)):
            found.append(path)
    return tuple(found)


def marked_places(tree: Tree, paths: Iterable[PurePosixPath]) -> str:
    """List files for a message, each with the lines of `marker_lines`."""
    lines = {path: ",".join(map(str, marker_lines(tree, path))) for path in paths}
    return ", ".join(f"{path}:{at}" if at else str(path) for path, at in lines.items())


def unchosen(tree: Tree) -> tuple[PurePosixPath, ...]:
    """Name the files of a move's conflicts in which the user has not chosen, though he has staged or committed them."""
    journal = _journal.read(tree, _journal.CONFLICTS) if tree.has_repository else None
    known = map(PurePosixPath, journal.conflicts if journal else ())
    return conflicted(tree) or tuple(path for path in known if marker_lines(tree, path))


def end_conflicts(tree: Tree, app: str = "") -> None:
    """Take note that the user has resolved what the last move left; after an undo, nothing else is to be done.

    Raises:
        SourceConflictError: he has not.
    """
    journal = _journal.read(tree, _journal.CONFLICTS)
    if left := unchosen(tree):
        source = command_lines.quoted(str(tree.root))
        again = f"patch {'undo' if waits_for_undo(tree) else 'apply --continue'} --source {source}"
        back = f"update {app} --abort" if app else f"patch apply --abort --source {source}"
        go_on = f"run `patchlock {f'update {app}' if app else again}`"
        if journal is None or not _has_left(tree, journal):
            go_on += f"; or go back with `patchlock {back}`"
        marked = [path for path in left if path not in without_markers(tree, left)]
        if not marked:
            add = f"git -C {source} add {command_lines.joined(map(str, left))}" if tree.is_clone else "touch"
            raise SourceConflictError(
                f"your version of {', '.join(map(str, left))} still stands beside upstream's",
                where=str(tree.root),
                remedy=f"put the one there that you want, say so with `{add}`, and {go_on}",
            )
        raise SourceConflictError(
            f"{marked_places(tree, marked)} still {'has' if len(marked) == 1 else 'have'} conflict markers",
            where=str(tree.root),
            remedy=f"choose between the two sides in each, and {go_on}",
        )
    if journal is None:
        return
    _keep_choices(tree, journal)
    _journal.end_conflicts(tree, journal)
    if journal.applied[1] is None:
        rows = "".join(f"delete {tree.ref(name)}\n" for name in (APPLIED, OWN))
        git("update-ref", "--stdin", repository=tree.repository, stdin=rows.encode())


def _keep_choices(tree: Tree, journal: Journal) -> None:
    """Take note of conflicts that the user has ended with the whole patched file, so that undo brings his back."""
    after = CommitId(journal.applied[1] or "") or None
    own = dict(_own_versions(tree, after))
    patched = trees.everything(tree.repository, after)
    there = {path: patched[path] for path in map(PurePosixPath, journal.conflicts) if path in own and path in patched}
    stored, data = _snapshot.stored(tree, there), trees.contents(tree.repository, there.values())
    whole = {path: entry for path, entry in there.items() if stored[path] == data[entry.blob]}
    if whole:
        own |= {path: dataclasses.replace(own[path], patched=entry) for path, entry in whole.items()}
        git("update-ref", tree.ref(OWN), _keep_own(tree, own, after) or "", repository=tree.repository)
        git("update-ref", "-d", tree.ref(_OWN_NEXT), repository=tree.repository)


def abort(tree: Tree) -> tuple[PurePosixPath, ...]:
    """Go back to the files, the index and the branch as they were before a move that met conflicts, byte for byte.

    What stands there now is kept under the ref `aborted`.

    Returns:
        The files that were brought back; none where no move left conflicts.

    Raises:
        GitFirstError: git's own conflict stands there, a merge or the like is not done, or the user has moved his
            branch; nothing was changed.
    """
    recover(tree)
    journal = _journal.read(tree, _journal.CONFLICTS)
    if others := _journal.others(tree, journal):
        raise git_first(tree, sorted(map(PurePosixPath, others)))
    if journal is None:
        return ()
    if journal.head and _has_left(tree, journal):
        raise branch_has_moved(tree, journal.head[0])
    require_git_done(tree)  # what a merge without conflicts has staged would be lost, and its next commit lack it
    _keep_aborted(tree, _journal.CONFLICTS)
    return _journal.take_back(tree)


def _has_left(tree: Tree, journal: Journal) -> bool:
    """Tell whether the user has committed or checked something out since a move."""
    head = commit_of(tree.repository, "HEAD") if tree.is_clone else None
    return journal.head is not None and head not in journal.head


def _keep_aborted(tree: Tree, name: str) -> None:
    """Keep what stands where files are brought back."""
    journal = _journal.read(tree, name)
    paths = _journal.to_take_back(tree, name)
    if journal is None or not paths:
        return
    start = CommitId(journal.applied[0] or journal.applied[1] or "")
    place = _journal.begin(tree)
    now = _snapshot.take(tree, start, paths, place)
    files = {path: _snapshot.entry_of(tree, path, now) for path in paths}
    _journal.save(tree, files, start, tree.ref(ABORTED), _ABORTED_WHY)
    remove_tree(place)


def branch_has_moved(tree: Tree, head: str) -> GitFirstError:
    """Say that a move cannot be taken back over what the user has committed or checked out since."""
    return GitFirstError(
        "your branch has moved since your edits and the patches met, so nothing was changed",
        where=str(tree.root),
        remedy="choose between the two sides in each file and leave --abort out, or go to the commit of then, on no "
        f"branch, with `git -C {command_lines.quoted(str(tree.root))} checkout {head[:12]}`, then run this again",
    )


def not_done(tree: Tree, name: str) -> GitFirstError:
    """Say that git's own merge, rebase or the like has to be ended first, as it must be able to go on and back."""
    clone = command_lines.joined(["git", "-C", str(tree.root)])
    end = f"`{clone} {name} --continue`"
    if "GIT_INDEX_FILE" in os.environ:  # so do git's hooks have it, and the one that runs this would stop that, too
        end = f"`{clone} commit --no-verify`, which leaves out the hook that says this"
    return GitFirstError(
        f"a `git {name}` of yours is not done, so nothing was changed",
        where=str(tree.root),
        remedy=f"end it with {end}, or give it up with `{clone} {name} --abort`; then run this again",
    )


def require_git_done(tree: Tree) -> None:
    """Refuse where a merge or the like of the user's is not done.

    Raises:
        GitFirstError: it is not; the message says how to end it.
    """
    name, _ = _branch_state.unfinished(tree.repository) if tree.is_clone else ("", None)
    if name:
        conflicts = sorted(map(PurePosixPath, _journal.others(tree, None)))
        raise git_first(tree, conflicts) if conflicts else not_done(tree, name)


def require_chosen(tree: Tree, below: PurePosixPath) -> None:
    """Refuse where both sides of a conflict stand in files of a folder of a clone.

    Raises:
        GitFirstError: of git's own; the message says how to end it.
        SourceConflictError: of one that a move has left.
    """
    waiting = sorted(path for path in open_conflicts(tree) if path.is_relative_to(below))
    of_git = [path for path in waiting if path not in (conflicted(tree) or ())]
    if of_git:
        raise git_first(tree, of_git)
    if waiting:
        told = f"conflicts wait for you in {marked_places(tree, waiting)}"
        raise SourceConflictError(told, where=str(tree.root), remedy="choose, then run this again")


def git_first(
    tree: Tree, paths: Sequence[PurePosixPath], *, is_part: bool = False, patched: CommitId | None = None
) -> GitFirstError:
    """Say that git's own conflict in some files has to be ended first, and how.

    Args:
        tree: the clone.
        paths: the files.
        is_part: the others have been written.
        patched: the patched commit that the tree is brought to, if it shall be said how to take upstream's side of its
            files.
    """
    name, _ = _branch_state.unfinished(tree.repository)
    is_all = {*map(PurePosixPath, _journal.others(tree, None))} <= {*paths}
    clone = command_lines.joined(["git", "-C", str(tree.root)])
    files = command_lines.joined(map(str, paths))
    # In a merge the choice is a part of the next commit. Of a stash nothing is staged, least of all a patch.
    finish = f"choose between the two sides in each, `{clone} {'add' if name else 'reset -q --'} {files}`"
    if name:
        finish += f", `{clone} {name} --continue`" if is_all else ""
        finish += f", or go back with `{clone} {name} --abort`"
    if side := _upstreams_side(tree, paths, patched):
        finish += f"; `{clone} checkout {side}` takes upstream's side where you have nothing but patches"
    so = "so no patch was put there" if is_part else "so nothing was changed"
    return GitFirstError(
        f"git's own conflict stands in {', '.join(map(str, paths))}, {so}",
        where=str(tree.root),
        remedy=f"{finish}; then run this again",
    )


def _upstreams_side(tree: Tree, paths: Iterable[PurePosixPath], patched: CommitId | None) -> str:
    """Give the words that take upstream's side of those files that a patched commit patches, "" for none."""
    upstream = trees.upstream_of(tree.repository, patched) if patched else None
    before, after = (trees.entries(tree.repository, commit) for commit in (upstream, patched))
    unmerged = _branch_state.read(tree, None).unmerged
    there = [path for path in paths if path in unmerged and path in before and before[path] != after.get(path)]
    data = trees.contents(tree.repository, [before[path] for path in there])
    sides: dict[str, list[str]] = {"--ours": [], "--theirs": []}
    for path in there:
        known = data[before[path].blob]
        sides["--ours"] += [str(path)] if unmerged[path].ours == known else []
        sides["--theirs"] += [str(path)] if unmerged[path].theirs == known else []
    return next((f"{side} {command_lines.joined(names)}" for side, names in sides.items() if names), "")


def going_on(tree: Tree) -> str:
    """Give the command that goes on with a merge or the like of the user's, "" where he is in none."""
    name, _ = _branch_state.unfinished(tree.repository) if tree.is_clone else ("", None)
    return f"{command_lines.joined(['git', '-C', str(tree.root)])} {name} --continue" if name else ""
