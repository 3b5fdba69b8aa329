"""One file, one owner: which files two wheels of a lock would both write, and whether that does harm."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.model.fits import Platform
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage
from patchlock.model.policy import Facts, SharedFolder, Violation, WheelFile, package_label

_DEPTH = 3
"""Folders without `__init__.py` are looked into this deep: `nvidia/cublas/lib`, `google/cloud/storage`."""
_SHOWN = 3
_CASELESS = ("windows", "macos")
"""Where `A.py` and `a.py` are one file. Source: NTFS and APFS as they are set up by default."""


_IN_PACKAGES = re.compile(r"\.\./lib(?:64)?/(?:python3\.\d+/)?site-packages/", re.IGNORECASE)
"""How a file of `<wheel>.data/data` gets into site-packages, of one Python or another."""
_BESIDE = re.compile(
    r"(tests?|docs?|examples?|benchmarks?|licen[cs]e|readme|changelog|changes|notice)\b.*", re.IGNORECASE
)
"""First part of a path that no app imports or runs from: whose bytes stand there is chance, and does no harm."""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Files that the same wheels all write."""

    owners: tuple[Sha256, ...]
    """Two or more."""
    paths: tuple[str, ...]
    """Sorted."""
    is_harmless: bool
    """All write the same bytes, or nothing that is ever used; otherwise which of them counts is chance."""


def roots(files: Iterable[WheelFile]) -> frozenset[str]:
    """Give the shortest folders, or files, that a wheel has for itself and that hold all its files.

    A top-level folder without `__init__.py` may be a namespace that other distributions share (PEP 420), so the folders
    in it count, and so on. Two wheels whose roots lie apart have no file in common. `.dist-info` is left out.
    """
    paths = [_IN_PACKAGES.sub("", file.path) for file in files if not _is_info(file.path)]
    packages = {path.rpartition("/")[0] for path in paths if path.endswith("/__init__.py")}
    return frozenset(_root(path, packages) for path in paths)


def _root(path: str, packages: set[str]) -> str:
    parts = path.split("/")
    for depth in range(1, min(len(parts), _DEPTH + 1)):
        folder = "/".join(parts[:depth])
        if folder in packages:
            return folder
    return "/".join(parts[: _DEPTH + 1]) if len(parts) > _DEPTH else path


def _is_info(path: str) -> bool:
    return path.partition("/")[0].endswith(".dist-info")


def suspects(of_wheel: Mapping[Sha256, frozenset[str]]) -> frozenset[Sha256]:
    """Name the wheels that may share a file with another one: a root of the one is, or holds, a root of the other."""
    owners: dict[str, set[Sha256]] = {}
    for sha256, own in of_wheel.items():
        for root in own:
            owners.setdefault(root.casefold(), set()).add(sha256)
    found: set[Sha256] = set()
    for root, held in owners.items():
        parts = root.split("/")
        above = [owners.get("/".join(parts[:depth]), set()) for depth in range(1, len(parts))]
        together = held.union(*above)
        if len(together) > 1:
            found |= together
    return frozenset(found)


def shared(contents: Mapping[Sha256, tuple[WheelFile, ...]], platform: Platform, python: Version) -> tuple[Shared, ...]:
    """Find the files that several wheels write, grouped by who writes them and whether that does harm."""
    writers: dict[str, dict[Sha256, WheelFile]] = {}
    for sha256, files in contents.items():
        for file in files:
            if not _is_info(file.path):
                writers.setdefault(_place(file.path, platform, python), {}).setdefault(sha256, file)
    groups: dict[tuple[tuple[Sha256, ...], bool], set[str]] = {}
    for found in writers.values():
        if len(found) > 1:
            same = len({(file.crc, file.size) for file in found.values()}) == 1
            path = next(iter(found.values())).path
            groups.setdefault((tuple(sorted(found)), same or _BESIDE.match(path) is not None), set()).add(path)
    return tuple(
        Shared(owners=owners, paths=tuple(sorted(paths)), is_harmless=harmless)
        for (owners, harmless), paths in sorted(groups.items())
    )


