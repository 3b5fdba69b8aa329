"""A recorded index as values: which files it keeps, what a refresh changes, and its text; pure, asks nobody."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, parse_tag
from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from patchlock.distributions._index_pages import Listed
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage
from patchlock.model.platforms import wheel_rank
from patchlock.model.recorded_index import (
    EarlierBytes,
    RecordedIndex,
    RecordedSdist,
    RecordedWheel,
    RecordingFilter,
)


class Kind(enum.Enum):
    """What a refresh finds about one file."""

    ADDED = "added"
    REMOVED = "removed"
    """The index does not list it any more, has yanked it, or `keep` leaves it out now."""
    REQUIRES = "requires"
    """Its METADATA says something else than the record."""
    TIME = "uploaded"
    """Its upload time was not known, or was another one."""
    MOVED = "moved"
    """It lies at another address."""
    HASH = "hash"
    """Other bytes under the same name."""
    REFUSED = "refused"
    """The index says too little about it; it is not recorded."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One line of what a refresh finds."""

    kind: Kind
    filename: str
    detail: str


def is_kept(file: Listed, keep: RecordingFilter) -> bool:
    """Say whether a file is a wheel that the record wants: its distribution, version, Python and platform."""
    try:
        name, version, _, tags = parse_wheel_filename(file.filename)
    except InvalidWheelFilename:
        return False
    wanted = any(
        canonicalize_name(requirement.name) == name and requirement.specifier.contains(version, prereleases=False)
        for requirement in keep.distributions
    )
    return wanted and any(tags & wheel_rank(p, python).keys() for p in keep.platforms for python in keep.pythons)


def whole(keep: RecordingFilter, refused: Iterable[str]) -> RecordingFilter:
    """Say of what a record is whole once all that it keeps was asked for: all but the versions of refused files."""
    missing: dict[NormalizedName, set[str]] = {}
    for filename in refused:
        name, version, _, _ = parse_wheel_filename(filename)
        missing.setdefault(name, set()).add(f"!={version.public}")
    distributions = []
    for requirement in keep.distributions:
        left = ",".join(sorted(missing.get(canonicalize_name(requirement.name), ())))
        distributions.append(Requirement(f"{requirement.name}{requirement.specifier & SpecifierSet(left)}"))
    return dataclasses.replace(keep, distributions=tuple(distributions))


def merged(known: RecordedWheel | None, new: RecordedWheel) -> RecordedWheel:
    """Bring a wheel up to date: who recorded it first stays its source; bytes that it had before are kept as those."""
    if known is None:
        return new
    if known.sha256 != new.sha256:
        before = EarlierBytes(sha256=known.sha256, seen=known.seen, source=known.source)
        kept = tuple(one for one in (*known.earlier, before) if one.sha256 != new.sha256)
        return dataclasses.replace(new, earlier=kept)
    uploaded = new.uploaded or known.uploaded
    return dataclasses.replace(new, source=known.source, uploaded=uploaded, seen=known.seen, earlier=known.earlier)


def changes(before: RecordedIndex, after: Iterable[RecordedWheel], why_gone: Mapping[str, str]) -> tuple[Change, ...]:
    """Compare a record with what it would become, sorted by file name.

    Args:
        before: the record.
        after: all wheels that it would hold.
        why_gone: file name → why a wheel that it holds is left out.
    """
    known = {wheel.filename: wheel for wheel in before.wheels}
    new = {wheel.filename: wheel for wheel in after}
    found = [
        Change(kind=Kind.REMOVED, filename=filename, detail=why_gone.get(filename, "no longer listed"))
        for filename in known.keys() - new.keys()
    ]
    for filename, wheel in new.items():
        if filename not in known:
            found.append(Change(kind=Kind.ADDED, filename=filename, detail=wheel.uploaded or "upload time not known"))
        else:
            found += _changed(known[filename], wheel)
    return tuple(sorted(found, key=lambda change: (change.filename, change.kind.value)))


