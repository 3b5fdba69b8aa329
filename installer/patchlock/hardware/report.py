"""Everything that `detect` says of a machine: its devices, the profile that fits, the others; reads the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchlock.catalogue import profile_summaries as catalogue_outlines
from patchlock.hardware import _device_use, _device_variables, selection
from patchlock.hardware._device_variables import Selected
from patchlock.hardware._matching import called
from patchlock.hardware.host_overrides import ObservedHost
from patchlock.hardware.selection import Choice
from patchlock.model import hosts
from patchlock.model.choice import Accepted, Rejected
from patchlock.model.devices import KnownDevice, UnknownDevice, identify, shown_name
from patchlock.model.errors import NoProfileFitsError, UnknownProfileError, nearest


@dataclass(frozen=True, kw_only=True)
class HostReport:
    """What was seen, and what follows from it."""

    observed: ObservedHost
    devices: tuple[KnownDevice | UnknownDevice, ...]
    ranking: tuple[Accepted | Rejected, ...]
    choice: Choice | None
    """None where no profile fits, or two equally well."""
    refusal: str
    """Why there is none; "" where there is one."""
    selected: Selected

    @property
    def others(self) -> tuple[tuple[Accepted | Rejected, tuple[str, ...]], ...]:
        """Name the profiles that are not chosen, with every reason; those for other systems last."""
        chosen = self.choice.chosen.profile.name if self.choice else ""
        near = sorted(self.ranking, key=lambda one: one.platform is None)
        return tuple((one, self.why_not(one.profile.name)) for one in near if one.profile.name != chosen)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say what a person should hear."""
        own = self.choice.notes if self.choice else ()
        return (*own, *([self.selected.note] if self.selected.note else []))

    @property
    def doubts(self) -> tuple[str, ...]:
        """Say why a better profile may have been missed."""
        return self.choice.doubts if self.choice else ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say what computes more slowly than the machine could."""
        return self.choice.warnings if self.choice else ()

    def why_not(self, name: str) -> tuple[str, ...]:
        """Say every reason why a profile is not chosen; never empty.

        Raises:
            UnknownProfileError: there is no profile of that name.
        """
        judged = {one.profile.name: one for one in self.ranking}
        if name not in judged:
            raise UnknownProfileError(f'there is no profile "{name}"', remedy=nearest(name, judged))
        one = judged[name]
        if isinstance(one, Rejected):
            return one.reasons
        if self.choice is None:
            return (self.refusal,)
        if one.profile.name == self.choice.chosen.profile.name:
            return (f"chosen: {self.choice.why}",)
        return (f"also fits; {self.choice.chosen.profile.name} {self._better(one)}",)

    def _better(self, one: Accepted) -> str:
        """Say what the chosen profile has before one that fits, too."""
        chosen = self.choice.chosen if self.choice else one
        same = one.device is not None and chosen.device == one.device
        return "is the better match" if same or chosen.device is None else f"uses {called(chosen.device)}"


def build_report(root: Path, observed: ObservedHost, name: str | None = None) -> HostReport:
    """Look at a machine with the eyes of a catalogue.

    Args:
        root: the catalogue's.
        observed: the machine.
        name: of the profile to judge; None takes the one that fits best.

    Raises:
        UnknownProfileError: there is no profile of that name.
        CatalogueError: a file has mistakes.
    """
    host = observed.host
    cards = catalogue_outlines.cards(root) if host.devices else ()
    outlines = catalogue_outlines.read_summaries(root)
    choice, refusal = None, ""
    try:
        choice = selection.choose(outlines, host, cards, name)
    except NoProfileFitsError as error:
        refusal = "; ".join(filter(None, (error.what, error.remedy)))
    return HostReport(
        observed=observed,
        devices=tuple(identify(device, cards) for device in host.devices),
        ranking=selection.rank(outlines, host, cards),
        choice=choice,
        refusal=refusal,
        selected=_device_variables.select(choice.chosen, host, cards) if choice else Selected(),
    )


def data(look: HostReport) -> dict[str, Any]:
    """Write a recorded machine, with what was chosen for it beside."""
    return {
        **hosts.to_json(look.observed.recording),
        hosts.CHOICE: {
            "profile": look.choice.chosen.profile.name if look.choice else None,
            "why": look.choice.why if look.choice else look.refusal,
            "doubts": list(look.doubts),
            "warnings": list(look.warnings),
            "notes": list(look.notes),
            "pretended": list(look.observed.overrides),
            "variables": dict(look.selected.variables),
            "devices": [_device(one) for one in look.devices],
            "profiles": [_profile(one) for one in look.ranking],
        },
    }


def _device(one: KnownDevice | UnknownDevice) -> dict[str, Any]:
    if isinstance(one, UnknownDevice):
        return {"name": one.device.name, "known": False, "arch": one.arch, "send": _device_use.what_to_send(one)}
    card = one.card
    return {"name": shown_name(one), "known": True, "chip": card.chip, "arch": one.arch, "family": card.family}


def _profile(one: Accepted | Rejected) -> dict[str, Any]:
    if isinstance(one, Rejected):
        return {"name": one.profile.name, "fits": False, "reasons": list(one.reasons)}
    return {"name": one.profile.name, "fits": True, "specificity": one.specificity, "why": one.why}
