"""Patch any folder of upstream's files: a clone that the user made and pulls himself, or an unpacked archive.

The same road as in an install, without an environment: upstream's commit → patches → a synthetic commit on a private
ref → three-way merge into the working tree. The user's branch is only moved by `update`, and only along upstream's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.core import command_lines
from patchlock.model.errors import NotPatchedError, PatchError, SourceConflictError, UpstreamError
from patchlock.model.identities import CommitId
from patchlock.model.patch import WAITS, WITH_EDITS, Outcome, OutcomeKind, Patch, Patched
from patchlock.patches import edited_file, engine
from patchlock.patches.edited_file import EditedFile, ReplacedEdit
from patchlock.patches.evaluation import DIRECT, Evaluator
from patchlock.patches.outcomes import APPLIED, LEFT_AS_IT_IS, patched_message, warnings
from patchlock.worktree import (
    _branch_state,
    _committed_patches,
    _snapshot,
    histories,
    manifest,
    move,
    patch_cache,
    trees,
    upstream_cache,
    upstream_files,
)
from patchlock.worktree._committed_patches import Committed
from patchlock.worktree._goal import ByMeaning
from patchlock.worktree._merge import is_converted, to_lf
from patchlock.worktree.manifest import Manifest
from patchlock.worktree.move import Moved
from patchlock.worktree.trees import Tree
from patchlock.worktree.upstream_cache import commit_of, git
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
    is_there = upstream is None
    other = _committed(tree, wanted, evaluator) if is_there else None
    upstream, patched = upstream_files.patched(tree, wanted, evaluator, other.upstream if other else upstream)
    _require_history(tree, wanted, patched)
    known = manifest.read(tree)
    command = command_for(tree, wanted, "apply" if is_there else "update")
    if not move.conflicted(tree) and not move.is_unfinished(tree) and (error := unchosen(tree, wanted, upstream)):
        raise error
    if wrong := engine.incomplete_error(patched, f"{wanted.name} at {upstream[:12]} in {tree.root}", command):
        raise _beside_git(tree, wrong)
    files = {wanted.directory / change.path: change.after for change in patched.changes}
    message = patched_message(wanted.name, wanted.profile, patched.outcomes)
    scripts = [wanted.directory / change.path for change in patched.changes if change.is_executable]
    last = move.applied(tree)
    goes_on = last is not None and trees.is_ancestor(tree.repository, trees.upstream_of(tree.repository, last), upstream)
    if other and other.upstream and not goes_on:  # as if they had been applied in this clone
        theirs = {wanted.directory / change.path: change.after for change in other.patched.changes}
        told = patched_message(wanted.name, other.profile, other.patched.outcomes)
        trees.commit_files(tree.repository, theirs, parent=upstream, message=told, ref=tree.ref(move.APPLIED))
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
    outcomes = _all_in_tree(tree, wanted, patched, evaluator)
    committed = upstream_files.replaced_commits(tree, wanted, upstream, patched) if is_there and tree.is_clone else ()
    idle = _own_idle(wanted, patched)
    lost = tuple(patch.id for patch in idle if known and patch.id in _once_there(known))
    if not moved.left_by_git:
        if moved.conflicts:
            manifest.keep(tree)
        found = dataclasses.replace(patched, outcomes=outcomes)
        _remember(tree, wanted, upstream, applied, found, lost, _others_profile(wanted, other))
    return Applied(
        upstream=upstream,
        applied=applied,
        outcomes=_drifts_only(patched, outcomes),
        moved=moved,
        warnings=(
            *_told_refused(wanted),
            *_told_other(tree, wanted, other),
            *warnings(patched),
            *(_told_idle(patch, patch.id in lost) for patch in idle),
            *(
                f"{replaced(edit)}; {_without(tree, wanted, upstream, edit, evaluator)} brings yours back"
                for edit in (*moved.replaced, *committed)
            ),
        ),
        lost=lost,
    )


def _beside_git(tree: Tree, error: PatchError) -> PatchError:
    """Say of patches that fail in the middle of a merge or the like how to go back from that, too."""
    clone, (name, _) = f"git -C {command_lines.quoted(str(tree.root))}", _branch_state.unfinished(tree.repository)
    if not name or not tree.is_clone:
        return error
    files = ", ".join(map(str, sorted(move.open_conflicts(tree))))
    told = f"your `git {name}` is not done{f', and its conflicts stand in {files}' if files else ''}"
    remedy = f"{error.remedy}; {told}: `{clone} {name} --abort` goes back"
    return PatchError(error.what, where=error.where, remedy=remedy, evidence=error.evidence)


def _dropped(wanted: PatchSet, before: Iterable[Outcome]) -> set[PurePosixPath]:
    """Name the files in which patches stood that are not wanted any more."""
    stay = {patch.id for patch in wanted.patches} - {*wanted.skipped}
    return {wanted.directory / one.path for one in before if one.path is not None and one.patch not in stay}


def _own_idle(wanted: PatchSet, patched: Patched) -> tuple[Patch, ...]:
    """Give the required patches of the user's own, those of a file, that find nothing: their edit may not be there."""
    gone = {outcome.patch for outcome in patched.outcomes if outcome.kind is OutcomeKind.GONE} - patched.advisory
    return tuple(patch for patch in wanted.patches if patch.id in gone) if not wanted.profile else ()


