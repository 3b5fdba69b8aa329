"""A terminal to type into, for tests of what only a person sees."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence

from conftest import Patchlock


def on_terminal(words: Sequence[str], typed: str, more: Mapping[str, str], patchlock: Patchlock) -> tuple[int, str]:
    """Run a command on a terminal of 80 columns, and type into it; gives its exit code and what was on the screen."""
    ours, theirs = pty.openpty()
    env = patchlock.env({"TERM": "xterm", "COLUMNS": "80", "LINES": "24", **more})
    child = subprocess.Popen(
        [sys.executable, "-m", "patchlock", *words], stdin=theirs, stdout=theirs, stderr=theirs, env=env
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    said = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        said += part
    os.close(ours)
    return child.wait(), said.decode()
