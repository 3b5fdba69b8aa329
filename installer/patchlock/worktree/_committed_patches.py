"""Find the patches that a fork has committed, of any profile, and upstream's files below them; writes no file."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.core import command_lines
from patchlock.model.errors import UpstreamError
from patchlock.model.identities import CommitId
from patchlock.model.patch import FileChange, OutcomeKind, Patch, Patched
from patchlock.patches import engine, targets
from patchlock.patches.evaluation import Evaluator
from patchlock.patches.outcomes import APPLIED, patched_message
from patchlock.worktree import _carried_patches, _merge, histories, move, trees, upstream_files
from patchlock.worktree.trees import Tree
from patchlock.worktree.upstream_cache import blobs, commit_of, git
from patchlock.worktree.upstream_files import PatchSet

_LONGEST = 500
"""Commits that are looked at, from the newest."""
_MOST_STATES = 30
"""States of the files among those commits that are patched to compare, from the newest."""
_WHOLE = 0.75
"""Share of what patches change in upstream's files that they still change in a later commit of upstream's, at least."""
_TO_DO = APPLIED | {OutcomeKind.AMBIGUOUS}


@dataclass(frozen=True, kw_only=True)
class Committed:
    """What a commit holds."""

    profile: str
    upstream: CommitId | None
    """The newest commit behind it without these patches; None where the clone lacks its history."""
    patched: Patched
    """What the patches make of upstream's files; of the commit's own where there is no `upstream`."""


def find(tree: Tree, wanted: PatchSet, evaluator: Evaluator, commit: CommitId) -> Committed | None:
    """Find the patches that a commit of a fork holds, of the wanted profile or another; None for none.

    Args:
        tree: the clone.
        wanted: the patches that it shall have.
        evaluator: whom to ask what ops find.
        commit: what is checked out.
    """
    own = [(wanted.profile, wanted.patches)] if are_forks(tree, wanted.profile, wanted.origin, commit) else []
    if not (own or wanted.others) or not tree.is_clone or _is_upstreams(tree, wanted, commit):
        return None
    now = [
        (name, patches, _apply(tree, wanted, patches, commit, evaluator)) for name, patches in (*own, *wanted.others)
    ]
    fewest = min(_count(patched, _TO_DO) for _, _, patched in now)
    there = [
        (name, patches)
        for name, patches, patched in now
        if not name
        or (
            _stands(patched, is_wanted=name == wanted.profile)
            and (name == wanted.profile or _count(patched, _TO_DO) == fewest)
        )
    ]
    if not there:
        return None
    states, start = _before(tree, wanted, commit, there)
    found = []
    for name, patches in there:
        tried = {one: _apply(tree, wanted, patches, one, evaluator) for one in states}
        whole = max((_count(tried[one], _to_do(name)) for one in ([start] if start else states)), default=0)
        found += _below(tree, wanted, commit, name, whole, tried)
    if found:
        best = min(found, key=lambda one: _distance(tree, wanted, commit, one.patched))
        newest = _with_adopted(tree, wanted, commit, best, evaluator, states)
        if not best.profile or _is_forks(tree, wanted, commit, newest if newest.patched.changes else best, evaluator):
            return newest
        return None
    if is_shallow(tree) and start is None:
        known = [(name, patched) for name, _, patched in now if name in dict(there)]
        name, patched = max(known, key=lambda one: _count(one[1], {OutcomeKind.FIXED_UPSTREAM}))
        return Committed(profile=name, upstream=None, patched=patched)
    return None


def _below(
    tree: Tree, wanted: PatchSet, commit: CommitId, profile: str, whole: int, tried: Mapping[CommitId, Patched]
) -> list[Committed]:
    """Give the newest commit on which the patches of a profile make what a commit holds; no list of more than one.

    Of a fork's own patches, a commit that has their file holds them, whatever a merge has left of each.
    Where a merge has joined several, it is the one with the fewest edits.

    Args:
        tree: the clone.
        wanted: the patches that it shall have.
        commit: the one that holds them.
        profile: its name.
        whole: how often its patches find something to do, where none is there.
        tried: what they make of older commits, the newest first.
    """
    held: list[tuple[CommitId, Patched]] = []
    for before, patched in tried.items():
        to_do = _count(patched, _to_do(profile))
        is_whole = to_do and to_do >= _WHOLE * whole
        if is_whole and not any(trees.is_ancestor(tree.repository, before, newer) for newer, _ in held):
            held += [(before, patched)] if not profile or _holds(tree, wanted, commit, patched) else []
    best = sorted(held, key=lambda one: _edits(tree, wanted, commit, one[1]))[:1]
    return [Committed(profile=profile, upstream=before, patched=patched) for before, patched in best]


def _with_adopted(
    tree: Tree, wanted: PatchSet, commit: CommitId, best: Committed, evaluator: Evaluator, states: Iterable[CommitId]
) -> Committed:
    """Give what a commit holds above upstream's newest commit, where that has adopted patches, some or all.

    That commit came by a merge: a commit that holds them is neither behind it nor before it.
    """
    if best.upstream is None:
        return best
    patches = dict([(wanted.profile, wanted.patches), *wanted.others])[best.profile]
    first = _first_holding(tree, _files(wanted, best.patched), best.upstream, commit)
    for one in states:
        if all(any(trees.is_ancestor(tree.repository, *two) for two in ((new, one), (one, new))) for new in first):
            continue
        patched = _apply(tree, wanted, patches, one, evaluator)
        kinds = {one.kind for one in patched.outcomes}
        is_held = bool(patched.changes) and (not best.profile or _holds(tree, wanted, commit, patched))
        if is_held or kinds == {OutcomeKind.FIXED_UPSTREAM}:
            return Committed(profile=best.profile, upstream=one, patched=patched)
    return best


def _is_forks(tree: Tree, wanted: PatchSet, commit: CommitId, best: Committed, evaluator: Evaluator) -> bool:
    """Tell whether a commit has committed patches rather than those that it shall have, and not upstream's own."""
    if best.upstream is None:
        return False
    if best.profile != wanted.profile:
        mine = _apply(tree, wanted, wanted.patches, best.upstream, evaluator)
        if _distance(tree, wanted, commit, best.patched) >= _distance(tree, wanted, commit, mine):
            return False
    return not are_upstreams_too(tree, _files(wanted, best.patched), best.upstream, commit, _tips(tree, wanted))


