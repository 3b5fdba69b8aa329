"""How a distribution, or an extension in an app's own tree, is built where it is installed; pure values."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.model.byte_sizes import size_text
from patchlock.model.origins import Origin
from patchlock.model.patch import Patch
from patchlock.model.platforms import PlatformNames
from patchlock.model.table_fields import Filled, FilledTexts, Key, Matches, Parsed, ProfileNames

_GB = 1_000_000_000
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
FROM_SOURCE = "-from-source"
_OPTION = re.compile(rf"[a-z0-9]+(-[a-z0-9]+)*{FROM_SOURCE}")
Programs = Annotated[tuple[str, ...], Matches('"{}" is not the name of a program', re.compile(r"[A-Za-z0-9+._-]+"))]


def _inside(text: str) -> PurePosixPath:
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts or "\\" in text or ".git" in path.parts:
        raise ValueError(f'"{text}" must be a POSIX path inside the folder')
    return path


def _glob(text: str) -> str:
    path = _inside(text)
    if "**" in path.parts or any(mark in part for part in path.parts[:-1] for mark in "*?["):
        raise ValueError(f'"{text}" may have wildcards only in its last part')
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


def _url(text: str) -> str:
    if not text.startswith("https://") or "#" in text or not text.endswith((".tar.gz", ".tar.xz", ".zip")):
        raise ValueError(f'"{text}" must be the https address of a .tar.gz, .tar.xz or .zip file')
    return text


@dataclass(frozen=True, kw_only=True)
class SourceArchive:
    """What a person may have built in the place of the wheel that the lock names."""

    option: Annotated[str, Matches('"{}" must be lower-case words joined by "-" that end in "-from-source"', _OPTION)]
    """The name by which a person chooses it; recipes that share it are built together."""
    url: Annotated[str, Parsed(_url)]
    sha256: Annotated[str, Matches("it is not 64 lower-case hexadecimal digits", re.compile("[0-9a-f]{64}"))]
    requires: tuple[Requirement, ...] = ()
    """What its build requires; pinned beside the lock with what builds sdists."""
    hours: int
    """About, where `processors` of them build."""
    processors: int
    memory_gb: int
    """10^9 bytes that the build needs at least."""
    disk_gb: int
    """10^9 bytes that the build writes."""
    gives: str
    """What is to be had by it; a clause."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one distribution is built: from its sdist, or where a person asks for it from another archive."""

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
    archive: SourceArchive | None = None
    """Of its source, where the lock has a wheel; None: the lock has an sdist."""
    origin: Origin

    @property
    def option(self) -> str:
        """The name by which a person chooses it; "" for one that is used wherever the lock has the sdist."""
        return self.archive.option if self.archive else ""


@dataclass(frozen=True, kw_only=True)
class SourceBuild:
    """What is built together where a person chooses it, and what that costs."""

    option: str
    recipes: tuple[Recipe, ...]

    @property
    def archives(self) -> tuple[SourceArchive, ...]:
        """The sources, in the order of the builds."""
        return tuple(recipe.archive for recipe in self.recipes if recipe.archive)

    @property
    def memory_gb(self) -> int:
        """10^9 bytes; one build follows the other."""
        return max(one.memory_gb for one in self.archives)

    @property
    def disk_gb(self) -> int:
        """10^9 bytes of all builds."""
        return sum(one.disk_gb for one in self.archives)

    @property
    def needs(self) -> tuple[str, ...]:
        """Programs, each once."""
        return tuple(dict.fromkeys(program for recipe in self.recipes for program in recipe.needs))

    def told(self) -> str:
        """Say what it gives and what it costs."""
        return cost(self.archives)


def cost(archives: Sequence[SourceArchive]) -> str:
    """Say what building these sources gives and what it costs."""
    hours, most = sum(one.hours for one in archives), max(one.processors for one in archives)
    memory, disk = max(one.memory_gb for one in archives), sum(one.disk_gb for one in archives)
    return (
        f"{'; '.join(one.gives for one in archives)}; it takes about {hours} hours on {most} CPU cores, "
        f"{size_text(memory * _GB)} of memory and {size_text(disk * _GB)} of disk"
    )


def source_builds(recipes: Iterable[Recipe]) -> tuple[SourceBuild, ...]:
    """Group what a person may have built from source by its name, in the order of the recipes."""
    found: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        if recipe.option:
            found.setdefault(recipe.option, []).append(recipe)
    return tuple(SourceBuild(option=option, recipes=tuple(group)) for option, group in found.items())


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


@dataclass(frozen=True, kw_only=True)
class OtherBuild:
    """A build that is none of an sdist of the lock."""

    id: str
    requires: tuple[Requirement, ...]


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
