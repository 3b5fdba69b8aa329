"""What one file asks for, whatever its format: its lines, what changes their meaning, and what is left out; values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.model.app import OptionalLists
from patchlock.patches.ops.requirements._entries import PipEntry
from patchlock.patches.ops.requirements.lists import Doubt, Entry
from patchlock.patches.pip_requirements import Line, LocationLine, OptionLine, RequirementLine, Span, Unreadable

NOWHERE = Span(start=0, end=0)
"""The span of a line of another format than pip's."""


@dataclass(frozen=True, kw_only=True)
class NotCovered:
    """Something that a file declares and that no lock of it holds."""

    line: int | None
    """None where its name tells it from all others of the file."""
    what: str
    """A clause without a full stop."""


@dataclass(frozen=True, kw_only=True)
class RequiredPython:
    """The Python versions that a project allows."""

    line: int
    specifier: SpecifierSet

    def allows(self, python: Version) -> bool:
        """Tell whether any release of a minor version is allowed."""
        return any(self.specifier.contains(f"{python}.{micro}") for micro in range(_RELEASES))


_RELEASES = 100
"""More than any minor version of Python has."""


@dataclass(frozen=True, kw_only=True)
class FromIndex:
    """A distribution that is to come from an index of its own."""

    line: int
    name: NormalizedName
    index: str
    """What the file calls it."""
    url: str
    key: str
    """Where it is said, with dots."""


@dataclass(frozen=True, kw_only=True)
class FileRequirements:
    """What a file asks for."""

    lines: tuple[Line, ...]
    """Those of the app itself and of the wanted extras and groups; another file that they are in is a `-r`."""
    not_covered: tuple[NotCovered, ...] = ()
    overrides: tuple[RequirementLine, ...] = ()
    """Stand in the place of whatever else asks for these distributions."""
    constraints: tuple[RequirementLine, ...] = ()
    exclusions: tuple[NormalizedName, ...] = ()
    """Left out, whoever asks for them."""
    from_indexes: tuple[FromIndex, ...] = ()
    """Whether the profile has these indexes is for the lock to see."""
    python: RequiredPython | None = None
    extras: frozenset[NormalizedName] = frozenset()
    """All that it has."""
    groups: frozenset[NormalizedName] = frozenset()


def required_python(line: int, written: str) -> RequiredPython | None:
    """Read the Python versions that a project allows; None where they cannot be read, which bounds nothing."""
    try:
        return RequiredPython(line=line, specifier=SpecifierSet(written))
    except InvalidSpecifier:
        return None


def including(line: int, file: str) -> OptionLine:
    """Say that the requirements stand in another file."""
    return OptionLine(line=line, span=NOWHERE, options=(("--requirement", file),))


def stated(line: int, requirement: Requirement, *, editable: bool = False) -> RequirementLine:
    """Make a line of a requirement."""
    return RequirementLine(
        line=line,
        span=NOWHERE,
        requirement=requirement,
        requirement_span=NOWHERE,
        specifier_span=NOWHERE,
        editable=editable,
        has_hash=False,
    )


def unreadable(line: int, why: str, text: str = "", remedy: str = "") -> Unreadable:
    """Make a line that no lock can be made from."""
    return Unreadable(line=line, span=NOWHERE, text=text, why=why, remedy=remedy)


def line_of(entry: Entry) -> Line:
    """Give a requirement of another format than pip's as a line of its own."""
    if isinstance(entry, PipEntry):
        return dataclasses.replace(entry.read, line=entry.line, span=NOWHERE)
    if entry.requirement is None:
        return unreadable(entry.line, "pip has no word for it", entry.text)
    return stated(entry.line, entry.requirement, editable=entry.is_editable)


def doubtful(doubt: Doubt) -> Line:
    """Give what cannot be told to be about a name as a line of its own."""
    if doubt.is_location:
        return LocationLine(line=doubt.line, span=NOWHERE, target=doubt.text, editable=False)
    return unreadable(doubt.line, doubt.why, doubt.text)


