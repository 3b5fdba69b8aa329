"""Read what a choice of a profile needs of the catalogue, and no more: outlines of profiles, the table of devices."""

from __future__ import annotations

from pathlib import Path

from patchlock import device_tables, fit_tables, toml_files
from patchlock.devices import Card
from patchlock.errors import CatalogueError, Problem
from patchlock.fits import Outline


def outlines(root: Path) -> tuple[Outline, ...]:
    """Read the outlines of all profiles, sorted by name.

    Raises:
        CatalogueError: what a choice looks at has mistakes; carries those of the first such file.
    """
    names = sorted(path.stem for path in root.glob("profiles/*.toml"))
    return tuple(outline(root, name) for name in names)


def outline(root: Path, name: str) -> Outline:
    """Read the outline of one profile that there is.

    Raises:
        CatalogueError: what a choice looks at has mistakes; carries all of them.
    """
    file = f"profiles/{name}.toml"
    return toml_files.read(root, file, lambda table: fit_tables.outline(table, name), whole=False)


def cards(root: Path) -> tuple[Card, ...]:
    """Read the table of devices; a catalogue without `profiles/devices/` knows none.

    Raises:
        CatalogueError: its files have mistakes; carries all of them.
    """
    problems: list[Problem] = []
    rows: list[Card] = []
    for path in sorted(root.glob("profiles/devices/*.toml")):
        try:
            rows += toml_files.read(root, f"profiles/devices/{path.name}", device_tables.cards)
        except CatalogueError as error:
            problems += error.problems
    if problems:
        raise CatalogueError(problems)
    return device_tables.without_ambiguous_names(rows)
