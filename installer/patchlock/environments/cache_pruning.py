"""What of the cache nothing needs any more: builds, archives, old answers; never touches an installation.

Several homes may share a cache. Each leaves a lease in it, which says where the home is; what its generations need is
read there when it matters, so that a lease cannot be out of date.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchlock.core import atomic_files, file_lock
from patchlock.core.atomic_files import remove_tree
from patchlock.model.errors import BusyError
from patchlock.model.identities import Sha256
from patchlock.worktree import patch_cache

BUILDS, OVERLAYS = "builds", "overlays"
"""Of the cache."""
_LEASES = "homes"
"""Of the cache: a file for each home that uses it, which has its path."""
RECORD = "built.toml"
"""Of a build that succeeded, in a folder of its own below that of its inputs."""
_KEY = 16
"""Digits of a sha256 that name the folder of an archive."""
_SAYS = ("*.txt", "in-tree.toml", "overlays/preload.json")
"""Files of a generation that name, by sha256, what it was made from."""
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")


@dataclass(frozen=True, kw_only=True)
class UnusedFolder:
    """A folder of the cache that nothing needs."""

    folder: Path
    what: str
    """What it holds, for a person."""
    lock: Path
    """Held by whoever works in the folder; goes with the folder where it lies in it."""


def take_lease(cache: Path, home: Path) -> None:
    """Say in a cache that a home uses it, so that nobody removes from it what the home needs."""
    place = str(home.resolve())
    lease = cache / _LEASES / hashlib.sha256(os.fsencode(place)).hexdigest()[:_KEY]
    if not lease.is_file():
        lease.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.atomic_write(lease, os.fsencode(place) + b"\n")


def removal_lock(home: Path) -> Path:
    """Name the lock that is held while patchlock removes itself, and with it what an install needs."""
    return home / ".removal.lock"


def homes(cache: Path, home: Path) -> tuple[Path, ...]:
    """List the homes that use a cache, this one first; the leases of those that are gone are removed.

    Raises:
        OSError: a home is there, and may not be looked into.
    """
    found = [home]
    for lease in sorted((cache / _LEASES).glob("[!.]*")):  # not what another patchlock is about to put there
        other = Path(os.fsdecode(lease.read_bytes()).removesuffix("\n"))
        try:
            os.scandir(other).close()
        except (FileNotFoundError, NotADirectoryError):
            lease.unlink(missing_ok=True)
            continue
        if other != home.resolve():
            found.append(other)
    return tuple(found)


def needed(cache: Path, home: Path, *, without: Collection[Path] = ()) -> frozenset[Sha256]:
    """Gather the sha256 of all that generations were made from, or are being made from, in all homes of a cache.

    Args:
        cache: of patchlock.
        home: of the installations.
        without: folders of generations that are about to go.

    Raises:
        OSError: a home is there, and may not be looked into.
    """
    found: set[Sha256] = set()
    for generation in (one for place in homes(cache, home) for one in place.glob("*/environments/*")):
        if generation in without:
            continue
        for file in (file for pattern in _SAYS for file in generation.glob(pattern)):
            with contextlib.suppress(FileNotFoundError):  # another patchlock has just removed it
                found.update(map(Sha256, _SHA256.findall(file.read_text(encoding="utf-8", errors="replace"))))
    return frozenset(found | _made_for(cache, found))


def _made_for(cache: Path, found: AbstractSet[str]) -> set[Sha256]:
    """Gather what was built from sdists that are needed, where no generation has it yet: its install is not done."""
    made: set[str] = set()
    for top in _folders(cache / BUILDS):
        records = list(_records(top).values())
        files = {sha256 for record in records for sha256 in _sums(record, "files")}
        sources = [_sums(record, "source") for record in records]
        if files.isdisjoint(found) and any(one and one <= found for one in sources):
            made |= files
    return set(map(Sha256, made))


def unused_folders(cache: Path, kept: Collection[Sha256]) -> tuple[UnusedFolder, ...]:
    """List what is not to be kept, builds first, in the order of their names; nothing is removed.

    Args:
        cache: the cache of patchlock.
        kept: what `needed` says.
    """
    builds = (one for top in _folders(cache / BUILDS) for one in _builds(top, kept))
    older = [
        UnusedFolder(folder=folder, what="what an older patchlock kept", lock=cache / "retired.lock")
        for folder in patch_cache.outdated_folders(cache)
    ]
    return (*sorted(builds, key=lambda one: (one.what, one.folder)), *_archives(cache / OVERLAYS, kept), *older)


def _builds(top: Path, kept: Collection[Sha256]) -> Iterator[UnusedFolder]:
    """Look at all builds from the same inputs: one for each set of requirements and tools."""
    if file_lock.is_held(top / "lock"):
        return
    records = _records(top)
    idle = {folder: record for folder, record in records.items() if not _sums(record, "files") & set(kept)}
    if len(idle) == len(records):
        names = {str(record.get("what", "")) for record in records.values()} - {""}
        what = f"the build of {', '.join(sorted(names))}" if names else "the log of a build that did not succeed"
        yield UnusedFolder(folder=top, what=what, lock=top / "lock")
        return
    for folder, record in idle.items():
        yield UnusedFolder(folder=folder, what=f"a build of {record.get('what', 'unknown')}", lock=top / "lock")


def _records(top: Path) -> dict[Path, dict[str, Any]]:
    """Read the records of all builds from the same inputs, by folder."""
    return {file.parent: _read(file) for file in sorted(top.glob(f"*/{RECORD}"))}


def _archives(folder: Path, kept: Collection[Sha256]) -> Iterator[UnusedFolder]:
    keys = {sha256[:_KEY] for sha256 in kept}
    for place in _folders(folder):
        names = [path.name for path in sorted(place.iterdir())]
        if re.fullmatch(f"[0-9a-f]{{{_KEY}}}", place.name) and place.name not in keys:
            yield UnusedFolder(folder=place, what=", ".join(names[:1]) or "an archive", lock=folder / "lock")


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # a record that cannot be read is of no use to a build either
        return {}


def _sums(record: dict[str, Any], table: str) -> set[str]:
    files = record.get(table)
    return set(map(str, files.values())) if isinstance(files, dict) else set()


def remove(found: Iterable[UnusedFolder]) -> None:
    """Remove folders from the cache; one in which another patchlock works just now stays."""
    for one in found:
        with contextlib.suppress(BusyError), file_lock.hold(one.lock, wait=0):
            if one.lock.parent != one.folder:
                remove_tree(one.folder)
                continue
            for path in sorted(one.folder.iterdir(), key=lambda path: path == one.lock):
                remove_tree(path) if path.is_dir() else path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody has begun to build it again
            one.folder.rmdir()
