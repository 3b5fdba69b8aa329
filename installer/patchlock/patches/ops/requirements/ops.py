"""Ops on requirements, in every format that declares them: set, drop, add and rename by normalised name."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import Specifier, SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.model.patch import Located, Op, OutcomeKind, Refusal, Site
from patchlock.model.text_files import Edit, SourceText
from patchlock.patches.ops.requirements._entries import requirement_text
from patchlock.patches.ops.requirements.lists import Declared, Entry, RequirementList, Untouched

_Verdict = tuple[Edit, ...] | Untouched | None
"""What a requirement needs; None: it is already as the patch wants it."""


def _read(source: SourceText) -> Declared | Refusal:
    from patchlock.patches.ops.requirements.formats import read

    return read(source)


@dataclass(frozen=True, kw_only=True)
class SetRequirement:
    """Give every requirement of a name exactly one specifier; name, extras, marker and comment stay as they are.

    `name @ url` becomes name and specifier. An empty specifier unpins. A line with hashes is refused.

    Attributes:
        within: the one list that is meant, by its dotted keys (`project.optional-dependencies.train`,
            `dependencies.pip`); "": all but `build-system.requires`.
        marker: the environment marker of the requirements that are meant; "": all. Poetry's have none.
    """

    name: NormalizedName
    specifier: SpecifierSet
    within: str = ""
    marker: str = ""

    def __post_init__(self) -> None:
        """Refuse a marker that is none."""
        if self.marker:
            Marker(self.marker)

    def locate(self, source: SourceText) -> Located:
        """Find the requirements of that name whose specifier is another, or that have a URL."""
        declared = _read(source)
        return _located(declared, self.name, self.within, self._verdict, self.marker)

    def _verdict(self, entry: Entry) -> _Verdict:
        have = entry.requirement
        if have is not None and have.url is None and have.specifier == self.specifier:
            return None
        return entry.with_specifier(self.specifier)


@dataclass(frozen=True, kw_only=True)
class DropRequirement:
    """Remove every requirement of a name; with its line, comment and hashes where it has them alone."""

    name: NormalizedName
    within: str = ""
    """As in `SetRequirement`."""

    def locate(self, source: SourceText) -> Located:
        """Find the requirements of that name."""
        declared = _read(source)
        located = _located(declared, self.name, self.within, lambda _: ())
        if isinstance(declared, Refusal):
            return located
        edits = [edit for one in declared.within(self.within) for edit in _dropped(one, self.name)]
        return dataclasses.replace(located, edits=tuple(dict.fromkeys(edits)))


@dataclass(frozen=True, kw_only=True)
class AddRequirement:
    """Append a requirement to a list, in the list's own style.

    A requirement of the same name that asks for less or for something else is refused, as is a hash-locked file.

    Attributes:
        within: as in `SetRequirement`; "": the list of what the app needs when it runs.
    """

    requirement: Requirement
    within: str = ""

    def locate(self, source: SourceText) -> Located:
        """Find the end of the list, or the requirements that already ask for it."""
        declared = _read(source)
        if isinstance(declared, Refusal):
            return Located(refusals=(declared,))
        name = canonicalize_name(self.requirement.name)
        target = self.within or declared.default
        lists = [one for one in declared.lists if one.name == target]
        unasked = [entry for one in lists for index, entry in one.entries if index in one.optional]
        present = [entry for one in lists for entry in _named(one, name) if entry not in unasked]
        settled = tuple(_site(entry) for entry in present if self._is_met_by(entry))
        refusals = _doubts(declared, name) + tuple(
            Refusal.ambiguous(entry.line, f"it already requires {name}, in another way; set-requirement can change it")
            for entry in present
            if not self._is_met_by(entry)
        )
        if present or refusals:
            return Located(settled=settled, refusals=refusals)
        if not lists:
            return Located(
                refusals=(Refusal.ambiguous(1, f"it has no list `{target}` to which a requirement could be added"),)
            )
        addition = lists[0].layout.appended(self.requirement)
        if isinstance(addition, Refusal):
            return Located(refusals=(addition,))
        return Located(edits=(addition.edit,), sites=(Site(line=addition.line, text=addition.place),))

    def _is_met_by(self, entry: Entry) -> bool:
        have, want = entry.requirement, self.requirement
        if have is None:
            return False
        extras = {canonicalize_name(extra) for extra in have.extras}
        return (
            not entry.is_editable
            and (have.specifier, have.url) == (want.specifier, want.url)
            and extras.issuperset(canonicalize_name(extra) for extra in want.extras)
            and have.marker in {None, want.marker}
        )


@dataclass(frozen=True, kw_only=True)
class RenameRequirement:
    """Replace every requirement of a name by another one.

    Name, specifier and URL are those of `to`; upstream's marker and extras stay where `to` has none. A line with
    hashes is refused. A file that has `to` and no longer the name is settled.
    """

    name: NormalizedName
    to: Requirement
    within: str = ""
    """As in `SetRequirement`."""

    def locate(self, source: SourceText) -> Located:
        """Find the requirements of the old name, or else those of the new one."""
        declared = _read(source)
        located = _located(declared, self.name, self.within, self._verdict)
        if located.sites or located.settled or isinstance(declared, Refusal):
            return located
        new = canonicalize_name(self.to.name)
        renamed = [entry for one in declared.within(self.within) for entry in _named(one, new)]
        return dataclasses.replace(located, settled=tuple(_site(entry) for entry in renamed))

    def _verdict(self, entry: Entry) -> _Verdict:
        have = entry.requirement
        if have is not None and not entry.is_editable:
            extras, marker = self.to.extras or have.extras, self.to.marker or have.marker
            wanted = requirement_text(self.to.name, extras, self.to.specifier, self.to.url, marker)
            if Requirement(wanted) == have:
                return None
        return entry.renamed(self.to)


def left(op: Op) -> Requirement | None:
    """Give the requirement that an op leaves in the files; None where it leaves none of its own."""
    match op:
        case SetRequirement(name=name, specifier=specifier):
            return Requirement(f"{name}{specifier}")
        case AddRequirement(requirement=requirement) | RenameRequirement(to=requirement):
            return requirement
        case _:
            return None


def lowered(op: Op, source: SourceText) -> tuple[Site, ...]:
    """Find the requirements of a file that an op gives nothing but older versions than they ask for."""
    if not isinstance(op, SetRequirement):
        return ()

    def verdict(entry: Entry) -> _Verdict:
        return () if entry.requirement and _is_older(op.specifier, entry.requirement.specifier) else None

    return _located(_read(source), op.name, op.within, verdict, op.marker).sites


def _is_older(taken: SpecifierSet, asked: SpecifierSet) -> bool:
    lowest = max((_version(one) for one in asked if one.operator in {"==", ">=", "~=", ">"}), default=None)
    if lowest is None or taken.contains(lowest, prereleases=True):
        return False
    return any(_version(one) <= lowest for one in taken if one.operator in {"==", "<", "<="})


def _version(one: Specifier) -> Version:
    return Version(one.version.removesuffix(".*"))


def _located(
    declared: Declared | Refusal,
    name: NormalizedName,
    within: str,
    verdict: Callable[[Entry], _Verdict],
    marker: str = "",
) -> Located:
    if isinstance(declared, Refusal):
        return Located(refusals=(declared,))
    edits: list[Edit] = []
    sites: list[Site] = []
    settled: list[Site] = []
    refusals = list(_doubts(declared, name))
    for entry in (entry for one in declared.within(within) for entry in _named(one, name)):
        have = entry.requirement
        if marker and (have is None or have.marker != Marker(marker)):
            continue
        match verdict(entry):
            case None:
                settled.append(_site(entry))
            case Untouched(why=why):
                refusals.append(Refusal.ambiguous(entry.line, why))
            case found:
                edits += found
                sites.append(_site(entry))
    return Located(
        edits=tuple(dict.fromkeys(edits)),  # two lists of a `setup.py` may be one
        sites=tuple(dict.fromkeys(sites)),
        settled=tuple(dict.fromkeys(settled)),
        refusals=tuple(refusals),
    )


def _dropped(one: RequirementList, name: NormalizedName) -> tuple[Edit, ...]:
    chosen = {index for index, entry in one.entries if entry.name == name}
    return one.layout.without(chosen) if chosen else ()


def _named(one: RequirementList, name: NormalizedName) -> tuple[Entry, ...]:
    return tuple(entry for _, entry in one.entries if entry.name == name)


def _doubts(declared: Declared, name: NormalizedName) -> tuple[Refusal, ...]:
    """Refuse what may be about a name and cannot be told."""
    spelled = re.escape(name).replace(r"\-", "[-_.]+")
    mention = re.compile(rf"(?<![\w-]){spelled}(?!\w|-(?!\d))", re.IGNORECASE | re.ASCII)
    refusals: list[Refusal] = []
    for doubt in declared.doubts:
        if not doubt.is_location and mention.search(doubt.text):
            why = f"it mentions {name} and cannot be read: {doubt.why}"
            refusals.append(Refusal(line=doubt.line, kind=OutcomeKind.UNPARSABLE, why=why))
        elif doubt.is_location and any(mention.match(part) for part in _components(doubt.text)):
            refusals.append(
                Refusal.ambiguous(doubt.line, f"`{doubt.text}` does not say what it installs, which may be {name}")
            )
    return (*refusals, *(one.refusal for one in declared.computed))


def _components(target: str) -> list[str]:
    """The parts of a URL's or local path; without the first of several, which is the owner of a repository."""
    components = re.split(r"[/\\]+", re.sub(r"^[^/\\]*://[^/]*|[?#].*$", "", target).strip("/\\"))
    return components[1:] or components


def _site(entry: Entry) -> Site:
    return Site(line=entry.line, text=entry.text)
