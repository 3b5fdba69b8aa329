"""A recorded index, as the catalogue has it; values."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated

from packaging.requirements import Requirement
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.model.fits import Platform
from patchlock.model.identities import Sha256
from patchlock.model.origins import Origin
from patchlock.model.table_fields import Parsed


def _uploaded(text: str) -> str:
    try:
        known = not text or datetime.datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        known = False
    if not known:
        raise ValueError(f'"{text}" must be a time with its zone, such as "2026-01-31T00:00:00Z"')
    return text


def _day(text: str) -> str:
    try:
        known = not text or datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        known = False
    if not known:
        raise ValueError(f'"{text}" must be a day, such as "2026-01-31"')
    return text


Day = Annotated[str, Parsed(_day)]


@dataclass(frozen=True, kw_only=True)
class EarlierBytes:
    """What a file was under the same name before its publisher published it again."""

    sha256: Sha256
    seen: Day = ""
    """When somebody first saw it, `2026-01-31`; "" where that is not known."""
    source: str


@dataclass(frozen=True, kw_only=True)
class RecordedWheel:
    """One wheel of an index, as the index answered."""

    name: NormalizedName
    version: Version
    filename: str
    url: str
    sha256: Sha256
    requires: tuple[Requirement, ...] = ()
    """From the wheel's METADATA; without specifiers where the source had none."""
    source: str
    uploaded: Annotated[str, Parsed(_uploaded)] = ""
    """When the index took it, an RFC 3339 time; "" where that is not known."""
    seen: Day = ""
    """When somebody first saw these bytes, as `EarlierBytes.seen`."""
    earlier: tuple[EarlierBytes, ...] = ()
    """A lock takes `sha256` and none of these."""


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
    """Wheels of an index: those that are to be recorded, or those of which the record has all."""

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
    whole: RecordingFilter | None = None
    """Of these, the record had every version that the index had when it was asked; None where it never was."""
    sdists: tuple[RecordedSdist, ...] = ()
    is_flat: bool = False
    """Whether it is one folder that lists all files, and has no page for each distribution."""
