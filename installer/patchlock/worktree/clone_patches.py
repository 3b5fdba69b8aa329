"""Patch any folder of upstream's files: a clone that the user made and pulls himself, or an unpacked archive.

The same road as in an install, without an environment: upstream's commit → patches → a synthetic commit on a private
ref → three-way merge into the working tree. The user's branch is only moved by `update`, and only along upstream's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.core import command_lines
from patchlock.model.errors import GitFirstError, NotPatchedError, PatchError, SourceConflictError, UpstreamError
from patchlock.model.identities import CommitId
from patchlock.model.patch import OTHERWISE, Outcome, OutcomeKind, Patch, Patched
from patchlock.patches import edited_file, engine
from patchlock.patches.edited_file import EditedFile, ReplacedEdit
from patchlock.patches.evaluation import DIRECT, Evaluator
from patchlock.patches.ops import REMOVING_OPS
from patchlock.patches.outcomes import APPLIED, patched_message, warnings
from patchlock.worktree import (
    _branch_state,
    _carried_patches,
    _committed_patches,
    _outcomes_in_tree,
    _upstream_branch,
    committed_undo,
    histories,
    manifest,
    move,
    patch_cache,
    trees,
    upstream_files,
)
from patchlock.worktree._committed_patches import Committed
from patchlock.worktree._goal import ByMeaning
from patchlock.worktree.manifest import Manifest
from patchlock.worktree.move import Moved
from patchlock.worktree.trees import Tree
from patchlock.worktree.upstream_cache import git
from patchlock.worktree.upstream_files import PatchSet

_MADE = "made"
"""A ref, as those of `move`: the newest patched commit."""


@dataclass(frozen=True, kw_only=True)
class Applied:
    """What was done to a tree."""

    upstream: CommitId
    applied: CommitId
    outcomes: tuple[Outcome, ...]
    moved: Moved
    warnings: tuple[str, ...]
    """Advisory patches that were left out, and files that a patch could not read; a sentence each."""
    lost: tuple[str, ...] = ()
    """As in `Manifest`."""


def apply(tree: Tree, wanted: PatchSet, cache: Path, *, waiting: Callable[[], None] = lambda: None) -> Applied | None:
    """Put the patches into what is checked out, keeping the user's edits; None where there is nothing to do.

    Where the user's edits and ours meet, both are left between markers, and `worktree.move.abort` goes back.

    Args:
        tree: the folder.
        wanted: the patches.
        cache: patchlock's.
        waiting: called once, when another patchlock works there.

    Raises:
        BusyError: another patchlock works there and does not end.
        PatchError: a patch cannot do what it says; nothing was written.
        SourceConflictError: conflicts of an earlier run are still there.
    """
    if is_current(tree, wanted):
        return None
    upstream_files.require_app(tree, wanted)
    with trees.hold(tree, waiting=waiting):
        return _apply(tree, wanted, cache, None)


def _apply(tree: Tree, wanted: PatchSet, cache: Path, upstream: CommitId | None) -> Applied | None:
    """Apply, to upstream's commit or to what is checked out, while nobody else works there."""
    if is_current(tree, wanted) and upstream in {None, manifest.head_of(tree)}:
        return None
    if not tree.has_repository:
        _make_private(tree)
    with patch_cache.evaluator(cache) as evaluator:
        return _apply_evaluated(tree, wanted, upstream, evaluator)


