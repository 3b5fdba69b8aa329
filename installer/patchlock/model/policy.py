"""What the rules know and say: tables of the catalogue, facts about wheels, and violations; holds no behaviour."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from packaging.requirements import Requirement
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.model.fits import Os
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage
from patchlock.model.table_fields import OneOf

Rule = Literal[
    "family", "pair", "one-owner", "arch", "placeholder", "tags", "artifact", "metadata", "outside", "unused"
]
EXCUSABLE: tuple[Rule, ...] = ("family", "pair", "one-owner", "arch")
"""Rules that an app or a profile may make an exception from, with a reason."""
Builds = Literal["same", "same-if-tagged", "any"]
BUILDS: tuple[str, ...] = get_args(Builds)


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A rule that a lock breaks."""

    rule: Rule
    distributions: tuple[NormalizedName, ...]
    """Those that it is about; what an exception must name."""
    what: str
    """A clause with the places where the distributions come from."""
    remedy: str
    is_unknown: bool = False
    """Nobody has recorded what the rule has to know: nothing is found to be wrong."""

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}"


# --- tables of the catalogue ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MemberRow:
    """One version of a member of a family."""

    fits: tuple[Version, ...]
    """Versions of the head, without local tag."""
    builds: Builds
    source: str


@dataclass(frozen=True, kw_only=True)
class Family:
    """Distributions that are linked against one version of another, their head."""

    head: NormalizedName
    members: Mapping[NormalizedName, Mapping[Version, MemberRow]]
    file: str
    """Where the rows stand, from the catalogue's root."""


@dataclass(frozen=True, kw_only=True)
class BrokenPair:
    """Two distributions that resolvers put together and that do not work together."""

    first: Requirement
    second: Requirement
    os: Annotated[tuple[str, ...], OneOf('"{}" is not an operating system', get_args(Os))] = ()
    """Only there; empty: everywhere."""
    why: str
    remedy: str
    source: str


@dataclass(frozen=True, kw_only=True)
class SharedFolder:
    """A folder that several distributions each write their own files into; known without asking any wheel."""

    folder: str
    owners: tuple[NormalizedName, ...]
    source: str


@dataclass(frozen=True, kw_only=True)
class Placeholder:
    """Names of a vendor's own index, of which PyPI has something else that holds the name."""

    names: tuple[str, ...]
    """As shells match them: `amd-torch-device-*`."""
    why: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Unclaimed:
    """A chip that wheels have code for, and that no profile of a platform is meant for."""

    platform: str
    chip: str
    """`sm_75`."""
    why: str
    source: str


@dataclass(frozen=True, kw_only=True)
class RecordedWheelFacts:
    """What was found in one wheel, once for all."""

    filename: str
    archs: frozenset[str]
    """GPU architectures of its compiled code: `sm_110`, `compute_90` (PTX), `gfx1201`; empty: it has no such code."""
    source: str


@dataclass(frozen=True, kw_only=True)
class ArchFree:
    """A distribution that no scan has to look into: its GPU code is not what an app runs, or its maker vouches."""

    name: NormalizedName
    why: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Rules:
    """All tables of `profiles/policy/`."""

    families: tuple[Family, ...] = ()
    pairs: tuple[BrokenPair, ...] = ()
    folders: tuple[SharedFolder, ...] = ()
    wheels: Mapping[Sha256, RecordedWheelFacts] = dataclasses.field(default_factory=dict)
    arch_free: tuple[ArchFree, ...] = ()
    placeholders: tuple[Placeholder, ...] = ()
    unclaimed: tuple[Unclaimed, ...] = ()


# --- facts about the wheels of one lock -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class WheelFile:
    """One file as a wheel installs it."""

    path: str
    """POSIX path from site-packages; `../` leads to scripts, headers and data."""
    crc: int
    """CRC-32 of its bytes, as the archive's table of contents says."""
    size: int
    """Bytes."""


@dataclass(frozen=True, kw_only=True)
class IndexFile:
    """One file of a distribution as the index offers it now."""

    filename: str
    sha256: str
    """"" where the index does not say."""
    yanked: str | None
    """The reason, or "" where none is given; None: it is not yanked."""
    uploaded: str = ""
    """An RFC 3339 time; "" where the index does not say."""


@dataclass(frozen=True, kw_only=True)
class MetadataHead:
    """What the METADATA of a wheel says that it is, as it stands there; "" where it says nothing."""

    name: str
    version: str
    refused: str = ""
    """The first requirement there that is not one, as newer pips see it; "" for none."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known about the files of a lock; what is missing is unknown, and judged by no rule."""

    contents: Mapping[Sha256, tuple[WheelFile, ...]] = dataclasses.field(default_factory=dict)
    """Only of wheels that may share a file with another one of the lock."""
    outside: Mapping[Sha256, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    """Wheels with files that do not belong into an environment → their names in the archive, or of the scripts."""
    filenames: Mapping[Sha256, str] = dataclasses.field(default_factory=dict)
    required: Collection[NormalizedName] = ()
    """Every distribution that a wheel of the lock requires, whatever the marker."""
    metadata: Mapping[Sha256, MetadataHead] = dataclasses.field(default_factory=dict)
    """Of each wheel that was read."""
    unknown: Mapping[Sha256, str] = dataclasses.field(default_factory=dict)
    """Wheels that were to be read and could not be → why, a clause; neither sdists nor what lies with a vendor."""
    offered: Mapping[NormalizedName, tuple[IndexFile, ...]] = dataclasses.field(default_factory=dict)
    """What the index answered for those that were asked for."""


_KIND = re.compile(r"wheel (\S+)")


def package_label(package: LockedPackage) -> str:
    """Give name, version and the place that asked for it, as the lock tells it."""
    places = _places(package)
    return f"{package.name} {package.version}" + (f" ({', '.join(places)})" if places else "")


def is_only_via(package: LockedPackage) -> bool:
    """Say whether nobody but other distributions asks for one, as the lock tells it."""
    places = _places(package)
    return bool(places) and all(place.startswith("via ") for place in places)


def _places(package: LockedPackage) -> list[str]:
    return [part for part in package.why.split(" · ") if part and part != "sdist" and not _KIND.fullmatch(part)]


def wheel_tags(package: LockedPackage) -> str | None:
    """Give the tags of the wheel that was chosen, as in its filename; None for an sdist, or where nothing says it."""
    filename = package.filename
    return "-".join(filename.removesuffix(".whl").split("-")[-3:]) if filename.endswith(".whl") else None
