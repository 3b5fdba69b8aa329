"""Whether there is room for what is going to be written, on each file system by itself; writes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from patchlock.errors import DiskFullError
from patchlock.lazily import dataclass

_MB = 1_000_000
_SPARE = 100 * _MB
"""Bytes that stay free on each file system."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """Something that is going to be written."""

    what: str
    """In the plural: `wheels to download`."""
    folder: Path
    """Where; need not be there yet."""
    size: int
    """Bytes."""
    variable: str
    """The environment variable that chooses another place."""


@dataclass(frozen=True, kw_only=True)
class FileSystem:
    """One file system as observed."""

    device: int
    free: int
    """Bytes that we may write."""


def look(folder: Path) -> FileSystem:
    """Look at the file system on which a folder is or will be."""
    found = folder.absolute()
    while not found.exists():
        found = found.parent
    return FileSystem(device=found.stat().st_dev, free=shutil.disk_usage(found).free)


def require(needs: Iterable[Need], look_at: Callable[[Path], FileSystem] | None = None) -> None:
    """Make sure that all needs together fit on the file systems that they go to.

    Args:
        needs: what is to be written.
        look_at: `look`, where it is not said.

    Raises:
        DiskFullError: names the first file system that is too small, what would go there, and how to go on.
    """
    wanted = [need for need in needs if need.size > 0]
    seen = {need.folder: (look_at or look)(need.folder) for need in wanted}
    for device in dict.fromkeys(system.device for system in seen.values()):
        here = [need for need in wanted if seen[need.folder].device == device]
        total = sum(need.size for need in here) + _SPARE
        free = seen[here[0].folder].free
        if total > free:
            variables = list(dict.fromkeys(need.variable for need in sorted(here, key=lambda need: -need.size)))
            raise DiskFullError(
                f"{_mb(total)} MB are needed and {_mb(free)} MB are free, so nothing was begun",
                where=str(max(here, key=lambda need: need.size).folder),
                remedy="free some room, for example with `patchlock prune APP`, or choose another disk with "
                f"{' or '.join(variables)}, and run the same command again",
                evidence=[f"{_mb(need.size)} MB of {need.what} in {need.folder}" for need in here],
            )


def _mb(size: int) -> str:
    return f"{-(-size // _MB):,}"
