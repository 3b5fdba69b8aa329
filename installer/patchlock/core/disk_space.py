"""Whether there is room for what is going to be written, on each file system by itself; writes nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from patchlock.model.byte_sizes import size_text
from patchlock.model.errors import DiskFullError

_MB = 1_000_000
SPARE = 100 * _MB
"""Bytes that stay free on each file system."""


@dataclass(frozen=True, kw_only=True)
class SpaceRequirement:
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


def free(folder: Path) -> int:
    """Give the bytes that are free where a folder is or will be; 0 where nothing says."""
    for place in (folder.absolute(), *folder.absolute().parents):
        with contextlib.suppress(OSError):
            return shutil.disk_usage(place).free
    return 0


def require(needs: Iterable[SpaceRequirement], look_at: Callable[[Path], FileSystem] | None = None) -> None:
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
        total = sum(need.size for need in here) + SPARE
        free = seen[here[0].folder].free
        if total > free:
            variables = list(dict.fromkeys(need.variable for need in sorted(here, key=lambda need: -need.size)))
            lacks = size_text(total - free)
            raise DiskFullError(
                f"{size_text(total)} of disk are needed, {lacks} more than is free; nothing was started",
                where=str(max(here, key=lambda need: need.size).folder),
                remedy="free some room (`patchlock cache` shows what patchlock can free), or choose another disk with "
                f"{' or '.join(variables)}, and run the same command again",
                evidence=[
                    *(f"{size_text(need.size)} of {need.what} in {need.folder}" for need in here),
                    f"{size_text(SPARE)} that stay free",
                ],
            )


_BLOCK = 512
"""Bytes of `st_blocks`, whatever the file system's own blocks are (POSIX)."""


@dataclass(frozen=True, kw_only=True)
class FreedSpace:
    """What removing a folder does to the room on a disk."""

    freed: int
    """Bytes that are free afterwards, as `df` counts them."""
    shared: int
    """Bytes of files that stay, because something outside has links to them: uv's cache, or another environment."""


def measure(folders: Iterable[Path]) -> tuple[FreedSpace, ...]:
    """Say what removing folders, one after the other, gives back.

    A file with several links is freed with the last of them. Where a file system shares blocks between files (a copy by
    reflink), less is freed than this says, as nobody can see that cheaply.
    """
    rooms: list[list[int]] = []
    links: dict[tuple[int, int], int] = {}
    first: dict[tuple[int, int], tuple[int, int]] = {}
    for number, folder in enumerate(folders):
        rooms.append([0, 0])
        for status in _statuses(folder):
            key = (status.st_dev, status.st_ino)
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                first.setdefault(key, (number, _size(status)))
                links[key] = links.get(key, 0) + 1
                if links[key] < status.st_nlink:
                    continue
                del first[key]
            rooms[number][0] += _size(status)
    for number, size in first.values():
        rooms[number][1] += size
    return tuple(FreedSpace(freed=freed, shared=shared) for freed, shared in rooms)


def _statuses(folder: Path) -> Iterator[os.stat_result]:
    """Look at a folder and at everything below it, following no link."""
    yield folder.lstat()
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield os.lstat(os.path.join(root, name))  # noqa: PTH118 - thousands of files


def _size(status: os.stat_result) -> int:
    return status.st_blocks * _BLOCK if hasattr(status, "st_blocks") else status.st_size