def _apply_evaluated(tree: Tree, wanted: PatchSet, upstream: CommitId | None, evaluator: Evaluator) -> Applied:
    is_there, known = upstream is None, manifest.read(tree)
    choice = (known.skipped, known.chosen) if known else ((), ())
    if is_there and (choice != (wanted.skipped, wanted.chosen) or _are_removed(tree, wanted, known)):
        move.require_git_done(tree)  # what is left out would be taken from what git has just merged
    if upstream is not None:
        _require_upstreams(tree, wanted, upstream, evaluator)
    asked = wanted.patches
    other, wanted, upstream, patched = _patched(tree, wanted, upstream, evaluator)
    command = command_for(tree, wanted, "apply" if is_there else "update")
    if not move.conflicted(tree) and not move.is_unfinished(tree) and (error := unchosen(tree, wanted, upstream)):
        raise error
    where, ways = f"{wanted.name} at {upstream[:12]} in {tree.root}", ways_on(tree, wanted, upstream, patched)
    if wrong := engine.incomplete_error(patched, where, command, ways=ways):
        raise _beside_git(tree, wrong)
    if waiting := _idle_in_conflict(tree, wanted, patched):
        raise _beside_git(tree, waiting)
    files = {wanted.directory / change.path: change.after for change in patched.changes}
    message = patched_message(wanted.name, wanted.profile, patched.outcomes)
    scripts = [wanted.directory / change.path for change in patched.changes if change.is_executable]
    if other and other.upstream:
        _committed_patches.take_for_applied(tree, wanted, other, other.upstream)
    applied = trees.commit_files(
        tree.repository, files, parent=upstream, message=message, ref=tree.ref(_MADE), executable=scripts
    )
    moved = move.move(
        tree,
        applied,
        leave_conflicts=True,
        beside_git=is_there,
        brings_branch=not is_there,
        by_meaning=by_meaning(wanted.patches, wanted.directory, patched, evaluator),
        dropped=_dropped(wanted, [*(known.outcomes if known else ()), *(other.patched.outcomes if other else ())]),
        fork_of=other.upstream if other else None,
    )
    outcomes = _outcomes_in_tree.in_tree(tree, wanted, patched, evaluator, is_done=True, upstream=upstream)
    is_users = is_there and tree.is_clone
    committed = upstream_files.replaced_commits(tree, wanted, upstream, patched, evaluator) if is_users else ()
    gone = lost(tree, wanted, outcomes, patched.advisory)
    if not moved.left_by_git:
        if moved.conflicts:
            manifest.keep(tree)
        is_kept = other is not None and (other.profile != wanted.profile or other.upstream is None)
        now = Manifest(
            name=wanted.name,
            profile=wanted.profile,
            digest=wanted.digest,
            head=manifest.head_of(tree),
            catalogue=wanted.catalogue,
            origin=wanted.origin,
            upstream=upstream,
            files=manifest.record(tree, applied, upstream),
            skipped=wanted.skipped,
            chosen=wanted.chosen,
            outcomes=outcomes,
            failures=patched.failures,
            advisory=tuple(sorted(patched.advisory)),
            committed=(other.profile or Path(wanted.origin).name) if other and is_kept else "",
            followed=histories.fetched(tree.root, wanted.url, wanted.branch) if tree.is_clone else "",
            lost=gone,
        )
        manifest.write(tree, now)
    return Applied(
        upstream=upstream,
        applied=applied,
        outcomes=_outcomes_in_tree.drifts_only(patched, outcomes),
        moved=moved,
        warnings=(
            *_told_refused(wanted),
            *_committed_patches.warnings(tree, wanted, other),
            *warnings(patched),
            *_told_carried(tree, wanted, upstream, asked),
            *(_told_idle(one, one.id in gone) for one in _own_idle(wanted, outcomes, patched.advisory)),
            *(
                f"{replaced(edit)}; {_without(tree, wanted, upstream, edit, evaluator)} brings yours back"
                for edit in (*moved.replaced, *(edit for edit in committed if edit.path in moved.written))
            ),
        ),
        lost=gone,
    )


def _are_removed(tree: Tree, wanted: PatchSet, known: Manifest | None) -> bool:
    """Tell whether a fork has removed patches of its own that were applied here: with them, their edits would go."""
    if known is None or _committed_patches.own_head(tree, wanted) is None:
        return False
    return not {patch.id for patch in wanted.patches}.issuperset(outcome.patch for outcome in known.outcomes)


def _beside_git(tree: Tree, error: PatchError) -> PatchError:
    """Say of patches that fail in the middle of a merge or the like how to go on or back; none may be left out."""
    clone, (name, _) = f"git -C {command_lines.quoted(str(tree.root))}", _branch_state.unfinished(tree.repository)
    if not name or not tree.is_clone:
        return error
    files = ", ".join(map(str, sorted(move.open_conflicts(tree))))
    told = f"your `git {name}` is not done{f', and its conflicts stand in {files}' if files else ''}"
    remedy = (
        f"{told}: correct the patch and run this again, end the {name} first, or go back with `{clone} {name} --abort`"
    )
    return PatchError(error.what, where=error.where, remedy=remedy, evidence=error.evidence)


