"""Ask the machine what it is: read-only questions of the standard library; decides nothing."""

from __future__ import annotations

import platform
import sys

from patchlock.hosts import Host

_OS = {"linux": "linux", "win32": "windows", "darwin": "macos"}


def probe() -> Host:
    """Observe this machine."""
    libc, version = platform.libc_ver() if sys.platform == "linux" else ("", "")
    name = libc or ("musl" if sys.platform == "linux" else "")
    return Host(
        os=_OS.get(sys.platform, sys.platform),
        machine=platform.machine().lower(),
        libc=f"{name} {version}".strip(),
    )
