"""Ask the machine what it is: read-only questions, bounded in time; decides nothing."""

from __future__ import annotations

import dataclasses
import platform
import sys
from pathlib import Path

from patchlock.model.hosts import Host

_OS = {"linux": "linux", "win32": "windows", "darwin": "macos"}


def basic() -> Host:
    """Observe what platforms are told apart by, in a millisecond: system, processor and C library."""
    libc, version = platform.libc_ver() if sys.platform == "linux" else ("", "")
    name = libc or ("musl" if sys.platform == "linux" else "")
    return Host(
        os=_OS.get(sys.platform, sys.platform),
        machine=platform.machine().lower(),
        libc=f"{name} {version}".strip(),
    )


def probe(installations: Path | None = None) -> Host:
    """Observe this machine, its cards, drivers and settings; what cannot be seen is among its failures.

    Args:
        installations: where installations lie, or will; None: the user's folder.
    """
    if sys.platform == "win32":
        from patchlock.hardware._windows import host as windows_host

        return windows_host.probe(installations)
    from patchlock.hardware import interpreters

    seen = dataclasses.replace(
        basic(),
        python=platform.python_version(),
        python_maker=interpreters.maker_of(
            Path(sys.executable), has_conda_meta=Path(sys.base_prefix, "conda-meta").is_dir()
        ),
    )
    if sys.platform == "darwin":
        from patchlock.hardware._macos import host as macos_host

        return macos_host.probe(seen, installations)
    from patchlock.hardware._linux import host as linux_host

    return linux_host.probe(seen, installations=installations)
