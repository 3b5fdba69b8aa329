"""What a profile or an app asks of the resolver beyond upstream's requirements, each with its reason; pure values."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from packaging.requirements import Requirement
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.model.origins import Origin
from patchlock.model.platforms import PlatformNames
from patchlock.model.policy import EXCUSABLE
from patchlock.model.table_fields import Filled, OneOf, Parsed, ProfileNames

if TYPE_CHECKING:
    from patchlock.model.lockfile import LockedPackage

WITHOUT_PYPROJECT = ("setuptools>=40.8.0", "wheel")
"""What the build of an sdist requires that has no `pyproject.toml`.

Source: PEP 518; setuptools before 70.1 asks for wheel, whose work newer ones do themselves."""


def _time(text: str) -> str:
    """Parse a time; without one, any file may be taken."""
    if text:
        try:
            datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.UTC)
        except ValueError as error:
            raise ValueError(f'"{text}" must be a time such as "2026-01-31T00:00:00Z"') from error
    return text


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A bound on a distribution, for whoever asks for it; with `[[override]]`, one that replaces every other bound."""

    requirement: Requirement
    why: str
    source: str
    profiles: ProfileNames = ()
    """Only for these profiles; empty: for all. The same for all rules of this module."""
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """A distribution that is left out, whoever asks for it."""

    name: NormalizedName
    why: str
    source: str
    profiles: ProfileNames = ()
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class CutoffException:
    """An exception from the cut-off: a distribution whose files may be younger than the others."""

    name: NormalizedName
    until: Annotated[str, Parsed(_time)] = ""
    """RFC 3339 time in UTC; "" for no bound."""
    why: str
    source: str
    profiles: ProfileNames = ()
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class Build:
    """Distributions that may be built from an sdist; everything else must be a wheel."""

    names: Annotated[tuple[NormalizedName, ...], Filled("it names no distribution")]
    why: str
    source: str
    profiles: ProfileNames = ()
    platforms: PlatformNames = ()
    """Only for these platforms; empty: for all. uv takes no wheel of what may be built."""
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """What one version of an allowed sdist, and its build, requires: nobody runs its `setup.py` to learn that."""

    name: NormalizedName
    version: Version
    requires: tuple[Requirement, ...] = ()
    build: tuple[Requirement, ...] = tuple(map(Requirement, WITHOUT_PYPROJECT))
    """What its build requires, also what its backend only says when it runs."""
    why: str
    source: str
    profiles: ProfileNames = ()
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class PatchedDistribution:
    """A distribution that enters as the catalogue patches it, where upstream has not fixed it."""

    name: NormalizedName
    why: str
    source: str
    profiles: ProfileNames = ()
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class PolicyException:
    """A rule of `policy` that a lock does not follow."""

    rule: Annotated[str, OneOf('"{}" is not a rule with exceptions', EXCUSABLE)]
    distributions: Annotated[tuple[NormalizedName, ...], Filled("it names no distribution")]
    """All that the violation may be about."""
    why: str
    source: str
    profiles: ProfileNames = ()
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class LockRules:
    """All rules of a profile, of an app, or of both."""

    constraints: tuple[Constraint, ...] = ()
    overrides: tuple[Constraint, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    newer: tuple[CutoffException, ...] = ()
    builds: tuple[Build, ...] = ()
    metadata: tuple[Metadata, ...] = ()
    exceptions: tuple[PolicyException, ...] = ()
    distributions: tuple[PatchedDistribution, ...] = ()

    def of(self, profile: str) -> LockRules:
        """Keep what is meant for a profile."""

        def fits(
            rule: Constraint | Exclusion | CutoffException | Build | Metadata | PolicyException | PatchedDistribution,
        ) -> bool:
            return not rule.profiles or profile in rule.profiles

        return LockRules(
            constraints=tuple(filter(fits, self.constraints)),
            overrides=tuple(filter(fits, self.overrides)),
            exclusions=tuple(filter(fits, self.exclusions)),
            newer=tuple(filter(fits, self.newer)),
            builds=tuple(filter(fits, self.builds)),
            metadata=tuple(filter(fits, self.metadata)),
            exceptions=tuple(filter(fits, self.exceptions)),
            distributions=tuple(filter(fits, self.distributions)),
        )

    def on(self, platform: str) -> LockRules:
        """Keep what is meant for a platform."""
        fitting = (build for build in self.builds if not build.platforms or platform in build.platforms)
        return dataclasses.replace(self, builds=tuple(fitting))

    def __add__(self, other: LockRules) -> LockRules:
        """Join the rules of a profile and of an app."""
        return LockRules(
            constraints=self.constraints + other.constraints,
            overrides=self.overrides + other.overrides,
            exclusions=self.exclusions + other.exclusions,
            newer=self.newer + other.newer,
            builds=self.builds + other.builds,
            metadata=self.metadata + other.metadata,
            exceptions=self.exceptions + other.exceptions,
            distributions=self.distributions + other.distributions,
        )

    @property
    def source_builds(self) -> tuple[NormalizedName, ...]:
        """Name the distributions that may be built, sorted, each once."""
        return tuple(sorted({name for build in self.builds for name in build.names}))

    def of_builds(self, packages: Iterable[LockedPackage]) -> tuple[Metadata, ...]:
        """Give what is written down of each sdist of a lock that will be built."""
        built = {(package.name, package.version) for package in packages if package.name in self.source_builds}
        return tuple(rule for rule in self.metadata if (rule.name, rule.version) in built)
