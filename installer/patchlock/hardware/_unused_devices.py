"""What a choice of a profile leaves unused, so that no card is passed over in silence; pure, never guesses."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from patchlock.hardware._matching import FitMatch, called, counted, hidden_by, is_integrated, is_meant, match_fit
from patchlock.model.choice import Accepted, Rejected
from patchlock.model.devices import UNSUPPORTED_FAMILIES, VENDORS, KnownDevice, UnknownDevice
from patchlock.model.hosts import Host


def doubts(
    best: Accepted,
    ranking: Sequence[Accepted | Rejected],
    host: Host,
    seen: Sequence[KnownDevice | UnknownDevice],
    refused: Container[str] = (),
    turned_down: Sequence[Accepted] = (),
) -> Iterator[str]:
    """Say which better profiles were missed by a hair, and which devices nobody knows or nothing is for; sentences.

    Args:
        best: what was chosen.
        ranking: every profile, judged.
        host: the machine.
        seen: its devices.
        refused: names of profiles that cannot be what is asked for.
        turned_down: those of them that fit; of their devices others speak.
    """
    possible = [one for one in ranking if isinstance(one, Rejected) and one.platform is not None]
    near = [one for one in possible if one.device is not None and one.profile.specificity > best.specificity]
    for one in near:
        if one.device is not None:
            name = called(one.device)
            but = " and ".join(reason.replace(name, "it") for reason in one.reasons)
            yield f"{one.profile.name} would be for {name}, but {but}"
    if best.device is not None and not is_integrated(best.device):
        return
    shown = {device.device.vendor for device in seen if not device.device.is_hidden}
    told = [called(one.device) for one in (*ranking, *turned_down) if one.device is not None]
    strangers = [one for one in seen if called(one) not in told and _is_stranger(one, best, possible, refused)]
    if strangers:
        yield _unknown(strangers)
        told += [called(one) for one in strangers]
    for device in seen:
        name = called(device)
        if device.device.is_hidden and device.device.vendor in shown:
            continue  # a variable that leaves another one is a choice between them
        if name not in told and (said := _unused(device, best, possible, host, refused)):
            told.append(name)
            yield said


def _unused(
    device: KnownDevice | UnknownDevice,
    best: Accepted,
    possible: Sequence[Rejected],
    host: Host,
    refused: Container[str],
) -> str:
    """Say that nothing is for a device, and what can be done; "" where that is as it should be."""
    name, cpu = called(device), best.profile.name
    is_weak = isinstance(device, KnownDevice) and device.card.family in UNSUPPORTED_FAMILIES
    own = [one.profile for one in possible if any(fit.vendor == device.device.vendor for fit in one.profile.fits)]
    if device.device.vendor not in VENDORS or (own and all(profile.name in refused for profile in own)):
        return ""
    if device.device.trouble:
        because = f"{name} does not work ({device.device.trouble}), and {cpu} leaves it unused"
        return "" if is_weak else f"{because}; ask `patchlock doctor`"
    if device.device.is_hidden:
        if is_weak:
            return ""
        by = hidden_by(host, device.device.vendor) or "a variable"
        return f"{name} is hidden by {by}, and {cpu} leaves it unused; take the variable away, or name --profile {cpu}"
    for one in possible:
        found = None if one.profile.name in refused else trial(one, host, (device,))
        if found is not None and found.fit is not None:
            other = one.profile.name
            lacks = f" (what it lacks: {' and '.join(found.reasons)})" if found.reasons else ""
            return (
                f"no profile is for {name} on {best.platform.name}, and {cpu} leaves it unused; {other} may run there, "
                f"as {found.fit.why}, but nobody has tried: --profile {other}{lacks}"
            )
    if is_weak or (isinstance(device, UnknownDevice) and not device.arch):
        return ""
    return (
        f"no profile is for {name} on {best.platform.name}, and {cpu} leaves it unused; if that will do, name it "
        f"(--profile {cpu}), and ask for one in an issue with what `patchlock detect --json` prints"
    )


def on_windows(
    best: Accepted, ranking: Sequence[Accepted | Rejected], host: Host, seen: Sequence[KnownDevice | UnknownDevice]
) -> Iterator[str]:
    """Say, in WSL, which profiles on Windows itself are for a device that the choice leaves unused; sentences."""
    if not host.is_wsl or best.device is not None:
        return
    profiles = [one.profile for one in ranking if any(platform.os == "windows" for platform in one.profile.platforms)]
    for device in seen:
        fitting = [one for one in profiles if any(is_meant(fit, device) for fit in one.fits)]
        names = [one.name for one in sorted(fitting, key=lambda one: -one.specificity)]
        if names:
            listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
            yield f"on Windows itself, outside WSL, {listed} can use {called(device)}: install there"


def _is_stranger(
    device: KnownDevice | UnknownDevice, best: Accepted, possible: Sequence[Rejected], refused: Container[str]
) -> bool:
    """Whether nobody knows a card that a profile might be for."""
    own = device.device
    if isinstance(device, KnownDevice) or device.arch or own.trouble or own.is_hidden or own.vendor not in VENDORS:
        return False
    others = [one.profile for one in possible if any(fit.vendor == own.vendor for fit in one.profile.fits)]
    if others and all(profile.name in refused for profile in others):
        return False
    return bool(others) or any(fit.vendor == own.vendor for fit in best.profile.fits)


def _unknown(strangers: Sequence[KnownDevice | UnknownDevice]) -> str:
    """Say in one sentence how many cards are unknown, however many there are, and what to send."""
    names = list(dict.fromkeys(called(one) for one in strangers))
    if len(names) == 1:
        shown = counted(called(one) for one in strangers)[0]
        return f"{shown} is unknown to this patchlock; {what_to_send(strangers[0])}"
    ids = list(dict.fromkeys(_ids(one) or called(one) for one in strangers))
    more = f", and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"{len(strangers)} cards are unknown to this patchlock ({', '.join(ids[:_SHOWN])}{more}); {_TO_SEND}"


def _ids(one: KnownDevice | UnknownDevice) -> str:
    own = one.device
    return f"{own.vendor}:{own.device}" if own.device else ""


def trial(one: Rejected, host: Host, seen: Sequence[KnownDevice | UnknownDevice]) -> FitMatch | None:
    """Find a machine of a profile's trials in this one, with what it still lacks; None where it is none."""
    found = [match_fit(fit, host, tuple(seen)) for fit in one.profile.trials]
    meant = [each for each in found if each.device is not None and not each.device.device.is_hidden]
    return min(meant, key=lambda each: len(each.reasons), default=None)


_SHOWN = 10
"""Ids in a sentence."""
_TO_SEND = (
    "please open an issue with what `patchlock detect --json` prints (it has no names of you or of this computer)"
)


def what_to_send(device: KnownDevice | UnknownDevice) -> str:
    """Say what helps us to know a device that is not in the table."""
    own = device.device
    ids = f" {_ids(device)}" if own.device else f" {own.name}" if own.name else ""
    return f'{_TO_SEND}, titled "unknown {VENDORS.get(own.vendor, own.vendor)} card{ids}"'