def _place(path: str, platform: Platform, python: Version) -> str:
    """Name the place on the disk; two paths may mean one."""
    folded = path.casefold() if platform.os in _CASELESS else path
    if platform.os == "windows":
        return folded.removeprefix("../lib/site-packages/")
    return re.sub(rf"^\.\./lib(64)?/python{re.escape(str(python))}/site-packages/", "", folded)


def overwriting(
    packages: Iterable[LockedPackage],
    facts: Facts,
    folders: Iterable[SharedFolder],
    platform: Platform,
    python: Version,
) -> list[Violation]:
    """Name every pair of distributions that write different bytes to one file; the known ones without any facts."""
    locked = {package.name: package for package in packages}
    by_hash = {package.sha256: package for package in locked.values()}
    found: dict[frozenset[str], Violation] = {}
    for folder in folders:
        present = [locked[owner] for owner in folder.owners if owner in locked]
        if len(present) > 1:
            key = frozenset(package.name for package in present)
            found[key] = _violation(present, f"write {folder.folder} ({folder.source})")
    for group in shared(facts.contents, platform, python):
        owners = sorted((by_hash[owner] for owner in group.owners), key=lambda package: package.name)
        key = frozenset(package.name for package in owners)
        if not group.is_harmless and not any(key <= known for known in found):
            found[key] = _violation(owners, f"write {_shown(group.paths)} with different bytes")
    return list(found.values())


def leaving(packages: Iterable[LockedPackage], facts: Facts) -> list[Violation]:
    """Name every wheel with files that would leave the environment, or take the place of its own ones or of ours."""
    return [
        Violation(
            rule="outside",
            distributions=(package.name,),
            what=f"the wheel of {package_label(package)} has files that do not belong into an environment: "
            f"{_shown(facts.outside[package.sha256])}",
            remedy="use another version; report it to its authors",
        )
        for package in packages
        if package.sha256 in facts.outside
    ]


def written_twice(paths: Mapping[str, Iterable[NormalizedName]], packages: Iterable[LockedPackage]) -> list[Violation]:
    """Name the distributions that have written different bytes to one file of an environment.

    Args:
        paths: file → who wrote it, two or more of the packages.
        packages: the lock that was installed.
    """
    locked = {package.name: package for package in packages}
    groups: dict[tuple[NormalizedName, ...], list[str]] = {}
    for path, names in sorted(paths.items()):
        if not _BESIDE.match(path):
            groups.setdefault(tuple(sorted(names)), []).append(path)
    return [
        _violation([locked[name] for name in names], f"write {_shown(tuple(found))} with different bytes")
        for names, found in groups.items()
    ]


def _violation(owners: list[LockedPackage], what: str) -> Violation:
    names = " and ".join(package_label(package) for package in owners)
    return Violation(
        rule="one-owner",
        distributions=tuple(package.name for package in owners),
        what=f"{names} {_all(owners)} {what}, so which one counts is chance",
        remedy="keep one of them: drop or exclude the other, or declare an [[exception]] with its reason",
    )


def unread(packages: Iterable[LockedPackage], facts: Facts) -> tuple[str, ...]:
    """Tell in one clause of how many wheels nobody knows which files they write, and why."""
    by_reason: dict[str, list[str]] = {}
    for package in packages:
        if package.sha256 in facts.unknown:
            by_reason.setdefault(facts.unknown[package.sha256], []).append(package.name)
    if not by_reason:
        return ()
    count = sum(map(len, by_reason.values()))
    reasons = "; ".join(f"{why} ({_shown(tuple(sorted(names)), '')})" for why, names in sorted(by_reason.items()))
    wheels, overwrite = ("1 wheel", "it overwrites") if count == 1 else (f"{count} wheels", "they overwrite")
    return (f"{wheels} could not be read, so nobody knows whether {overwrite} files of others: {reasons}",)


def _all(owners: list[LockedPackage]) -> str:
    return "both" if len(owners) == 2 else "all"


def _shown(paths: tuple[str, ...], kind: str = " files") -> str:
    rest = f" and {len(paths) - _SHOWN} more{kind}" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + rest
