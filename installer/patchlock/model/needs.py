"""What an app or a profile needs of a machine beyond Python packages, and how that is found; pure values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from packaging.specifiers import SpecifierSet

from patchlock.model.package_managers import Way
from patchlock.model.table_fields import Key, Known, OneOf, ProfileNames

Kind = Literal["program", "library", "file", "version", "variable", "rule"]

KINDS: Mapping[str, str] = {
    "program": "a name on PATH, or the path of a program",
    "library": "the name of a shared library as the loader knows it, or its path",
    "file": "a path of a file, a device or a folder, or a glob of them",
    "version": "a driver or a system of a version, which profiles demand with [[fit.requires]]: see VERSIONED",
    "variable": "the name of an environment variable that must be set",
    "rule": "a rule of ours about folders and Python: see RULES",
}
"""Kind of what a machine may have → what `find` names."""
RULES = ("ascii-paths", "no-store-python", "unscanned-folder")
"""ASCII alone in the folders of an install; no Python of the Microsoft Store; no virus scanner that removes a file."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Something that a machine may have or lack."""

    name: str
    kind: Annotated[Kind, OneOf('there is no kind "{}"', KINDS)]
    title: str
    """As a person calls it, in a sentence."""
    source: str
    """Its home page, named where no command that installs it is known."""
    find: Mapping[str, tuple[str, ...]]
    """Operating system, or `any` → names, of which one is enough; see `KINDS`."""
    writable: bool = False
    """Whether a file must be writable too, as devices must."""
    restart: bool = False
    """Whether the machine has to be restarted after it was installed."""
    administrator: bool = False
    """Whether only an administrator can install it on Windows."""
    arguments: tuple[str, ...]
    """With which a program says its version; empty where nobody asks."""
    pattern: str
    """Of that answer; its first group is the version."""
    packages: Mapping[str, tuple[str, ...]]
    """Package manager, or id of a distribution → packages; none: it has none. See `package_managers`."""
    commands: Mapping[str, str]
    """Operating system, or id of a distribution → the whole command, where no package does it."""
    variable: str = ""
    """In which `run` tells an app where it was found; "" where programs find it themselves."""

    def sought(self, os: str) -> tuple[str, ...]:
        """Name what is looked for on an operating system; empty where it does not exist there."""
        return self.find.get(os, self.find.get("any", ()))


@dataclass(frozen=True, kw_only=True)
class Need:
    """One thing that an app or a profile needs of a machine."""

    name: Annotated[str, Known("there is no profiles/needs/{}.toml", "resources")]
    """Of a `Resource`."""
    why: str
    """What it is needed for, a clause."""
    source: str
    versions: SpecifierSet = dataclasses.field(default_factory=SpecifierSet)
    required: bool = True
    """False: it is only asked for when a part of the app is used, so an install tells and goes on."""
    platforms: Annotated[tuple[str, ...], Known('there is no platform "{}"', "platforms")] = ()
    """Empty: all."""
    profiles: ProfileNames = ()
    """Empty: all."""


@dataclass(frozen=True, kw_only=True)
class MemoryNeed:
    """How much memory something of an app takes, as somebody has measured or said; the rest of the app comes on top."""

    what: Annotated[str, Key("for")]
    """What takes it, a clause without a verb: `MaskGCT's page while it speaks`."""
    ram: int = 0
    """Bytes of the machine's memory; 0: nobody has said."""
    device: int = 0
    """Bytes of the card's own memory; 0: nobody has said. On the processor they are taken of the machine's."""
    source: str
    platforms: Annotated[tuple[str, ...], Known('there is no platform "{}"', "platforms")] = ()
    """Empty: all."""
    profiles: ProfileNames = ()
    """Empty: all."""

    @property
    def without_card(self) -> int:
        """Bytes of the machine's memory where no card has its own: what would lie on one lies there."""
        return max(self.ram, self.device)

    @property
    def basis(self) -> str:
        """Say of `without_card` that nobody has said it of a machine without a card; else ""."""
        return " (known only for a graphics card)" if self.device > self.ram else ""


def memory_for(needs: Iterable[MemoryNeed], profile: str, platform: str) -> tuple[MemoryNeed, ...]:
    """Keep what is meant for a pair, in order."""
    return tuple(need for need in needs if _is_meant(need, profile, platform))


def _is_meant(need: Need | MemoryNeed, profile: str, platform: str) -> bool:
    return (not need.platforms or platform in need.platforms) and (not need.profiles or profile in need.profiles)


def needs_for(needs: Iterable[Need], profile: str, platform: str) -> tuple[Need, ...]:
    """Keep what is meant for a pair, required ones first; of one resource one, with all that bounds its version."""
    found: dict[str, Need] = {}
    fitting = [need for need in needs if _is_meant(need, profile, platform)]
    for need in sorted(fitting, key=lambda need: not need.required):
        first = found.get(need.name, need)
        found[need.name] = dataclasses.replace(first, versions=first.versions & need.versions)
    return tuple(found.values())


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is not as it should be."""

    name: str
    """Of what it is about: `git`, `python`, `paths`, `disk`, or a resource."""
    what: str
    """What is wrong, a clause."""
    remedy: str
    """What to do now."""
    stops: bool
    """False: the install goes on and tells."""
    way: Way | None = None
    """How what is missing is installed, where that is known."""
    why: str = ""
    """What it is needed for, a clause; "" where `what` says it."""
    source: str = ""
    kind: Kind | Literal["trouble"] = "program"
    """Of the resource, by which steps are ordered; `trouble`: a known trouble that the install would meet."""
    is_sure: bool = True
    """False: nobody could look whether it is so."""
    restart: bool = False
    """Whether the machine has to be restarted after the remedy."""

    @property
    def clause(self) -> str:
        """Say what is wrong, and why that matters."""
        return f"{self.what}: {self.why}" if self.why else self.what

    def __str__(self) -> str:
        return f"{self.clause}; {self.remedy}" if self.remedy else self.clause