def _files(wanted: PatchSet, patched: Patched) -> dict[PurePosixPath, tuple[bytes | None, bytes]]:
    return {wanted.directory / change.path: (change.before, change.after) for change in patched.changes}


def are_forks(tree: Tree, profile: str, origin: str, commit: CommitId) -> bool:
    """Tell whether patches may be those of a fork: the catalogue's, or of a file that it has committed."""
    file = _file_inside(tree, origin)
    return bool(profile) or (file is not None and file in trees.entries(tree.repository, commit))


def _file_inside(tree: Tree, origin: str) -> PurePosixPath | None:
    file, root = Path(origin), tree.root.resolve()
    is_inside = tree.is_clone and file.is_absolute() and file.is_relative_to(root)
    return PurePosixPath(file.relative_to(root).as_posix()) if is_inside else None


def own_head(tree: Tree, wanted: PatchSet) -> CommitId | None:
    """Give the last commit of a fork that has the file of its patches; None in any other folder."""
    head = commit_of(tree.repository, "HEAD") if tree.is_clone and not wanted.profile else None
    return head if head is not None and are_forks(tree, "", wanted.origin, head) else None


def lacks_commits(tree: Tree, wanted: PatchSet) -> bool:
    """Tell whether the patches of a file that a fork has committed may stand in commits that its clone lacks."""
    return not move.applied(tree) and own_head(tree, wanted) is not None and is_shallow(tree)


def is_shallow(tree: Tree) -> bool:
    """Tell whether a clone lacks the commits before some of its own."""
    return git("rev-parse", "--is-shallow-repository", repository=tree.repository).text == "true"


def _is_upstreams(tree: Tree, wanted: PatchSet, commit: CommitId) -> bool:
    return any(trees.is_ancestor(tree.repository, commit, tip) for tip in _tips(tree, wanted))


def _tips(tree: Tree, wanted: PatchSet) -> list[CommitId]:
    """Give the newest commits that are known to be upstream's own."""
    known = [wanted.seen, histories.fetched(tree.root, wanted.url, wanted.branch)]
    return [tip for one in known if one and (tip := commit_of(tree.repository, one)) is not None]


def are_upstreams_too(
    tree: Tree,
    changes: Mapping[PurePosixPath, tuple[bytes | None, bytes]],
    since: CommitId,
    commit: CommitId,
    tips: Iterable[CommitId],
) -> bool:
    """Tell whether upstream has adopted the patches that a commit holds, so that they are not the fork's to take out.

    It has if a commit of upstream's brings them, or if both sides of a merge do, each by itself.

    Args:
        tree: the clone.
        changes: what the patches make of each file.
        since: a commit before them.
        commit: the one that holds them.
        tips: commits that are known to be upstream's.
    """
    first = _first_holding(tree, changes, since, commit)
    return any(trees.is_ancestor(tree.repository, one, tip) for one in first for tip in tips) or any(
        not trees.is_ancestor(tree.repository, old, new) for new, old in itertools.pairwise(first)
    )


