"""Pins that no file fits: of another Python, another machine, or a build that a recorded index lacks; pure.

A pin moves as little as can be, up before down, and the torch family moves as one, by its table. Each edit is for the
profiles alone that need it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.authoring.drafts import Draft, ensures, op, slug
from patchlock.catalogue.proposals.findings import Issue, ProposedPatch
from patchlock.catalogue.proposals.shared_sets import LocatedRequirement
from patchlock.locks.wheel_choice import best_wheel
from patchlock.model.policy import Family, IndexFile
from patchlock.model.profile import Profile
from patchlock.model.recorded_index import RecordedIndex

Asked = Mapping[NormalizedName, tuple[LocatedRequirement, ...]]


@dataclass(frozen=True)
class Offers:
    """What a profile can have of distributions."""

    profile: Profile
    indexes: tuple[RecordedIndex, ...]
    """Those of the profile."""
    files: Mapping[NormalizedName, tuple[IndexFile, ...]]
    """What the machine's index has."""

    @cached_property
    def _recorded(self) -> Mapping[NormalizedName, list[str]]:
        found: dict[NormalizedName, list[str]] = {}
        for index in self.indexes:
            for wheel in index.wheels:
                if wheel.name not in self.profile.from_pypi:
                    found.setdefault(wheel.name, []).append(wheel.filename)
        return found

    def versions(self, name: NormalizedName) -> frozenset[Version]:
        """Give the versions with a wheel for one of the profile's platforms, without local tags."""
        names = self._recorded.get(name) or [file.filename for file in self.files.get(name, ()) if file.yanked is None]
        by_version: dict[Version, list[str]] = {}
        for filename in names:
            if filename.endswith(".whl"):
                try:
                    by_version.setdefault(Version(parse_wheel_filename(filename)[1].public), []).append(filename)
                except (InvalidWheelFilename, InvalidVersion):
                    continue
        return frozenset(
            version
            for version, wheels in by_version.items()
            if any(best_wheel(wheels, platform, self.profile) for platform in self.profile.platforms[:1])
        )


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
    moved: dict[tuple[NormalizedName, str], list[str]] = {}
    for offer in offers:
        for name, specifier in _moved(asked, offer, families):
            moved.setdefault((name, specifier), []).append(offer.profile.name)
    sections = [_section(name, specifier, asked[name], tuple(on), link) for (name, specifier), on in moved.items()]
    places = tuple(dict.fromkeys(one.found for name, _ in moved for one in asked[name] if pin(one) is not None))
    issue = Issue(
        name="pin-without-wheel",
        title="a pin that no wheel fits",
        means="no lock can be made with it: its files are for another Python, or another machine",
        found=places,
        remedy="the nearest version that has one is taken, on the profiles that need it",
    )
    return tuple(sections), (issue,) if places else ()


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


def _moved(asked: Asked, offer: Offers, families: Iterable[Family]) -> Iterator[tuple[NormalizedName, str]]:
    in_family: set[NormalizedName] = set()
    environment = _environment(offer.profile)
    for family in families:
        pins = {name: _pin(asked, name, environment) for name in (family.head, *family.members) if name in asked}
        in_family |= {name for name, version in pins.items() if version is not None}
        yield from _of_family(family, {n: v for n, v in pins.items() if v is not None}, offer)
    for name in asked:
        wanted = _pin(asked, name, environment)
        if wanted is None or name in in_family:
            continue
        versions = offer.versions(name)
        if versions and wanted not in versions and (near := nearest(wanted, versions)) is not None:
            yield name, f">={wanted},<{near.major + 1}" if near > wanted else f"<={wanted}"


def _of_family(
    family: Family, pins: Mapping[NormalizedName, Version], offer: Offers
) -> Iterator[tuple[NormalizedName, str]]:
    heads = offer.versions(family.head)
    lacks = [name for name, wanted in pins.items() if (have := offer.versions(name)) and wanted not in have]
    if not lacks or not heads:
        return
    wanted = pins.get(family.head)
    if wanted is None:
        row = next(family.members[name].get(pins[name]) for name in lacks)
        wanted = min(row.fits) if row is not None else min(heads)
    fitting = [
        head
        for head in heads
        if all(
            any(head in row.fits and version in offer.versions(name) for version, row in family.members[name].items())
            for name in pins
            if name != family.head
        )
    ]
    head = nearest(wanted, fitting)
    if head is None:
        return
    for name in pins:
        member = head if name == family.head else companions(head, name, [family])
        if member is not None and member != pins[name]:
            yield name, f"=={member}"


def _pin(asked: Asked, name: NormalizedName, environment: Mapping[str, str]) -> Version | None:
    """Give the pin that counts under a profile's Python."""
    for one in asked[name]:
        marker = one.requirement.marker
        if pin(one) is not None and (marker is None or marker.evaluate(dict(environment))):
            return pin(one)
    return None


def _environment(profile: Profile) -> dict[str, str]:
    return {"python_version": str(profile.python), "python_full_version": f"{profile.python}.0", "extra": ""}


def _section(
    name: NormalizedName,
    specifier: str,
    located: Collection[LocatedRequirement],
    profiles: tuple[str, ...],
    link: Callable[..., str],
) -> ProposedPatch:
    first = next(one for one in located if pin(one) is not None)
    fields: dict[str, object] = {"name": name, "specifier": SpecifierSet(specifier)}
    made = op("set-requirement", **fields)
    if made is None:
        raise ValueError(f"set-requirement does not take {fields}")  # a mistake of this module
    checks = ensures(("requirement", fields))
    draft = Draft(op_name="set-requirement", op=made, slug=slug(name, specifier), ensures=checks, sites=len(located))
    paths: dict[PurePosixPath, None] = dict.fromkeys(one.found.path for one in located)
    patch = dataclasses.replace(
        draft.patch(draft.slug, paths),
        why=f"{first.requirement} has no wheel for the Python and the machines of these profiles",
        source=f"PyPI: {canonicalize_name(name)}, its files",
        profiles=profiles,
    )
    comment = f"{first.found}; {link(first.found.path, first.found.line)}"
    return ProposedPatch(comment=comment, written=Written(patch=patch, ensures=checks))
