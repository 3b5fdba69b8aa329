"""Files and folders of ours as a whole: put in their place in a step that outlasts a power cut, hashed, removed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from patchlock.model.identities import Sha256

_AGE = 3600.0
"""Seconds; nothing of ours writes one file for as long."""
_PATIENCE = 10.0
"""Seconds for children of a killed patchlock to end, which look for their parent now and then."""


def atomic_write(
    path: Path, data: str | bytes, *, mode: int = 0o666, suffix: str | None = None, sync: bool = True
) -> None:
    """Write a file beside its place, and put it there; killed anywhere, the old file is whole.

    Args:
        path: its place; the folder is there.
        data: a text is written as UTF-8, its line ends as they are.
        mode: permissions of a new file, less the umask; one that is there keeps its own.
        suffix: ends the name of the file beside, `.NAME.SUFFIX`, which a killed patchlock leaves; None makes one up
            that no other process has, which `remove_left` removes.
        sync: whether it outlasts a power cut too; a cache whose readers take no half of a file need not wait for that.
    """
    with _replacing(path, mode, suffix, sync) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def atomic_copy(source: Path, path: Path, *, mode: int = 0o666, suffix: str | None = None) -> None:
    """Copy a file's bytes to a place as `atomic_write` writes them."""
    with source.open("rb") as read, _replacing(path, mode, suffix, sync=True) as file:
        shutil.copyfileobj(read, file)


def atomic_blocks(path: Path, blocks: Iterable[bytes], *, mode: int = 0o666) -> None:
    """Write blocks of bytes as `atomic_write` writes them; nothing is left where they end with an error."""
    with _replacing(path, mode, None, sync=True) as file:
        file.writelines(blocks)


@contextlib.contextmanager
def _replacing(path: Path, mode: int, suffix: str | None, sync: bool) -> Iterator[BinaryIO]:
    beside = path.with_name(f".{path.name}.{suffix or f'{os.urandom(4).hex()}.new'}")
    try:
        with open(beside, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if path.exists():
            beside.chmod(path.stat().st_mode & 0o777)
        beside.replace(path)
    except PermissionError as error:
        error.filename = error.filename2 or str(path.parent)  # nobody knows the file beside
        raise
    finally:
        beside.unlink(missing_ok=True)


def remove_left(folder: Path) -> None:
    """Remove what killed writers left beside files of a folder; what is young may be a living one's."""
    for file in folder.glob(".*.new"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime > _AGE:
                file.unlink()


def sync(path: Path) -> None:
    """Wait until what another program has written to a file outlasts a power cut."""
    # Windows writes back through a writable handle alone.
    handle = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: Path) -> Sha256:
    """Hash the bytes of a file."""
    with path.open("rb") as file:
        return Sha256(hashlib.file_digest(file, "sha256").hexdigest())


def has_sha256(path: Path, expected: Sha256) -> bool:
    """Say whether a file is there and has these bytes."""
    return path.is_file() and sha256(path) == expected


def remove_tree(folder: Path) -> None:
    """Remove a folder, also where git made files read-only (Windows); what a killed patchlock started may write to it.

    Raises:
        OSError: it cannot be removed, or somebody has been writing to it for seconds.
    """
    until = time.monotonic() + _PATIENCE
    while folder.exists():
        try:
            _remove_tree(folder)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST} or time.monotonic() > until:
                raise
            time.sleep(0.05)


def _remove_tree(folder: Path) -> None:
    def writable(function: object, path: str, _error: BaseException) -> None:
        os.chmod(path, 0o700)  # noqa: PTH101 - shutil hands a string
        if callable(function):
            function(path)

    if sys.version_info >= (3, 12):
        shutil.rmtree(folder, onexc=writable)
    else:
        shutil.rmtree(folder, onerror=lambda f, p, e: writable(f, p, e[1]))
