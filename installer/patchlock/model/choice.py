"""What became of each profile when one was chosen for a machine; values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchlock.model.fits import Fit, Platform, ProfileSummary

if TYPE_CHECKING:
    from patchlock.model.devices import KnownDevice, UnknownDevice
    from patchlock.model.profile import Profile


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