def _first_holding(
    tree: Tree, changes: Mapping[PurePosixPath, tuple[bytes | None, bytes]], since: CommitId, commit: CommitId
) -> list[CommitId]:
    """List the commits that have most of what patches make of each file and come from none that has it, newest first.

    Args:
        tree: the clone.
        changes: what the patches make of each file.
        since: a commit before them.
        commit: where to begin.
    """
    words = ("rev-list", "--topo-order", "--parents", commit, f"^{since}")
    parents = {row[0]: row[1:] for row in map(str.split, git(*words, repository=tree.repository).text.splitlines())}
    states = [dict(zip(changes, blobs, strict=True)) for blobs in _blobs(tree, parents, changes)]
    rows = {(path, blob.decode()) for state in states for path, blob in state.items() if blob}
    data = blobs(tree.repository, {blob for _, blob in rows})
    held = {(path, blob) for path, blob in rows if _has(tree, path, data[blob], *changes[path])}
    holding = {
        one
        for one, state in zip(parents, states, strict=True)
        if 2 * sum((path, blob.decode()) in held for path, blob in state.items()) > len(changes)
    }
    return [CommitId(one) for one in parents if one in holding and holding.isdisjoint(parents[one])]


def _before(
    tree: Tree, wanted: PatchSet, commit: CommitId, there: Iterable[tuple[str, Sequence[Patch]]]
) -> tuple[list[CommitId], CommitId | None]:
    """Find the commits behind one in which the files of patches are in different states, the newest of each state.

    Returns:
        These, the newest first; and the newest at which the history parts from what is known to be upstream's, if any.
    """
    start: CommitId | None = None
    for tip in _tips(tree, wanted):
        shared = git("merge-base", tip, commit, repository=tree.repository, allowed=(0, 1)).text
        if shared and (start is None or trees.is_ancestor(tree.repository, start, CommitId(shared))):
            start = CommitId(shared)
    words = ("rev-list", "--date-order", f"--max-count={_LONGEST}", f"{commit}^@", *([f"^{start}"] if start else []))
    commits = git(*words, repository=tree.repository, allowed=(0, 128)).text.split() + ([start] if start else [])
    file = None if wanted.profile else _file_inside(tree, wanted.origin)
    if file is not None:  # a commit that has the fork's patches is none of upstream's
        held = zip(commits, _blobs(tree, commits, [file]), strict=True)
        commits = [one for one, (blob,) in held if not blob or one == start]
    listed = trees.entries(tree.repository, commit)
    below = [path.relative_to(wanted.directory) for path in listed if path.is_relative_to(wanted.directory)]
    candidates = sorted({path for _, patches in there for path in targets.candidates(patches, below)})
    paths = [wanted.directory / path for path in candidates]
    newest: dict[tuple[bytes, ...], str] = {}
    for one, state in zip(commits, _blobs(tree, commits, paths), strict=True):
        newest.setdefault(state, one)
    states = [CommitId(one) for one in newest.values()][:_MOST_STATES]
    return states + ([start] if start and start not in states else []), start


def _blobs(tree: Tree, commits: Collection[str], paths: Iterable[PurePosixPath]) -> list[tuple[bytes, ...]]:
    """Name what stands under some paths in each commit, b"" where nothing does."""
    names = [os.fsencode(path).replace(b"\n", b"?") for path in paths]  # of a name with a line break, git is not asked
    asked = b"".join(b"%s:%s\n" % (one.encode(), name) for one in commits for name in names)
    form = "--batch-check=%(objectname)"
    answers = git("cat-file", form, repository=tree.repository, stdin=asked).stdout.splitlines()
    rows = iter(b"" if line.endswith(b" missing") else line for line in answers)
    return [tuple(itertools.islice(rows, len(names))) for _ in commits]


def _apply(tree: Tree, wanted: PatchSet, patches: Sequence[Patch], commit: CommitId, evaluator: Evaluator) -> Patched:
    if patches is wanted.patches:
        patches = _carried_patches.carried(tree, wanted, commit, evaluator)
    return engine.apply(patches, upstream_files.contents(tree, wanted, patches, commit), evaluator=evaluator)


