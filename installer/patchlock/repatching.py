"""Patch any folder of upstream's files: a clone that the user made and pulls himself, or an unpacked archive.

The same road as in an install, without an environment: upstream's commit → patches → a synthetic commit on a private
ref → three-way merge into the working tree. The user's branch is only moved by `update`, and only along upstream's.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath

from patchlock import checkout, manifest, merging, moving, patching, planning, standing, targets, trees
from patchlock.checkout import git
from patchlock.errors import CommandFailedError, NotPatchedError, UpstreamError
from patchlock.identities import CommitId, Sha256
from patchlock.manifest import Manifest
from patchlock.model import Outcome, OutcomeKind, Patch, Patched
from patchlock.moving import Moved
from patchlock.trees import Tree

_PRIVATE = ".patchlock"
_MADE, _ORIGIN = "made", "origin"
"""Refs, as those of `moving`: the newest patched commit, and the unpatched files of a folder that is no clone."""
_NOT_UPSTREAMS = frozenset({_PRIVATE, ".git", "__pycache__", "node_modules", "site-packages"})
_LARGEST = 8_000_000
"""Bytes; a larger file of a folder that is no clone is a model or an archive, not source."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PatchSet:
    """The patches that a tree shall have."""

    name: str
    """The app, or the file of patches."""
    profile: str
    patches: tuple[Patch, ...]
    digest: Sha256
    directory: PurePosixPath
    """The app's folder in the tree."""
    seen: CommitId | None
    """The commit that the patches' author saw, if there is one."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Applied:
    """What was done to a tree."""

    upstream: CommitId
    applied: CommitId
    outcomes: tuple[Outcome, ...]
    moved: Moved


def open_tree(folder: Path) -> Tree:
    """Find out what kind of folder it is.

    Raises:
        UpstreamError: there is no such folder, or it has no working tree.
    """
    root = folder.expanduser().resolve()
    if not root.is_dir():
        raise UpstreamError("there is no such folder", where=str(folder), remedy="name the folder of the clone")
    try:
        inside = git("rev-parse", "--is-inside-work-tree", repository=root, allowed=(0, 128))
        top = git("rev-parse", "--show-toplevel", repository=root, allowed=(0, 128)).text
    except CommandFailedError as error:
        raise UpstreamError("git cannot read this clone", where=str(root), evidence=error.evidence) from error
    if inside.returncode == 0 and inside.text == "false":
        raise UpstreamError(
            "it is a repository without a working tree",
            where=str(root),
            remedy=f"make one: `git clone {root} CLONE`, and patch that",
        )
    if not top and (root / ".git").exists():
        raise UpstreamError("git cannot read this clone", where=str(root), remedy="`git status` there says why")
    if top and Path(top).resolve() != root and git("ls-files", "--", ".", repository=root).stdout:
        raise UpstreamError(
            "it is a folder inside a clone", where=str(root), remedy=f"name the clone itself: --source {top}"
        )
    is_clone = bool(top) and Path(top).resolve() == root
    if is_clone and trees.commit_of(root, "HEAD") is None:
        raise UpstreamError("the clone has no commit yet", where=str(root), remedy="check out upstream's branch")
    if not is_clone:
        return Tree(root=root, repository=root / _PRIVATE)
    return Tree(root=root, repository=root, refs=trees.refs_of(root))


def apply(tree: Tree, wanted: PatchSet, *, waiting: Callable[[], None] = lambda: None) -> Applied | None:
    """Put the patches into what is checked out, keeping the user's edits; None where there is nothing to do.

    Where the user's edits and ours meet, both are left between markers, and `moving.abort` goes back.

    Args:
        tree: the folder.
        wanted: the patches.
        waiting: called once, when another patchlock works there.

    Raises:
        BusyError: another patchlock works there and does not end.
        PatchError: a patch cannot do what it says; nothing was written.
        SourceConflictError: conflicts of an earlier run are still there.
    """
    if is_current(tree, wanted):
        return None
    with trees.hold(tree, waiting=waiting):
        return _apply(tree, wanted, None)


def _apply(tree: Tree, wanted: PatchSet, upstream: CommitId | None) -> Applied | None:
    """Apply, to upstream's commit or to what is checked out, while nobody else works there."""
    if is_current(tree, wanted) and upstream in {None, _head(tree)}:
        return None
    if not tree.has_repository:
        _make_private(tree)
    upstream, patched = _patched(tree, wanted, upstream)
    patching.require_complete(patched, f"{wanted.name} at {upstream[:12]} in {tree.root}")
    files = {wanted.directory / change.path: change.after for change in patched.changes}
    message = planning.patched_message(wanted.name, wanted.profile, patched.outcomes)
    scripts = [wanted.directory / change.path for change in patched.changes if change.is_executable]
    applied = trees.commit_files(
        tree.repository, files, parent=upstream, message=message, ref=tree.ref(_MADE), executable=scripts
    )
    moved = moving.move(tree, applied, leave_conflicts=True)
    if not moved.conflicts:
        _remember(tree, wanted, upstream, applied, patched)
    outcomes = tuple(_in_tree(tree, wanted, patched, outcome) for outcome in patched.outcomes)
    return Applied(upstream=upstream, applied=applied, outcomes=_drifts_only(patched, outcomes), moved=moved)


