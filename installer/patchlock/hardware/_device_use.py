"""What a chosen profile uses of a machine and what not, each with its reason; no card is passed over; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchlock.hardware._matching import (
    FitMatch,
    Seen,
    called,
    counted,
    hidden_by,
    is_integrated,
    is_meant,
    match,
    preference,
    without_article,
    wrong_numbers,
)
from patchlock.model.choice import FAILS_IN_PART, Accepted, AppLimits, Rejected
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
    """What could be done with one device instead of what was chosen; the best profile first."""

    near: tuple[tuple[str, str], ...]
    """Profile → why it is no more than near, a clause."""
    refused: tuple[tuple[str, str], ...]
    """Profile that is for it → why the app cannot run on it."""
    refused_trials: tuple[tuple[str, str], ...]
    """Profile that might run on it → why the app cannot run on that one."""
    tries: tuple[tuple[str, str], ...]
    """Profile that can be tried by name → what speaks for and against it."""
    others: tuple[str, ...]
    """Profiles that fit it, but less well than what was chosen fits the machine."""

    @property
    def all_refused(self) -> tuple[tuple[str, str], ...]:
        """Name all that the app cannot run on; those that are for the device first."""
        return (*self.refused, *self.refused_trials)


def account(
    best: Accepted,
    ranking: Sequence[Accepted | Rejected],
    host: Host,
    seen: Seen,
    app: AppLimits,
) -> Use:
    """Account for every device of a machine: what uses it, or why nothing does and what could be tried.

    Args:
        best: what was chosen.
        ranking: every profile, judged.
        host: the machine.
        seen: its devices.
        app: on which profiles the app cannot run.
    """
    doubts: dict[str, None] = {}
    warnings: dict[str, None] = {}
    notes: dict[str, None] = {}
    used = None if best.profile.name in app.on_processor else best.device
    strangers = [one for one in _accounted(best, seen) if _is_stranger(one, ranking, app)]
    for one in _accounted(best, seen):
        if one in strangers:
            continue
        options = _options(one, best, ranking, host, app)
        if _is_minor(one, best, seen) and not options.near and not options.tries:
            continue
        is_weak = isinstance(one, KnownDevice) and one.card.family in UNSUPPORTED_FAMILIES
        wrong = next((wrong for name in OF_CARDS if (wrong := wrong_numbers(one, name))), "")
        if one == best.device and (why := app.on_processor.get(best.profile.name)):
            warnings[on_processor(best, why, app, options.tries)] = None
        elif one == best.device and best.profile.back_end != "cpu":
            doubts |= dict.fromkeys(f"{name} would fit {called(one)}, but {why}" for name, why in options.near)
            notes |= dict.fromkeys(
                f"{name} fits this machine better, but not {_whose(app)}: {why}" for name, why in options.refused
            )
        elif one == best.device:
            if options.near or options.all_refused or options.tries or not is_weak:
                (doubts if options.near else warnings)[_on_the_processor(one, best, options, app)] = None
        elif options.near:
            doubts[_unused(one, used, _blocked(options.near), options.tries, app)] = None
        elif one.device.is_hidden or one.device.trouble:
            if not is_weak or options.tries or options.all_refused:
                doubts[_unused(one, used, _stopped(one, best, host), (), app)] = None
        elif options.all_refused:
            told = doubts if _is_untested(options, app) else warnings
            told[_unused(one, used, _refused(options, app), options.tries, app)] = None
        elif wrong:
            warnings[_unused(one, used, wrong.replace(called(one), "it"), options.tries, app)] = None
        elif options.tries:
            reason = f"no profile supports it on {best.platform.name}"
            if options.others:
                reason = f"{options.others[0]} fits it, but {best.profile.name} fits this machine better"
            doubts[_unused(one, used, reason, options.tries, app)] = None
        elif not is_weak:
            doubts[_unused(one, used, _nothing(best), (), app)] = None
    if strangers:
        names = {called(one) for one in strangers}
        all_of_them = [one for one in seen if called(one) in names]
        doubts[_unknown(all_of_them) + _tries_of_strangers(best, ranking, host, app, all_of_them)] = None
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


def _is_minor(one: _Device, best: Accepted, seen: Seen) -> bool:
    """Whether a device is graphics in the processor beside a card that is not used either: the card is told of."""
    cards = [other for other in seen if other.device.vendor in VENDORS and not is_integrated(other)]
    return best.device is None and is_integrated(one) and any(not card.device.is_hidden for card in cards)


def _options(
    one: _Device, best: Accepted, ranking: Sequence[Accepted | Rejected], host: Host, app: AppLimits
) -> _Options:
    near, tries, others = [], [], []
    turned_down: list[tuple[str, str]] = []
    turned_down_trials: list[tuple[str, str]] = []
    for other in sorted(ranking, key=_torch_first):
        profile, found = other.profile, None
        name = profile.name
        if other.platform is None or name == best.profile.name:
            continue
        if profile.fits and (one != best.device or profile.specificity > best.specificity):
            found = match(profile.fits, profile.back_end, host, (one,))
        is_for_it = found is not None and found.device is not None
        tried_on = None if is_for_it or one.device.trouble else trial(profile, host, (one,))
        if (not is_for_it and tried_on is None) or name in app.on_processor:
            continue
        if name in app.refused:
            (turned_down if is_for_it else turned_down_trials).append((name, app.refused[name]))
        elif name in app.trials:
            if tried_on is None:  # what nobody has tried on such a card, and fails elsewhere, is no advice
                tries.append((name, f"{FAILS_IN_PART}: {app.trials[name]}"))
        elif tried_on is not None:
            tries.append((name, _hope(tried_on)))
        elif found is not None and found.reasons and not wrong_numbers(one, profile.back_end):
            near.append((name, _clause(one, found.reasons)))
        elif found is not None and not found.reasons:
            others.append(name)
    return _Options(
        near=tuple(near),
        refused=tuple(turned_down),
        refused_trials=tuple(turned_down_trials),
        tries=tuple(tries),
        others=tuple(others),
    )


def _torch_first(one: Accepted | Rejected) -> tuple[bool, int, str]:
    return one.profile.back_end == "cpu", -one.profile.specificity, one.profile.name


def _is_untested(options: _Options, app: AppLimits) -> bool:
    """Whether something can be tried that the app's file says nothing of, so that a person is asked."""
    return any(name not in app.trials for name, _ in options.tries)


