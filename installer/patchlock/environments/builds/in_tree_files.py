"""Files that patchlock has built into a user's tree: their coming and going; his own are never touched."""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.core import atomic_files
from patchlock.model.identities import Sha256
from patchlock.model.installation import Installation

_LEDGER = "products.json"
"""In the folder of an installation: path from the clone's root → sha256 of each file that is or will be ours."""
_LISTING, _FOLDER = "in-tree.toml", "in-tree"
"""In a generation: what it has in the tree, and the files."""
_EXCLUDED = "# files that patchlock has built"


def sync_files(ledger: Path, source: Path, wanted: Mapping[PurePosixPath, Path]) -> tuple[PurePosixPath, ...]:
    """Make the built files of a tree those that a generation has; killed anywhere, the next call finishes it.

    A file is ours if it has the bytes that we wrote; the ledger knows them before they are written. Anything else that
    has the name of one is the user's, and is kept.

    Args:
        ledger: the file that knows what is ours; it is removed when nothing is.
        source: root of the clone.
        wanted: path from the root → the built file.

    Returns:
        Wanted paths where a file of the user stands; sorted.
    """
    known = _read(ledger)
    if not known and not wanted:
        return ()
    digests = {path: _digest(file) for path, file in wanted.items()}
    kept = tuple(sorted(path for path in wanted if not _is_free(source, path, known.get(path, set()))))
    writing = {path: digest for path, digest in digests.items() if path not in kept}
    both = known.keys() | writing.keys()
    _write(ledger, {path: known.get(path, set()) | ({writing[path]} if path in writing else set()) for path in both})
    for path in sorted(known.keys() - writing.keys()):
        _remove(source, path, known[path])
    for path, digest in sorted(writing.items()):
        if _digest(source / path) != digest:
            _place(wanted[path], source / path)
    _exclude(source, writing)
    _write(ledger, {path: {digest} for path, digest in writing.items()})
    return kept


def _is_free(source: Path, path: PurePosixPath, known: set[str]) -> bool:
    """Say whether a path is inside the tree and either empty or holds a file of ours."""
    target = source / path
    parents = [source / parent for parent in path.parents if parent != PurePosixPath()]
    if any(parent.is_symlink() or (parent.exists() and not parent.is_dir()) for parent in parents):
        return False
    if not os.path.lexists(target):
        return True
    return not target.is_symlink() and target.is_file() and _digest(target) in known


def _remove(source: Path, path: PurePosixPath, known: set[str]) -> None:
    if os.path.lexists(source / path) and _is_free(source, path, known):
        (source / path).unlink()
        for parent in path.parents[:-1]:
            with contextlib.suppress(OSError):  # something is in it
                (source / parent).rmdir()


def _place(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    _copy(file, target)


def _copy(file: Path, target: Path) -> None:
    atomic_files.atomic_copy(file, target, mode=0o777, suffix="patchlock")


def _exclude(source: Path, paths: Mapping[PurePosixPath, str]) -> None:
    """Tell git that these are no files of the user, so that `git status` stays quiet and `git add` leaves them out."""
    file = source / ".git" / "info" / "exclude"
    if not (source / ".git").is_dir() or not paths:
        return
    before = file.read_text(encoding="utf-8", errors="surrogateescape") if file.is_file() else ""
    missing = [f"/{path}" for path in sorted(paths) if f"/{path}" not in before.splitlines()]
    if missing:
        file.parent.mkdir(exist_ok=True)
        head = [] if _EXCLUDED in before else [_EXCLUDED]
        text = before + ("" if before.endswith("\n") or not before else "\n") + "\n".join([*head, *missing]) + "\n"
        atomic_files.atomic_write(file, text.encode(errors="surrogateescape"))


def _read(ledger: Path) -> dict[PurePosixPath, set[str]]:
    try:
        values = json.loads(ledger.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {PurePosixPath(path): set(digests) for path, digests in values.items()}


def _write(ledger: Path, known: Mapping[PurePosixPath, set[str]]) -> None:
    if not known:
        ledger.unlink(missing_ok=True)
        return
    values = {str(path): sorted(known[path]) for path in sorted(known)}
    atomic_files.atomic_write(ledger, json.dumps(values, indent=1) + "\n")


def _digest(path: Path) -> str:
    try:
        return atomic_files.sha256(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ""


# --- what a generation has --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class InTreeFiles:
    """What was built into the tree for a generation, and from which files; paths are from the clone's root."""

    products: Mapping[PurePosixPath, Sha256]
    sources: Mapping[PurePosixPath, Sha256]
    """As they stood in the working tree, the user's edits included."""


def save_files(generation: Path, files: Mapping[PurePosixPath, Path], sources: Mapping[PurePosixPath, Sha256]) -> None:
    """Keep built files in a generation, so that a rollback has them; the list changes in one step.

    Args:
        generation: its folder.
        files: path from the clone's root → the file, outside the tree.
        sources: what they were built from.
    """
    import tomlkit  # which is only for who writes

    listing, kept = generation / _LISTING, generation / _FOLDER
    if not files and not listing.is_file():
        return
    kept.mkdir(exist_ok=True)
    digests = {path: Sha256(_digest(file)) for path, file in files.items()}
    for path, file in files.items():
        if _digest(_kept(generation, digests[path])) != digests[path]:
            _copy(file, _kept(generation, digests[path]))
    tables = {"products": digests, "sources": sources}
    rows = {name: {str(path): table[path] for path in sorted(table)} for name, table in tables.items()}
    atomic_files.atomic_write(listing, tomlkit.dumps(rows))
    for file in kept.iterdir():
        if file.name not in {digest[:16] for digest in digests.values()}:
            file.unlink()


def load_files(generation: Path) -> InTreeFiles:
    """Read what a generation has in the tree; nothing where no app builds there."""
    try:
        values = tomllib.loads((generation / _LISTING).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return InTreeFiles(products={}, sources={})
    tables = ({PurePosixPath(p): Sha256(d) for p, d in values[name].items()} for name in ("products", "sources"))
    products, sources = tables
    return InTreeFiles(products=products, sources=sources)


def apply_generation(installation: Installation, generation: Path | None) -> tuple[PurePosixPath, ...]:
    """Make the built files of the working tree those of a generation; None removes them all.

    Returns:
        Paths where a file of the user stands, which is kept; sorted.
    """
    has = load_files(generation).products if generation is not None else {}
    wanted = {path: _kept(generation, digest) for path, digest in has.items() if generation is not None}
    return sync_files(installation.folder / _LEDGER, installation.source, wanted)


def _kept(generation: Path, digest: Sha256) -> Path:
    return generation / _FOLDER / digest[:16]