def _idle_in_conflict(tree: Tree, wanted: PatchSet, patched: Patched) -> PatchError | None:
    """Refuse own patches that find nothing in a file of git's conflict: resolved with them, it would lose the edit."""
    waiting = move.open_conflicts(tree)
    idle = _own_idle(wanted, patched.outcomes, patched.advisory)
    names = [one.id for one in idle if any(wanted.directory / path in waiting for path in one.paths)]
    finds = "finds" if len(names) == 1 else "find"
    what = f"{', '.join(names)} {finds} nothing to change in upstream's version of a file that is in conflict"
    return PatchError(what, where=str(tree.root), remedy="correct the patch") if names else None


def _dropped(wanted: PatchSet, before: Iterable[Outcome]) -> set[PurePosixPath]:
    """Name the files in which patches stood that are not wanted any more."""
    stay = {patch.id for patch in wanted.patches} - {*wanted.skipped}
    return {wanted.directory / one.path for one in before if one.path is not None and one.patch not in stay}


def _own_idle(wanted: PatchSet, outcomes: Iterable[Outcome], advisory: Collection[str]) -> tuple[Patch, ...]:
    """Give the required patches of the user's own, those of a file, that find nothing: their edit may not be there."""
    if wanted.profile:
        return ()
    gone = {outcome.patch for outcome in outcomes if outcome.kind is OutcomeKind.GONE}.difference(advisory)
    return tuple(one for one in wanted.patches if one.id in gone and one.op_name not in REMOVING_OPS)


def lost(tree: Tree, wanted: PatchSet, outcomes: Iterable[Outcome], advisory: Collection[str]) -> tuple[str, ...]:
    """Name the patches of the user's own, those of a file, whose edits were in his files and are not.

    Args:
        tree: the folder.
        wanted: the patches.
        outcomes: as they stand in the folder.
        advisory: ids of the patches that may be left out.
    """
    outcomes, known = tuple(outcomes), manifest.read(tree)
    is_forks = _committed_patches.own_head(tree, wanted) is not None
    found = [
        patch.id
        for patch in _own_idle(wanted, outcomes, advisory)
        if is_forks or (known and patch.id in _once_there(known))
        if not _outcomes_in_tree.is_kept(tree, wanted, patch)
    ]
    return (*found, *_own_drifted(wanted, outcomes, found))


def _own_drifted(wanted: PatchSet, outcomes: Iterable[Outcome], but: Collection[str]) -> tuple[str, ...]:
    """Name the patches of the user's own, those of a file, in whose place his files have something else."""
    if wanted.profile:
        return ()
    drifted = (one for one in outcomes if one.kind is OutcomeKind.DRIFTED and one.detail.startswith(OTHERWISE))
    return tuple(dict.fromkeys(one.patch for one in drifted if one.patch not in but))


def _once_there(known: Manifest) -> set[str]:
    there = APPLIED | {OutcomeKind.FIXED_UPSTREAM}  # by a commit of a fork, where the clone is new
    return {*known.lost, *(outcome.patch for outcome in known.outcomes if outcome.kind in there)}


def _told_carried(tree: Tree, wanted: PatchSet, upstream: CommitId, asked: Iterable[Patch]) -> Iterator[str]:
    """Say of each patch that git's merge has carried to a newer file how it is written anew."""
    for patch, now in zip(asked, wanted.patches, strict=True):
        if now is not patch:
            why = f"upstream has changed the lines by which it is placed in {patch.paths[0]}, so git's merge carried it"
            yield f"{patch.id}: {why}; to renew it, {_written_again(tree, wanted, upstream, 1)}"


def _told_refused(wanted: PatchSet) -> tuple[str, ...]:
    told = f"{wanted.name} does not support {wanted.profile}: {wanted.refused}; it is patched all the same"
    return (told,) if wanted.refused else ()


def _require_upstreams(tree: Tree, wanted: PatchSet, commit: CommitId, evaluator: Evaluator) -> None:
    """Refuse to bring a clone to a commit of a fork's that has the patches: they would count as upstream's own."""
    if _committed_patches.find(tree, wanted, evaluator, commit) is None:
        return
    source = command_lines.quoted(str(tree.root))
    raise GitFirstError(
        "the branch that the clone follows has commits with these patches, so nothing was changed",
        where=str(tree.root),
        remedy=f"pull it with `git -C {source} pull --rebase --autostash` (or `--no-rebase`), then renew the patches "
        f"with `{command_for(tree, wanted, 'apply')}`",
    )


