"""What a chosen profile uses of a machine and what not, each with its reason; no card is passed over; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchlock.hardware._matching import (
    FitMatch,
    Seen,
    called,
    counted,
    hidden_by,
    is_meant,
    match,
    preference,
    wrong_numbers,
)
from patchlock.model.choice import Accepted, Rejected
from patchlock.model.devices import OF_CARDS, UNSUPPORTED_FAMILIES, VENDORS, KnownDevice, UnknownDevice
from patchlock.model.fits import ProfileSummary
from patchlock.model.hosts import Host

if TYPE_CHECKING:
    from patchlock.model.profile import Profile

_Device = KnownDevice | UnknownDevice


@dataclass(frozen=True, kw_only=True)
class Use:
    """What a person has to know; see `selection.Choice`."""

    doubts: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Options:
    """What could be done with one device instead of what was chosen."""

    near: tuple[tuple[str, str], ...]
    """Profile → why it is no more than near, a clause."""
    refused: tuple[tuple[str, str], ...]
    """Profile that is for it, or may be → why the app cannot run on it."""
    trials: tuple[tuple[str, FitMatch], ...]
    """Profile → in which way nobody has tried it."""


def account(
    best: Accepted,
    ranking: Sequence[Accepted | Rejected],
    host: Host,
    seen: Seen,
    refused: Mapping[str, str],
) -> Use:
    """Account for every device of a machine: what uses it, or why nothing does and what could be tried.

    Args:
        best: what was chosen.
        ranking: every profile, judged.
        host: the machine.
        seen: its devices.
        refused: name of a profile → why the app cannot run on it.
    """
    doubts: dict[str, None] = {}
    warnings: dict[str, None] = {}
    notes: dict[str, None] = {}
    strangers = [one for one in _accounted(best, seen) if _is_stranger(one, ranking, refused)]
    for one in _accounted(best, seen):
        if one in strangers:
            continue
        options = _options(one, best, ranking, host, refused)
        near = tuple(_near(one, *each) for each in options.near)
        is_weak = isinstance(one, KnownDevice) and one.card.family in UNSUPPORTED_FAMILIES
        doubts |= dict.fromkeys(near)
        if one == best.device:
            is_torch = best.profile.back_end != "cpu"
            told = notes if is_torch else warnings
            told |= dict.fromkeys(f"{name} fits this machine better, but {why}" for name, why in options.refused)
            if not is_torch and (options.trials or not is_weak):
                warnings |= dict.fromkeys((_on_the_processor(one, best, options),))
        elif wrong := next((wrong for name in OF_CARDS if (wrong := wrong_numbers(one, name))), ""):
            warnings[f"{wrong}, and {best.profile.name} leaves it alone"] = None
        elif is_weak and not options.trials and not options.refused:
            continue
        elif one.device.is_hidden or one.device.trouble:
            if not near:
                doubts[_stopped(one, best, host)] = None
        elif options.refused and not options.trials:
            warnings |= dict.fromkeys(_refused(one, best, *each) for each in options.refused)
        elif options.trials or not near:
            doubts[_unused(one, best, options)] = None
    if strangers:
        names = {called(one) for one in strangers}
        doubts[_unknown([one for one in seen if called(one) in names])] = None
    notes |= dict.fromkeys(_on_windows(best, ranking, host, seen))
    return Use(doubts=tuple(doubts), warnings=tuple(warnings), notes=tuple(notes))


def _accounted(best: Accepted, seen: Seen) -> Iterator[_Device]:
    """Give the device that is used, and those that are not although they are no worse; of those alike one."""
    shown = {one.device.vendor for one in seen if not one.device.is_hidden}
    told: set[str] = set()
    for one in seen:
        name, own = called(one), one.device
        if own.vendor not in VENDORS or name in told:
            continue
        if own.is_hidden and own.vendor in shown:
            continue  # a variable that leaves another one is a choice between them
        is_worse = best.device is not None and preference(one) >= preference(best.device) and not own.trouble
        if one != best.device and (is_worse or (best.device is not None and name == called(best.device))):
            continue
        told.add(name)
        yield one


def _options(
    one: _Device, best: Accepted, ranking: Sequence[Accepted | Rejected], host: Host, refused: Mapping[str, str]
) -> _Options:
    near, turned_down, trials = [], [], []
    for other in ranking:
        profile, found = other.profile, None
        if other.platform is None or profile.name == best.profile.name:
            continue
        if profile.fits and (one != best.device or profile.specificity > best.specificity):
            found = match(profile.fits, profile.back_end, host, (one,))
        if found is not None and found.device is not None:
            if profile.name in refused:
                turned_down.append((profile.name, refused[profile.name]))
            elif found.reasons and not wrong_numbers(one, profile.back_end):
                near.append((profile.name, _clause(one, found.reasons)))
        elif (tried_on := trial(profile, host, (one,))) is not None:
            if profile.name in refused:
                turned_down.append((profile.name, refused[profile.name]))
            else:
                trials.append((profile.name, tried_on))
    return _Options(near=tuple(near), refused=tuple(turned_down), trials=tuple(trials))


def _clause(one: _Device, reasons: Sequence[str]) -> str:
    return " and ".join(reason.replace(called(one), "it") for reason in reasons)


def _near(one: _Device, profile: str, why: str) -> str:
    return f"{profile} would be for {called(one)}, but {why}"


def _on_the_processor(one: _Device, best: Accepted, options: _Options) -> str:
    """Say that a profile brings only a part of an app to a card."""
    until = " and ".join(name for name, _ in options.near)
    because = f"no profile of patchlock brings torch to this card on {best.platform.name} yet"
    return (
        f"{best.profile.name} computes ONNX models on {called(one)}, and torch computes on the processor"
        f"{f' until {until} can be used' if until else f': {because}'}{_tries(options)}"
    )


def _stopped(one: _Device, best: Accepted, host: Host) -> str:
    name, cpu = called(one), best.profile.name
    if one.device.trouble:
        return f"{name} does not work ({one.device.trouble}), and {cpu} leaves it unused; ask `patchlock doctor`"
    by = hidden_by(host, one.device.vendor) or "a variable"
    return f"{name} is hidden by {by}, and {cpu} leaves it unused; take the variable away, or name --profile {cpu}"


def _refused(one: _Device, best: Accepted, profile: str, why: str) -> str:
    return f"{profile} would be for {called(one)}, but {why}; {best.profile.name} leaves it unused"


def _unused(one: _Device, best: Accepted, options: _Options) -> str:
    """Say that nothing is for a device, and what can be done."""
    cpu = best.profile.name
    if options.refused:
        why = "; ".join(f"{name} would be for it, but {why}" for name, why in options.refused)
        return f"{cpu} leaves {called(one)} unused: {why}{_tries(options)}"
    if options.trials:
        return f"no profile is for {called(one)} on {best.platform.name}, and {cpu} leaves it unused{_tries(options)}"
    return (
        f"{called(one)} stays unused on {best.platform.name}: no profile of patchlock uses it yet; if {cpu} will do, "
        f"name it (--profile {cpu}), and ask for one in an issue with what `patchlock detect --json` prints"
    )


def _tries(options: _Options) -> str:
    return "".join(
        f"; {name} may run there, as {found.fit.why if found.fit else ''}, but nobody has tried: --profile {name}"
        + (f" (what it lacks: {' and '.join(found.reasons)})" if found.reasons else "")
        for name, found in options.trials
    )


def _on_windows(best: Accepted, ranking: Sequence[Accepted | Rejected], host: Host, seen: Seen) -> Iterator[str]:
    """Say, in WSL, which profiles on Windows itself are for a device that the choice leaves unused; sentences."""
    if not host.is_wsl or best.device is not None:
        return
    profiles = [one.profile for one in ranking if any(platform.os == "windows" for platform in one.profile.platforms)]
    for device in seen:
        fitting = [
            one
            for one in profiles
            if any(is_meant(fit, device) for fit in one.fits) and not wrong_numbers(device, one.back_end)
        ]
        names = [one.name for one in sorted(fitting, key=lambda one: -one.specificity)]
        if names:
            listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
            yield f"on Windows itself, outside WSL, {listed} can use {called(device)}: install there"


def _is_stranger(one: _Device, ranking: Sequence[Accepted | Rejected], refused: Mapping[str, str]) -> bool:
    """Whether nobody knows a card that a profile might be for."""
    own = one.device
    if isinstance(one, KnownDevice) or one.arch or own.trouble or own.is_hidden:
        return False
    return any(
        other.platform is not None
        and other.profile.name not in refused
        and any(fit.vendor == own.vendor for fit in other.profile.fits)
        for other in ranking
    )


def _unknown(strangers: Seen) -> str:
    """Say in one sentence how many cards are unknown, however many there are, and what to send."""
    names = list(dict.fromkeys(called(one) for one in strangers))
    if len(names) == 1:
        shown = counted(called(one) for one in strangers)[0]
        return f"{shown} is unknown to this patchlock; {what_to_send(strangers[0])}"
    ids = list(dict.fromkeys(_ids(one) or called(one) for one in strangers))
    more = f", and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"{len(strangers)} cards are unknown to this patchlock ({', '.join(ids[:_SHOWN])}{more}); {_TO_SEND}"


def _ids(one: _Device) -> str:
    own = one.device
    return f"{own.vendor}:{own.device}" if own.device else ""


def trial(profile: ProfileSummary | Profile, host: Host, seen: Seen) -> FitMatch | None:
    """Find a machine of a profile's trials in this one, with what it still lacks; None where it is none."""
    shown = [one for one in seen if not one.device.is_hidden and not wrong_numbers(one, profile.back_end)]
    found = match(profile.trials, profile.back_end, host, shown) if profile.trials else None
    return found if found is not None and found.device is not None else None


def tried(name: str, found: FitMatch) -> str:
    """Say, of a profile that was named, that nobody has tried it on a device."""
    lacks = f"; what it lacks: {' and '.join(found.reasons)}" if found.reasons else ""
    device, fit = found.device, found.fit
    return f"nobody has tried {name} on {called(device) if device else 'it'}; {fit.why if fit else ''}{lacks}"


_SHOWN = 10
"""Ids in a sentence."""
_TO_SEND = (
    "please open an issue with what `patchlock detect --json` prints (it has no names of you or of this computer)"
)


def what_to_send(device: _Device) -> str:
    """Say what helps us to know a device that is not in the table."""
    own = device.device
    ids = f" {_ids(device)}" if own.device else f" {own.name}" if own.name else ""
    return f'{_TO_SEND}, titled "unknown {VENDORS.get(own.vendor, own.vendor)} card{ids}"'
