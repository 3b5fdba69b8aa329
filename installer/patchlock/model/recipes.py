"""How a distribution, or an extension in an app's own tree, is built where it is installed; pure values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.model.origins import Origin

if TYPE_CHECKING:
    from patchlock.model.patch import Patch

_GB = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Jobs:
    """How many compilers run at once, from the memory that there is."""

    memory_per_job_gb: int = 1
    reserve_gb: int = 1
    least: int = 1
    most: int = 64

    def count(self, memory: int, processors: int) -> int:
        """Give the number of jobs: `clamp((memory - reserve) / memory per job, least, most)`, at most one a processor.

        Source: jetson-containers, packages/ml/onnxruntime/build.sh, which gives each cicc 6 GB and keeps 8 GB.

        Args:
            memory: bytes that this process may use.
            processors: that it may run on.
        """
        fitting = (memory // _GB - self.reserve_gb) // self.memory_per_job_gb
        return max(1, min(max(fitting, self.least), self.most, processors))


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one distribution is built from its sdist."""

    name: NormalizedName
    versions: SpecifierSet
    environment: Mapping[str, str]
    """Variables of the build; each is part of what the result is known by."""
    jobs: Jobs
    patches: tuple[Patch, ...]
    """Of the sdist's files, by path from its top folder."""
    needs: tuple[str, ...]
    """Programs without which it cannot be built."""
    after: tuple[NormalizedName, ...]
    """Distributions that are built earlier; their wheels serve its build in the place of what is pinned."""
    test: tuple[str, ...]
    """A command that must end with exit code 0 where the wheel is installed; empty: none."""
    test_with: tuple[NormalizedName, ...]
    """Distributions of the lock that are installed beside the wheel for the test."""
    why: str
    source: str
    profiles: tuple[str, ...]
    """Only for these profiles; empty: for all."""
    platforms: tuple[str, ...]
    """Only for these platforms; empty: for all."""
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class InTree:
    """An extension that an app keeps in its own tree and builds there."""

    id: str
    folder: PurePosixPath
    """From the app's folder; all its files that upstream has are what it is built from."""
    requires: tuple[Requirement, ...]
    """What its build requires; pinned beside the lock with what builds sdists."""
    command: tuple[str, ...]
    """Run in a copy of the folder; `python` is that of an environment with `requires`."""
    products: tuple[str, ...]
    """Globs from the folder of what the build makes and the app needs; each must find something."""
    environment: Mapping[str, str]
    jobs: Jobs
    needs: tuple[str, ...]
    why: str
    source: str
    profiles: tuple[str, ...]
    platforms: tuple[str, ...]
    origin: Origin


def fits(rule: Recipe | InTree, profile: str, platform: str) -> bool:
    """Say whether a rule is for a profile and a platform."""
    return (not rule.profiles or profile in rule.profiles) and (not rule.platforms or platform in rule.platforms)


def recipe_for(name: NormalizedName, version: Version, recipes: Iterable[Recipe]) -> Recipe | None:
    """Find the first recipe of a distribution that is for this version; None where it is built without one."""
    return next((r for r in recipes if r.name == name and r.versions.contains(version, prereleases=True)), None)


def in_order(names: Iterable[NormalizedName], recipes: Iterable[Recipe]) -> tuple[NormalizedName, ...]:
    """Order distributions as they are to be built: as their recipes stand, then those without one by name."""
    place: dict[NormalizedName, int] = {}
    for index, recipe in enumerate(recipes):
        place.setdefault(recipe.name, index)
    return tuple(sorted(names, key=lambda name: (place.get(name, len(place) + 10_000), name)))