def _patched(
    tree: Tree, wanted: PatchSet, upstream: CommitId | None, evaluator: Evaluator
) -> tuple[Committed | None, PatchSet, CommitId, Patched]:
    """Patch upstream's files in memory: those of a commit, or of the one below what is checked out.

    Returns:
        The patches that the clone's commits hold, if any; the wanted ones, as they are carried to upstream's commit;
        that commit; what they make of it.
    """
    other = None
    if tree.is_clone and upstream is None:
        commit = upstream_files.commit_to_patch(tree, move.applied(tree))
        if not _branch_state.unfinished(tree.repository)[0]:
            commit = _committed_patches.own_head(tree, wanted) or commit
        other = _committed_patches.find(tree, wanted, evaluator, commit)
        _committed_patches.require_history(tree, wanted, other)
    upstream = (other.upstream if other else upstream) or upstream_files.to_patch(tree, wanted)
    patches = _carried_patches.carried(tree, wanted, upstream, evaluator, wanted.skipped)
    wanted = dataclasses.replace(wanted, patches=patches)
    patched = upstream_files.patched(tree, wanted, evaluator, upstream)
    _require_history(tree, wanted, patched)
    return other, wanted, upstream, patched


def _require_history(tree: Tree, wanted: PatchSet, patched: Patched) -> None:
    """Refuse to judge a fork's own patches, all of which it may have committed, without the commits before those."""
    idle = {patch.id for patch in _own_idle(wanted, patched.outcomes, patched.advisory)}
    if not idle or not _committed_patches.lacks_commits(tree, wanted):
        return
    raise UpstreamError(
        f"the clone is shallow, so it does not show whether your commits have {', '.join(sorted(idle))} already",
        where=str(tree.root),
        remedy=f"{_committed_patches.get_history(tree)}; in CI, let the checkout fetch all commits (fetch-depth: 0)",
    )


def _told_idle(patch: Patch, is_lost: bool) -> str:
    paths = ", ".join(patch.paths)
    if is_lost:
        return f"{patch.id}: it finds neither what it changes nor what it writes in {paths}"
    return f"{patch.id}: it finds nothing to change in {paths}; see whether the file has the edit already"


def replaced(edit: ReplacedEdit) -> str:
    """Say which edit of the user's a patch has replaced."""
    return f"a patch replaced your edit at {edit.path}:{edit.line} ({edit.text}): {' or '.join(edit.patches)}"


def _without(tree: Tree, wanted: PatchSet, upstream: CommitId, edit: ReplacedEdit, evaluator: Evaluator) -> str:
    """Write the command that leaves the patches of an edit out, and those that cannot do without them."""
    left_out: tuple[str, ...] = ()
    more = set(edit.patches)
    while more:
        left_out += tuple(patch.id for patch in wanted.patches if patch.id in more)
        fewer = dataclasses.replace(wanted, skipped=(*wanted.skipped, *left_out))
        patched = upstream_files.patched(tree, fewer, evaluator, upstream)
        more = engine.incomplete(patched) - {*left_out}
    options = "".join(f" --without {name}" for name in left_out)
    return f"`patchlock patch apply --source {command_lines.quoted(str(tree.root))}{options}`"


def command_for(tree: Tree, wanted: PatchSet, name: str) -> str:
    """Write the command that does something with these patches there, to which options can be appended."""
    of_file = f"--patches {command_lines.quoted(wanted.origin)}"
    which = f"{wanted.name} --profile {wanted.profile}" if wanted.profile else of_file
    choice = "".join([f" --with {name}" for name in wanted.chosen] + [f" --without {name}" for name in wanted.skipped])
    return f"patchlock patch {name} {which} --source {command_lines.quoted(str(tree.root))}{choice}"