def _stands(patched: Patched, *, is_wanted: bool) -> bool:
    """Tell whether patches find less to do than is done; one that finds its place no more may have done it."""
    done = _count(patched, {OutcomeKind.FIXED_UPSTREAM, *([OutcomeKind.GONE] if is_wanted else [])})
    return done > 0 and done >= _count(patched, _TO_DO)


def _to_do(profile: str) -> AbstractSet[OutcomeKind]:
    """Give the outcomes of patches that a commit lacks: of a fork's own, also those that are refused in it."""
    return APPLIED if profile else _TO_DO


def _count(patched: Patched, kinds: AbstractSet[OutcomeKind]) -> int:
    return sum(outcome.kind in kinds for outcome in patched.outcomes)


def _holds(tree: Tree, wanted: PatchSet, commit: CommitId, patched: Patched) -> bool:
    """Tell whether a commit has what patches have changed, edited since or not, in most files.

    The fork may have edited a line of ours in the others, and a few of the changes may be upstream's own work.
    """
    pairs = _pairs(tree, wanted, commit, patched)
    held = [_has(tree, wanted.directory / change.path, mine, change.before, change.after) for change, mine in pairs]
    return 2 * held.count(True) > len(patched.changes)


def _has(tree: Tree, path: PurePosixPath, mine: bytes, before: bytes | None, after: bytes) -> bool:
    return before is None or _merge.has_most(tree.repository, path, mine, before, after)


def _distance(tree: Tree, wanted: PatchSet, commit: CommitId, patched: Patched) -> int:
    """Count the lines in which a commit differs from upstream's files with patches, less those without them."""
    return sum(
        _merge.distance(mine, change.after) - _merge.distance(mine, change.before or b"")
        for change, mine in _pairs(tree, wanted, commit, patched)
    )


def _edits(tree: Tree, wanted: PatchSet, commit: CommitId, patched: Patched) -> int:
    """Count the lines in which a commit differs from upstream's files with patches."""
    return sum(_merge.distance(mine, change.after) for change, mine in _pairs(tree, wanted, commit, patched))


def _pairs(tree: Tree, wanted: PatchSet, commit: CommitId, patched: Patched) -> Iterator[tuple[FileChange, bytes]]:
    """Give each change with the commit's own version of the file, where it has one."""
    listed = trees.entries(tree.repository, commit)
    there = [(change, listed[path]) for change in patched.changes if (path := wanted.directory / change.path) in listed]
    data = trees.contents(tree.repository, [entry for _, entry in there])
    yield from ((change, data[entry.blob]) for change, entry in there)


def take_for_applied(tree: Tree, wanted: PatchSet, found: Committed, upstream: CommitId) -> None:
    """Treat committed patches as if they had been applied in this clone, unless it was patched at or before them.

    So it was not where a shallow clone has been patched at the fork's own commit, and has got the rest since.
    """
    repository, last = tree.repository, move.applied(tree)
    if last is None or trees.upstream_of(repository, last) != upstream:
        files = {wanted.directory / change.path: change.after for change in found.patched.changes}
        message = patched_message(wanted.name, found.profile, found.patched.outcomes)
        trees.commit_files(repository, files, parent=upstream, message=message, ref=tree.ref(move.APPLIED))


def warnings(tree: Tree, wanted: PatchSet, other: Committed | None) -> tuple[str, ...]:
    """Say what becomes of the patches that a clone's commits hold, where that is not plain."""
    if other is None:
        return ()
    if other.profile == wanted.profile:
        told = "the clone is shallow: your commits seem to have these patches, and `patch undo` leaves those there"
        return () if other.upstream else (f"{told}; {get_history(tree)}",)
    return (f"your commits have the patches of {other.profile}; those of this profile take their place",)


def require_history(tree: Tree, wanted: PatchSet, other: Committed | None) -> None:
    """Refuse to put patches in the place of another profile's where the commit before those is not known.

    Raises:
        UpstreamError: the clone lacks it; nothing was changed.
    """
    if other is not None and other.profile != wanted.profile and other.upstream is None:
        raise UpstreamError(
            f"your commits have the patches of {other.profile}, and the shallow clone lacks upstream's commit before "
            "them, so nothing was changed",
            where=str(tree.root),
            remedy=get_history(tree),
        )


def get_history(tree: Tree) -> str:
    """Say how to get the commits that a shallow clone lacks."""
    return f"get the rest with {unshallow(tree)} and run this again"


def unshallow(tree: Tree) -> str:
    """Write the command that gets them, as it is printed."""
    return f"`git -C {command_lines.quoted(str(tree.root))} fetch --unshallow`"
