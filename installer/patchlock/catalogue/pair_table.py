"""The matrix of apps and machines: which pairs are locked, which the catalogue refuses and why; pure, no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from patchlock.catalogue.pairs import refusal_reason, trial
from patchlock.model.choice import FAILS_IN_PART

if TYPE_CHECKING:
    from patchlock.catalogue.app_summaries import AppSummary
    from patchlock.model.fits import Platform, ProfileSummary
    from patchlock.model.profile import Profile


@dataclass(frozen=True, kw_only=True)
class PairState:
    """How one app stands on one platform of a profile; all by name."""

    app: str
    profile: str
    platform: str
    state: Literal["locked", "refused", "missing"]
    why: str = ""
    """Of what is refused; a clause."""
    source: str = ""
    """Of what is refused or fails in part: where that can be read; several are separated by `; `."""
    trial: str = ""
    """What the pair is known to fail at, a clause; "" where it is one like others."""
    on_processor: str = ""
    """Why the app computes on the CPU although the profile is for a device, a clause; "" where it does not."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """One reason for which a pair, or some platforms of it, is not supported."""

    app: str
    profile: str
    platforms: tuple[str, ...]
    """Empty: all of the profile."""
    why: str
    source: str


def pair_states(
    apps: Iterable[AppSummary],
    profiles: Iterable[Profile | ProfileSummary],
    is_locked: Callable[[str, str, str], bool],
) -> tuple[PairState, ...]:
    """Say of every app on every platform of every profile how it stands, in order.

    Args:
        apps: all apps.
        profiles: all profiles.
        is_locked: whether there is a lock of an app, a profile and a platform, by name.
    """
    profiles = tuple(profiles)
    return tuple(
        _pair_state(app, profile, platform, is_locked(app.name, profile.name, platform.name))
        for app in apps
        for profile in profiles
        for platform in profile.platforms
    )


def _pair_state(app: AppSummary, profile: Profile | ProfileSummary, platform: Platform, is_locked: bool) -> PairState:
    refusal = refusal_reason(app, profile, platform)
    tried = None if refusal else trial(app, profile, platform)
    why, source = refusal or ("", tried.source if tried else "")
    return PairState(
        app=app.name,
        profile=profile.name,
        platform=platform.name,
        state="refused" if refusal else "locked" if is_locked else "missing",
        why=why,
        source=source,
        trial=tried.why if tried else "",
        on_processor=app.on_processor.get(profile.name, ""),
    )


LEGEND = (
    "locked: checked without the machine; (CPU): computes on the CPU there; fails in part: locked, but known to fail "
    "there in part, so you get that profile only if you name it; 3 of 4: on so many of the profile's systems; "
    "not supported: reasons below"
)
"""What the words of `cell` mean."""


def cell(found: Sequence[PairState]) -> str:
    """Say in a word how an app stands on a profile, whose platforms need not all stand alike."""
    states = [one.state for one in found]
    if set(states) == {"locked"}:
        if all(one.on_processor for one in found):
            return "locked (CPU)"
        return FAILS_IN_PART if all(one.trial for one in found) else "locked"
    if len(set(states)) == 1:
        return shown_state(states[0])
    return f"locked {states.count('locked')} of {len(states)}"


def shown_state(state: str) -> str:
    """Say how a pair stands as a person says it."""
    return {"refused": "not supported", "missing": "no lockfile"}.get(state, state)


def rows(found: Sequence[PairState]) -> list[list[str]]:
    """Give the matrix: a head with the apps, then a row for each profile."""
    apps = list(dict.fromkeys(one.app for one in found))
    profiles = list(dict.fromkeys(one.profile for one in found))
    return [
        ["", *apps],
        *(
            [profile, *(cell([one for one in found if (one.app, one.profile) == (app, profile)]) for app in apps)]
            for profile in profiles
        ),
    ]


def reasons(found: Sequence[PairState]) -> tuple[Reason, ...]:
    """Give the reasons of what is refused, each once for all platforms that it holds for."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for one in found:
        if one.state == "refused":
            groups.setdefault((one.app, one.profile, one.why, one.source), []).append(one.platform)
    platforms = {(one.app, one.profile): 0 for one in found}
    for one in found:
        platforms[one.app, one.profile] += 1
    return tuple(
        Reason(
            app=app,
            profile=profile,
            platforms=() if len(names) == platforms[app, profile] else tuple(names),
            why=why,
            source=source,
        )
        for (app, profile, why, source), names in groups.items()
    )


def pair(reason: Reason) -> str:
    """Name what a reason is about: `xtts-webui × cpu × linux-aarch64`."""
    return " × ".join(filter(None, (reason.app, reason.profile, ", ".join(reason.platforms))))


def text(found: Sequence[PairState]) -> str:
    """Write the matrix in columns."""
    table = rows(found)
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = ("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in table)
    return "\n".join(f"  {line}" for line in lines)


def markdown(found: Sequence[PairState]) -> str:
    """Write the matrix and the reasons as tables of Markdown; ends with a line ending."""
    head, *body = rows(found)
    lines = [_row(head), _row(["---"] * len(head)), *(_row([f"`{row[0]}`", *row[1:]]) for row in body), ""]
    lines += [_row(["Not supported", "why", ""]), _row(["---"] * 3)]
    lines += [_row([pair(one), one.why, _link(one.source)]) for one in reasons(found)]
    return "\n".join(lines) + "\n"


def _row(words: Iterable[str]) -> str:
    return f"| {' | '.join(word.replace('|', chr(92) + '|') for word in words)} |"


def _link(source: str) -> str:
    """Make a link of an address or of a path of the catalogue; the line of a file is left out."""
    if " " in source.replace("; ", ""):
        return source
    return ", ".join(f"[source]({re.sub(r'(?<=[.]toml):[0-9]+$', '', one)})" for one in source.split("; "))
