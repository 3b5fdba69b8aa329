"""Run a program that serves a page: say when the page answers, and end all of the program when it is to end.

The program leads a process group of its own. Who wants to end it tells us, and we tell the group: in a terminal that is
Ctrl-C, once politely, a second time firmly, a third time for good. On Windows, which has no such groups, the console
tells each of its programs itself.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from patchlock.core import process

_ENDING = tuple(
    number for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if (number := getattr(signal, name, None)) is not None
)
_FIRMER = (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM))
"""What a program is told that was told to end before, and goes on."""
_GRACE = 5.0
"""Seconds that what a program has left in its group may take to end by itself."""
_BREATH = 0.2
"""Seconds between two looks."""
_PATIENCE = 10.0
"""Seconds for one answer of a page."""
_LISTENS = "0A"
"""State of a socket in /proc/net/tcp."""
_REFUSED = frozenset({http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN})
"""Answers of a page that is there and wants a password."""


def run(
    *argv: str,
    env: Mapping[str, str],
    cwd: Path,
    port: int,
    path: str,
    answers: Callable[[str], None],
    keep_open: Sequence[int] = (),
) -> int:
    """Run it to its end, and leave nothing of its process group.

    Args:
        argv: the program and its arguments.
        env: the whole environment of the child.
        cwd: its working folder.
        port: where it listens unless it was told otherwise; on Linux, another one is found out.
        path: of its page that answers once it is ready.
        answers: called once with the address, when that answers with success.
        keep_open: file descriptors that the child inherits.

    Returns:
        Its exit code; 128 and the number of the signal that has ended it.

    Raises:
        ProgramMissingError: the program is not installed.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    is_foreign = sys.platform != "linux" and _is_open(port)
    told = 0
    early: list[int] = []

    def end(number: int, frame: object) -> None:  # noqa: ARG001 - the interface of handlers
        nonlocal told
        if child is None:
            early.append(number)
            return
        _tell(child, number if told == 0 else _FIRMER[min(told, len(_FIRMER)) - 1])
        told += 1

    child: subprocess.Popen[bytes] | None = None
    heard = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]  # as `nohup` ignores one
    before = {number: signal.signal(number, end) for number in heard}
    try:
        child = process.start_group(*argv, env=env, cwd=cwd, keep_open=keep_open)
        for number in early:
            end(number, None)
        if not is_foreign:
            watcher = threading.Thread(target=_watch, args=(child, port, path, answers), daemon=True)
            watcher.start()
        code = _wait(child)
        _end_group(child.pid)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _wait(child: subprocess.Popen[bytes]) -> int:
    while True:
        try:
            return child.wait(_BREATH if sys.platform == "win32" else None)  # Windows calls no handler meanwhile
        except subprocess.TimeoutExpired:
            continue


def _tell(child: subprocess.Popen[bytes], number: int) -> None:
    """Hand a signal on to the group; on Windows, Ctrl-C has reached it already."""
    if child.returncode is not None:
        return
    if sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
    elif number != signal.SIGINT:
        process.kill(child.pid)


def _end_group(group: int) -> None:
    """End what a program that has ended left in its group."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE
        while time.monotonic() < deadline:
            os.killpg(group, 0)
            time.sleep(_BREATH / 4)
        os.killpg(group, signal.SIGKILL)


# --- the page ---------------------------------------------------------------------------------------------------------


def _watch(child: subprocess.Popen[bytes], port: int, path: str, answers: Callable[[str], None]) -> None:
    """Ask until the page answers, or the program has ended."""
    while child.returncode is None:
        for one in _ports(child.pid, port):
            if is_answering(one, path) and child.returncode is None:
                answers(f"http://127.0.0.1:{one}{path}")
                return
        time.sleep(_BREATH)


def _ports(group: int, port: int) -> Sequence[int]:
    """Name the ports on which a group listens, the one that is expected first; elsewhere than on Linux, only that."""
    if sys.platform != "linux":
        return (port,)
    return sorted(set(_listening(group)), key=lambda one: (one != port, one))


def _listening(group: int) -> Iterator[int]:
    sockets: set[str] = set()
    for number in (folder.name for folder in Path("/proc").iterdir() if folder.name.isdigit()):
        with contextlib.suppress(OSError):
            if os.getpgid(int(number)) == group:
                sockets |= {str(one.readlink()) for one in Path(f"/proc/{number}/fd").iterdir()}
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
                row = line.split()
                if row[3] == _LISTENS and f"socket:[{row[9]}]" in sockets:
                    yield int(row[1].rpartition(":")[2], 16)


def is_answering(port: int, path: str) -> bool:
    """Say whether a page of this machine answers, or wants a password."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
    with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
        connection.request("GET", path)
        status = connection.getresponse().status
        return status < http.HTTPStatus.BAD_REQUEST or status in _REFUSED
    return False


def _is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
