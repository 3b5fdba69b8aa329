"""What became of each profile when one was chosen for a machine; values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patchlock.model.fits import Fit, Platform, ProfileSummary

if TYPE_CHECKING:
    from patchlock.model.devices import KnownDevice, UnknownDevice
    from patchlock.model.profile import Profile

FAILS_IN_PART = "fails in part"
"""What a person reads of a pair that an app's `[[trial]]` names; a profile's `[[trial]]` is "untested"."""


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A profile fits a host."""

    profile: ProfileSummary | Profile
    platform: Platform
    specificity: int
    """How narrow the profile is; the narrowest that fits is chosen."""
    device: KnownDevice | UnknownDevice | None = None
    """Which device it is for, one that the table does not have where its driver says what it runs; None: for none."""
    why: str = ""
    """One clause for people."""
    fit: Fit | None = None
    """Of the profile's, the one by which the device is meant."""


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """A profile does not fit a host, with every reason why."""

    profile: ProfileSummary | Profile
    reasons: tuple[str, ...]
    platform: Platform | None = None
    """The host's, where only devices and drivers speak against the profile: a person may still name it."""
    device: KnownDevice | UnknownDevice | None = None
    """A device that it would be for, if the reasons were gone."""
    fit: Fit | None = None
    """By which it would be."""


@dataclass(frozen=True, kw_only=True)
class AppLimits:
    """On which profiles an app cannot run, or not on their device; by default it runs on every one."""

    name: str = ""
    """Of the app; "" for none in particular."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Profile → why it cannot run there, a clause."""
    trials: Mapping[str, str] = field(default_factory=dict)
    """Profile → what it is known to fail at there, a clause; chosen only where a person names it."""
    on_processor: Mapping[str, str] = field(default_factory=dict)
    """Profile → why the app computes on the CPU there, whatever the machine has, a clause."""

    def why_not(self, profile: str) -> str:
        """Say why a profile is not chosen for the app unnamed, a clause; "" where it may be."""
        return self.refused.get(profile) or self.trials.get(profile, "")
