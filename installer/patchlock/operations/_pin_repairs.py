"""Pins that a profile cannot have: its index lacks them, no wheel fits its machine, or it bounds them; pure.

A pin moves as little as can be, up before down, and the torch family moves as one, by its table. Each edit is for the
profiles alone that need it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.authoring.drafts import Draft, ensures, op, slug
from patchlock.catalogue.proposals.findings import Issue, ProposedPatch
from patchlock.catalogue.proposals.shared_sets import Asked, LocatedRequirement
from patchlock.locks.wheel_choice import best_wheel, marker_environment
from patchlock.model.fits import Platform
from patchlock.model.lock_rules import Constraint
from patchlock.model.policy import Family, IndexFile
from patchlock.model.profile import Profile
from patchlock.model.recorded_index import RecordedIndex
from patchlock.patches import requirement_sources

_REASONS = 3
"""Of all profiles, that are told in one line."""


@dataclass(frozen=True)
class Offers:
    """What a profile can have of distributions."""

    profile: Profile
    indexes: tuple[RecordedIndex, ...]
    """Those of the profile."""
    files: Mapping[NormalizedName, tuple[IndexFile, ...]]
    """What the machine's index has."""
    left_out: frozenset[NormalizedName] = frozenset()
    """What patches take out on the profile, or give a version."""

    @cached_property
    def _recorded(self) -> Mapping[NormalizedName, RecordedIndex]:
        """Say which recorded index has a name: the first one hides the others."""
        names = ((wheel.name, index) for index in reversed(self.indexes) for wheel in index.wheels)
        return {name: index for name, index in names if name not in self.profile.from_pypi}

    def _wheels(self, name: NormalizedName, *, is_pinned: bool = False) -> Mapping[Version, list[str]]:
        """Gather the wheels of a name by their version, without local tag; a pin may have a yanked one (PEP 592)."""
        if (index := self._recorded.get(name)) is not None:
            names = [wheel.filename for wheel in index.wheels if wheel.name == name]
        else:
            names = [file.filename for file in self.files.get(name, ()) if is_pinned or file.yanked is None]
        found: dict[Version, list[str]] = {}
        for filename in names:
            if filename.endswith(".whl"):
                try:
                    found.setdefault(Version(parse_wheel_filename(filename)[1].public), []).append(filename)
                except (InvalidWheelFilename, InvalidVersion):
                    continue
        return found

    @property
    def platform(self) -> Platform:
        """Give the platform that pins are moved for."""
        return self.profile.platforms[0]

    @cached_property
    def environment(self) -> Mapping[str, str]:
        """What markers see there."""
        return marker_environment(self.platform, self.profile.python) | {"extra": ""}

    def _bounds(self, name: NormalizedName) -> list[Constraint]:
        """Give the profile's constraints on a name."""
        named = [one for one in self.profile.rules.constraints if canonicalize_name(one.requirement.name) == name]
        markers = ((one, one.requirement.marker) for one in named)
        return [one for one, marker in markers if marker is None or marker.evaluate(dict(self.environment))]

    def versions(self, name: NormalizedName, *, is_pinned: bool = False) -> frozenset[Version]:
        """Give the versions that the profile allows, with a wheel for its first platform, without local tags.

        Args:
            name: of the distribution.
            is_pinned: a yanked version counts, too.
        """
        bounds = self._bounds(name)
        found = {
            version: [one for one in wheels if all(_is_within(one, bound) for bound in bounds)]
            for version, wheels in self._wheels(name, is_pinned=is_pinned).items()
        }
        return frozenset(
            version for version, wheels in found.items() if best_wheel(wheels, self.platform, self.profile)
        )

    def is_left_out(self, name: NormalizedName) -> bool:
        """Say whether the lock has none of a name, or a version that no pin chooses."""
        return name in self.left_out or any(rule.name == name for rule in self.profile.rules.exclusions)

    def why_not(self, name: NormalizedName, version: Version) -> tuple[str, str]:
        """Say why the profile cannot have a version, a clause, and where that stands."""
        wheels = self._wheels(name, is_pinned=True).get(version, [])
        for bound in self._bounds(name):
            if not any(_is_within(one, bound) for one in wheels) and version not in bound.requirement.specifier:
                return f"the profile {self.profile.name} takes only {bound.requirement}", bound.origin.file
        machine = f"for Python {self.profile.python} on {self.platform.name}"
        if (index := self._recorded.get(name)) is not None:
            kept = index.keep.distributions if index.keep is not None else ()
            outside = [k for k in kept if canonicalize_name(k.name) == name and version not in k.specifier]
            if wheels:
                why = f"the recorded index {index.name} has no wheel of {name} {version} {machine}"
            elif outside:
                why = f"the recorded index {index.name} has only {outside[0]}"
            else:
                why = f"the recorded index {index.name} has no {name} {version}"
            return why, index.origin.file
        return f"{name} {version} has no wheel {machine if wheels else 'on the index'}", f"PyPI: {name}, its files"


