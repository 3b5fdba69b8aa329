"""The part of the catalogue that an app was installed from, kept in its generation: that needs no other one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from patchlock.environments import generations
from patchlock.model.app import App
from patchlock.model.installation import Installation

_FOLDER = "catalogue"
_NOT_NEEDED = frozenset({"cases", "upstream", "__pycache__"})
"""Folders of an app: what tests its patches."""


def keep(generation: Path, root: Path, app: App) -> None:
    """Copy what the app's and the profiles' files say, and what these name.

    Args:
        generation: its folder; it has no receipt yet, so that one that was cut off here is made anew.
        root: of the catalogue.
        app: the app.
    """
    target = generation / _FOLDER
    for file in files(root, app):
        copy = target / file.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)


def files(root: Path, app: App) -> Iterator[Path]:
    """List the files of a catalogue that an app is installed from, without its lock and an embedded upstream."""
    for folder in (root / "profiles", root / "patches" / app.name, root / "patches" / "distributions"):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not _NOT_NEEDED & set(path.relative_to(folder).parts):
                yield path
    for path in sorted((root / "patches" / "shared").iterdir() if (root / "patches" / "shared").is_dir() else ()):
        if path.is_file():
            yield path
    for other in sorted(set(app.launch.companion_apps.values())):  # that they are there is all that is asked
        yield root / "patches" / other / "app.toml"


def root(installation: Installation) -> Path | None:
    """Name the catalogue that the generation in use keeps; None where an older patchlock made it."""
    receipt = generations.current(installation)
    folder = generations.generation(installation, receipt.id) / _FOLDER if receipt is not None else None
    return folder if folder is not None and (folder / "profiles").is_dir() else None