def _changed(old: RecordedWheel, new: RecordedWheel) -> list[Change]:
    found = []
    if old.sha256 != new.sha256:
        found.append((Kind.HASH, f"sha256 {old.sha256} → {new.sha256}"))
    before, after = ({str(requirement) for requirement in wheel.requires} for wheel in (old, new))
    if before != after:
        signed = [*(f"-{text}" for text in sorted(before - after)), *(f"+{text}" for text in sorted(after - before))]
        found.append((Kind.REQUIRES, "  ".join(signed)))
    if old.uploaded != new.uploaded:
        found.append((Kind.TIME, f"{old.uploaded or 'not known'} → {new.uploaded}"))
    if old.url != new.url:
        found.append((Kind.MOVED, f"{old.url} → {new.url}"))
    return [Change(kind=kind, filename=new.filename, detail=detail) for kind, detail in found]


@dataclass(frozen=True)
class _Name:
    """What a file name says, however it is spelled."""

    name: NormalizedName
    version: Version
    tags: frozenset[Tag]


def _name_of(package: LockedPackage) -> _Name | None:
    """Read what a lock says of the file that was chosen; None for what is no wheel."""
    found = re.search(r"\bwheel (\S+)$", package.why)
    return _Name(package.name, package.version, parse_tag(found[1])) if found else None


@dataclass(frozen=True, kw_only=True)
class HashConflict:
    """A wheel of a lock that has other bytes than are known under its name."""

    filename: str
    """As far as a lock says it: without a build number."""
    now: Sha256
    known: tuple[str, ...]
    """`sha256 <64 digits> in <where>`, sorted."""

    def __str__(self) -> str:
        return f"{self.filename} has sha256 {self.now}, and under the same name there is {', '.join(self.known)}"

    def is_named(self, filenames: Iterable[str]) -> bool:
        """Say whether one of some file names is its own."""
        return _read(self.filename) in map(_read, filenames)


def _read(filename: str) -> _Name:
    name, version, _, tags = parse_wheel_filename(filename)
    return _Name(name, version, tags)


def contradictions(packages: Iterable[LockedPackage], indexes: Iterable[RecordedIndex]) -> tuple[HashConflict, ...]:
    """Name every locked wheel whose hash is another one than the records have under its name.

    Channels may have different files of one name, so a file that any of these records has is no contradiction.

    Args:
        packages: of a lock.
        indexes: the records that the lock should agree with: those of its profile.
    """
    return _strange(packages, _recorded(indexes))


def _recorded(indexes: Iterable[RecordedIndex]) -> dict[_Name, dict[Sha256, str]]:
    """Give the hashes that records have of a name, those of before, too, each with where it stands and since when."""
    recorded: dict[_Name, dict[Sha256, str]] = {}
    for index in indexes:
        for wheel in index.wheels:
            known = recorded.setdefault(_read(wheel.filename), {})
            seen = [(one.sha256, one.seen) for one in wheel.earlier] + [(wheel.sha256, wheel.seen)]
            known |= {sha256: f"the record {index.name}{f', seen on {day}' if day else ''}" for sha256, day in seen}
    return recorded


def replaced(
    before: Iterable[LockedPackage], after: Iterable[LockedPackage], indexes: Iterable[RecordedIndex] = ()
) -> tuple[HashConflict, ...]:
    """Name every wheel that has other bytes than the lock before had under the same name.

    Args:
        before: the lock that there is.
        after: the new one.
        indexes: records that know both bytes say that the publisher has published the file again.
    """
    recorded = _recorded(indexes)
    known = {chosen: {package.sha256: "the lock before"} for package in before if (chosen := _name_of(package))}
    return tuple(
        conflict
        for conflict in _strange(after, known)
        if not {conflict.now, *known[_read(conflict.filename)]} <= recorded.get(_read(conflict.filename), {}).keys()
    )


