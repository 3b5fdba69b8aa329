"""What this catalogue makes of a recorded machine, as a text that people compare."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from conftest import ROOT

from patchlock.catalogue import profile_summaries as catalogue_outlines
from patchlock.catalogue import reader
from patchlock.hardware import selection
from patchlock.hardware.doctor import diagnose
from patchlock.model.choice import Accepted, Rejected
from patchlock.model.devices import KnownDevice, UnknownDevice, identify, shown_name
from patchlock.model.errors import NoProfileFitsError
from patchlock.model.fits import ProfileSummary
from patchlock.model.hosts import Recording, from_json

FOLDER = ROOT / "tests" / "hardware" / "hosts"
OPENED = reader.find(ROOT)
cards = functools.cache(OPENED.cards)
troubles = functools.cache(OPENED.troubles)
rules = functools.cache(OPENED.rules)


@functools.cache
def outlines() -> tuple[ProfileSummary, ...]:
    return catalogue_outlines.read_summaries(ROOT)


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


@functools.cache
def recording(name: str) -> Recording:
    path = FOLDER / f"{name}.json"
    return from_json(json.loads(path.read_text("utf-8")), path.name)


def snapshot_path(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def render(name: str) -> str:
    """Write everything that is concluded about a machine; one conclusion a line."""
    told = recording(name)
    sections = {
        "devices": _devices(told),
        "profile": _choice(told),
        "other profiles": _others(told),
        "doctor": _findings(told),
    }
    lines = [told.title]
    for head, found in sections.items():
        lines += ["", head, *(f"  {line}" for line in found or ["none"])]
    return "\n".join(lines) + "\n"


def _devices(told: Recording) -> list[str]:
    return [_device(identify(device, cards())) for device in told.host.devices]


def _device(found: KnownDevice | UnknownDevice) -> str:
    device = found.device
    asked = ":".join(one for one in (device.vendor, device.device, device.revision) if one)
    seen = " ".join(one for one in (asked, f'"{device.name}"' if device.name else "") if one)
    apart = [device.trouble, "hidden" if device.is_hidden else ""]
    match found:
        case KnownDevice(card=card, arch=arch):
            place = "integrated" if card.is_integrated else "a card"
            known = ", ".join(
                (shown_name(found) or "no name", card.chip, arch or "no arch", card.family, place, *filter(None, apart))
            )
        case UnknownDevice(arch=arch):
            known = ", ".join(("unknown", *filter(None, (arch, *apart))))
    return f"{seen} → {known}"


def _choice(told: Recording) -> list[str]:
    try:
        choice = selection.choose(outlines(), told.host, cards())
    except NoProfileFitsError as error:
        return [f"none: {error.what}; {error.remedy}"]
    return [
        f"{choice.chosen.profile.name}: {choice.why}",
        *(f"asks: {doubt}" for doubt in choice.doubts),
        *(f"warns: {warning}" for warning in choice.warnings),
        *(f"says: {note}" for note in choice.notes),
    ]


def answer(name: str) -> tuple[str, str, tuple[str, ...]]:
    """Give the profile and the device that a recorded machine gets, and all that a person is told beside; "" for none."""
    try:
        choice = selection.choose(outlines(), recording(name).host, cards())
    except NoProfileFitsError as error:
        return "", "", (error.what,)
    device = choice.chosen.device
    return (
        choice.chosen.profile.name,
        shown_name(device) if device else "",
        (*choice.doubts, *choice.warnings, *choice.notes),
    )


def _ranking(told: Recording) -> tuple[Accepted | Rejected, ...]:
    return selection.rank(outlines(), told.host, cards())


def _others(told: Recording) -> list[str]:
    ranking = _ranking(told)
    chosen = isinstance(ranking[0], Accepted)
    return [_judged(one) for one in ranking[chosen:]]


def _judged(one: Accepted | Rejected) -> str:
    match one:
        case Accepted(profile=profile, why=why):
            return f"{profile.name} fits, too: {why}"
        case Rejected(profile=profile, reasons=reasons):
            return f"{profile.name}: {'; '.join(reasons)}"


def _findings(told: Recording) -> list[str]:
    lines = []
    for finding in diagnose(told, cards(), troubles(), rules().families):
        lines += [
            f"{finding.name} ({finding.confidence}): {finding.title}",
            *(f"  saw: {evidence}" for evidence in finding.evidence),
            *(f"  do: {remedy.do}" for remedy in finding.remedies),
        ]
    return lines
