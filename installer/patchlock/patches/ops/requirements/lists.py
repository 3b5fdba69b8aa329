"""The requirements that a file declares, whatever its format: entries in lists, and what makes a file doubtful."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName

from patchlock.model.patch import Refusal
from patchlock.model.text_files import Edit
from patchlock.patches.pip_requirements import OptionLine


@dataclass(frozen=True, kw_only=True)
class Untouched:
    """Why something that was found cannot be edited; a clause."""

    why: str


class Entry(Protocol):
    """One requirement where it stands."""

    @property
    def line(self) -> int:
        """1-based."""
        ...

    @property
    def text(self) -> str:
        """As it stands there, on one line."""
        ...

    @property
    def name(self) -> NormalizedName:
        """Which distribution it is for; certain even where nothing else is."""
        ...

    @property
    def requirement(self) -> Requirement | None:
        """What it asks for; None where that cannot be read."""
        ...

    @property
    def is_editable(self) -> bool:
        """It is installed in place, by `-e`."""
        ...

    def with_specifier(self, specifier: SpecifierSet) -> tuple[Edit, ...] | Untouched:
        """Give it another specifier and no URL; marker, extras and comment stay."""
        ...

    def renamed(self, to: Requirement) -> tuple[Edit, ...] | Untouched:
        """Replace it by another requirement; its marker and extras stay where the other has none."""
        ...


class Layout(Protocol):
    """How the entries of one list stand in the file."""

    def without(self, chosen: Collection[int]) -> tuple[Edit, ...]:
        """Take entries out, by their indices."""
        ...

    def appended(self, requirement: Requirement) -> Addition | Refusal:
        """Put a requirement behind the last one."""
        ...


@dataclass(frozen=True, kw_only=True)
class Addition:
    """Where a requirement is appended."""

    edit: Edit
    line: int
    """1-based, of the new requirement."""
    place: str
    """In words."""


@dataclass(frozen=True, kw_only=True)
class RequirementList:
    """One list of requirements."""

    name: str
    """Dotted keys from the top of the file; "" for a pip requirement file, which is one list."""
    entries: tuple[tuple[int, Entry], ...]
    """In file order, each with its index in the layout."""
    layout: Layout
    optional: frozenset[int] = frozenset()
    """Which of them an extra alone asks for, though they stand in this list."""


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A line that cannot be told to be about a name."""

    line: int
    text: str
    why: str
    within: str = ""
    """The name of its list."""
    is_location: bool = False
    """It is a URL or a path that does not say what it installs; otherwise, it cannot be read."""


@dataclass(frozen=True, kw_only=True)
class Computed:
    """A list whose requirements only running the file, or reading another one, would tell."""

    within: str
    """The name of the list."""
    refusal: Refusal
    files: tuple[str, ...] = ()
    """The files that it is read from, where the format names them; from the folder of this one."""


@dataclass(frozen=True, kw_only=True)
class Declared:
    """All that a file declares."""

    lists: tuple[RequirementList, ...]
    doubts: tuple[Doubt, ...] = ()
    computed: tuple[Computed, ...] = ()
    options: tuple[OptionLine, ...] = ()
    """Options of pip that stand among the requirements."""
    default: str = ""
    """The name of the list to which a requirement is added."""
    calls: tuple[int, ...] = ()
    """The lines on which a `setup.py` calls `setup`."""

    def within(self, name: str) -> tuple[RequirementList, ...]:
        """Choose a list by its name; "" for all but what builds the project."""
        return tuple(one for one in self.lists if (one.name == name if name else one.name != BUILD))


BUILD = "build-system.requires"
"""The list that is only edited by its name."""