def _once_there(known: Manifest) -> set[str]:
    there = APPLIED | {OutcomeKind.FIXED_UPSTREAM}  # by a commit of a fork, where the clone is new
    return {*known.lost, *(outcome.patch for outcome in known.outcomes if outcome.kind in there)}


def _told_refused(wanted: PatchSet) -> tuple[str, ...]:
    told = f"{wanted.name} does not support {wanted.profile}: {wanted.refused}; it is patched all the same"
    return (told,) if wanted.refused else ()


def _committed(tree: Tree, wanted: PatchSet, evaluator: Evaluator) -> Committed | None:
    """Find the patches that the clone's commits hold."""
    if not tree.is_clone:
        return None
    return _committed_patches.find(tree, wanted, evaluator, upstream_files.commit_to_patch(tree, move.applied(tree)))


def _require_history(tree: Tree, wanted: PatchSet, patched: Patched) -> None:
    """Refuse to judge a fork's own patches, all of which it may have committed, without the commits before those."""
    idle = {patch.id for patch in _own_idle(wanted, patched)}
    if not idle or patched.changes or not _committed_patches.lacks_commits(tree, wanted):
        return
    raise UpstreamError(
        f"the clone is shallow, so it does not show whether your commits have {', '.join(sorted(idle))} already",
        where=str(tree.root),
        remedy=f"{_get_history(tree)}; in CI, let the checkout fetch all commits (fetch-depth: 0)",
    )


def _others_profile(wanted: PatchSet, other: Committed | None) -> str:
    return other.profile if other and (other.profile != wanted.profile or other.upstream is None) else ""


def _told_other(tree: Tree, wanted: PatchSet, other: Committed | None) -> tuple[str, ...]:
    if other is None:
        return ()
    if other.profile == wanted.profile:
        told = "the clone is shallow: your commits seem to have these patches, and `patch undo` leaves those there"
        return () if other.upstream else (f"{told}; {_get_history(tree)}",)
    if other.upstream:
        return (f"your commits have the patches of {other.profile}; those of this profile take their place",)
    files = sorted({str(o.path) for o in other.patched.outcomes if o.path and o.kind is OutcomeKind.FIXED_UPSTREAM})
    lacks = f"your commits have the patches of {other.profile}, and the clone lacks upstream's commit before them"
    stays = f"what they wrote stays in {', '.join(files)}, and perhaps in others"
    return (f"{lacks}, so {stays}; {_get_history(tree)}",)


def _get_history(tree: Tree) -> str:
    return f"get the rest with {_unshallow(tree)} and run this again"


def _unshallow(tree: Tree) -> str:
    return f"`git -C {command_lines.quoted(str(tree.root))} fetch --unshallow`"


def _told_idle(patch: Patch, is_lost: bool) -> str:
    told = f"{patch.id}: it finds nothing to change in {', '.join(patch.paths)}"
    return told + (
        " any more; this edit is no longer in the tree" if is_lost else "; see whether the file has the edit already"
    )


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
        _, patched = upstream_files.patched(tree, fewer, evaluator, upstream)
        more = engine.incomplete(patched) - {*left_out}
    options = "".join(f" --without {name}" for name in left_out)
    return f"`patchlock patch apply --source {command_lines.quoted(str(tree.root))}{options}`"


