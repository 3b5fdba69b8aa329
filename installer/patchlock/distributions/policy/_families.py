"""Which versions of a family of binary distributions fit together: a table, never a guess from the numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from packaging.utils import NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from patchlock.model.fits import Platform
from patchlock.model.lockfile import LockedPackage
from patchlock.model.platforms import wheel_rank
from patchlock.model.policy import Family, MemberRow, Violation, is_only_via, package_label
from patchlock.model.recorded_index import RecordedIndex

Takeable = Callable[[NormalizedName], Collection[Version] | None]


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a lock may take: for which machine, from which recorded indexes, and in which versions."""

    platform: Platform
    python: Version
    """Two numbers."""
    indexes: Collection[RecordedIndex]
    """What one of them has is advised in a version that it has for this machine."""
    takeable: Takeable
    """Gives the versions that the lock may have; None where that is not known."""

    def recorded(self, name: NormalizedName) -> tuple[str, frozenset[Version]] | None:
        """Give the index that a distribution comes from, and its versions there for the machine; None if in none."""
        for index in self.indexes:  # the first that has a name hides the others
            if wheels := [wheel for wheel in index.wheels if wheel.name == name]:
                ranks = wheel_rank(self.platform, self.python)
                return index.name, frozenset(
                    wheel.version
                    for wheel in wheels
                    if any(tag in ranks for tag in parse_wheel_filename(wheel.filename)[3])
                )
        return None

    def unrecorded(self, name: NormalizedName) -> str:
        """Say how a distribution is recorded that an index is meant to have and nobody has asked it for; "" if none."""
        for index in self.indexes if self.recorded(name) is None else ():
            keep = index.keep
            if keep is None or self.platform not in keep.platforms or self.python not in keep.pythons:
                continue
            if name in {canonicalize_name(one.name) for one in keep.distributions}:
                command = f"patchlock index record {index.name}{' --download' if index.is_flat else ''}"
                return (
                    f"nobody has recorded its {name} in {index.origin.file} yet: `{command}`, where it can be reached"
                )
        return ""


def misfits(packages: Iterable[LockedPackage], families: Iterable[Family], offer: Offer) -> list[Violation]:
    """Name every member of a family that was built for another version, or another build, of its head."""
    locked = {package.name: package for package in packages}
    return [
        violation
        for family in families
        if family.head in locked
        for name in sorted(family.members.keys() & locked.keys())
        for violation in _judged(locked[family.head], locked[name], family, offer)
    ]


def _judged(head: LockedPackage, member: LockedPackage, family: Family, offer: Offer) -> list[Violation]:
    rows = family.members[member.name]
    row = rows.get(_public(member.version))
    if row is None or not _has_head(family, head.version):
        unknown = member if row is None else head
        return [
            Violation(
                rule="family",
                distributions=(head.name, member.name),
                what=f"{package_label(member)} beside {package_label(head)} is an unknown pair: {family.file} has no "
                f"{unknown.name} {_public(unknown.version)}",
                remedy="add a row with its source, or pin versions that are there",
                is_unknown=True,
            )
        ]
    if _public(head.version) not in row.fits:
        return [
            Violation(
                rule="family",
                distributions=(head.name, member.name),
                what=f"{package_label(member)} does not fit {package_label(head)}: it is built for {head.name} "
                f"{_listed(row.fits)} ({row.source})",
                remedy=_fitting(rows, head, member, offer),
            )
        ]
    return _build(head, member, rows, offer)


def _build(
    head: LockedPackage, member: LockedPackage, rows: Mapping[Version, MemberRow], offer: Offer
) -> list[Violation]:
    row = rows[_public(member.version)]
    of_head, of_member = _label(head, offer.platform), _label(member, offer.platform)
    if row.builds == "any" or of_head == of_member or (row.builds == "same-if-tagged" and not of_member):
        return []
    unrecorded = of_head and offer.unrecorded(member.name)
    return [
        Violation(
            rule="family",
            distributions=(head.name, member.name),
            what=f"{package_label(member)} is {_build_named(of_member)}, "
            f"and {package_label(head)} is {_build_named(of_head)}",
            remedy=unrecorded or _same_build(rows, head, member, of_head, offer),
            is_unknown=bool(unrecorded),
        )
    ]


def _same_build(
    rows: Mapping[Version, MemberRow], head: LockedPackage, member: LockedPackage, of_head: str, offer: Offer
) -> str:
    name, recorded = member.name, offer.recorded(member.name)
    if of_head and offer.indexes and recorded is None:  # there is only what PyPI has: plain builds
        plain = [one for one, row in rows.items() if row.builds != "same" and _public(head.version) in row.fits]
        if there := _taken(plain, offer.takeable(name)):
            return f"pin {name}=={max(there)} {_HOW}: its plain build fits every build of {head.name}"
        return f"{_without(member)}, or pin another {head.name}: no index of the profile has {name}"
    wanted = Version(f"{_public(member.version)}+{of_head}" if of_head else member.version.public)
    such = "" if recorded and wanted not in recorded[1] else f", with a constraint such as {name}=={wanted}"
    return f"take both from one index{such}"


_HOW = "with a patch, or as a constraint of the app or the profile"


def _without(member: LockedPackage) -> str:
    """Say how to go without it: a patch drops a line of upstream; what only a library asks for is excluded."""
    return f"{'exclude' if is_only_via(member) else 'drop'} {member.name}"


def _label(package: LockedPackage, platform: Platform) -> str:
    """Say which build it is: its local tag, or for the vendor's untagged wheels the channel that they lie in.

    On macOS there is one build of everything, whatever the channel. Source: https://pytorch.org/get-started/locally/.
    """
    if package.version.local:
        return package.version.local
    parts = unquote(urlsplit(package.url).path).strip("/").split("/")
    return parts[-2] if platform.os != "macos" and len(parts) == 3 and parts[0] == "whl" else ""


def _build_named(label: str) -> str:
    return f"the {label} build" if label else "the plain build of PyPI"


def _public(version: Version) -> Version:
    return Version(version.public)


def _has_head(family: Family, version: Version) -> bool:
    public = _public(version)
    return any(public in row.fits for rows in family.members.values() for row in rows.values())


def _fitting(rows: Mapping[Version, MemberRow], head: LockedPackage, member: LockedPackage, offer: Offer) -> str:
    name, recorded = member.name, offer.recorded(member.name)
    without = _without(member)
    wanted = [version for version, row in rows.items() if _public(head.version) in row.fits]
    if not wanted:
        return f"{without}, or pin another {head.name}: no release of {name} is built for this one"
    if recorded is not None:
        wanted = [version for version in wanted if version in set(map(_public, recorded[1]))]
        if not wanted:
            return f"{without}, or pin another {head.name}: the index {recorded[0]} has no {name} for this one"
    if there := _taken(wanted, offer.takeable(name)):
        return f"pin {name}=={max(there)} {_HOW}"
    why = f"the cut-off, or what the app asks for, leaves no {name} for {head.name} {_public(head.version)}"
    if heads := _taken(rows[_public(member.version)].fits, offer.takeable(head.name)):
        return f"pin {head.name}=={max(heads)} {_HOW}: {why}"
    return f"{without}, or pin another {head.name}: {why}"


def _taken(versions: Iterable[Version], known: Collection[Version] | None) -> list[Version]:
    return [version for version in versions if known is None or version in known]


def _listed(versions: tuple[Version, ...]) -> str:
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
