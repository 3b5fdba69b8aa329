"""Where other apps are installed that an app starts: reads which generations there are, and starts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from patchlock import generations, launch_scripts


def variables(home: Path, profile: str, wanted: Mapping[str, str], *, os: str) -> dict[str, str]:
    """Name the launchers of other apps, which start whatever is in use there, each in its own environment.

    Args:
        home: where apps are installed.
        profile: that of the app that starts them; an installation on the same one is preferred, then by name.
        wanted: variable → app.
        os: `linux`, `macos` or `windows`.

    Returns:
        variable → absolute path of a launcher; without those of apps that are not installed.
    """
    if not wanted:
        return {}
    name = launch_scripts.for_programs(os)
    installed = sorted(generations.installations(home), key=lambda one: (one.profile != profile, one.profile))
    there = [one for one in installed if one.app in wanted.values() and _is_ready(one, name)]
    first = {one.app: one.folder / name for one in reversed(there)}
    return {variable: str(first[app].absolute()) for variable, app in wanted.items() if app in first}


def _is_ready(installation: generations.Installation, launcher: str) -> bool:
    return (installation.folder / launcher).is_file() and generations.current(installation) is not None
