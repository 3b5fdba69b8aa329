"""Match profiles against a machine and choose one; pure, never guesses."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchlock.hardware import _device_use
from patchlock.hardware._matching import FitMatch, Seen, called, counted, match, preference, wrong_numbers
from patchlock.model import version_bounds
from patchlock.model.choice import Accepted, AppLimits, Rejected
from patchlock.model.devices import Card, KnownDevice, UnknownDevice, identify
from patchlock.model.errors import NoProfileFitsError, UnknownProfileError, nearest
from patchlock.model.fits import ProfileSummary
from patchlock.model.hosts import Host
from patchlock.model.platforms import GLIBC_FLOOR, platform_of

if TYPE_CHECKING:
    from patchlock.model.profile import Profile


ANY_APP = AppLimits()


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A profile for a machine, and what a person should know about it."""

    chosen: Accepted
    why: str
    """One clause."""
    doubts: tuple[str, ...] = ()
    """Why a better one may have been missed, or a device is left unused, sentences; a person must be asked."""
    warnings: tuple[str, ...] = ()
    """What computes more slowly than the machine could, or fails in part, sentences; there is nothing to choose."""
    notes: tuple[str, ...] = ()
    """What a person should hear, sentences."""
    on_processor: str = ""
    """Why the app computes on the CPU although the profile is for a device, a clause; "" where it does not."""

    @property
    def device(self) -> KnownDevice | UnknownDevice | None:
        """Name the device that the app computes on, at least in part; None: on the CPU alone."""
        return None if self.on_processor else self.chosen.device

    def without_torch(self) -> Choice:
        """Say it of an app whose packages have no torch: what the profile's torch can do is no reason then."""
        fit, device = self.chosen.fit, self.chosen.device
        if fit is None or device is None or self.why != self.chosen.why or "torch" not in fit.why.split():
            return self
        return dataclasses.replace(self, why=f"this machine has {called(device)}")

    @property
    def has_torch_on_processor(self) -> bool:
        """Say whether what needs the memory is computed on the CPU."""
        return bool(self.on_processor) or self.chosen.profile.back_end == "cpu"


def rank(
    profiles: Iterable[ProfileSummary | Profile], host: Host, cards: Sequence[Card]
) -> tuple[Accepted | Rejected, ...]:
    """Judge every profile: those that fit first, by the device that they use, then the narrowest; the rest by name.

    Args:
        profiles: outlines, or whole profiles.
        host: the machine.
        cards: the table of devices; may be empty where the machine has none.
    """
    seen = tuple(identify(device, cards) for device in host.devices)
    judged = [_judge(profile, host, seen) for profile in profiles]
    return tuple(sorted(judged, key=lambda one: (_place(one, seen), one.profile.name)))


def _place(one: Accepted | Rejected, seen: Seen) -> tuple[object, ...]:
    """Order profiles by the device that each uses: cards first, then where torch computes on it, then the larger.

    Of equal devices the first that is listed goes before, and of the profiles for one the narrowest.
    """
    if isinstance(one, Rejected):
        return (2,)
    if one.device is None:
        return (1, -one.specificity)
    integrated, larger = preference(one.device)
    return (0, integrated, _torch_last(one), larger, seen.index(one.device), -one.specificity)


def _torch_last(one: Accepted) -> bool:
    """Put what leaves torch on the processor behind."""
    return one.profile.back_end == "cpu"


def judge(profile: ProfileSummary | Profile, host: Host, cards: Sequence[Card] = ()) -> Accepted | Rejected:
    """Say whether a profile fits a machine, or every reason why not."""
    return _judge(profile, host, tuple(identify(device, cards) for device in host.devices))


def _judge(profile: ProfileSummary | Profile, host: Host, seen: Seen) -> Accepted | Rejected:
    platform = platform_of(host)
    reasons = list(system_reasons(host))
    if platform is not None and platform not in profile.platforms:
        reasons.insert(0, f"needs {' or '.join(p.name for p in profile.platforms)}; this machine is {platform.name}")
    best = match(profile.fits, profile.back_end, host, seen) if profile.fits else _EVERY_MACHINE
    if platform is None or reasons:
        return Rejected(profile=profile, reasons=(*reasons, *(best.reasons if best.device is None else ())))
    if best.reasons:
        return Rejected(profile=profile, reasons=best.reasons, platform=platform, device=best.device, fit=best.fit)
    return Accepted(
        profile=profile,
        platform=platform,
        specificity=profile.specificity,
        device=best.device,
        why=best.why,
        fit=best.fit,
    )


_EVERY_MACHINE = FitMatch(device=None, why="it runs on every machine of its platforms")


def system_reasons(host: Host) -> Iterable[str]:
    """Say what makes every profile impossible on a machine, a clause each."""
    if platform_of(host) is None:
        yield f"{host.os} on {host.machine} is not supported"
    if host.os == "linux" and host.libc.startswith("musl"):
        yield "the wheels need glibc; this system has musl"
    elif (glibc := version_bounds.leading(host.libc.removeprefix("glibc "))) is not None and glibc < GLIBC_FLOOR:
        needed = ".".join(map(str, GLIBC_FLOOR))
        yield f"the wheels need glibc {needed} or later; this system has {host.libc}"


