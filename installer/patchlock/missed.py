"""What a choice of a profile leaves unused, so that no card is passed over in silence; pure, never guesses."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from patchlock.devices import NOT_WORTH_IT, VENDORS, Known, Unknown
from patchlock.fits import Accepted, Rejected
from patchlock.fitting import Attempt, attempt, called, hidden_by, is_integrated
from patchlock.hosts import Host


def doubts(
    best: Accepted,
    ranking: Sequence[Accepted | Rejected],
    host: Host,
    seen: Sequence[Known | Unknown],
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
    for device in seen:
        name = called(device)
        if device.device.is_hidden and device.device.vendor in shown:
            continue  # a variable that leaves another one is a choice between them
        if name not in told and (said := _unused(device, best, possible, host, refused)):
            told.append(name)
            yield said


def _unused(
    device: Known | Unknown, best: Accepted, possible: Sequence[Rejected], host: Host, refused: Container[str]
) -> str:
    """Say that nothing is for a device, and what can be done; "" where that is as it should be."""
    name, cpu = called(device), best.profile.name
    is_weak = isinstance(device, Known) and device.card.family in NOT_WORTH_IT
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
    if isinstance(device, Unknown) and not device.arch:
        profiles = [best.profile, *(one.profile for one in possible)]
        vendors = {fit.vendor for profile in profiles for fit in profile.fits}
        return f"{name} is unknown to this patchlock; {what_to_send(device)}" if device.device.vendor in vendors else ""
    if is_weak:
        return ""
    return (
        f"no profile is for {name} on {best.platform.name}, and {cpu} leaves it unused; if that will do, name it "
        f"(--profile {cpu}), and ask for one in an issue with what `patchlock detect --json` prints"
    )


def trial(one: Rejected, host: Host, seen: Sequence[Known | Unknown]) -> Attempt | None:
    """Find a machine of a profile's trials in this one, with what it still lacks; None where it is none."""
    found = [attempt(fit, host, tuple(seen)) for fit in one.profile.trials]
    meant = [each for each in found if each.device is not None and not each.device.device.is_hidden]
    return min(meant, key=lambda each: len(each.reasons), default=None)


def what_to_send(device: Unknown) -> str:
    """Say what helps us to know a device that is not in the table."""
    own = device.device
    ids = f" {own.vendor}:{own.device}" if own.device else f" {own.name}" if own.name else ""
    return (
        "please open an issue with what `patchlock detect --json` prints (it has no names of you or of this computer), "
        f'titled "unknown {VENDORS.get(own.vendor, own.vendor)} card{ids}"'
    )
