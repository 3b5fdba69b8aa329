"""Which pairs of app and machine there are, and which the catalogue refuses; pure, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchlock.model.choice import AppLimits
from patchlock.model.errors import RefusedError

if TYPE_CHECKING:  # tables of pairs read summaries alone, and a person waits for them
    from patchlock.catalogue.app_summaries import AppSummary
    from patchlock.model.app import App
    from patchlock.model.fits import Platform, ProfileSummary
    from patchlock.model.profile import Profile
    from patchlock.model.refusals import RefusedPair


_ADVICE = ": use the profile "
"""What the reason of a refusal may end with, before the name of a profile; whoever asks for the pair gets a command."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One lock to be: an app on a profile on a platform."""

    app: App
    profile: Profile
    platform: Platform
    refused: str = ""
    """Why it cannot be; "" where it can."""


def pairs(apps: Iterable[App], profiles: Iterable[Profile]) -> tuple[Pair, ...]:
    """List all pairs in order, those that the catalogue refuses with its reason."""
    profiles = tuple(profiles)
    return tuple(
        _pair(app, profile, platform) for app in apps for profile in profiles for platform in profile.platforms
    )


def _pair(app: App, profile: Profile, platform: Platform) -> Pair:
    try:
        require_possible(app, profile, platform)
    except RefusedError as error:
        return Pair(app=app, profile=profile, platform=platform, refused=error.what)
    return Pair(app=app, profile=profile, platform=platform)


def require_possible(app: App, profile: Profile, platform: Platform) -> None:
    """Stop where the catalogue says that a pair cannot be.

    Raises:
        RefusedError: with the catalogue's reason and its source.
    """
    reason = refusal_reason(app, profile, platform)
    if reason is not None:
        why, source = reason
        other = _advised(app, profile, platform)
        remedy = f"run `patchlock install {app.name} --profile {other}`" if other else ""
        raise RefusedError(_refused(app, profile, platform, why), where=source, remedy=remedy)


def refused_everywhere(app: AppSummary, profile: Profile) -> str:
    """Say why the catalogue refuses an app on each platform of a profile, a clause; "" where it does not."""
    found = [refusal_reason(app, profile, platform) for platform in profile.platforms]
    return found[0][0] if found[0] is not None and None not in found else ""


def limits(app: AppSummary, profiles: Iterable[ProfileSummary], platform: Platform) -> AppLimits:
    """Say which profiles of a platform nobody gets for an app unless he names them, and which leave it on the CPU."""
    there = tuple(one for one in profiles if platform in one.platforms)
    found = {one.name: refusal_reason(app, one, platform) for one in there}
    refused = {name: one[0] for name, one in found.items() if one is not None}
    trials = {one.name: tried.why for one in there if (tried := trial(app, one, platform)) is not None}
    return AppLimits(name=app.name, refused=refused, trials=trials, on_processor=app.on_processor)


def trial(app: AppSummary, profile: Profile | ProfileSummary, platform: Platform) -> RefusedPair | None:
    """Give what says that a pair is known to fail in part; None where it is one like others."""
    return next((one for one in app.trials if _is_of(one, profile, platform)), None)


def refusal(app: App | AppSummary, profile: Profile | ProfileSummary, platform: Platform) -> RefusedPair | None:
    """Give the table that refuses a pair; None where no table does."""
    return next((one for one in app.refusals if _is_of(one, profile, platform)), None)


def _is_of(pair: RefusedPair, profile: Profile | ProfileSummary, platform: Platform) -> bool:
    return pair.profile == profile.name and (not pair.platforms or platform.name in pair.platforms)


def _refused(app: App | AppSummary, profile: Profile | ProfileSummary, platform: Platform, why: str) -> str:
    return f"{app.name} cannot run on {profile.name} on {platform.name}: {why}"


def _advised(app: App | AppSummary, profile: Profile | ProfileSummary, platform: Platform) -> str:
    """Give the profile that the app's file advises instead; "" if it advises none."""
    table = refusal(app, profile, platform)
    return re.split(r"[ ,]", table.why.partition(_ADVICE)[2])[0] if table is not None else ""


def refusal_reason(
    app: App | AppSummary, profile: Profile | ProfileSummary, platform: Platform
) -> tuple[str, str] | None:
    """Say why the catalogue has no such pair, a clause, and where that can be read; None where it has."""
    if (table := refusal(app, profile, platform)) is not None:
        return table.why.partition(_ADVICE)[0], table.source
    if not app.python.contains(f"{profile.python}.0"):
        return f"it needs Python {app.python}, and the profile has {profile.python}", str(app.origin)
    return None
