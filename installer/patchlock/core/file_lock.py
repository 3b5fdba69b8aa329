"""One patchlock at a time for one folder: a lock that the kernel gives back when its holder and his children end."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from patchlock.model.errors import BusyError


@contextlib.contextmanager
def hold(
    path: Path, *, wait: float, waiting: Callable[[], None] = lambda: None, folder: Path | None = None
) -> Iterator[int]:
    """Hold the lock of a folder.

    A killed holder leaves nothing stuck. Children that inherit the descriptor keep the lock until they end too, so
    that nobody builds where an orphan still writes.

    Args:
        path: the lock's file; made if need be, never removed.
        wait: seconds to wait for another holder.
        waiting: called once, when there is another holder.
        folder: of the user's, for which the lock is; the lock of an installation lies in that itself.

    Yields:
        The file descriptor, for `process.run(keep_open=…)`.

    Raises:
        BusyError: another holder did not end in time.
    """
    deadline = time.monotonic() + wait
    descriptor = _open(path)
    told = False
    try:
        while not _try(descriptor) or not _is_still(descriptor, path):
            if not _is_still(descriptor, path):  # its last holder removed the folder
                os.close(descriptor)
                descriptor = _open(path)
                continue
            if not told:
                waiting()
                told = True
            if time.monotonic() > deadline:
                raise BusyError(
                    f"another patchlock works on the same {'folder' if folder else 'installation'}{holder(path)}",
                    where=str(folder or path.parent),
                    remedy="wait for it to end and run the same command again",
                )
            time.sleep(0.05)
        _sign(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def holder(path: Path) -> str:
    """Say who holds a lock and since when, as the end of a clause: `, process 123 since 17:05:12`; "" where unknown."""
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(_SIGNED_AT)
            process, since = file.read(64).decode("ascii").split()
        return f", process {int(process)} since {time.strftime('%H:%M:%S', time.localtime(int(since)))}"
    except (OSError, ValueError):
        return ""


def is_held(path: Path) -> bool:
    """Say whether somebody holds a lock just now; no where the file is not there or cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _try(descriptor)
    finally:
        os.close(descriptor)


_SIGNED_AT = 1
"""Byte of the file; Windows lets nobody else read the first one while the lock is held."""


def _sign(descriptor: int) -> None:
    """Write down who holds the lock, for the one who waits; the lock holds without."""
    with contextlib.suppress(OSError):  # a full disk must not stop a rollback or a prune
        os.lseek(descriptor, _SIGNED_AT, os.SEEK_SET)
        os.write(descriptor, f"{os.getpid():>10} {int(time.time()):>12}\n".encode("ascii"))
        os.lseek(descriptor, 0, os.SEEK_SET)


def share(path: Path) -> tuple[int, ...]:
    """Keep a file from `is_shared` ever saying no while this process lives, whatever program it becomes (POSIX).

    Nobody needs the right to write it, and nobody waits. On Windows, the files of a running program cannot be removed.

    Returns:
        The descriptor, for children that shall keep it so, too; () on Windows.
    """
    if sys.platform == "win32":
        return ()
    import fcntl

    descriptor = os.open(path, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return (descriptor,)


def is_shared(path: Path) -> bool:
    """Say whether a living process has called `share` for a file; no where that cannot be known."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        with path.open("rb") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)


def _is_still(descriptor: int, path: Path) -> bool:
    """Say whether the file that is open is the one that has the name now."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _try(descriptor: int) -> bool:
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
