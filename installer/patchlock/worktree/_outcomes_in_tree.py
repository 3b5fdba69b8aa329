"""What became of each patch in a working tree as it stands, with the user's edits; writes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath

from patchlock.model.identities import CommitId
from patchlock.model.patch import WAITS, WITH_EDITS, FileChange, Outcome, OutcomeKind, Patch, Patched
from patchlock.patches import edited_file, engine
from patchlock.patches.evaluation import Evaluator
from patchlock.patches.outcomes import APPLIED, LEFT_AS_IT_IS
from patchlock.worktree import _branch_state, _merge, _snapshot, move, trees
from patchlock.worktree._merge import is_converted, to_lf
from patchlock.worktree.trees import Tree
from patchlock.worktree.upstream_files import PatchSet


def in_tree(
    tree: Tree,
    wanted: PatchSet,
    patched: Patched,
    evaluator: Evaluator,
    marked: Iterable[PurePosixPath] = (),
    *,
    is_done: bool = False,
    upstream: CommitId | None = None,
) -> tuple[Outcome, ...]:
    """Say how each patch stands in the working tree.

    Args:
        tree: the folder.
        wanted: the patches.
        patched: what they make of upstream's files.
        evaluator: whom to ask.
        marked: files with conflict markers that no move knows of.
        is_done: the patches were just put there; those of a file that is still upstream's wait for git.
        upstream: the commit of upstream's files.
    """
    paths = [wanted.directory / change.path for change in patched.changes]
    gone = [path for path in paths if not trees.exists(tree, path)] if tree.is_clone else []
    names = _snapshot.renames(tree, move.applied(tree) or "HEAD") if gone else {}
    conflicts = {*move.open_conflicts(tree), *marked}
    left_out = _snapshot.left_out(tree, gone) if gone else frozenset()
    found = [
        _in_tree(tree, wanted, patched, outcome, names, left_out, conflicts, evaluator) for outcome in patched.outcomes
    ]
    if tree.is_clone and not wanted.profile:
        found = [_kept_without_place(tree, wanted, one, upstream) for one in found]
    git_name = _branch_state.unfinished(tree.repository)[0] if is_done and tree.is_clone else ""
    waits = f"{WAITS} the end of your {git_name}: "
    return tuple(
        dataclasses.replace(one, kind=OutcomeKind.DRIFTED, detail=f"{waits}{one.path}")
        if git_name and one.kind in APPLIED - {OutcomeKind.ALREADY_OURS}
        else one
        for one in found
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
        return dataclasses.replace(outcome, kind=OutcomeKind.DRIFTED, detail=f"{WAITS} the conflict in {path}")
    change = next((change for change in patched.changes if change.path == outcome.path), None)
    if change is None:
        return _taken_back(tree, wanted, outcome, path, evaluator)
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
    found = edited_file.outcome_with_edits(patch, change, outcome, present, evaluator)
    if found.kind is OutcomeKind.DRIFTED and tree.is_clone and _is_whole(tree, path, change, present):
        return edited_file.outcome_as_left(outcome, WITH_EDITS)
    return found


def _is_whole(tree: Tree, path: PurePosixPath, change: FileChange, present: bytes) -> bool:
    """Tell whether patches come out of a file by a clean merge, and go in again as they stand there.

    Upstream may have changed what they are placed by, where git has merged a newer commit than the one patched here.
    """
    before, after = change.before, change.after
    if before is None:
        return False
    without = _merge.merge(tree.repository, path, present, after, before)
    if not without.is_clean or without.data == present:
        return False
    again = _merge.merge(tree.repository, path, without.data, before, after)
    return again.is_clean and again.data == present


def _taken_back(tree: Tree, wanted: PatchSet, outcome: Outcome, path: PurePosixPath, evaluator: Evaluator) -> Outcome:
    """Say of what upstream's commit has already whether the user's file has it, too."""
    present = _snapshot.stored(tree, [path])[path] if tree.is_clone else None
    if present is None or outcome.kind is not OutcomeKind.FIXED_UPSTREAM or outcome.path is None:
        return outcome
    patch = next(patch for patch in wanted.patches if patch.id == outcome.patch)
    problems = engine.failed_ensures(patch, outcome.path, present, evaluator)
    if not problems:
        return outcome
    return edited_file.outcome_drifted(outcome, problems[0])


def _kept_without_place(tree: Tree, wanted: PatchSet, outcome: Outcome, upstream: CommitId | None) -> Outcome:
    """Say of a patch of the user's own that finds nothing in upstream's file that the user's has what it promises.

    So it is where he has resolved a conflict by writing the edit in another form. What upstream's file has too, is not
    his.
    """
    patch = next((one for one in wanted.patches if one.id == outcome.patch), None)
    if outcome.kind is not OutcomeKind.GONE or patch is None or not is_kept(tree, wanted, patch):
        return outcome
    entry = trees.entries(tree.repository, upstream).get(wanted.directory / patch.paths[0])
    if entry is not None and _holds(patch, trees.content(tree.repository, entry)):
        return outcome
    path = PurePosixPath(patch.paths[0])
    return dataclasses.replace(outcome, kind=OutcomeKind.ALREADY_OURS, path=path, detail=WITH_EDITS)


def is_kept(tree: Tree, wanted: PatchSet, patch: Patch) -> bool:
    """Tell whether the one file of a patch has all that it promises, wherever that stands."""
    path = wanted.directory / patch.paths[0]
    present = _snapshot.stored(tree, [path])[path] if len(patch.paths) == 1 else None
    return present is not None and _holds(patch, present)


def _holds(patch: Patch, data: bytes) -> bool:
    return not any(ensure.problems(PurePosixPath(patch.paths[0]), data) for ensure in patch.ensures)


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
    return edited_file.outcome_drifted(outcome, problems[0])


def drifts_only(patched: Patched, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Report what was found in upstream, but where the user's edits took something back, have it or need the patch."""
    pairs = zip(patched.outcomes, outcomes, strict=True)
    told = f"{WITH_EDITS}: "
    return tuple(
        now
        if now.kind is OutcomeKind.DRIFTED or found.kind is OutcomeKind.GONE or now.detail.startswith(told)
        else found
        for found, now in pairs
    )
