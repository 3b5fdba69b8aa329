"""Record a real installation of the demo in a terminal, and draw docs/images/demo.svg from it: `.ci/record-demo`.

Runs what the README says, in a home that is made for it and removed afterwards. Times are as they were; the home's name
and that of the machine's Python are replaced, as they differ from machine to machine. Needs a POSIX system.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from screen import Screen, svg

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "demo.svg"
COLUMNS = 56
"""So few that its type is still 10 px where it takes the width of a phone."""
_INSTALL, _RUN = "./install.sh demo", "~/.local/share/patchlock/bin/patchlock run demo"


def record(home: Path) -> Screen:
    """Type the README's two commands, and show what they write."""
    screen = Screen()
    started = time.monotonic()
    for before, command in (("", _INSTALL), ("\r\n", _RUN)):
        screen.write(f"{before}\x1b[1m$ {command}\x1b[0m\r\n", time.monotonic() - started)
        for text in _written(command, home):
            screen.write(_without_the_machine(text, home), time.monotonic() - started)
    while not screen.rows[-1]:
        screen.rows.pop()
        screen.changed.pop()
    return screen


def _written(command: str, home: Path) -> Iterator[str]:
    # Nothing between here and exec may fail: it would go on as a second recorder.
    process, terminal = pty.fork()
    if process == 0:
        hidden = ("PATCHLOCK_", "XDG_", "UV_CACHE_DIR")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        cache = os.environ.get("PATCHLOCK_CACHE_DIR") or str(Path.home() / ".cache" / "patchlock")
        own = {"HOME": str(home), "TERM": "xterm-256color", "PATCHLOCK_CACHE_DIR": cache}
        os.chdir(ROOT)
        os.execvpe("sh", ["sh", "-c", command], variables | own)  # noqa: S606, S607 - a terminal needs pty.fork
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    decoder = codecs.getincrementaldecoder("utf-8")()
    while part := _read(terminal):
        yield decoder.decode(part)
    _, status = os.waitpid(process, 0)
    if status:
        sys.exit(f"`{command}` ended with {os.waitstatus_to_exitcode(status)}")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when the program has closed the terminal
        return b""


def _without_the_machine(text: str, home: Path) -> str:
    return re.sub(r"/\S+/bin/python3\.\d+", "/usr/bin/python3.11", text).replace(str(home), "~")


def main() -> None:
    """Record, and write the picture."""
    # A short name, so that lines break where they do in a real home.
    with tempfile.TemporaryDirectory(prefix="r-") as home:
        screen = record(Path(home))
    PICTURE.write_text(svg(screen, columns=COLUMNS, title="patchlock installs, verifies and runs its demo"), "utf-8")


if __name__ == "__main__":
    main()
