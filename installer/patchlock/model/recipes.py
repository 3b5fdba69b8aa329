"""How a distribution, or an extension in an app's own tree, is built where it is installed; pure values."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.model.origins import Origin
from patchlock.model.patch import Patch
from patchlock.model.platforms import PlatformNames
from patchlock.model.table_fields import Filled, FilledTexts, Key, Matches, Parsed, ProfileNames

_GB = 1_000_000_000
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
Programs = Annotated[tuple[str, ...], Matches('"{}" is not the name of a program', re.compile(r"[A-Za-z0-9+._-]+"))]


def _inside(text: str) -> PurePosixPath:
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts or "\\" in text or ".git" in path.parts:
        raise ValueError(f'"{text}" must be a POSIX path inside the folder')
    return path


def _glob(text: str) -> str:
    path = _inside(text)
    if "**" in path.parts or any(mark in part for part in path.parts[:-1] for mark in "*?["):
        raise ValueError(f'"{text}" may have wildcards in its last part alone')
    return text


@dataclass(frozen=True, kw_only=True)
class Jobs:
    """How many compilers run at once, from the memory that there is."""

    memory_per_job_gb: int = 1
    reserve_gb: int = 1
    least: Annotated[int, Key("min")] = 1
    most: Annotated[int, Key("max")] = 64

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
    versions: SpecifierSet = dataclasses.field(default_factory=SpecifierSet)
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Variables of the build; each is part of what the result is known by."""
    jobs: Jobs = dataclasses.field(default_factory=Jobs)
    patches: tuple[Patch, ...]
    """Of the sdist's files, by path from its top folder."""
    needs: Programs = ()
    """Programs without which it cannot be built."""
    after: tuple[NormalizedName, ...] = ()
    """Distributions that are built earlier; their wheels serve its build in the place of what is pinned."""
    test: tuple[str, ...] = ()
    """A command that must end with exit code 0 where the wheel is installed; empty: none."""
    test_with: tuple[NormalizedName, ...] = ()
    """Distributions of the lock that are installed beside the wheel for the test."""
    why: str
    source: str
    profiles: ProfileNames = ()
    """Only for these profiles; empty: for all."""
    platforms: PlatformNames = ()
    """Only for these platforms; empty: for all."""
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class InTree:
    """An extension that an app keeps in its own tree and builds there."""

    id: Annotated[str, Matches('the id "{}" must be lower-case words joined by "-"', _ID)]
    folder: Annotated[PurePosixPath, Parsed(_inside, PurePosixPath())]
    """From the app's folder; all its files that upstream has are what it is built from."""
    requires: tuple[Requirement, ...] = ()
    """What its build requires; pinned beside the lock with what builds sdists."""
    command: FilledTexts
    """Run in a copy of the folder; `python` is that of an environment with `requires`."""
    products: Annotated[tuple[str, ...], Filled(), Parsed(_glob)]
    """Globs from the folder of what the build makes and the app needs; each must find something."""
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    jobs: Jobs = dataclasses.field(default_factory=Jobs)
    needs: Programs = ()
    why: str
    source: str
    profiles: ProfileNames = ()
    platforms: PlatformNames = ()
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
