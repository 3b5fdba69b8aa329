"""Choose a profile of a catalogue for a machine, and the variables that make programs take its device; reads files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from patchlock.catalogue import profile_summaries
from patchlock.hardware import _device_variables, selection
from patchlock.hardware._device_variables import Selected
from patchlock.hardware.host_overrides import ObservedHost
from patchlock.hardware.selection import ANY_APP, Choice
from patchlock.model.choice import AppLimits


@dataclass(frozen=True, kw_only=True)
class ProfileChoice:
    """A profile for a machine, with all that was looked at."""

    choice: Choice
    observed: ObservedHost
    selected: Selected

    @property
    def notes(self) -> tuple[str, ...]:
        """Say what a person should hear."""
        return (*self.choice.notes, *([self.selected.note] if self.selected.note else []))


def choose(root: Path, name: str | None, observed: ObservedHost, app: AppLimits = ANY_APP) -> ProfileChoice:
    """Choose the named profile, or the one that fits the machine best.

    Args:
        root: the catalogue's.
        name: of a profile, or None.
        observed: the machine.
        app: on which profiles it cannot run; they are not chosen unnamed.

    Raises:
        UnknownProfileError: there is no profile of that name.
        NoProfileFitsError: none fits, or the named one cannot run here.
        CatalogueError: a file has mistakes.
    """
    cards = profile_summaries.cards(root) if observed.host.devices else ()
    choice = selection.choose(profile_summaries.read_summaries(root), observed.host, cards, name, app)
    selected = _device_variables.select(choice.chosen, observed.host, cards)
    return ProfileChoice(choice=choice, observed=observed, selected=selected)
