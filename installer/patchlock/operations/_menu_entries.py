"""Take an app out of the desktop's menu when it is uninstalled; an entry that another installation has stays."""

from __future__ import annotations

import os
from pathlib import Path

from patchlock.core import process
from patchlock.locks.lock_request import Request
from patchlock.model import launchers
from patchlock.model.errors import CommandFailedError, ProgramMissingError
from patchlock.model.progress import Progress

_PATIENCE = 30.0
"""Seconds that PowerShell may take."""


def remove(request: Request, progress: Progress) -> None:
    """Remove the entry that a person made with the command that `install` printed, if there is one.

    Args:
        request: whose launchers are still there.
        progress: told where the entry must be removed by hand.
    """
    folder = request.installation.folder
    names = launchers.names(request.app.name, request.profile.name)
    script = folder / names[-2]
    if os.name == "nt" and script.is_file():
        words = ("powershell", "-NoProfile", "-ExecutionPolicy", "Bypass", "-File", str(script), "-Remove")
        try:
            process.run(*words, env=process.environment({}), timeout=_PATIENCE)
        except (CommandFailedError, ProgramMissingError):
            progress.note(f"remove {request.app.name} from the Start menu by hand, if you added it")
        return
    entry = _applications() / names[-1]
    made = folder / names[-1]
    if entry.is_file() and made.is_file() and entry.read_bytes() == made.read_bytes():
        entry.unlink()


def _applications() -> Path:
    """Name the folder of the user's menu entries. Source: XDG Base Directory Specification."""
    data = os.environ.get("XDG_DATA_HOME", "")
    return Path(data if Path(data).is_absolute() else Path("~/.local/share").expanduser()) / "applications"