def choose(
    profiles: Iterable[ProfileSummary | Profile],
    host: Host,
    cards: Sequence[Card] = (),
    name: str | None = None,
    app: AppLimits = ANY_APP,
) -> Choice:
    """Choose the named profile, or the one for the best device of the machine, and of those for it the narrowest.

    A named one is taken although its devices or drivers are not seen, with a note: a person may know better.

    Args:
        profiles: outlines, or whole profiles.
        host: the machine.
        cards: the table of devices.
        name: of a profile, or None.
        app: on which profiles it cannot run; such a one is not chosen unnamed, and not recommended.

    Raises:
        UnknownProfileError: there is no profile of that name.
        NoProfileFitsError: the named one cannot run here, none fits, or two are equally narrow for one device.
    """
    seen = tuple(identify(device, cards) for device in host.devices)
    ranking = rank(profiles, host, cards)
    if name is not None:
        return _named(name, ranking, host, seen, app)
    possible = tuple(_refuse(one, app) for one in ranking)
    fitting = [one for one in possible if isinstance(one, Accepted)]
    if not fitting:
        raise _none_fits(host, [one for one in possible if isinstance(one, Rejected)])
    best = fitting[0]
    ties = [one.profile.name for one in fitting if _place(one, seen) == _place(best, seen)]
    if len(ties) > 1:
        raise NoProfileFitsError(
            f"the profiles {' and '.join(ties)} fit this machine equally well",
            remedy=f"name one: --profile {ties[0]}",
        )
    use = _device_use.account(best, ranking, host, seen, app)
    return Choice(
        chosen=best,
        why=best.why if best.device else _without_device(seen, ranking, app),
        doubts=use.doubts,
        warnings=use.warnings,
        notes=(*use.notes, *_successors(best, ranking, app)),
        on_processor=app.on_processor.get(best.profile.name, ""),
    )


def _none_fits(host: Host, ranking: Sequence[Rejected]) -> NoProfileFitsError:
    """Say what is common to all profiles, else each profile's reasons."""
    common = tuple(system_reasons(host))
    platform = platform_of(host)
    if not common and platform is not None and all(platform not in one.profile.platforms for one in ranking):
        common = (f"none is for {platform.name}",)
    if common:
        has_cure = platform is not None and host.libc
        remedy = "what can be done: `patchlock doctor`" if has_cure else "which there are: `patchlock list`"
        return NoProfileFitsError(f"no profile fits this machine: {', and '.join(common)}", remedy=remedy)
    each = tuple(f"{one.profile.name}: {'; '.join(one.reasons)}" for one in ranking)
    return NoProfileFitsError("no profile fits this machine", remedy="which there are: `patchlock list`", evidence=each)


def _refuse(one: Accepted | Rejected, app: AppLimits) -> Accepted | Rejected:
    why = app.why_not(one.profile.name)
    if not why:
        return one
    reasons = one.reasons if isinstance(one, Rejected) else ()
    return Rejected(profile=one.profile, reasons=(*reasons, why), platform=one.platform)


def _named(name: str, ranking: tuple[Accepted | Rejected, ...], host: Host, seen: Seen, app: AppLimits) -> Choice:
    judged = {one.profile.name: one for one in ranking}
    if name not in judged:
        raise UnknownProfileError(f'there is no profile "{name}"', remedy=nearest(name, judged))
    found = judged[name]
    if isinstance(found, Accepted):
        return _taken_by_name(found, tuple(_successors(found, ranking, app)), app)
    profile = found.profile
    vendors = {fit.vendor for fit in (*profile.fits, *profile.trials)}
    wrong = [wrong_numbers(one, profile.back_end) for one in seen if one.device.vendor in vendors]
    if found.platform is None or (wrong and all(wrong)):
        reasons = found.reasons if found.platform is None else wrong
        raise NoProfileFitsError(
            f'the profile "{name}" does not fit this machine: {"; ".join(reasons)}',
            remedy="`patchlock detect` shows what does",
        )
    taken = Accepted(
        profile=profile,
        platform=found.platform,
        specificity=profile.specificity,
        device=found.device,
        why="it was named",
        fit=found.fit,
    )
    note = f"{name} was named, but this machine does not look like one of its kind: {'; '.join(found.reasons)}"
    if (trial := _device_use.trial(profile, host, seen)) is not None and trial.device and found.device is None:
        taken = dataclasses.replace(taken, device=trial.device, fit=trial.fit)
        note = _device_use.tried(name, trial)
    return _taken_by_name(taken, (note, *_successors(taken, ranking, app)), app)


def _taken_by_name(taken: Accepted, notes: tuple[str, ...], app: AppLimits) -> Choice:
    why = app.on_processor.get(taken.profile.name, "")
    warnings = [_device_use.on_processor(taken, why, app)] if why and taken.device else []
    warnings += filter(None, [_device_use.fails_in_part(taken.profile.name, app)])
    return Choice(chosen=taken, why="it was named", warnings=tuple(warnings), notes=notes, on_processor=why)


def _without_device(seen: Seen, ranking: Iterable[Accepted | Rejected], app: AppLimits) -> str:
    better = [one for one in ranking if isinstance(one, Accepted) and app.why_not(one.profile.name)]
    for one in sorted(better, key=lambda one: one.profile.name not in app.refused):
        use = f", which would use {_device_use.your(one.device)}" if one.device else ""
        if one.profile.name in app.refused:
            return f"{app.name or 'the app'} does not support {one.profile.name}{use}"
        return f"{one.profile.name}{use}{',' if use else ''} is known to fail in part"
    if not seen:
        return "no GPU found"
    there = counted(called(one) for one in seen)
    few = ", ".join(there[:3]) + (f" and {len(there) - 3} more" if len(there) > 3 else "")
    return f"no other profile fits {few}"


def _successors(best: Accepted, ranking: tuple[Accepted | Rejected, ...], app: AppLimits) -> Iterable[str]:
    after = best.profile.successor
    if after is None or app.why_not(after.name):
        return
    named = [one for one in ranking if one.profile.name == after.name]
    if not named:
        yield f"{after.name}, a profile still to come, will be better on this machine: {after.why} ({after.source})"
    elif isinstance(named[0], Accepted):
        yield f"{after.name} is better on this machine: {after.why} (--profile {after.name})"
