"""Remove the temporary folders that programs of ours left when they were killed; touches nothing younger than a day."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
import time
from pathlib import Path

from patchlock.core.atomic_files import remove_tree

_OURS = re.compile(
    r"patchlock-(addresses|build|bundle|cases|check|cross-check|diff|hooks|index|kernels|layers|lock|merge|new-app|record"
    r"|smoke|sound|start|submodule|uncached|upstream)-[a-z0-9_]{8}"
)
"""As `tempfile` writes the names that we ask it for."""
_AGE = 24 * 3600
"""Seconds; nothing of ours works in one folder for as long."""


def remove(folder: Path | None = None) -> None:
    """Remove what is left of killed programs: folders of this user that nobody else may enter, by their names.

    Args:
        folder: in which temporary folders are made; None for the system's.
    """
    now = time.time()
    try:
        found = list(os.scandir(folder or tempfile.gettempdir()))
    except OSError:  # it is not there, or may not be read: then nothing was left in it
        return
    for entry in found:
        if _OURS.fullmatch(entry.name) and _is_left(entry, now):
            with contextlib.suppress(OSError):  # something still holds it open
                remove_tree(Path(entry.path))


def _is_left(entry: os.DirEntry[str], now: float) -> bool:
    try:
        seen = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    is_own = os.name != "posix" or (seen.st_uid == os.getuid() and stat.S_IMODE(seen.st_mode) == stat.S_IRWXU)
    return stat.S_ISDIR(seen.st_mode) and is_own and now - seen.st_mtime > _AGE
