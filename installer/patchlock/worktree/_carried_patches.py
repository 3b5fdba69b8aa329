"""Carry own patches that know their place no more into upstream's newer file, as git's merge does; writes no file."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.model.identities import CommitId
from patchlock.model.patch import Expect, FileChange, OutcomeKind, Patch
from patchlock.patches import engine, outcomes, targets
from patchlock.patches.evaluation import Evaluator
from patchlock.patches.ops import OPS, REMOVING_OPS
from patchlock.worktree import _merge, trees, upstream_files
from patchlock.worktree.trees import Tree
from patchlock.worktree.upstream_cache import commit_of
from patchlock.worktree.upstream_files import PatchSet


def carried(
    tree: Tree, wanted: PatchSet, commit: CommitId, evaluator: Evaluator, skipped: Collection[str] = ()
) -> tuple[Patch, ...]:
    """Give patches, each that is lost in a commit written anew for it, if git's merge brings its edit there cleanly.

    The edit is what the patch makes of an older version of its file, in which it has its place: of one from which it
    comes to where the last commit has it, else of the newest. Where upstream has it already, the new patch finds that.

    A diff whose text stands in another place than its own is held against the same merge, and refused where that does
    not bring it there: the place is only alike.

    Args:
        tree: the folder.
        wanted: the patches; those of a catalogue stay as they are, and are refused where they are lost.
        commit: the one that is patched.
        evaluator: whom to ask.
        skipped: ids of patches that are left out there.
    """
    if wanted.profile or not commit:
        return wanted.patches
    found, contents = list(wanted.patches), upstream_files.contents(tree, wanted, wanted.patches, commit)
    lost = _lost(found, contents, evaluator)
    for number, patch in enumerate(wanted.patches):
        path = PurePosixPath(patch.paths[0])
        if len(patch.paths) > 1 or path not in contents or patch.id in skipped or patch.advisory:
            continue
        earlier = (one for one in found[:number] if one.id not in skipped)
        before = [one for one in earlier if path in targets.matching_files(one, {path: b""})]
        now = _made(before, path, contents[path], evaluator)
        edits = _brought(tree, wanted, before, patch, now, commit, evaluator)
        if patch.id in lost and patch.op_name not in REMOVING_OPS:
            made = _carry(tree, wanted, patch, now, edits)
            found[number] = made or patch
            lost = _lost(found, contents, evaluator) if made else lost
        elif patch.id not in lost and not targets.is_at_home(patch, path, now):
            found[number] = _kept_at_home(patch, now, _made((*before, patch), path, now, evaluator), edits)
    return tuple(found)


def _lost(patches: Sequence[Patch], contents: Mapping[PurePosixPath, bytes], evaluator: Evaluator) -> set[str]:
    done = engine.apply(patches, contents, evaluator=evaluator)
    return engine.incomplete(done).union(one.patch for one in done.outcomes if one.kind is OutcomeKind.GONE)


@dataclass(frozen=True, kw_only=True)
class _Brought:
    """What git's merge makes of a patch's edit of an older version of its file."""

    old: bytes
    """That version, as the patch found it."""
    made: bytes | None
    """The newer file with the edit; None where upstream's changes meet it."""
    patch: Patch | None
    """The patch, written anew for the newer file; None where it cannot be."""


def _brought(
    tree: Tree,
    wanted: PatchSet,
    before: Sequence[Patch],
    patch: Patch,
    now: bytes,
    commit: CommitId,
    evaluator: Evaluator,
) -> Iterator[_Brought]:
    """Bring the edit of a patch from each older version of its file in which it has one, the newest first.

    Args:
        tree: the folder.
        wanted: the patches.
        before: those that go before it in this file.
        patch: the patch of one file.
        now: the newer file, as those have left it.
        commit: whose file that is.
        evaluator: whom to ask.
    """
    path = PurePosixPath(patch.paths[0])
    place = wanted.directory / path
    for older in upstream_files.versions(tree, place, commit):
        old, new = (_made(some, path, older, evaluator) for some in (before, (*before, patch)))
        if old == new:
            continue
        joined = _merge.merge(tree.repository, place, now, old, new)
        without = _merge.merge(tree.repository, place, now, new, old) if joined.data == now else None
        is_clean = joined.is_clean and (without is None or without.is_clean)
        anew = _as_diff(patch, path, without.data if without else now, joined.data) if is_clean else None
        yield _Brought(old=old, made=joined.data if joined.is_clean else None, patch=anew)


def _carry(tree: Tree, wanted: PatchSet, patch: Patch, now: bytes, found: Iterable[_Brought]) -> Patch | None:
    """Choose a patch that was written anew; None where upstream's changes since each older version meet it."""
    place, first = wanted.directory / patch.paths[0], None
    entry = trees.entries(tree.repository, commit_of(tree.repository, "HEAD")).get(place)
    mine = trees.content(tree.repository, entry) if entry is not None else now
    for one in found:
        if one.made is not None and (one.made == now or _merge.has(tree.repository, place, mine, now, one.made)):
            return one.patch
        first = first or one.patch
    return first


def _kept_at_home(patch: Patch, now: bytes, here: bytes, found: Iterable[_Brought]) -> Patch:
    """Keep a diff whose lines have moved from a place that is only alike: there, git's merge would not bring it.

    Args:
        patch: the diff.
        now: the newer file.
        here: what the diff makes of it.
        found: what git's merge makes of it.
    """
    path = PurePosixPath(patch.paths[0])
    home = next((one for one in found if targets.is_at_home(patch, path, one.old)), None)
    if home is None or home.made == here:
        return patch
    return home.patch or targets.displaced(patch, path, now)


def _made(patches: Sequence[Patch], path: PurePosixPath, data: bytes, evaluator: Evaluator) -> bytes:
    done = engine.apply(patches, {path: data}, evaluator=evaluator)
    return next((change.after for change in done.changes if change.path == path), data)


def _as_diff(patch: Patch, path: PurePosixPath, before: bytes, after: bytes) -> Patch | None:
    """Write a patch anew as a diff; None where there is no line by which its place is known.

    A patch of one place alone promises nothing of newer code, in which what it replaces may stand elsewhere.
    """
    fields: dict[str, object] = {"diff": outcomes.diff([FileChange(path=path, before=before, after=after)])}
    try:
        op = OPS["unified-diff"](**fields)
    except ValueError:
        return None
    ensures = () if patch.expect.exact else patch.ensures
    return dataclasses.replace(patch, op=op, literal=(), expect=Expect(), ensures=ensures)
