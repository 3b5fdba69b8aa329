"""Upstream's files of any folder, found where they are and patched in memory; never changes the folder's own files.

Of a clone they are those of a commit; of any other folder they are kept as a commit of ours the first time.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.model.errors import UpstreamError
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.patch import Patch, Patched
from patchlock.patches import edited_file, engine, targets
from patchlock.patches.edited_file import ReplacedEdit
from patchlock.patches.evaluation import Evaluator
from patchlock.worktree import _branch_state, _merge, histories, manifest, move, trees
from patchlock.worktree.trees import PRIVATE, Entry, Tree
from patchlock.worktree.upstream_cache import blobs, commit_of, git

_ORIGIN = "origin"
"""A ref, as those of `move`: the unpatched files of a folder that is no clone."""
_NOT_UPSTREAMS = frozenset({PRIVATE, ".git", "__pycache__", "node_modules", "site-packages"})
_LARGEST = 8_000_000
"""Bytes; a larger file of a folder that is no clone is a model or an archive, not source."""


@dataclass(frozen=True, kw_only=True)
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
    catalogue: str = ""
    """Digest of the catalogue's files that say all of this, "" for a file of patches; see `manifest.Manifest`."""
    origin: str = ""
    """The catalogue's folder, or the file."""
    starts: str = ""
    """The app's file that is run, below its folder; "" where no file is named."""
    skipped: tuple[str, ...] = ()
    """Ids of patches that a person does not want, sorted; also of such as are not among these."""
    options: tuple[str, ...] = ()
    """Names of the optional patches that there are."""
    chosen: tuple[str, ...] = ()
    """Names of the optional patches that a person wants, sorted."""
    url: str = ""
    """Upstream's address, "" where the catalogue has none."""
    branch: str = ""
    """Of upstream."""
    others: tuple[tuple[str, tuple[Patch, ...]], ...] = ()
    """Other profiles, each with the app's patches for it; one of those that have the same patches."""
    refused: str = ""
    """Why the catalogue does not support the app on the profile, a clause; "" where it does."""


def require_app(tree: Tree, wanted: PatchSet) -> None:
    """Refuse a folder that is something else, before anything is written.

    It is the app if it has the commit that the patches' author saw, or one at least of the files that they change by
    name, with a text in it that they look for, else the file that is run; requirement files at the top do not count,
    which every project has.

    Raises:
        UpstreamError: it is not the app.
    """
    known: dict[str, set[bytes]] = {}
    for patch in wanted.patches:
        for path in targets.missing(patch, ()):
            if not _REQUIREMENTS.fullmatch(str(path)):
                known.setdefault(str(path), set()).update(text.encode() for text in patch.literal)
    texts = known or ({wanted.starts: {b""}} if wanted.starts else {})
    if wanted.seen is None or not texts or (tree.is_clone and commit_of(tree.root, wanted.seen)):
        return
    have = manifest.read(tree)
    if move.applied(tree) and (have is None or have.name == wanted.name):
        return
    if not any(_has(tree.root / wanted.directory / name, looked_for) for name, looked_for in texts.items()):
        below = "" if wanted.directory == PurePosixPath() else f"{wanted.directory}/"
        raise UpstreamError(
            f"this folder is not {wanted.name}: it has none of the files by which it is known, as "
            f"{' and '.join(below + name for name in sorted(texts)[:2])}",
            where=str(tree.root),
            remedy=f"nothing was changed; name the app's own folder: --source FOLDER, or clone {wanted.name} first",
        )


def _has(file: Path, texts: Iterable[bytes]) -> bool:
    data = file.read_bytes() if file.is_file() else None
    return data is not None and any(text in data for text in texts)


_VERSIONS = 20
"""Of a file, in which a line that was brought back is looked for."""
_REQUIREMENTS = re.compile(r"requirements[^/]*\.(txt|in)|pyproject\.toml|setup\.(py|cfg)")


def to_patch(tree: Tree, wanted: PatchSet) -> CommitId:
    """Choose the commit that fits a tree as it stands; "" for a folder that is no clone and was never patched."""
    applied = move.applied(tree)
    if tree.is_clone:
        return commit_to_patch(tree, applied)
    return _archive(tree, wanted, applied) if tree.has_repository else CommitId("")


