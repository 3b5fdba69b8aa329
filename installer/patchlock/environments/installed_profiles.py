"""Which apps are installed on which profiles, by the names of folders alone; imports next to nothing."""

from __future__ import annotations

from pathlib import Path

from patchlock.model.installation import Installation


def by_app(home: Path) -> dict[str, list[str]]:
    """Name the profiles on which each app is installed, both sorted.

    Args:
        home: of the installations; need not be there.
    """
    found: dict[str, list[str]] = {}
    for folder in sorted(home.iterdir()) if home.is_dir() else ():
        app, at, profile = folder.name.partition("@")
        if at and (folder / "current").is_file():
            found.setdefault(app, []).append(profile)
    return found


def elsewhere(installation: Installation) -> str:
    """Say on which other profiles the app of an installation is installed, a clause; "" where it is on none."""
    found = by_app(installation.folder.parent).get(installation.app, [])
    others = [profile for profile in found if profile != installation.profile]
    return f", only on {' and '.join(others)}" if others else ""