def _clause(one: _Device, reasons: Sequence[str]) -> str:
    return " and ".join(reason.replace(called(one), "it") for reason in reasons)


def _hope(found: FitMatch) -> str:
    """Say why a profile may run on a device that nobody has tried it on, and what is in its way."""
    lacks = f"; it lacks: {' and '.join(found.reasons)}" if found.reasons else ""
    return f"untested: {found.fit.why if found.fit else ''}{lacks}"


def _unused(one: _Device, used: _Device | None, reason: str, tries: Sequence[tuple[str, str]], app: AppLimits) -> str:
    """Say in one sentence that a card stays unused, in the next why, in the last what can be tried."""
    place = called(used) if used else "the CPU"
    lead = f"{app.name or 'Apps'} will run on {place}; {your(one)} will not be used."
    return f"{lead} Reason: {reason}{_to_try(tries, app)}"


def on_processor(best: Accepted, why: str, app: AppLimits, tries: Sequence[tuple[str, str]] = ()) -> str:
    """Say that an app leaves the card of its profile unused."""
    return _unused(best.device, None, why, tries, app) if best.device else ""


def _on_the_processor(one: _Device, best: Accepted, options: _Options, app: AppLimits) -> str:
    """Say that a profile brings only a part of an app to a card."""
    if options.near:
        reason = _blocked(options.near)
    elif options.all_refused:
        reason = _refused(options, app)
    else:
        reason = f"no profile with torch is known to work on this card on {best.platform.name} yet"
    whose = f"ONNX models of {app.name}" if app.name else "ONNX models"
    return (
        f"Only {whose} will run on {your(one)}; the rest, with torch, will run on the CPU. "
        f"Reason: {reason}{_to_try(options.tries, app)}"
    )


def your(one: _Device) -> str:
    """Name a card as its owner's."""
    name = without_article(called(one))
    return f"the GPU of your {name}" if VENDORS.get(one.device.vendor) == "Apple" else f"your {name}"