def _drifts_only(patched: Patched, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Report what was found in upstream, but where the user's edits took something back."""
    pairs = zip(patched.outcomes, outcomes, strict=True)
    return tuple(now if now.kind is OutcomeKind.DRIFTED else found for found, now in pairs)


def update(tree: Tree, wanted: PatchSet, cache: Path, *, waiting: Callable[[], None] = lambda: None) -> Applied | None:
    """Fetch what upstream's branch has now, and bring a clone there with the patches.

    Git's own pull refuses to touch a file that is patched; this does not need it. The branch follows upstream's. What
    is fetched comes through our cache, so that nothing that the clone's configuration names is run.

    Raises:
        UpstreamError: it is no clone, it follows no branch of upstream's, or it has commits of its own.
        BusyError: another patchlock works there and does not end.
        PatchError: a patch cannot do what it says; nothing was written.
        SourceConflictError: conflicts of an earlier run are still there.
    """
    if not tree.is_clone:
        raise UpstreamError(
            "it is no git clone, so there is nothing to fetch",
            where=str(tree.root),
            remedy="unpack the new version over it, and run `patchlock patch apply` again",
        )
    with trees.hold(tree, waiting=waiting):
        return _update(tree, wanted, cache)


def _update(tree: Tree, wanted: PatchSet, cache: Path) -> Applied | None:
    repository = tree.repository
    branch = git("symbolic-ref", "--quiet", "--short", "HEAD", repository=repository, allowed=(0, 1)).text
    remote, merge = (_configured(tree, f"branch.{branch}.{key}") for key in ("remote", "merge"))
    url = _configured(tree, f"remote.{remote}.url") if remote else ""
    if not url or not merge.startswith("refs/heads/"):
        raise UpstreamError(
            "the clone is on no branch that follows one of upstream",
            where=str(tree.root),
            remedy="check out upstream's branch: `git switch main`",
        )
    place = url if not url.startswith(".") else str(tree.root / url)
    theirs = merge.removeprefix("refs/heads/")
    newest = checkout.fetch_branch(place, theirs, into=repository, ref=f"refs/remotes/{remote}/{theirs}", cache=cache)
    where = standing.of(tree, moving.applied(tree))
    if where.head is None or where.unfinished or not _is_behind(tree, where.head, newest):
        raise UpstreamError(
            f"{branch} has commits of its own, or a {where.unfinished or 'merge'} is to be done first",
            where=str(tree.root),
            remedy="merge or rebase it with git, then run `patchlock patch apply` for the patches",
        )
    return _apply(tree, wanted, newest)


def _configured(tree: Tree, key: str) -> str:
    return git("config", "--get", key, repository=tree.repository, allowed=(0, 1)).text


def _is_behind(tree: Tree, head: CommitId, newest: CommitId) -> bool:
    done = git("merge-base", "--is-ancestor", head, newest, repository=tree.repository, allowed=(0, 1))
    return done.returncode == 0


def is_current(tree: Tree, wanted: PatchSet) -> bool:
    """Tell whether a tree has these patches already, without reading a file of it."""
    have = manifest.read(tree)
    if have is None or have.digest != wanted.digest or not manifest.is_current(tree, have):
        return False
    return have.head == _head(tree)


def status(tree: Tree, wanted: PatchSet) -> tuple[CommitId, Patched, tuple[Outcome, ...]]:
    """Say what became of every patch in the tree as it stands; writes nothing to it.

    Returns:
        Upstream's commit, what patching it gives, and the outcomes in the working tree.
    """
    upstream, patched = _patched(tree, wanted)
    return upstream, patched, tuple(_in_tree(tree, wanted, patched, outcome) for outcome in patched.outcomes)


def undo(tree: Tree, *, waiting: Callable[[], None] = lambda: None) -> Moved:
    """Take the patches out of a tree, keeping the user's edits.

    Raises:
        NotPatchedError: there is nothing to undo.
        BusyError: another patchlock works there and does not end.
        SourceConflictError: the user's edits and ours touch the same lines; nothing was written.
    """
    require_patched(tree)
    with trees.hold(tree, waiting=waiting):
        applied = require_patched(tree)
        found = _upstream(tree, applied) if tree.is_clone else trees.upstream_of(tree.repository, applied)
        moved = moving.move(tree, found)
        for ref in (moving.APPLIED, _MADE):
            git("update-ref", "-d", tree.ref(ref), repository=tree.repository)
        manifest.remove(tree)
    return moved


def abort(tree: Tree, *, waiting: Callable[[], None] = lambda: None) -> tuple[PurePosixPath, ...]:
    """Go back to the files as they were before conflicts were left; see `moving.abort`.

    Raises:
        NotPatchedError: nothing was ever applied there.
        BusyError: another patchlock works there and does not end.
    """
    if not tree.has_repository:
        require_patched(tree)
    with trees.hold(tree, waiting=waiting):
        return moving.abort(tree)


def require_patched(tree: Tree) -> CommitId:
    """Give the patched commit that a tree was last brought to.

    Raises:
        NotPatchedError: none is known.
    """
    applied = moving.applied(tree)
    if applied is None:
        raise NotPatchedError(
            "no patches are applied there",
            where=str(tree.root),
            remedy=f"apply them: `patchlock patch apply APP --source {tree.root}`",
        )
    return applied


def _make_private(tree: Tree) -> None:
    git("init", "-q", "--bare", "--object-format=sha1", repository=tree.repository)
    # The folder may become a part of a repository of the user's.
    (tree.repository / ".gitignore").write_text("*\n", encoding="utf-8")
    (tree.repository / "README").write_text(
        "patchlock keeps here what it needs to undo and to renew its patches in this folder.\n", encoding="utf-8"
    )


def _remember(tree: Tree, wanted: PatchSet, upstream: CommitId, applied: CommitId, patched: Patched) -> None:
    manifest.write(
        tree,
        Manifest(
            name=wanted.name,
            profile=wanted.profile,
            digest=wanted.digest,
            head=_head(tree),
            upstream=upstream,
            applied=applied,
            files=manifest.record(tree, applied, upstream, patched.outcomes, wanted.directory),
        ),
    )


def _head(tree: Tree) -> str:
    return (trees.commit_of(tree.repository, "HEAD") or "") if tree.is_clone else ""


# --- upstream's files -------------------------------------------------------------------------------------------------


def _patched(tree: Tree, wanted: PatchSet, upstream: CommitId | None = None) -> tuple[CommitId, Patched]:
    """Patch upstream's files in memory: those of a commit, or of the one that fits the tree as it stands."""
    applied = moving.applied(tree)
    if upstream:
        pass
    elif tree.is_clone:
        upstream = _upstream(tree, applied)
    else:
        upstream = _archive(tree, wanted, applied) if tree.has_repository else CommitId("")
    listed = trees.entries(tree.repository, upstream) if upstream else dict.fromkeys(_files(tree))
    below = {path.relative_to(wanted.directory): path for path in listed if path.is_relative_to(wanted.directory)}
    chosen = targets.candidates(wanted.patches, below)
    if upstream:
        blobs = trees.contents(tree.repository, [e for path in chosen if (e := listed[below[path]]) is not None])
        contents = {path: blobs[e.blob] for path in chosen if (e := listed[below[path]]) is not None}
    else:
        contents = {path: data for path in chosen if (data := trees.read(tree, below[path])) is not None}
    gone = {path for patch in wanted.patches for path in targets.missing(patch, below)}
    return upstream, patching.apply(wanted.patches, contents, _seen(tree, wanted, gone))


def _seen(tree: Tree, wanted: PatchSet, gone: Iterable[PurePosixPath]) -> Mapping[PurePosixPath, bytes]:
    """Read missing files as the patches' author saw them, where the clone has that commit."""
    paths = tuple(gone)
    commit = trees.commit_of(tree.repository, wanted.seen) if paths and wanted.seen and tree.is_clone else None
    listed = trees.entries(tree.repository, commit)
    known = {path: listed[wanted.directory / path] for path in paths if wanted.directory / path in listed}
    blobs = trees.contents(tree.repository, known.values()) if known else {}
    return {path: blobs[entry.blob] for path, entry in known.items()}


def _upstream(tree: Tree, applied: CommitId | None) -> CommitId:
    """Choose the commit to patch: what is checked out, unless the user has committed our patches with his own work."""
    where = standing.of(tree, applied)
    head, upstream = where.head or CommitId(""), where.upstream or CommitId("")
    if where.unfinished in {"merge", "rebase"} or not where.commits:
        return upstream
    return upstream if applied is not None and _has_committed(tree, applied, head) else head


def _has_committed(tree: Tree, applied: CommitId, head: CommitId) -> bool:
    """Tell whether a commit holds what we patched, in at least one file."""
    repository = tree.repository
    before, after, now = (trees.entries(repository, c) for c in (trees.upstream_of(repository, applied), applied, head))
    ours = [path for path in after if before.get(path) != after[path] and path in now]
    listed = [state[path] for state in (before, after, now) for path in ours if path in state]
    data = trees.contents(repository, listed)
    for path in ours:
        mine, new = data[now[path].blob], data[after[path].blob]
        old = data[before[path].blob] if path in before else b""
        joined = merging.merge(repository, path, mine, old, new)
        if mine == new or (mine != old and joined.is_clean and joined.data == mine):
            return True
    return False


def _archive(tree: Tree, wanted: PatchSet, applied: CommitId | None) -> CommitId:
    """Keep the unpatched files of a folder that is no clone as a commit of ours.

    A file that asks for its patches again has been replaced by a newer one of upstream; any other that differs from
    what we left is the user's edit.
    """
    paths = _files(tree)
    below = [path.relative_to(wanted.directory) for path in paths if path.is_relative_to(wanted.directory)]
    chosen = [wanted.directory / path for path in targets.candidates(wanted.patches, below)]
    listed = {path: data for path in chosen if (data := trees.read(tree, path)) is not None}
    if applied is None:
        return trees.commit_files(tree.repository, listed, parent=None, message="as found\n", ref=tree.ref(_ORIGIN))
    origin = trees.upstream_of(tree.repository, applied)
    before, after = trees.entries(tree.repository, origin), trees.entries(tree.repository, applied)
    blobs = trees.contents(tree.repository, [*before.values(), *after.values()])
    newer: dict[PurePosixPath, bytes | None] = {}
    for path, mine in listed.items():
        known = {blobs[state[path].blob] for state in (before, after) if path in state}
        is_patched = path in after and before.get(path) != after[path]
        if mine not in known and (not is_patched or _asks_again(wanted, path, mine)):
            newer[path] = mine
    if not newer:
        return origin
    return trees.commit_files(tree.repository, newer, parent=origin, message="as found again\n", ref=tree.ref(_ORIGIN))


def _asks_again(wanted: PatchSet, path: PurePosixPath, data: bytes) -> bool:
    below = path.relative_to(wanted.directory)
    return bool(patching.apply(wanted.patches, {below: data}).changes)


def _files(tree: Tree) -> list[PurePosixPath]:
    """List the files of a folder that is no clone: no links, no environments, nothing large."""
    found = []
    for folder, folders, files in os.walk(tree.root):
        inner = Path(folder)
        folders[:] = sorted(
            name for name in folders if name not in _NOT_UPSTREAMS and not (inner / name / "pyvenv.cfg").exists()
        )
        for name in sorted(files):
            file = inner / name
            if not file.is_symlink() and file.is_file() and file.stat().st_size <= _LARGEST:
                found.append(PurePosixPath(file.relative_to(tree.root).as_posix()))
    return found


# --- the working tree -------------------------------------------------------------------------------------------------


def _in_tree(tree: Tree, wanted: PatchSet, patched: Patched, outcome: Outcome) -> Outcome:
    """Say how one patch stands in the working tree: not yet there, ours, or changed by the user since."""
    change = next((change for change in patched.changes if change.path == outcome.path), None)
    if change is None or outcome.path is None:
        return outcome
    present = trees.read(tree, wanted.directory / change.path)
    if merging.is_converted(present, (change.before, change.after)):
        present = merging.stored(present)
    if present == change.after:
        return dataclasses.replace(outcome, kind=OutcomeKind.ALREADY_OURS, detail="")
    if present == change.before:
        return outcome
    if present is None:
        return dataclasses.replace(outcome, kind=OutcomeKind.DRIFTED, detail="you have removed the file")
    patch = next(patch for patch in wanted.patches if patch.id == outcome.patch)
    problems = patching.problems(patch, change.path, present)
    if problems:
        return dataclasses.replace(outcome, kind=OutcomeKind.DRIFTED, detail=f"in your file: {problems[0]}")
    return dataclasses.replace(outcome, kind=OutcomeKind.ALREADY_OURS, detail="with your edits")