def command_for(tree: Tree, wanted: PatchSet, name: str) -> str:
    """Write the command that does something with these patches there, to which options can be appended."""
    of_file = f"--patches {command_lines.quoted(wanted.origin)}"
    which = f"{wanted.name} --profile {wanted.profile}" if wanted.profile else of_file
    choice = "".join([f" --with {name}" for name in wanted.chosen] + [f" --without {name}" for name in wanted.skipped])
    return f"patchlock patch {name} {which} --source {command_lines.quoted(str(tree.root))}{choice}"


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


def _drifts_only(patched: Patched, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Report what was found in upstream, but where the user's edits took something back or need the patch."""
    pairs = zip(patched.outcomes, outcomes, strict=True)
    told = f"{WITH_EDITS}: "
    return tuple(
        now if now.kind is OutcomeKind.DRIFTED or now.detail.startswith(told) else found for found, now in pairs
    )


def update(tree: Tree, wanted: PatchSet, cache: Path, *, waiting: Callable[[], None] = lambda: None) -> Applied | None:
    """Fetch what upstream's branch has now, and bring a clone there with the patches.

    Git's own pull refuses to touch a file that is patched; this does not need it. The branch follows upstream's. What
    is fetched comes through our cache, so that nothing that the clone's configuration names is run.

    Raises:
        UpstreamError: it is no clone, it follows no branch of upstream's, or it has commits of its own.
        GitFirstError: a merge or the like of the user's is not done; nothing was changed.
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
    with trees.hold(tree, waiting=waiting):
        return _update(tree, wanted, cache)


def _update(tree: Tree, wanted: PatchSet, cache: Path) -> Applied | None:
    repository = tree.repository
    clone = f"git -C {command_lines.quoted(str(tree.root))}"
    if (named := trees.object_format(repository)) != "sha1":
        raise UpstreamError(
            f"the clone names its objects by {named}, and patchlock's cache by sha1, so nothing was fetched",
            where=str(tree.root),
            remedy=f"fetch with `{clone} pull --rebase --autostash`, then renew the patches with "
            f"`patchlock patch apply --source {command_lines.quoted(str(tree.root))}`",
        )
    move.require_git_done(tree)
    branch = git("symbolic-ref", "--quiet", "--short", "HEAD", repository=repository, allowed=(0, 1)).text
    remote, merge = (_configured(tree, f"branch.{branch}.{key}") for key in ("remote", "merge"))
    url = _configured(tree, f"remote.{remote}.url") if remote else ""
    if not url or not merge.startswith("refs/heads/"):
        raise UpstreamError(
            "the clone is on no branch that follows one of upstream",
            where=str(tree.root),
            remedy=f"check out upstream's branch: `{clone} switch {_upstreams_branch(tree)}`",
        )
    place = url if not url.startswith(".") else str(tree.root / url)
    theirs = merge.removeprefix("refs/heads/")
    ref = f"refs/remotes/{remote}/{theirs}"
    head, known = (commit_of(repository, name) for name in ("HEAD", ref))
    with trees.refs_kept(repository, ref):
        newest = upstream_cache.fetch_branch(place, theirs, into=repository, ref=ref, cache=cache)
        if head is not None and trees.is_ancestor(repository, newest, head):
            return _apply(tree, wanted, cache, None)
        # Upstream may have rewritten its branch: the user's has no commits of its own where the old one held them all.
        tips = (newest, known, _fork_point(repository, ref, head))
        if head is None or not any(trees.is_ancestor(repository, head, tip) for tip in tips if tip):
            raise UpstreamError(
                f"{branch} has commits of its own, and {remote}/{theirs} has gone on, so nothing was changed",
                where=str(tree.root),
                remedy=f"join them with `{clone} pull --rebase --autostash` (or `--no-rebase`), then renew the patches "
                f"with `patchlock patch apply --source {command_lines.quoted(str(tree.root))}`",
            )
        return _apply(tree, wanted, cache, newest)


def _fork_point(repository: Path, ref: str, head: CommitId | None) -> CommitId | None:
    """Give what a branch of upstream's was when the user's came from it; None where git's log of it does not say.

    An update that was taken back has moved the ref, and the user's branch stands on what upstream has dropped.
    """
    asked = ("merge-base", "--fork-point", ref, head or "HEAD")
    return CommitId(git(*asked, repository=repository, allowed=(0, 1, 128)).text) or None


def _upstreams_branch(tree: Tree) -> str:
    """Name the branch that upstream's repository opens with, else one of the user's that follows upstream's."""
    asked = ("for-each-ref", "--format=%(symref:lstrip=3)", "refs/remotes/*/HEAD")
    found = git(*asked, repository=tree.repository).text.split()
    if not found:
        form = "--format=%(if)%(upstream)%(then)%(refname:lstrip=2)%(end)"
        found = git("for-each-ref", form, "refs/heads", repository=tree.repository).text.split()
    return command_lines.quoted(found[0]) if found else "BRANCH"


def _configured(tree: Tree, key: str) -> str:
    return git("config", "--get", key, repository=tree.repository, allowed=(0, 1)).text


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
        other = _committed(tree, wanted, evaluator)
        upstream, patched = upstream_files.patched(tree, wanted, evaluator, other.upstream if other else None)
        _require_history(tree, wanted, patched)
        marked = upstream_files.marked(tree, wanted, upstream)
        outcomes = _all_in_tree(tree, wanted, patched, evaluator, marked)
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
        if applied is not None:
            move.require_git_done(tree)
            target, fork_of = _without_patches(tree, applied)
            moved = move.move(tree, target, leave_conflicts=True, forget=True, fork_of=fork_of)
        git("update-ref", "-d", tree.ref(_MADE), repository=tree.repository)
        if moved.conflicts:
            manifest.keep(tree)
        manifest.remove(tree)
    return moved


def _without_patches(tree: Tree, applied: CommitId) -> tuple[CommitId, CommitId | None]:
    """Name the commit to which `undo` brings a tree, and `Goal.fork_of`."""
    upstream = trees.upstream_of(tree.repository, applied)
    head, known = commit_of(tree.repository, "HEAD") if tree.is_clone else None, manifest.read(tree)
    if head is None or known is None:
        return (upstream_files.commit_to_patch(tree, applied) if tree.is_clone else upstream), None
    found = upstream_files.commit_to_patch(tree, applied)
    if not _committed_patches.are_forks(tree, known.profile, known.origin, head):
        return found, None
    # What a fork has pushed holds the patches: it is not upstream's, though a remote branch has it.
    if found != upstream and _branch_state.has_committed(tree, applied, found, mostly=True):
        return (head, None) if _are_upstreams_too(tree, applied, head, known.followed) else (upstream, upstream)
    return found, found if _branch_state.has_committed(tree, applied, head, mostly=True) else None


def _are_upstreams_too(tree: Tree, applied: CommitId, head: CommitId, followed: str) -> bool:
    upstream = trees.upstream_of(tree.repository, applied)
    before, after = (trees.entries(tree.repository, commit) for commit in (upstream, applied))
    ours = {path: (before.get(path), entry) for path, entry in after.items() if before.get(path) != entry}
    data = trees.contents(tree.repository, [one for pair in ours.values() for one in pair if one])
    changes = {path: (data[old.blob] if old else None, data[new.blob]) for path, (old, new) in ours.items()}
    tip = commit_of(tree.repository, followed) if followed else None
    return _committed_patches.are_upstreams_too(tree, changes, upstream, head, [tip] if tip else [])


def told_committed(tree: Tree) -> str:
    """Say what `undo` leaves in the last commit, and how to take it out there; "" where that has no patches."""
    applied, head = move.applied(tree), commit_of(tree.repository, "HEAD") if tree.is_clone else None
    if applied is None or head is None:
        return ""
    target, known = _without_patches(tree, applied)[0], manifest.read(tree)
    if known is not None and known.committed and target == head:
        source = f"--source {command_lines.quoted(str(tree.root))}"
        of = f" --catalogue {command_lines.quoted(known.origin)}" if known.origin else ""
        get = f"{_unshallow(tree)}, then " if _committed_patches.is_shallow(tree) else ""
        again = f"`patchlock patch apply {known.name} --profile {known.committed} {source}{of}`"
        way = f"{get}{again} and `patchlock patch undo {source}` take them out of your files; then commit"
        return f"your last commit has the patches of {known.committed}, and they stay: {way}"
    if not _branch_state.has_committed(tree, applied, head):
        return ""
    stay = _branch_state.has_committed(tree, applied, target)
    way = "so they stay in your files" if stay else "commit what has changed to take them out there too"
    return f"your last commit still has patches: {way}"


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


def _remember(
    tree: Tree,
    wanted: PatchSet,
    upstream: CommitId,
    applied: CommitId,
    found: Patched,
    lost: tuple[str, ...],
    committed: str,
) -> None:
    manifest.write(
        tree,
        Manifest(
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
            outcomes=found.outcomes,
            failures=found.failures,
            advisory=tuple(sorted(found.advisory)),
            committed=committed,
            followed=histories.fetched(tree.root, wanted.url, wanted.branch) if tree.is_clone else "",
            lost=lost,
        ),
    )


def _all_in_tree(
    tree: Tree, wanted: PatchSet, patched: Patched, evaluator: Evaluator, marked: Iterable[PurePosixPath] = ()
) -> tuple[Outcome, ...]:
    paths = [wanted.directory / change.path for change in patched.changes]
    gone = [path for path in paths if not trees.exists(tree, path)] if tree.is_clone else []
    names = _snapshot.renames(tree, move.applied(tree) or "HEAD") if gone else {}
    conflicts = {*move.open_conflicts(tree), *marked}
    left_out = _snapshot.left_out(tree, gone) if gone else frozenset()
    return tuple(
        _in_tree(tree, wanted, patched, outcome, names, left_out, conflicts, evaluator) for outcome in patched.outcomes
    )


def _in_tree(
    tree: Tree,
    wanted: PatchSet,
    patched: Patched,
    outcome: Outcome,
    names: Mapping[PurePosixPath, PurePosixPath],
    left_out: Collection[PurePosixPath],
    conflicts: Collection[PurePosixPath],
    evaluator: Evaluator,
) -> Outcome:
    """Say how one patch stands in the working tree: not yet there, ours, or changed by the user since."""
    if outcome.path is None or outcome.kind in LEFT_AS_IT_IS:
        return _drifted_in_commit(tree, wanted, outcome, evaluator)
    path = wanted.directory / outcome.path
    path = names.get(path, path)
    if path in conflicts:
        return dataclasses.replace(outcome, kind=OutcomeKind.DRIFTED, detail=f"{WAITS} {path}")
    change = next((change for change in patched.changes if change.path == outcome.path), None)
    if change is None:
        return outcome
    present = _snapshot.stored(tree, [path])[path]
    if is_converted(present, (change.before, change.after)):
        present = to_lf(present)
    if present == change.after:
        return edited_file.outcome_as_left(outcome)
    if present == change.before:
        return outcome
    if present is None:
        detail = "your sparse checkout leaves the file out" if path in left_out else "you have removed the file"
        return dataclasses.replace(outcome, kind=OutcomeKind.DRIFTED, detail=detail)
    patch = next(patch for patch in wanted.patches if patch.id == outcome.patch)
    return edited_file.outcome_with_edits(patch, change, outcome, present, evaluator)


def _drifted_in_commit(tree: Tree, wanted: PatchSet, outcome: Outcome, evaluator: Evaluator) -> Outcome:
    """Say of a patch that is refused as a commit of the user's has it in an edited form what it is where he made it."""
    if outcome.path is None or outcome.kind is not OutcomeKind.AMBIGUOUS or not tree.is_clone:
        return outcome
    path = wanted.directory / outcome.path
    present = _snapshot.stored(tree, [path])[path] or b""
    patch = next(patch for patch in wanted.patches if patch.id == outcome.patch)
    edited = engine.edited_places(patch, outcome.path, present, evaluator)
    if not edited or len(edited) != len(outcome.sites):
        return outcome
    problems = engine.failed_ensures(patch, outcome.path, present, evaluator) or edited
    return dataclasses.replace(outcome, kind=OutcomeKind.DRIFTED, detail=f"in your file: {problems[0]}")
