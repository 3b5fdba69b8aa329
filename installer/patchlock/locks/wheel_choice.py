"""Which wheel an installer prefers on a platform; pure."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.utils import parse_wheel_filename

from patchlock.model.fits import Platform
from patchlock.model.platforms import wheel_rank
from patchlock.model.profile import Profile


def best_wheel(filenames: Iterable[str], platform: Platform, profile: Profile) -> str | None:
    """Choose the wheel that an installer prefers on a platform under the profile's Python; None where none runs.

    Source: PEP 425, PEP 427 (a higher build number wins).
    """
    ranks = wheel_rank(platform, profile.python)
    ranked = []
    for filename in sorted(filenames):
        _, _, build, tags = parse_wheel_filename(filename)
        fitting = [ranks[tag] for tag in tags if tag in ranks]
        if fitting:
            ranked.append((-min(fitting), build, filename))  # no build number is the empty tuple, which sorts first
    return max(ranked, key=lambda found: found[:2])[2] if ranked else None
