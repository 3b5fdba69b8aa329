"""Choose a profile of a catalogue for a machine, and the variables that make programs take its device; reads files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from patchlock import device_choice, machine_tables, selection
from patchlock.device_choice import Selected
from patchlock.lazily import dataclass
from patchlock.pretended import Observed
from patchlock.selection import Choice


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A profile for a machine, with all that was looked at."""

    choice: Choice
    observed: Observed
    selected: Selected

    @property
    def notes(self) -> tuple[str, ...]:
        """Say what a person should hear."""
        return (*self.choice.notes, *([self.selected.note] if self.selected.note else []))


def choose(root: Path, name: str | None, observed: Observed, refused: Mapping[str, str] | None = None) -> Chosen:
    """Choose the named profile, or the one that fits the machine best.

    Args:
        root: the catalogue's.
        name: of a profile, or None.
        observed: the machine.
        refused: profiles that cannot be what is asked for, with the reason; they are not chosen unnamed.

    Raises:
        UnknownProfileError: there is no profile of that name.
        NoProfileFitsError: none fits, or the named one cannot run here.
        CatalogueError: a file has mistakes.
    """
    cards = machine_tables.cards(root) if observed.host.devices else ()
    choice = selection.choose(machine_tables.outlines(root), observed.host, cards, name, refused or {})
    selected = device_choice.select(choice.chosen, observed.host, cards)
    return Chosen(choice=choice, observed=observed, selected=selected)
