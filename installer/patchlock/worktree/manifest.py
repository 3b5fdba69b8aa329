"""What was last applied to a tree, kept in its repository's private folder, so that "nothing to do" costs nothing."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from patchlock.core import atomic_files
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.patch import Outcome, OutcomeKind, Site
from patchlock.worktree import _journal, trees
from patchlock.worktree.trees import Tree
from patchlock.worktree.upstream_cache import commit_of

_FORMAT = 1
_NAME, _KEPT = "manifest.json", "manifest.old"


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """One patched file as it stood when patchlock had written it."""

    path: str
    """POSIX path from the root of the tree."""
    size: int
    """Bytes in the working tree, the user's edits included; -1 where it is missing."""
    modified: int
    """Nanoseconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What was last applied to a tree."""

    name: str
    """The app, or the file of patches."""
    profile: str
    digest: Sha256
    """Of the patches."""
    head: str
    """What the user's branch pointed to; "" in a folder that is no clone."""
    upstream: CommitId
    files: tuple[FileRecord, ...]
    catalogue: str = ""
    """Digest of the catalogue's files from which the patches were read; with the same, `digest` is the same."""
    origin: str = ""
    """Where the patches were read: the folder of another catalogue than patchlock's own, or the file; else ""."""
    skipped: tuple[str, ...] = ()
    """Ids of the patches that the user does not want."""
    chosen: tuple[str, ...] = ()
    """Names of the optional patches that the user wants."""
    outcomes: tuple[Outcome, ...] = ()
    """Of each patch in the working tree, as it was left."""
    failures: tuple[str, ...] = ()
    """As in `Patched`."""
    advisory: tuple[str, ...] = ()
    """As in `Patched`."""
    committed: str = ""
    """The profile whose patches the user's commits had, or the name of their file, where those of another profile took
    their place, or where a shallow clone did not show what was there before them; else ""."""
    followed: str = ""
    """The remote branch that is upstream's own, as far as it was known."""
    lost: tuple[str, ...] = ()
    """Ids of the user's own required patches that were in the tree once, and find nothing any more."""


def write(tree: Tree, manifest: Manifest) -> None:
    """Keep the manifest; the old one is replaced in one step."""
    file = trees.repository_file(tree.repository, _NAME)
    data = {"format": _FORMAT, **dataclasses.asdict(manifest)}
    if (origin := Path(manifest.origin)).is_absolute() and origin.is_relative_to(root := tree.root.resolve()):
        data["origin"] = origin.relative_to(root).as_posix()  # it is there too when the folder has another name
    atomic_files.atomic_write(file, json.dumps(data, indent=1, default=_plain))


def read(tree: Tree) -> Manifest | None:
    """Give the manifest; None where nothing is applied, or where another version of patchlock wrote it."""
    folder = tree.repository / ".git" if tree.is_clone else tree.repository
    is_linked = folder.is_file()  # a linked worktree: git knows where its private folder is
    file = trees.repository_file(tree.repository, _NAME) if is_linked else folder / "patchlock" / _NAME
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data.pop("format") != _FORMAT:
            return None
        for key in ("skipped", "chosen", "failures", "advisory", "lost"):
            data[key] = tuple(data.get(key, ()))
        data["origin"] = str(tree.root.resolve() / data["origin"]) if data["origin"] else ""
        data["files"] = tuple(FileRecord(**row) for row in data["files"])
        data["outcomes"] = tuple(map(_outcome, data.get("outcomes", ())))
        return Manifest(**data)
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # none, or not one of ours: work it out again
        return None


def _plain(value: object) -> str:
    return value.value if isinstance(value, OutcomeKind) else str(value)


def _outcome(row: dict[str, Any]) -> Outcome:
    path = PurePosixPath(row["path"]) if row["path"] is not None else None
    sites = tuple(Site(**site) for site in row["sites"])
    return Outcome(**{**row, "kind": OutcomeKind(row["kind"]), "path": path, "sites": sites})


def keep(tree: Tree) -> None:
    """Keep the manifest as it is for `restore`, before one of a move that met conflicts is written."""
    file = trees.repository_file(tree.repository, _NAME)
    atomic_files.atomic_write(file.with_name(_KEPT), file.read_bytes() if file.is_file() else b"")


def restore(tree: Tree) -> None:
    """Bring back what `keep` has kept, if anything."""
    file = trees.repository_file(tree.repository, _NAME)
    kept = file.with_name(_KEPT)
    if kept.is_file() and kept.stat().st_size:
        kept.replace(file)
    elif kept.is_file():
        file.unlink(missing_ok=True)
        kept.unlink()


def remove(tree: Tree) -> None:
    """Forget what was applied."""
    trees.repository_file(tree.repository, _NAME).unlink(missing_ok=True)


def record(tree: Tree, applied: CommitId, upstream: CommitId) -> tuple[FileRecord, ...]:
    """Describe the files that a patched commit has changed in its parent, as they stand now."""
    before, after = (trees.entries(tree.repository, commit) for commit in (upstream, applied))
    found = []
    for path in sorted(path for path in after if before.get(path) != after[path]):
        size, modified = _stat(tree.root / path)
        found.append(FileRecord(path=str(path), size=size, modified=modified))
    return tuple(found)


def head_of(tree: Tree) -> str:
    """Name the commit that the user's branch points to; "" in a folder that is no clone."""
    return (commit_of(tree.repository, "HEAD") or "") if tree.is_clone else ""


def is_current(tree: Tree, manifest: Manifest) -> bool:
    """Tell whether a tree stands as it was left: the branch, and by size and time alone the patched files."""
    if _journal.is_unfinished(tree) or _journal.folder(tree, _journal.CONFLICTS).exists():
        return False
    if manifest.head != head_of(tree):
        return False
    if manifest.committed and manifest.upstream == manifest.head:  # a shallow clone may have got the rest since
        return False
    return all(_stat(tree.root / file.path) == (file.size, file.modified) for file in manifest.files)


def _stat(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return -1, 0
    return found.st_size, found.st_mtime_ns