def ways_on(tree: Tree, wanted: PatchSet, upstream: CommitId, patched: Patched) -> tuple[str, ...]:
    """Say what helps where patches fail, besides going on without them, a clause each; and which file was read.

    That is no file of the user's where he has commits on the one that is patched, or has not committed what he changed.
    """
    wrong = engine.incomplete(patched)
    paths = sorted({wanted.directory / one.path for one in patched.outcomes if one.patch in wrong and one.path})
    change = ("change these places" + (" and commit that" if tree.is_clone else ""),)
    if not tree.is_clone or not paths:
        return (*change, "correct the patch")
    head = manifest.head_of(tree)
    is_forks = upstream != head and _committed_patches.are_forks(tree, wanted.profile, wanted.origin, CommitId(head))
    its = "its table" if len(wrong) == 1 else "their tables"
    if _commits_have_edits(tree, upstream, head, paths):
        again = _written_again(tree, wanted, upstream, len(wrong))
        own = f"keep {'the edit' if len(wrong) == 1 else 'the edits'} of your commits: {again}"
    else:
        own = f"remove {its} from {command_lines.quoted(wanted.origin)}, as your commits have no such edit any more"
    show = command_lines.joined(["git", "-C", str(tree.root), "show", f"{upstream[:12]}:{paths[0]}"])
    return (
        *((own,) if is_forks and not wanted.profile else ()),
        *(change if upstream == head else ()),
        f"correct the patch (`{show}` shows the file that it was tried on)",
        "use the commit that the patches were written for",
    )


def _commits_have_edits(tree: Tree, upstream: CommitId, head: str, paths: Iterable[PurePosixPath]) -> bool:
    ours, theirs = (trees.entries(tree.repository, CommitId(commit)) for commit in (head, upstream))
    return any(ours.get(path) != theirs.get(path) for path in paths)


def _written_again(tree: Tree, wanted: PatchSet, upstream: CommitId, count: int) -> str:
    """Say how a fork keeps the edits of its patches, which its commits have, where these fit upstream no more."""
    its, it = ("its table", "it") if count == 1 else ("their tables", "them")
    source, file = command_lines.quoted(str(tree.root)), command_lines.quoted(wanted.origin)
    new = f"patchlock patch new --source {source} --base {upstream[:12]} --into {file}"
    return f"remove {its} from {file} and write {it} again with `{new}`"


def by_meaning(
    patches: tuple[Patch, ...], directory: PurePosixPath, patched: Patched, evaluator: Evaluator = DIRECT
) -> ByMeaning:
    """Give a move the means to apply patches to the user's version of a file, where his lines and ours meet.

    Args:
        patches: those that the profile wants.
        directory: the app's folder in the tree.
        patched: what they made of upstream's files.
        evaluator: whom to ask.
    """

    def applied(path: PurePosixPath, data: bytes) -> EditedFile | None:
        if not path.is_relative_to(directory):
            return None
        return edited_file.apply(patches, patched, path.relative_to(directory), data, evaluator)

    return applied


def update(tree: Tree, wanted: PatchSet, cache: Path, *, waiting: Callable[[], None] = lambda: None) -> Applied | None:
    """Fetch what upstream's branch has now, and bring a clone there with the patches.

    Git's own pull refuses to touch a file that is patched; this does not need it. The branch follows upstream's. What
    is fetched comes through our cache, so that nothing that the clone's configuration names is run.

    Raises:
        UpstreamError: it is no clone, it follows no branch of upstream's, or it has commits of its own.
        GitFirstError: a merge or the like of the user's is not done, or the branch is a fork's with these patches;
            nothing was changed.
        BusyError: another patchlock works there and does not end.
        PatchError: a patch cannot do what it says; nothing was written.
        SourceConflictError: conflicts of an earlier run are still there.
    """
    if not tree.is_clone:
        raise UpstreamError(
            "it is not a git clone, so there is nothing to fetch",
            where=str(tree.root),
            remedy="unpack the new version over it, and run `patchlock patch apply` again",
        )
    with trees.hold(tree, waiting=waiting), _upstream_branch.fetched(tree, cache) as newest:
        return _apply(tree, wanted, cache, newest)


def is_current(tree: Tree, wanted: PatchSet) -> bool:
    """Tell whether a tree has these patches already, without reading a file of it; not in the midst of a merge."""
    have = manifest.read(tree)
    if have is None or have.lost or have.digest != wanted.digest or not manifest.is_current(tree, have):
        return False
    return not (tree.is_clone and _branch_state.unfinished(tree.repository)[0])


def unchosen(tree: Tree, wanted: PatchSet, upstream: CommitId) -> SourceConflictError | None:
    """Say in which files the user has not chosen between both sides of a conflict, though he may have committed them.

    Args:
        tree: the folder.
        wanted: the patches.
        upstream: the commit that is patched.
    """
    waiting = move.conflicted(tree) or ()
    marked = [path for path in upstream_files.marked(tree, wanted, upstream) if path not in waiting]
    if not waiting and not marked:
        return None
    told = [f"conflicts wait for you in {move.marked_places(tree, waiting)}"] if waiting else []
    told += [f"patchlock's conflict markers stand in {move.marked_places(tree, marked)}"] if marked else []
    word, is_known = "undo" if move.waits_for_undo(tree) else "apply", manifest.read(tree) is not None
    short = f"patchlock patch {word} --source {command_lines.quoted(str(tree.root))}"
    again = short if is_known or word == "undo" else command_for(tree, wanted, word)
    return SourceConflictError(" and ".join(told), where=str(tree.root), remedy=f"choose, then `{again}`")


