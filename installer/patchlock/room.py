"""Ask how much room removing folders gives back: what hard links keep elsewhere is not freed; removes nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from patchlock.lazily import dataclass

_BLOCK = 512
"""Bytes of `st_blocks`, whatever the file system's own blocks are (POSIX)."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """What removing a folder does to the room on a disk."""

    freed: int
    """Bytes that are free afterwards, as `df` counts them."""
    shared: int
    """Bytes of files that stay, because something outside has links to them: uv's cache, or another environment."""


def of(folders: Iterable[Path]) -> tuple[Room, ...]:
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
    return tuple(Room(freed=freed, shared=shared) for freed, shared in rooms)


def _statuses(folder: Path) -> Iterator[os.stat_result]:
    """Look at a folder and at everything below it, following no link."""
    yield folder.lstat()
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield os.lstat(os.path.join(root, name))  # noqa: PTH118 - thousands of files


def _size(status: os.stat_result) -> int:
    return status.st_blocks * _BLOCK if hasattr(status, "st_blocks") else status.st_size