def _is_within(wheel: str, bound: Constraint) -> bool:
    return bound.requirement.specifier.contains(parse_wheel_filename(wheel)[1], prereleases=True)


@dataclass(frozen=True, kw_only=True)
class _Move:
    """A pin that becomes another specifier."""

    name: NormalizedName
    marker: str
    """Of the lines that are meant, where others of the name have another; "" for all."""
    specifier: str
    says: str
    """The version and the specifier."""
    why: str
    source: str


def repair(
    asked: Asked, offers: Collection[Offers], families: Iterable[Family], link: Callable[..., str]
) -> tuple[tuple[ProposedPatch, ...], tuple[Issue, ...]]:
    """Move pins that cannot be had.

    Args:
        asked: all requirements, by name.
        offers: of each profile.
        families: whose pins move together.
        link: names a place of upstream as a reader can open it, by path and line.
    """
    moved: dict[tuple[NormalizedName, str, str], list[tuple[str, _Move]]] = {}
    for offer in offers:
        for move in _moved(asked, offer, families):
            moved.setdefault((move.name, move.marker, move.specifier), []).append((offer.profile.name, move))
    meant = {key: _with_marker(asked[key[0]], key[1]) for key in moved}
    sections = [_section(moves, meant[key], link) for key, moves in moved.items()]
    places = tuple(dict.fromkeys(one.found for lines in meant.values() for one in lines if pin(one) is not None))
    whys = dict.fromkeys(move.why for moves in moved.values() for _, move in moves)
    reasons = [why for why in whys if not any(other.endswith(f", and {why}") for other in whys)]
    says = ", ".join(_scoped(moves, [offer.profile.name for offer in offers]) for moves in moved.values())
    issue = Issue(
        name="pin-without-wheel",
        title="a pin that cannot be had",
        means="; ".join(reasons[:_REASONS]) + ("; and more, each in its patch" if reasons[_REASONS:] else ""),
        found=places,
        remedy=f"others are allowed, on the profiles that need it: {says}",
    )
    return tuple(sections), (issue,) if places else ()


def _scoped(moves: Sequence[tuple[str, _Move]], profiles: Sequence[str]) -> str:
    """Say a move, and for which profiles it is, where it is not for all that were looked at."""
    names = [name for name, _ in moves]
    return moves[0][1].says + ("" if {*names} == {*profiles} else f" (for {', '.join(names)})")


def pin(one: LocatedRequirement) -> Version | None:
    """Give the version of a requirement that is one pin, without its local part."""
    clauses = list(one.requirement.specifier)
    if len(clauses) != 1 or clauses[0].operator not in {"==", "==="} or clauses[0].version.endswith(".*"):
        return None
    try:
        return Version(Version(clauses[0].version).public)
    except InvalidVersion:
        return None


def nearest(wanted: Version, versions: Iterable[Version]) -> Version | None:
    """Choose the version that is nearest to a pin: the next above, else the next below."""
    finals = [version for version in versions if not version.is_prerelease]
    above = [version for version in finals if version >= wanted]
    return min(above) if above else max(finals, default=None)


def companions(head: Version, member: NormalizedName, families: Iterable[Family]) -> Version | None:
    """Choose the newest version of a member of a family that fits a version of its head."""
    rows = (family.members.get(member, {}) for family in families)
    return max(
        (version for one in rows for version, row in one.items() if Version(head.public) in row.fits), default=None
    )


def head_with_member(head: Version, member: NormalizedName, family: Family, offer: Offers) -> Version | None:
    """Choose the version of a family's head, nearest to one, for which a profile can have the member; None without."""
    members, heads = offer.versions(member), offer.versions(family.head)
    rows = family.members.get(member, {}).items()
    return nearest(head, {fits for version, row in rows if version in members for fits in row.fits if fits in heads})


def _own_marker(asked: Asked, name: NormalizedName, environment: Mapping[str, str]) -> str:
    """Give the marker of the pin that counts, where the lines of the name are not all of the same."""
    counting = next(one for one in asked[name] if pin(one) is not None and _holds(one, environment))
    return requirement_sources.own_marker(counting.requirement, [one.requirement for one in asked[name]])


def _with_marker(located: Iterable[LocatedRequirement], marker: str) -> list[LocatedRequirement]:
    return [one for one in located if not marker or str(one.requirement.marker or "") == marker]


