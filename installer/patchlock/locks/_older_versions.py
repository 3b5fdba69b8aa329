"""Find what is locked in an older version because a newer one has only an sdist, or requires what has only sdists."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.locks._rules import read_range, requirements_of, sdists_alone
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
    """A locked package of which uv has turned a newer version down, or the final one where it is a pre-release."""

    package: LockedPackage
    better: Version
    builds: tuple[tuple[NormalizedName, Version], ...]
    """What the better one requires and has no wheel, and the newest version of each; or the better one itself."""

    def told(self, file: str) -> str:
        """Say so in a clause, and what to write into the app's file."""
        listed = ", ".join(f"{name} {version}" for name, version in self.builds)
        needs = "" if (self.package.name, self.better) in self.builds else f": that requires {listed}"
        locked = f"{self.package.name} {self.package.version}"
        if self.package.version.is_prerelease:
            says, wanted = f"a pre-release is taken, {locked}, although there is {self.better}{needs}", "a final one"
        else:
            says, wanted = f"{locked} is locked, although there is {self.better}{needs}", "a newer one"
        has = "no wheel that fits, only an sdist" if wanted == "a final one" else "only an sdist"
        return f"{says}, which has {has}; for {wanted}, allow its build with a [[build]] table in {file}"


def find(order: ResolutionInputs, packages: Sequence[LockedPackage], log: str) -> tuple[OlderVersion, ...]:
    """Find them by what uv has logged; the newest final version of each for which that is so."""
    early = {package.name for package in unasked_pre_releases(order, packages)}
    locked = {package.name: package for package in packages}
    looks = [(word, canonicalize_name(name)) for word, name in _LOOKS.findall(log)]
    passed_over = {one[1] for one, after in itertools.pairwise(looks) if one == after and one[0] != "Selecting:"}
    wants = {name: [_better(locked[name], early)] for name in passed_over.union(early) & locked.keys()}
    turned_down: dict[tuple[NormalizedName, Version], list[Requirement]] = {}
    for dependent, version, name, bound in _REQUIRES.findall(log):
        package, there = locked.get(canonicalize_name(dependent)), locked.get(canonicalize_name(name))
        if (wanted := read_range(name, bound.strip(" *"))) is None:
            continue
        is_of_lock = not dependent or (package is not None and Version(version) == package.version)
        if is_of_lock and there is not None:
            wants.get(there.name, []).append(wanted)
        if package is None or not _better(package, early).specifier.contains(version, prereleases=False):
            continue
        if there is None or not wanted.specifier.contains(there.version, prereleases=True):
            turned_down.setdefault((package.name, Version(version)), []).append(wanted)
    found: dict[NormalizedName, OlderVersion] = {}
    for name, wanted_of in sorted(wants.items()):
        for build in sdists_alone(order, wanted_of, for_final=name in early):
            if not build[1].is_prerelease:
                found[name] = OlderVersion(package=locked[name], better=build[1], builds=(build,))
    for (name, better), needed in sorted(turned_down.items(), key=lambda one: one[0], reverse=True):
        if name not in found and (builds := sdists_alone(order, needed, for_final=name in early)):
            found[name] = OlderVersion(package=locked[name], better=better, builds=builds)
    return tuple(found.values())


def _better(package: LockedPackage, early: Collection[NormalizedName]) -> Requirement:
    """Ask for what is better than a locked version: what is newer, or any final one in the place of a pre-release."""
    return Requirement(package.name if package.name in early else f"{package.name}>{package.version.public}")


def unasked_pre_releases(order: ResolutionInputs, packages: Iterable[LockedPackage]) -> tuple[LockedPackage, ...]:
    """Give the pre-releases that nobody asks for: uv takes one where no final version fits, so without a wheel."""
    rules = (*order.rules.constraints, *order.rules.overrides)
    asked = [*requirements_of(order), *(rule.requirement for rule in rules)]
    wanted = {canonicalize_name(one.name) for one in asked if one.specifier.prereleases}
    is_any = ("--pre", "") in order.asked.options
    return tuple(one for one in packages if one.version.is_prerelease and one.name not in wanted and not is_any)
