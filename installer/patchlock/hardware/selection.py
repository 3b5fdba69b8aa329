"""Match profiles against a machine and choose one; pure, never guesses."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchlock.hardware import _unused_devices
from patchlock.hardware._matching import FitMatch, called, counted, match_fit, missing
from patchlock.model import version_bounds
from patchlock.model.choice import Accepted, Rejected
from patchlock.model.devices import Card, KnownDevice, UnknownDevice, identify
from patchlock.model.errors import NoProfileFitsError, UnknownProfileError, nearest
from patchlock.model.fits import ProfileSummary
from patchlock.model.hosts import Host
from patchlock.model.platforms import GLIBC_FLOOR, platform_of

if TYPE_CHECKING:
    from patchlock.model.profile import Profile


NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A profile for a machine, and what a person should know about it."""

    chosen: Accepted
    why: str
    """One clause."""
    doubts: tuple[str, ...] = ()
    """Why a better one may have been missed, sentences; a person must be asked."""
    notes: tuple[str, ...] = ()
    """What a person should hear, sentences; no reason to ask."""


def rank(
    profiles: Iterable[ProfileSummary | Profile], host: Host, cards: Sequence[Card]
) -> tuple[Accepted | Rejected, ...]:
    """Judge every profile: those that fit first, the narrowest of them before the others, the rest by name.

    Args:
        profiles: outlines, or whole profiles.
        host: the machine.
        cards: the table of devices; may be empty where the machine has none.
    """
    seen = tuple(identify(device, cards) for device in host.devices)
    judged = [_judge(profile, host, seen) for profile in profiles]
    return tuple(sorted(judged, key=_place))


def _place(one: Accepted | Rejected) -> tuple[bool, int, str]:
    fits = isinstance(one, Accepted)
    return not fits, -one.profile.specificity if fits else 0, one.profile.name


def judge(profile: ProfileSummary | Profile, host: Host, cards: Sequence[Card] = ()) -> Accepted | Rejected:
    """Say whether a profile fits a machine, or every reason why not."""
    return _judge(profile, host, tuple(identify(device, cards) for device in host.devices))


def _judge(
    profile: ProfileSummary | Profile, host: Host, seen: tuple[KnownDevice | UnknownDevice, ...]
) -> Accepted | Rejected:
    platform = platform_of(host)
    reasons = list(_of_system(host))
    if platform is not None and platform not in profile.platforms:
        reasons.insert(0, f"it is for {', '.join(p.name for p in profile.platforms)}; this is {platform.name}")
    best = _best(profile, host, seen)
    if platform is None or reasons:
        return Rejected(profile=profile, reasons=(*reasons, *(best.reasons if best.device is None else ())))
    if best.reasons:
        return Rejected(profile=profile, reasons=best.reasons, platform=platform, device=best.device)
    return Accepted(
        profile=profile,
        platform=platform,
        specificity=profile.specificity,
        device=best.device,
        why=best.why,
        selects=best.fit.selects if best.fit else "",
    )


def _of_system(host: Host) -> Iterable[str]:
    """Say what makes every profile impossible."""
    if platform_of(host) is None:
        yield f"no lock can be made for {host.os} on {host.machine}"
    if host.os == "linux" and host.libc.startswith("musl"):
        yield "the wheels need glibc; this system has musl"
    elif (glibc := version_bounds.leading(host.libc.removeprefix("glibc "))) is not None and glibc < GLIBC_FLOOR:
        needed = ".".join(map(str, GLIBC_FLOOR))
        yield f"the wheels need glibc {needed} or later; this system has {host.libc}"


def _best(profile: ProfileSummary | Profile, host: Host, seen: tuple[KnownDevice | UnknownDevice, ...]) -> FitMatch:
    """Take the fit that holds, else the one that is nearest to it."""
    if not profile.fits:
        return FitMatch(device=None, why="it is for every machine of its platforms")
    best = min((match_fit(fit, host, seen) for fit in profile.fits), key=_distance)
    if best.device is None:
        vendors = dict.fromkeys(fit.vendor for fit in profile.fits)
        each = (missing(tuple(fit for fit in profile.fits if fit.vendor == vendor), seen) for vendor in vendors)
        return FitMatch(device=None, reasons=tuple(each))
    return best


def _distance(one: FitMatch) -> tuple[bool, bool, int]:
    return bool(one.reasons), one.device is None, len(one.reasons)