def patched(tree: Tree, wanted: PatchSet, evaluator: Evaluator, upstream: CommitId) -> Patched:
    """Patch upstream's files in memory: those of a commit, or of the folder where it is ""."""
    listed = _listed(tree, upstream)
    below = _below(wanted, listed)
    found = contents(tree, wanted, wanted.patches, upstream)
    gone = {path for patch in wanted.patches for path in targets.missing(patch, below)}
    skipped = dict.fromkeys(wanted.skipped, "by --without") | _in_submodules(tree, wanted, upstream)
    return engine.apply(wanted.patches, found, _seen(tree, wanted, gone, upstream), evaluator, skipped)


def contents(tree: Tree, wanted: PatchSet, patches: Sequence[Patch], commit: CommitId) -> dict[PurePosixPath, bytes]:
    """Read the files that patches may touch, by path from the app's folder.

    They are those of a commit, or of the folder where it is "".
    """
    listed = _listed(tree, commit)
    below = _below(wanted, listed)
    chosen = targets.candidates(patches, below)
    if commit:
        read = trees.contents(tree.repository, [e for path in chosen if (e := listed[below[path]]) is not None])
        return {path: read[e.blob] for path in chosen if (e := listed[below[path]]) is not None}
    return {path: data for path in chosen if (data := trees.read(tree, below[path])) is not None}


def _listed(tree: Tree, upstream: CommitId) -> Mapping[PurePosixPath, Entry | None]:
    return trees.entries(tree.repository, upstream) if upstream else dict.fromkeys(_files(tree))


def _below(wanted: PatchSet, paths: Iterable[PurePosixPath]) -> dict[PurePosixPath, PurePosixPath]:
    """Give the files in the app's folder, by path from there."""
    return {path.relative_to(wanted.directory): path for path in paths if path.is_relative_to(wanted.directory)}


def marked(tree: Tree, wanted: PatchSet, upstream: CommitId) -> tuple[PurePosixPath, ...]:
    """Name the files of a tree that patches look at and that have conflict markers of ours, committed or not; sorted.

    Args:
        tree: the folder.
        wanted: the patches.
        upstream: the commit that is patched.
    """
    below = _below(wanted, _listed(tree, upstream))
    paths = (below[path] for path in targets.candidates(wanted.patches, below))
    return tuple(path for path in sorted(paths) if move.marker_lines(tree, path))


def _in_submodules(tree: Tree, wanted: PatchSet, upstream: CommitId) -> dict[str, str]:
    """Name the patches of files in submodules, which are other repositories here, each with why it is left out."""
    listed = trees.everything(tree.repository, upstream or None)
    folders = {path for path, entry in listed.items() if entry.is_submodule}
    found = {}
    for patch in wanted.patches if folders else ():
        named = [wanted.directory / path for path in targets.missing(patch, ())]
        inside = {folder for path in named for folder in folders if path.is_relative_to(folder)}
        if named and all(any(path.is_relative_to(folder) for folder in inside) for path in named):
            found[patch.id] = f"{min(inside)} is a repository of its own, which only an install patches"
    return found


def _seen(
    tree: Tree, wanted: PatchSet, gone: Iterable[PurePosixPath], upstream: CommitId
) -> Mapping[PurePosixPath, bytes]:
    """Read missing files as the patches' author saw them; of patches that name no commit, as they were at the last."""
    paths = {path: wanted.directory / path for path in gone} if tree.is_clone else {}
    commit = commit_of(tree.repository, wanted.seen) if paths and wanted.seen else None
    known: dict[PurePosixPath, Entry] = {}
    for path, name in paths.items():
        last = commit if wanted.seen else _last_with(tree, name, upstream)
        entry = trees.everything(tree.repository, last).get(name)
        known |= {path: entry} if entry is not None and entry.is_file else {}
    blobs = trees.contents(tree.repository, known.values())
    return {path: blobs[entry.blob] for path, entry in known.items()}


def _last_with(tree: Tree, path: PurePosixPath, upstream: CommitId) -> CommitId | None:
    """Find the commit before the one that took a file away; None where the clone has none."""
    words = ("rev-list", "--max-count=1", upstream, "--", f":(top,literal){path}")
    taken_away = git(*words, repository=tree.repository, allowed=(0, 128)).text
    return commit_of(tree.repository, f"{taken_away}^") if taken_away else None


