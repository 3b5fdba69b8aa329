"""What cannot be together, as values: who asks for what and where, and which edits take what away; pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

FAMILY = frozenset(map(canonicalize_name, ("torch", "torchaudio", "torchvision", "torchtext", "torchcodec")))
"""Released together, each for one version of torch: their pins move as one edit."""


@dataclass(frozen=True, kw_only=True)
class Requester:
    """Who wrote a requirement or a bound, and where."""

    kind: Literal["upstream", "patch", "app", "profile"]
    name: str
    """Id of the patch, name of the app or of the profile; "" for upstream."""
    file: str
    line: int
    """1-based."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else self.kind

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Member:
    """One line of a requirement file, or one constraint of the catalogue."""

    requirement: Requirement
    requester: Requester
    path: PurePosixPath | None
    """The requirement file that has it; None for a constraint of the catalogue."""
    is_constraint: bool
    """Bounds the distribution and does not ask for it."""
    own_marker: str = ""
    """That of the requirement, where lines with other markers ask for the same distribution; "" elsewhere."""

    @property
    def name(self) -> NormalizedName:
        """Whom it is about."""
        return canonicalize_name(self.requirement.name)


Part = Literal["name", "bound", "cut-off"]


class Atom(NamedTuple):
    """The smallest thing that can be taken out of a question: a name that is asked for, its bound, or the cut-off."""

    member: int
    """Which of the members; -1 for the cut-off."""
    part: Part


CUT_OFF = Atom(-1, "cut-off")
"""That files uploaded later are not considered."""
Atoms = frozenset[Atom]


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something to try: what of the members stays, and further bounds."""

    atoms: Atoms
    bounds: tuple[str, ...] = ()
    """Requirements that only bound."""


@dataclass(frozen=True, kw_only=True)
class Solved:
    """The resolver found a set."""

    versions: Mapping[NormalizedName, Version]
    via: Mapping[NormalizedName, tuple[NormalizedName, ...]]
    """Which distributions ask for it; those that nobody but a requirement file asks for are left out."""


@dataclass(frozen=True, kw_only=True)
class Unsolved:
    """The resolver says that there is none."""

    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Unknown:
    """The resolver did not say, or was not asked any more."""

    why: str


Answer = Solved | Unsolved | Unknown


def atoms(members: Sequence[Member], *, has_cut_off: bool) -> Atoms:
    """Take the members apart."""
    found = {CUT_OFF} if has_cut_off else set()
    for index, member in enumerate(members):
        if not member.is_constraint:
            found.add(Atom(index, "name"))
        if member.requirement.specifier:
            found.add(Atom(index, "bound"))
    return frozenset(found)


def texts(members: Sequence[Member], question: Question) -> tuple[str, str]:
    """Write a question as a requirement file and a constraint file."""
    wanted, bounds = [], list(question.bounds)
    for index, member in enumerate(members):
        asks, binds = Atom(index, "name") in question.atoms, Atom(index, "bound") in question.atoms
        if asks:
            wanted.append(line(member.requirement, has_specifier=binds))
        elif binds:
            bounds.append(line(member.requirement, has_extras=False))
    return "".join(f"{one}\n" for one in wanted), "".join(f"{one}\n" for one in bounds)


def line(requirement: Requirement, *, has_specifier: bool = True, has_extras: bool = True) -> str:
    """Write a requirement, or parts of it."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras and has_extras else ""
    specifier = str(requirement.specifier) if has_specifier else ""
    marker = f" ; {requirement.marker}" if requirement.marker else ""
    return f"{requirement.name}{extras}{specifier}{marker}"


# --- edits ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Edit:
    """One thing that a person can change."""

    kind: Literal["free", "drop", "unbind", "later"]
    """Another version; not at all; without that constraint of the catalogue; files of any age."""
    names: tuple[NormalizedName, ...]
    """Sorted."""
    takes: tuple[Atom, ...]
    """Sorted."""
    cost: int
    """The cheapest sets are tried first: upstream's pins go before its requirements, and both before our own words."""


def edits(members: Sequence[Member], core: Iterable[Atom]) -> tuple[Edit, ...]:
    """List the edits that would take something of a core away, cheapest first."""
    found: set[Edit] = set()
    for atom in core:
        if atom == CUT_OFF:
            found.add(Edit(kind="later", names=(), takes=(CUT_OFF,), cost=4))
            continue
        member = members[atom.member]
        if member.path is None:
            found.add(Edit(kind="unbind", names=(member.name,), takes=(atom,), cost=4))
            continue
        if atom.part == "bound":
            found.add(_edit("free", members, FAMILY if member.name in FAMILY else {member.name}))
        found.add(_edit("drop", members, {member.name}))
    return tuple(sorted(found, key=lambda edit: (edit.cost, edit)))


def _edit(kind: Literal["free", "drop"], members: Sequence[Member], names: Iterable[NormalizedName]) -> Edit:
    wanted = set(names)
    chosen = [(i, m) for i, m in enumerate(members) if m.path is not None and m.name in wanted]
    if kind == "free":
        chosen = [(i, m) for i, m in chosen if m.requirement.specifier]
    takes = {Atom(i, "bound") for i, m in chosen if m.requirement.specifier}
    if kind == "drop":
        takes |= {Atom(i, "name") for i, m in chosen if not m.is_constraint}
    is_pinned = any(m.requirement.specifier for _, m in chosen)
    is_ours = any(m.requester.kind == "patch" for _, m in chosen)
    return Edit(
        kind=kind,
        names=tuple(sorted({m.name for _, m in chosen})),
        takes=tuple(sorted(takes)),
        cost=(2 if kind == "free" else 3 + is_pinned) + is_ours,
    )