def _moved(asked: Asked, offer: Offers, families: Iterable[Family]) -> Iterator[_Move]:
    in_family: set[NormalizedName] = set()
    asked = {name: located for name, located in asked.items() if not offer.is_left_out(name)}
    for family in families:
        names = [name for name in (family.head, *family.members) if name in asked]
        pins = {name: _pin(asked, name, offer.environment) for name in names}
        in_family |= {name for name, version in pins.items() if version is not None}
        for move in _of_family(family, {n: v for n, v in pins.items() if v is not None}, offer):
            yield dataclasses.replace(move, marker=_own_marker(asked, move.name, offer.environment))
    for name in asked:
        wanted = _pin(asked, name, offer.environment)
        if wanted is None or name in in_family:
            continue
        versions = offer.versions(name)
        if not versions or wanted in offer.versions(name, is_pinned=True):
            continue
        if (near := nearest(wanted, versions)) is not None:
            specifier = f">={wanted},<{near.major + 1}" if near > wanted else f"<={wanted}"
            why, source = offer.why_not(name, wanted)
            marker, says = _own_marker(asked, name, offer.environment), f"{name} {wanted} → {SpecifierSet(specifier)}"
            yield _Move(name=name, marker=marker, specifier=specifier, says=says, why=why, source=source)


def _of_family(family: Family, pins: Mapping[NormalizedName, Version], offer: Offers) -> Iterator[_Move]:
    heads = offer.versions(family.head)
    lacks = [
        name
        for name, wanted in pins.items()
        if offer.versions(name) and wanted not in offer.versions(name, is_pinned=True)
    ]
    if not lacks or not heads:
        return
    wanted = pins.get(family.head)
    if wanted is None:
        row = next(family.members[name].get(pins[name]) for name in lacks)
        wanted = min(row.fits) if row is not None else min(heads)
    fitting = [head for head in heads if all(_fitting(family, name, head, offer) for name in pins)]
    head = nearest(wanted, fitting)
    if head is None:
        return
    for name in pins:
        member = max(_fitting(family, name, head, offer))
        if member != pins[name]:
            cause = name if name in lacks else lacks[0]
            why, source = offer.why_not(cause, pins[cause])
            if cause != name:
                why = f"{name} must fit {cause}, and {why}"
            says = f"{name} {pins[name]} → =={member}"
            yield _Move(name=name, marker="", specifier=f"=={member}", says=says, why=why, source=source)


def _fitting(family: Family, name: NormalizedName, head: Version, offer: Offers) -> list[Version]:
    """Give the versions of a member, or of the head itself, that a profile can have with one of the head."""
    if name == family.head:
        return [head]
    have = offer.versions(name)
    return [version for version, row in family.members[name].items() if head in row.fits and version in have]


def _pin(asked: Asked, name: NormalizedName, environment: Mapping[str, str]) -> Version | None:
    """Give the pin that counts under a profile's Python."""
    return next((pin(one) for one in asked[name] if pin(one) is not None and _holds(one, environment)), None)


def _holds(one: LocatedRequirement, environment: Mapping[str, str]) -> bool:
    return one.requirement.marker is None or one.requirement.marker.evaluate(dict(environment))


def _section(
    moves: Collection[tuple[str, _Move]], located: Collection[LocatedRequirement], link: Callable[..., str]
) -> ProposedPatch:
    """Write one patch for the profiles that need the same move, each with its reason."""
    (_, move), *_ = moves
    first = next(one for one in located if pin(one) is not None)
    fields: dict[str, object] = {"name": move.name, "specifier": SpecifierSet(move.specifier), "marker": move.marker}
    made = op("set-requirement", **fields)
    if made is None:
        raise ValueError(f"set-requirement does not take {fields}")  # a mistake of this module
    checks = ensures(("requirement", fields))
    word = slug(move.name, move.specifier, f"line {first.found.line}" if move.marker else "")
    draft = Draft(op_name="set-requirement", op=made, slug=word, ensures=checks, sites=len(located))
    paths: dict[PurePosixPath, None] = dict.fromkeys(one.found.path for one in located)
    patch = dataclasses.replace(
        draft.patch(draft.slug, paths),
        why="; ".join(dict.fromkeys(one.why for _, one in moves)),
        source="; ".join(dict.fromkeys(one.source for _, one in moves)),
        profiles=tuple(profile for profile, _ in moves),
    )
    comment = f"{first.found}; {link(first.found.path, first.found.line)}"
    return ProposedPatch(comment=comment, written=Written(patch=patch, ensures=checks))