def status(tree: Tree, wanted: PatchSet, cache: Path) -> tuple[CommitId, Patched, tuple[Outcome, ...]]:
    """Say what became of every patch in the tree as it stands; writes nothing to it.

    Returns:
        Upstream's commit, what patching it gives, and the outcomes in the working tree.
    """
    with patch_cache.evaluator(cache) as evaluator:
        _, wanted, upstream, patched = _patched(tree, wanted, None, evaluator)
        marked = upstream_files.marked(tree, wanted, upstream)
        outcomes = _outcomes_in_tree.in_tree(tree, wanted, patched, evaluator, marked, upstream=upstream)
    return upstream, patched, outcomes


def undo(tree: Tree, *, waiting: Callable[[], None] = lambda: None) -> Moved:
    """Take the patches out of a tree, keeping the user's edits; where they meet ours, both are left between markers.

    Raises:
        NotPatchedError: there is nothing to undo.
        GitFirstError: a merge or the like of the user's is not done; nothing was changed.
        BusyError: another patchlock works there and does not end.
        SourceConflictError: conflicts of an earlier run are still there.
    """
    if not move.is_unfinished(tree) and manifest.read(tree) is None:
        require_patched(tree)
    with trees.hold(tree, waiting=waiting):
        move.recover(tree)
        applied, moved = move.applied(tree), Moved(written=())
        if move.waits_for_undo(tree):
            move.end_conflicts(tree)
        elif applied is not None:
            move.require_git_done(tree)
            target, fork_of = committed_undo.without(tree, applied)
            moved = move.move(tree, target, leave_conflicts=True, forget=True, fork_of=fork_of)
        git("update-ref", "-d", tree.ref(_MADE), repository=tree.repository)
        if moved.conflicts:
            manifest.keep(tree)
        manifest.remove(tree)
    return moved


def still_staged(tree: Tree, applied: CommitId | None) -> tuple[PurePosixPath, ...]:
    """Name the files whose staged version still holds patches, after they were taken out of the working tree.

    Args:
        tree: the folder.
        applied: the patched commit that it had.
    """
    return _branch_state.still_staged(tree, applied) if applied is not None and tree.is_clone else ()


def abort(tree: Tree, *, waiting: Callable[[], None] = lambda: None) -> tuple[PurePosixPath, ...]:
    """Go back to the files as they were before conflicts were left; see `worktree.move.abort`.

    Raises:
        NotPatchedError: nothing was ever applied there.
        BusyError: another patchlock works there and does not end.
    """
    if not tree.has_repository:
        require_patched(tree)
    with trees.hold(tree, waiting=waiting):
        found = move.abort(tree)
        if found:
            manifest.restore(tree)
        return found


def require_patched(tree: Tree) -> CommitId:
    """Give the patched commit that a tree was last brought to.

    Raises:
        NotPatchedError: none is known.
    """
    applied = move.applied(tree)
    if applied is None:
        source = f"--source {command_lines.quoted(str(tree.root))}"
        remedy = f"apply them: `patchlock patch apply APP {source}`"
        if tree.is_clone:
            remedy += (
                f"; if your commits have patches, `patchlock patch apply APP --profile NAME {source}`, with the "
                f"profile that you committed, finds them, and then `patchlock patch undo {source}` takes them out"
                "; for patches of your own, write `--patches FILE` in place of APP"
            )
        raise NotPatchedError("no patches are applied there", where=str(tree.root), remedy=remedy)
    return applied


def _make_private(tree: Tree) -> None:
    git("init", "-q", "--bare", "--object-format=sha1", repository=tree.repository)
    # The folder may become a part of a repository of the user's.
    (tree.repository / ".gitignore").write_text("*\n", encoding="utf-8")
    (tree.repository / "README").write_text(
        "patchlock keeps here what it needs to undo and to renew its patches in this folder.\n", encoding="utf-8"
    )