def commit_to_patch(tree: Tree, applied: CommitId | None) -> CommitId:
    """Choose the commit to patch: what is checked out, unless the user has committed our patches with his own work."""
    where = _branch_state.read(tree, applied)
    head, upstream = where.head or CommitId(""), where.upstream or CommitId("")
    if where.unfinished in {"merge", "rebase"} or not where.commits:
        return upstream
    return upstream if applied is not None and _branch_state.has_committed(tree, applied, head) else head


def replaced_commits(
    tree: Tree, wanted: PatchSet, patched_commit: CommitId, result: Patched, evaluator: Evaluator
) -> Iterator[ReplacedEdit]:
    """Name the lines that commits of the user's own have changed and patches have replaced; by path in the tree."""
    base = _without_own_commits(tree, wanted, patched_commit)
    if base is None or base == patched_commit:
        return
    listed = trees.entries(tree.repository, base)
    for change in result.changes:
        path = wanted.directory / change.path
        upstreams = trees.content(tree.repository, listed[path]) if path in listed else b""
        if change.before is not None and change.before != upstreams:
            mine, after = change.before, change.after
            rest = (mine, after, result.outcomes, wanted.patches, evaluator)
            edits = list(edited_file.replaced_lines(change.path, upstreams, *rest))
            # What a revert brought back is no edit, nor what upstream's commit, amended or picked, has brought.
            for older in _other_versions(tree, base, patched_commit, path) if edits else ():
                again = set(edited_file.replaced_lines(change.path, older, *rest))
                edits = [edit for edit in edits if edit in again]
            yield from (dataclasses.replace(edit, path=path) for edit in edits)


def _other_versions(tree: Tree, base: CommitId, commit: CommitId, path: PurePosixPath) -> list[bytes]:
    """Read a file as upstream's newest commits that changed it found it, and as those that a fork lacks left it."""
    return versions(tree, path, base) + versions(tree, path, "--remotes", "--not", commit, as_left=True)


def versions(tree: Tree, path: PurePosixPath, *commits: str, as_left: bool = False) -> list[bytes]:
    """Read a file as the newest commits that changed it found it, or as they left it.

    Args:
        tree: the clone.
        path: of the file.
        commits: where to begin, as `git log` takes it.
        as_left: after each commit, not before it.
    """
    form = (f"--max-count={_VERSIONS}", "--raw", "--no-abbrev", "--no-renames", "--format=")
    listed = git("log", *form, *commits, "--", str(path), repository=tree.repository).text.splitlines()
    rows = (row.split() for row in listed if row.startswith(":100"))
    names = dict.fromkeys(row[3 if as_left else 2] for row in rows if len(row) > 3)
    return list(blobs(tree.repository, names, must=False).values())


def _without_own_commits(tree: Tree, wanted: PatchSet, commit: CommitId) -> CommitId | None:
    """Give the newest commit of upstream behind one of the user's: by upstream's own remote, or by what is pushed."""
    if fetched := histories.fetched(tree.root, wanted.url, wanted.branch):
        asked = ("merge-base", commit, fetched)
        return CommitId(git(*asked, repository=tree.repository, allowed=(0, 1)).text) or None
    where = _branch_state.read(tree, None)
    # What the branch shares with a fork's own remote may have the patches that are counted from the commit below them.
    is_below = where.commits and where.upstream and trees.is_ancestor(tree.repository, where.upstream, commit)
    return where.upstream if is_below else None


def _archive(tree: Tree, wanted: PatchSet, applied: CommitId | None) -> CommitId:
    """Keep the unpatched files of a folder that is no clone as a commit of ours.

    A file that asks for its patches again, and has not most of what they changed, has been replaced by a newer one of
    upstream; any other that differs from what we left is the user's edit.
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
        known = [blobs[state[path].blob] for state in (before, after) if path in state]
        if mine in known or (len(set(known)) == 2 and _merge.has_most(tree.repository, path, mine, *known)):
            continue
        is_patched = path in after and before.get(path) != after[path]
        if not is_patched or _asks_again(wanted, path, mine):
            newer[path] = mine
    if not newer:
        return origin
    return trees.commit_files(tree.repository, newer, parent=origin, message="as found again\n", ref=tree.ref(_ORIGIN))


def _asks_again(wanted: PatchSet, path: PurePosixPath, data: bytes) -> bool:
    below = path.relative_to(wanted.directory)
    return bool(engine.apply(wanted.patches, {below: data}, skipped=dict.fromkeys(wanted.skipped, "")).changes)


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