def _blocked(near: Sequence[tuple[str, str]]) -> str:
    """Say what is in the way of the best profile, and of those that it keeps away, too; `doctor` has the remedy."""
    why = near[0][1]
    names = [name for name, each in near if each == why]
    return f"{_listed(names)} would fit it, but {why}{_ASK}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _refused(options: _Options, app: AppLimits) -> str:
    """Say for which profile the app is in the way; what the app's file gives as the reason speaks of the app."""
    name, why = options.all_refused[0]
    return f"{name} {'would' if options.refused else 'might'} fit this card, but not {_whose(app)}: {why}"


def _whose(app: AppLimits) -> str:
    return app.name or "the app"


def _nothing(best: Accepted) -> str:
    name = best.profile.name
    return (
        f"no profile of patchlock uses it yet on {best.platform.name}. "
        f"If {name} will do, choose it (--profile {name}); ask for one in an issue with what `patchlock detect --json` "
        "prints"
    )


_ASK = "; ask `patchlock doctor`"


def _stopped(one: _Device, best: Accepted, host: Host) -> str:
    if one.device.trouble:
        return f"it does not work ({one.device.trouble}){_ASK}"
    by = hidden_by(host, one.device.vendor) or "a variable"
    return f"it is hidden by {by}; unset the variable, or choose --profile {best.profile.name}"


def _to_try(tries: Sequence[tuple[str, str]], app: AppLimits) -> str:
    """Give the command for each profile that can be tried."""
    each = [f"`patchlock install {app.name or 'APP'} --profile {name}` ({why})" for name, why in tries]
    return f". You can try {', or '.join(each)}" if each else ""


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
            yield f"on Windows itself, outside WSL, {_listed(names)} can use {called(device)}: install there"


def _is_stranger(one: _Device, ranking: Sequence[Accepted | Rejected], app: AppLimits) -> bool:
    """Whether nobody knows a card that a profile might be for."""
    own = one.device
    if isinstance(one, KnownDevice) or one.arch or own.trouble or own.is_hidden:
        return False
    return any(
        other.platform is not None
        and other.profile.name not in app.refused
        and any(fit.vendor == own.vendor for fit in other.profile.fits)
        for other in ranking
    )


def _unknown(strangers: Seen) -> str:
    """Say in one sentence how many cards are unknown, however many there are, and what to send."""
    names = list(dict.fromkeys(called(one) for one in strangers))
    if len(names) == 1:
        shown = counted(called(one) for one in strangers)[0]
        return f"{shown[:1].upper()}{shown[1:]} is unknown to this patchlock; {what_to_send(strangers[0])}"
    ids = list(dict.fromkeys(_ids(one) or called(one) for one in strangers))
    more = f", and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"{len(strangers)} cards are unknown to this patchlock ({', '.join(ids[:_SHOWN])}{more}); {_TO_SEND}"


def _tries_of_strangers(
    best: Accepted, ranking: Sequence[Accepted | Rejected], host: Host, app: AppLimits, strangers: Seen
) -> str:
    """Name what may run on cards that nobody knows."""
    tries = [
        (one.profile.name, _hope(found))
        for one in sorted(ranking, key=_torch_first)
        if one.platform is not None
        and one.profile.name not in {best.profile.name, *app.refused, *app.on_processor}
        and (found := trial(one.profile, host, strangers)) is not None
    ]
    return _to_try(tries, app)


def _ids(one: _Device) -> str:
    own = one.device
    return f"{own.vendor}:{own.device}" if own.device else ""


def trial(profile: ProfileSummary | Profile, host: Host, seen: Seen) -> FitMatch | None:
    """Find a machine that a profile is untested on in this one, with what it still lacks; None where it is none."""
    shown = [one for one in seen if not one.device.is_hidden and not wrong_numbers(one, profile.back_end)]
    found = match(profile.trials, profile.back_end, host, shown) if profile.trials else None
    return found if found is not None and found.device is not None else None


def tried(name: str, found: FitMatch) -> str:
    """Say, of a profile that was named, that it is untested on a device."""
    lacks = f"; what it lacks: {' and '.join(found.reasons)}" if found.reasons else ""
    device, fit = found.device, found.fit
    return f"{name} is untested on {called(device) if device else 'this machine'}: {fit.why if fit else ''}{lacks}"


def fails_in_part(name: str, app: AppLimits) -> str:
    """Say what an app is known to fail at on a profile that was named; "" where nothing is known."""
    why = app.trials.get(name)
    return f"{_whose(app)} is known to fail in part on {name}: {why}" if why else ""


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