_NO_MARKERS: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class ProjectLists:
    """The lists of a project: what it needs itself, and what may be wanted."""

    name: NormalizedName | None
    """Of the project, with which its extras ask for each other."""
    own: tuple[Line, ...]
    extras: Mapping[NormalizedName, tuple[Line, ...]]
    groups: Mapping[NormalizedName, tuple[Line, ...]]

    def chosen(self, wanted: OptionalLists) -> tuple[tuple[Line, ...], tuple[NotCovered, ...]]:
        """Give the lines of the project and of what is wanted, sorted, and name the lists that would add more."""
        reached: dict[NormalizedName, list[frozenset[str]]] = {}
        lines = list(self._flat(self.own, reached))
        for name in wanted.extras:
            if name in self.extras and _NO_MARKERS not in reached.get(name, ()):
                reached[name] = [_NO_MARKERS]
                lines += self._flat(self.extras[name], reached)
        for name in wanted.groups:
            if name in self.groups:
                lines += self._flat(self.groups[name], reached)
        known = set(map(_called, lines))
        left = [
            NotCovered(
                line=None, what=f'the {kind} "{name}" ({_summary(lines)}), which `{kind}s` of app.toml would add'
            )
            for kind, lists, taken in (
                ("extra", self.extras, {name for name, ways in reached.items() if _NO_MARKERS in ways}),
                ("group", self.groups, set(wanted.groups)),
            )
            for name, lines in lists.items()
            if name not in taken and not known.issuperset(map(_called, lines))
        ]
        unique = dict.fromkeys(lines)
        return tuple(sorted(unique, key=lambda line: line.line)), tuple(left)

    def asked_of_itself(self) -> frozenset[NormalizedName]:
        """Name the extras that any list of the project asks for by the project's own name."""
        lists = (self.own, *self.extras.values(), *self.groups.values())
        return frozenset(
            canonicalize_name(extra)
            for lines in lists
            for line in lines
            if isinstance(line, RequirementLine) and canonicalize_name(line.requirement.name) == self.name
            for extra in line.requirement.extras
        )

    def _flat(
        self,
        lines: Iterable[Line],
        reached: dict[NormalizedName, list[frozenset[str]]],
        markers: frozenset[str] = _NO_MARKERS,
    ) -> Iterator[Line]:
        """Put the lines of an extra in the place of a requirement of the project itself, `name[extra]`.

        Args:
            lines: those of the project, of an extra or of a group.
            reached: the markers under which each extra is put in already; more of them add nothing. So this ends where
                extras ask for each other.
            markers: those under which these lines count.
        """
        for line in lines:
            if not isinstance(line, RequirementLine) or canonicalize_name(line.requirement.name) != self.name:
                yield line
                continue
            marker = line.requirement.marker
            here = markers if marker is None else markers | {str(marker)}
            for extra in sorted(map(canonicalize_name, line.requirement.extras)):
                if extra not in self.extras:
                    yield unreadable(line.line, f'the project has no extra "{extra}"', str(line.requirement))
                elif not any(known <= here for known in reached.setdefault(extra, [])):
                    reached[extra].append(here)
                    inner = self._flat(self.extras[extra], reached, here)
                    yield from (with_marker(one, marker) for one in inner)


def _summary(lines: tuple[Line, ...]) -> str:
    names = [_called(line) for line in lines]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _called(line: Line) -> str:
    match line:
        case RequirementLine(requirement=requirement):
            return requirement.name
        case OptionLine(options=options):
            return options[0][1]
        case _:
            return getattr(line, "text", "") or getattr(line, "target", "") or f"line {line.line}"


def with_marker(line: Line, marker: Marker | None) -> Line:
    """Let a line count only where a marker holds, too."""
    if marker is None or not isinstance(line, RequirementLine):
        return line
    joined = Requirement(str(line.requirement))
    joined.marker = marker if joined.marker is None else Marker(f"({joined.marker}) and ({marker})")
    return dataclasses.replace(line, requirement=joined)
