"""Find what is locked in an older version because a newer one has only an sdist, or requires what has only sdists."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.locks._rules import read_range, sdists_alone
from patchlock.locks.resolution_inputs import ResolutionInputs
from patchlock.model.lockfile import LockedPackage

_REQUIRES = re.compile(
    r"^DEBUG Adding (?:direct dependency|transitive dependency for ([a-z0-9-]+)(?:\[[^]]*\])?==(\S+)): "
    r"([a-z0-9-]+)(?:\[[^]]*\])?(.*)$",
    re.MULTILINE,
)
"""How uv, up to 0.13.9, logs what is asked for, and what a version requires that it looks at."""
_LOOKS = re.compile(r"^DEBUG (Searching for a compatible version of|Selecting:) ([a-z0-9-]+)", re.MULTILINE)
"""How it logs that it looks for a version, again after one of which it can take no file, and which it takes."""


@dataclass(frozen=True, kw_only=True)
class OlderVersion:
    """A locked package of which uv has turned a newer version down."""

    package: LockedPackage
    newer: Version
    builds: tuple[tuple[NormalizedName, Version], ...]
    """What the newer one requires and has no wheel, and the newest version of each; or the newer one itself."""

    def told(self, file: str) -> str:
        """Say so in a clause, and what to write into the app's file."""
        listed = ", ".join(f"{name} {version}" for name, version in self.builds)
        needs = "" if (self.package.name, self.newer) in self.builds else f": that requires {listed}"
        return (
            f"{self.package.name} {self.package.version} is locked, although there is {self.newer}{needs}, which has "
            f"only an sdist; for a newer one, allow its build with a [[build]] table in {file}"
        )


def find(order: ResolutionInputs, packages: Iterable[LockedPackage], log: str) -> tuple[OlderVersion, ...]:
    """Find them by what uv has logged; the newest final version of each for which that is so."""
    locked = {package.name: package for package in packages}
    looks = [(word, canonicalize_name(name)) for word, name in _LOOKS.findall(log)]
    passed_over = {one[1] for one, after in itertools.pairwise(looks) if one == after and one[0] != "Selecting:"}
    newer_ones = {name: [Requirement(f"{name}>{locked[name].version.public}")] for name in passed_over & locked.keys()}
    turned_down: dict[tuple[NormalizedName, Version], list[Requirement]] = {}
    for dependent, version, name, bound in _REQUIRES.findall(log):
        package, there = locked.get(canonicalize_name(dependent)), locked.get(canonicalize_name(name))
        if (wanted := read_range(name, bound.strip(" *"))) is None:
            continue
        is_of_lock = not dependent or (package is not None and Version(version) == package.version)
        if is_of_lock and there is not None:
            newer_ones.get(there.name, []).append(wanted)
        if package is None or (newer := Version(version)).is_prerelease or newer <= package.version:
            continue
        if there is None or not wanted.specifier.contains(there.version, prereleases=True):
            turned_down.setdefault((package.name, newer), []).append(wanted)
    found: dict[NormalizedName, OlderVersion] = {}
    for name, wants in sorted(newer_ones.items()):
        for build in sdists_alone(order, wants):
            if not build[1].is_prerelease:
                found[name] = OlderVersion(package=locked[name], newer=build[1], builds=(build,))
    for (name, newer), wants in sorted(turned_down.items(), key=lambda one: one[0], reverse=True):
        if name not in found and (builds := sdists_alone(order, wants)):
            found[name] = OlderVersion(package=locked[name], newer=newer, builds=builds)
    return tuple(found.values())
