"""A recorded index, as the catalogue has it; values."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.model.fits import Platform
from patchlock.model.identities import Sha256
from patchlock.model.origins import Origin


@dataclass(frozen=True, kw_only=True)
class RecordedWheel:
    """One wheel of an index, as the index answered."""

    name: NormalizedName
    version: Version
    filename: str
    url: str
    sha256: Sha256
    requires: tuple[Requirement, ...]
    """From the wheel's METADATA; without specifiers where the source had none."""
    source: str
    uploaded: str = ""
    """When the index took it, an RFC 3339 time; "" where that is not known."""


@dataclass(frozen=True, kw_only=True)
class RecordedSdist:
    """One sdist that only this index has; what it requires stands in a [[metadata]] table."""

    name: NormalizedName
    version: Version
    filename: str
    url: str
    sha256: Sha256
    source: str


@dataclass(frozen=True, kw_only=True)
class RecordingFilter:
    """Which wheels of an index are recorded."""

    distributions: tuple[Requirement, ...]
    """One for each distribution; its specifier bounds the versions."""
    pythons: tuple[Version, ...]
    """Major and minor only."""
    platforms: tuple[Platform, ...]


@dataclass(frozen=True, kw_only=True)
class RecordedIndex:
    """An index answer kept in the catalogue, so that uv can lock from it offline."""

    name: str
    url: str
    wheels: tuple[RecordedWheel, ...]
    origin: Origin
    keep: RecordingFilter | None = None
    """None where nobody has said; then the index cannot be refreshed."""
    sdists: tuple[RecordedSdist, ...] = ()