def choose(
    profiles: Iterable[ProfileSummary | Profile],
    host: Host,
    cards: Sequence[Card] = (),
    name: str | None = None,
    refused: Mapping[str, str] = NOTHING,
) -> Choice:
    """Choose the named profile, or the narrowest that fits.

    A named one is taken although its devices or drivers are not seen, with a note: a person may know better.

    Args:
        profiles: outlines, or whole profiles.
        host: the machine.
        cards: the table of devices.
        name: of a profile, or None.
        refused: name of a profile → why an app cannot run on it; such a one is not chosen unnamed, no doubt, no advice.

    Raises:
        UnknownProfileError: there is no profile of that name.
        NoProfileFitsError: the named one cannot run here, none fits, or two are equally narrow.
    """
    ranking = rank(profiles, host, cards)
    if name is not None:
        possible = tuple(one if one.profile.name == name else _refuse(one, refused) for one in ranking)
        return _named(name, possible, host, cards)
    turned_down = [one for one in ranking if isinstance(one, Accepted) and one.profile.name in refused]
    ranking = tuple(_refuse(one, refused) for one in ranking)
    fitting = [one for one in ranking if isinstance(one, Accepted)]
    if not fitting:
        raise _none_fits(host, [one for one in ranking if isinstance(one, Rejected)])
    best, *others = fitting
    ties = [best.profile.name, *(a.profile.name for a in others if a.specificity == best.specificity)]
    if len(ties) > 1:
        raise NoProfileFitsError(
            f"the profiles {' and '.join(ties)} fit this machine equally well",
            remedy=f"name one: --profile {ties[0]}",
        )
    seen = tuple(identify(device, cards) for device in host.devices)
    return Choice(
        chosen=best,
        why=best.why if best.device else _without_device(seen, is_refused=bool(turned_down)),
        doubts=tuple(_unused_devices.doubts(best, ranking, host, seen, refused, turned_down)),
        notes=(
            *(
                f"{one.profile.name} fits this machine better, but {refused[one.profile.name]}"
                for one in turned_down
                if one.specificity > best.specificity
            ),
            *_unused_devices.on_windows(best, ranking, host, seen),
            *_successors(best, ranking),
        ),
    )


def _none_fits(host: Host, ranking: Sequence[Rejected]) -> NoProfileFitsError:
    """Say what is common to all profiles, else each profile's reasons."""
    common = tuple(_of_system(host))
    platform = platform_of(host)
    if not common and platform is not None and all(platform not in one.profile.platforms for one in ranking):
        common = (f"none is for {platform.name}",)
    if common:
        has_cure = platform is not None and host.libc
        remedy = "what can be done: `patchlock doctor`" if has_cure else "which there are: `patchlock list`"
        return NoProfileFitsError(f"no profile fits this machine: {', and '.join(common)}", remedy=remedy)
    each = tuple(f"{one.profile.name}: {'; '.join(one.reasons)}" for one in ranking)
    return NoProfileFitsError("no profile fits this machine", remedy="which there are: `patchlock list`", evidence=each)


def _refuse(one: Accepted | Rejected, refused: Mapping[str, str]) -> Accepted | Rejected:
    why = refused.get(one.profile.name)
    if why is None:
        return one
    reasons = one.reasons if isinstance(one, Rejected) else ()
    return Rejected(profile=one.profile, reasons=(*reasons, why), platform=one.platform)


def _named(name: str, ranking: tuple[Accepted | Rejected, ...], host: Host, cards: Sequence[Card]) -> Choice:
    judged = {one.profile.name: one for one in ranking}
    if name not in judged:
        raise UnknownProfileError(f'there is no profile "{name}"', remedy=nearest(name, judged))
    found = judged[name]
    if isinstance(found, Accepted):
        return Choice(chosen=found, why="it was named", notes=tuple(_successors(found, ranking)))
    if found.platform is None:
        raise NoProfileFitsError(f'the profile "{name}" does not fit this machine: {"; ".join(found.reasons)}')
    profile = found.profile
    taken = Accepted(profile=profile, platform=found.platform, specificity=profile.specificity, why="it was named")
    note = f"{name} is taken, though as far as can be seen this machine is none of its kind: {'; '.join(found.reasons)}"
    seen = tuple(identify(device, cards) for device in host.devices)
    if (trial := _unused_devices.trial(found, host, seen)) is not None and trial.device and trial.fit:
        taken = dataclasses.replace(taken, device=trial.device, selects=trial.fit.selects)
        lacks = f"; what it lacks: {' and '.join(trial.reasons)}" if trial.reasons else ""
        note = f"nobody has tried {name} on {called(trial.device)}; {trial.fit.why}{lacks}"
    return Choice(chosen=taken, why="it was named", notes=(note, *_successors(taken, ranking)))


def _without_device(seen: tuple[KnownDevice | UnknownDevice, ...], *, is_refused: bool) -> str:
    if is_refused:
        return "what fits this machine better cannot be used"
    if not seen:
        return "no accelerator was seen"
    there = counted(called(one) for one in seen)
    few = ", ".join(there[:3]) + (f" and {len(there) - 3} more" if len(there) > 3 else "")
    return f"no other profile fits with {few}"


def _successors(best: Accepted, ranking: tuple[Accepted | Rejected, ...]) -> Iterable[str]:
    after = best.profile.successor
    if after is None:
        return
    named = [one for one in ranking if one.profile.name == after.name]
    if not named:
        yield f"{after.name}, a profile still to come, will be better on this machine: {after.why} ({after.source})"
    elif isinstance(named[0], Accepted):
        yield f"{after.name} is better on this machine: {after.why} (--profile {after.name})"
