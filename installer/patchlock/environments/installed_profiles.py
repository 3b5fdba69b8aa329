"""Which apps are installed on which profiles, by the names of folders alone; imports next to nothing."""

from __future__ import annotations

from pathlib import Path


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