def told_of_bytes(filename: str, found: Sha256, indexes: Iterable[RecordedIndex]) -> tuple[str, str]:
    """Tell publishing again from tampering, as far as records can: whose bytes came in the place of a lock's.

    Returns:
        What is known of these bytes, a clause, and what to do; "" and "" where no record has a file of that name.
    """
    for index in indexes:
        for wheel in (one for one in index.wheels if _read(one.filename) == _read(filename)):
            if found == wheel.sha256:
                since = f" (seen on {wheel.seen})" if wheel.seen else ""
                return (
                    f"the record {index.name} knows them: its publisher has published the file again{since}",
                    "make the lock again with `patchlock lock`, or update the catalogue",
                )
            if before := next((one for one in wheel.earlier if one.sha256 == found), None):
                until = f" (seen on {before.seen})" if before.seen else ""
                return (
                    f"the record {index.name} knows them as what the file was before it was published again{until}",
                    "a mirror or a proxy is behind: try again later or elsewhere",
                )
            return (
                f"neither the lock nor the record {index.name} knows them",
                f"do not use them; `patchlock index record {index.name} --check` says what the index has now",
            )
    return "", ""


def _strange(
    packages: Iterable[LockedPackage], known: Mapping[_Name, Mapping[Sha256, str]]
) -> tuple[HashConflict, ...]:
    return tuple(
        HashConflict(
            filename=f"{package.name.replace('-', '_')}-{package.version}-{package.why.rpartition(' ')[2]}.whl",
            now=package.sha256,
            known=tuple(sorted(f"sha256 {sha256} in {where}" for sha256, where in known[chosen].items())),
        )
        for package in packages
        if (chosen := _name_of(package)) and package.sha256 not in known.get(chosen, {package.sha256: ""})
    )


def render(index: RecordedIndex, wheels: Iterable[RecordedWheel], comment: str) -> str:
    """Write a recorded index as text: sorted, so that the same wheels give the same text.

    Args:
        index: whose head and sdists are written.
        wheels: what it holds.
        comment: the lines above its head, each with `#`.
    """
    import tomlkit  # which is only for who writes

    head: dict[str, object] = {"url": index.url}
    if index.is_flat:
        head["flat"] = True
    for key, wanted in (("keep", index.keep), ("whole", index.whole)):
        if wanted is not None:
            head[key] = {
                "distributions": [str(requirement) for requirement in wanted.distributions],
                "pythons": [str(python) for python in wanted.pythons],
                "platforms": [platform.name for platform in wanted.platforms],
            }
    tables: dict[str, object] = {"index": head}
    if listed := sorted(wheels, key=lambda wheel: (wheel.name, wheel.version, wheel.filename)):
        tables["wheel"] = [_row(index, wheel) for wheel in listed]
    if index.sdists:
        tables["sdist"] = [_row(index, sdist) for sdist in index.sdists]
    return (f"{comment.strip()}\n\n" if comment.strip() else "") + tomlkit.dumps(tables)


def _row(index: RecordedIndex, file: RecordedWheel | RecordedSdist) -> dict[str, object]:
    row: dict[str, object] = {"filename": file.filename, "sha256": file.sha256}
    if isinstance(file, RecordedWheel) and file.requires:
        row["requires"] = [str(requirement) for requirement in file.requires]
    if isinstance(file, RecordedWheel) and file.uploaded:
        row["uploaded"] = file.uploaded
    if isinstance(file, RecordedWheel) and file.seen:
        row["seen"] = file.seen
    row["source"] = file.source
    if file.url != f"{index.url}/{quote(file.filename)}":
        row["url"] = file.url
    if isinstance(file, RecordedWheel) and file.earlier:
        row["earlier"] = [
            {"sha256": one.sha256, **({"seen": one.seen} if one.seen else {}), "source": one.source}
            for one in file.earlier
        ]
    return row


def comment_of(text: str) -> str:
    """Take the comment at the top of a file."""
    lines = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        lines.append(line)
    return "\n".join(lines).strip()
