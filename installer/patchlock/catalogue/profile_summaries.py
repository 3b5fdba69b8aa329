"""Read what a choice of a profile needs of the catalogue, and no more: outlines of profiles, the table of devices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from patchlock.catalogue import _devices, _fits, _toml_files
from patchlock.model.devices import Card
from patchlock.model.errors import CatalogueError, Problem
from patchlock.model.fits import ProfileSummary

if TYPE_CHECKING:
    from patchlock.model.needs import Need


def read_summaries(root: Path) -> tuple[ProfileSummary, ...]:
    """Read the outlines of all profiles, sorted by name.

    Raises:
        CatalogueError: what a choice looks at has mistakes; carries those of the first such file.
    """
    names = sorted(path.stem for path in root.glob("profiles/*.toml"))
    return tuple(read_summary(root, name) for name in names)


def read_summary(root: Path, name: str) -> ProfileSummary:
    """Read the outline of one profile that there is.

    Raises:
        CatalogueError: what a choice looks at has mistakes; carries all of them.
    """
    file = f"profiles/{name}.toml"
    return _toml_files.read(root, file, lambda table: _fits.outline(table, name), whole=False)


def needs(root: Path, name: str) -> tuple[Need, ...]:
    """Read what a profile needs of a machine, whatever the app.

    Raises:
        CatalogueError: these tables have mistakes; carries all of them.
    """
    from patchlock.catalogue import _needs  # of which a choice has no use

    return _toml_files.read(
        root, f"profiles/{name}.toml", lambda table: _needs.needs(table, (name,), None), whole=False
    )


def cards(root: Path) -> tuple[Card, ...]:
    """Read the table of devices; a catalogue without `profiles/devices/` knows none.

    Raises:
        CatalogueError: its files have mistakes; carries all of them.
    """
    problems: list[Problem] = []
    rows: list[Card] = []
    for path in sorted(root.glob("profiles/devices/*.toml")):
        try:
            rows += _toml_files.read(root, f"profiles/devices/{path.name}", _devices.cards)
        except CatalogueError as error:
            problems += error.problems
    if problems:
        raise CatalogueError(problems)
    return _devices.without_ambiguous_names(rows)
