"""Unpack an sdist into a folder of ours: no path leaves it, no link, no device, and no bomb; runs nothing of it."""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO

from patchlock.errors import SdistError

_ALWAYS_ALLOWED = 200_000_000
_RATIO = 100
"""Of unpacked to packed bytes; real sdists have 3 to 20."""
_MOST_FILES = 200_000


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack an sdist, and give its top folder.

    Source: PEP 625.

    Args:
        archive: `.tar.gz`, another tar, or `.zip`.
        folder: is made.

    Raises:
        SdistError: it is no archive of one folder, or holds what no sdist should; nothing outside `folder` was written.
        OSError: there is no room.
    """
    folder.mkdir(parents=True)
    try:
        if zipfile.is_zipfile(archive):
            _zip(archive, folder)
        else:
            _tar(archive, folder)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, UnicodeError, NotImplementedError) as error:
        raise _bad(archive, f"it cannot be read: {str(error).partition(chr(10))[0].rstrip(':')}") from error
    tops = list(folder.iterdir())
    if len(tops) != 1 or not tops[0].is_dir():
        raise _bad(archive, f"it has {len(tops)} entries at its top, and must have one folder")
    return tops[0]


class _Limit:
    """Counts what an archive says that it unpacks to."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        self.bytes = max(_ALWAYS_ALLOWED, _RATIO * archive.stat().st_size)
        self.files = _MOST_FILES

    def take(self, name: str, size: int) -> None:
        self.bytes -= size
        self.files -= 1
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or (path.parts and ":" in path.parts[0]):
            raise _bad(self.archive, f"{name!r} leaves its folder")
        if self.bytes < 0 or self.files < 0:
            raise _bad(self.archive, f"it unpacks to more than {_RATIO} times its size, or to too many files")


def _tar(archive: Path, folder: Path) -> None:
    limit = _Limit(archive)
    with tarfile.open(archive) as packed:
        for member in packed:
            limit.take(member.name, member.size)
            if not (member.isfile() or member.isdir()):
                raise _bad(archive, f"{member.name!r} is a link or a device")
            target = folder / member.name
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            # Written by hand, as Debian 12's Python 3.11.2 knows no extraction filters (PEP 706).
            source = packed.extractfile(member)
            if source is None:
                raise _bad(archive, f"{member.name!r} cannot be read")
            _write(source, target, executable=bool(member.mode & 0o100))


def _zip(archive: Path, folder: Path) -> None:
    limit = _Limit(archive)
    with zipfile.ZipFile(archive) as packed:
        for entry in packed.infolist():
            limit.take(entry.orig_filename, entry.file_size)
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise _bad(archive, f"{entry.filename!r} is a link or a device")
            target = folder / entry.filename
            if entry.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            _write(packed.open(entry), target, executable=bool(mode & 0o100))


def _write(source: IO[bytes], target: Path, *, executable: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, target.open("wb") as file:
        shutil.copyfileobj(source, file)
    target.chmod(0o755 if executable else 0o644)


def _bad(archive: Path, why: str) -> SdistError:
    return SdistError(
        f"{archive.name} is not an sdist that is built: {why}",
        where=str(archive),
        remedy="take another version, or tell those who made it",
    )
