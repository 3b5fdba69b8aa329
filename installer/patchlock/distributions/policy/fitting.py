"""Whether what was chosen can run: the tags of wheels, pairs that are known to break, what the index says of a file."""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Iterable, Mapping

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    NormalizedName,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from patchlock.model import lockfile
from patchlock.model.fits import Platform
from patchlock.model.lockfile import LockedPackage
from patchlock.model.platforms import wheel_rank
from patchlock.model.policy import (
    BrokenPair,
    Facts,
    IndexFile,
    MetadataHead,
    Placeholder,
    Violation,
    package_label,
    wheel_tags,
)


def foreign_wheels(packages: Iterable[LockedPackage], platform: Platform, python: Version) -> list[Violation]:
    """Name every wheel that does not run on the platform under this Python."""
    ranks = wheel_rank(platform, python)
    return [
        Violation(
            rule="tags",
            distributions=(package.name,),
            what=f"{package_label(package)} is locked as a wheel for {tags}, "
            f"which does not run on {platform.name} under "
            f"Python {python}",
            remedy="lock again",
        )
        for package in packages
        if (tags := wheel_tags(package)) is not None and not any(tag in ranks for tag in lockfile.tags(tags))
    ]


def broken_pairs(packages: Iterable[LockedPackage], pairs: Iterable[BrokenPair], platform: Platform) -> list[Violation]:
    """Name every pair that resolves and is known not to work."""
    locked = {package.name: package for package in packages}
    found = []
    for pair in pairs:
        first, second = locked.get(_name(pair.first)), locked.get(_name(pair.second))
        if first is None or second is None or (pair.os and platform.os not in pair.os):
            continue
        if _matches(pair.first, first) and _matches(pair.second, second):
            found.append(
                Violation(
                    rule="pair",
                    distributions=(first.name, second.name),
                    what=f"{package_label(first)} does not work beside {package_label(second)}: "
                    f"{pair.why} ({pair.source})",
                    remedy=pair.remedy,
                )
            )
    return found


def placeholders(packages: Iterable[LockedPackage], held: Iterable[Placeholder]) -> list[Violation]:
    """Name every distribution that comes from the package index, where its name is only held for a vendor's own."""
    return [
        Violation(
            rule="placeholder",
            distributions=(package.name,),
            what=f"{package_label(package)} comes from the package index, and {one.why} ({one.source})",
            remedy=f"record the vendor's {package.name} in the profile's index: `patchlock index record`",
        )
        for package in packages
        for one in held
        if not package.url and any(fnmatch.fnmatchcase(package.name, name) for name in one.names)
    ]


def _name(requirement: Requirement) -> NormalizedName:
    return canonicalize_name(requirement.name)


def _matches(requirement: Requirement, package: LockedPackage) -> bool:
    return requirement.specifier.contains(package.version, prereleases=True)


def changed_artifacts(packages: Iterable[LockedPackage], facts: Facts) -> list[Violation]:
    """Name every locked file that the index no longer has, or has with other bytes under the same name."""
    found = []
    for package in packages:
        files, filename = facts.offered.get(package.name), facts.filenames.get(package.sha256)
        if files is None or filename is None or any(file.sha256 == package.sha256 for file in files):
            continue
        same = [file for file in files if file.filename == filename and file.sha256]
        if same:
            found.append(
                Violation(
                    rule="artifact",
                    distributions=(package.name,),
                    what=f"{filename} was replaced: its sha256 was {package.sha256[:12]}…, and the index now gives "
                    f"{same[0].sha256[:12]}… under the same name",
                    remedy="ask the project why before you lock again; a file that was published never changes",
                )
            )
        elif not any(file.filename == filename for file in files):
            found.append(
                Violation(
                    rule="artifact",
                    distributions=(package.name,),
                    what=f"{filename} was deleted from the index{_left(package.version, files)}",
                    remedy=f"pin another version of {package.name} with a patch, and lock again",
                )
            )
    return found


def mislabelled(packages: Iterable[LockedPackage], facts: Facts) -> list[Violation]:
    """Name every wheel whose METADATA says that it is something else than its file name: no installer takes it."""
    return [
        Violation(
            rule="metadata",
            distributions=(package.name,),
            what=f"{facts.filenames.get(package.sha256, package_label(package))} is malformed: "
            f"its METADATA says that it is {inside.name or 'nothing'} {inside.version}".rstrip(),
            remedy=f"report it to its publisher, and pin another version of {package.name} with a patch",
        )
        for package in packages
        if (inside := facts.metadata.get(package.sha256)) is not None and not _is_of(inside, package)
    ]


def _is_of(inside: MetadataHead, package: LockedPackage) -> bool:
    """Compare as uv does: one of the two may leave the local version out."""
    try:
        version = Version(inside.version)
    except InvalidVersion:
        return False
    versions = (version, package.version)
    without_local = any(one.local is None for one in versions) and version.public == package.version.public
    return canonicalize_name(inside.name) == package.name and (version == package.version or without_local)


def of_version(file: IndexFile, version: Version) -> bool:
    """Say whether a file is of a version."""
    return _version(file.filename) == version


def _left(version: Version, files: Iterable[IndexFile]) -> str:
    left = without_wheels(version, files)
    return f", and {left} is left" if left else ""


def without_wheels(version: Version, files: Iterable[IndexFile]) -> str:
    """Say in a clause that a version has no wheels, and what is left of it; "" where it has wheels."""
    named_files = [file.filename for file in files if of_version(file, version)]
    if any(filename.endswith(".whl") for filename in named_files):
        return ""
    return "only its sdist" if named_files else "nothing of it"


def _version(filename: str) -> Version | None:
    try:
        return parse_wheel_filename(filename)[1] if filename.endswith(".whl") else parse_sdist_filename(filename)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None


def _allowed(filename: str, bound: SpecifierSet) -> Version | None:
    version = _version(filename)
    return version if version is not None and bound.contains(version, prereleases=True) else None


def yanked(packages: Iterable[LockedPackage], facts: Facts) -> tuple[str, ...]:
    """Name every locked file that its project took back, one clause each; they install, and should not be new."""
    reasons: Mapping[str, str] = {
        file.sha256: file.yanked for files in facts.offered.values() for file in files if file.yanked is not None
    }
    return tuple(
        f"{package_label(package)} was yanked by its project: {reasons[package.sha256] or 'no reason is given'}"
        for package in packages
        if package.sha256 in reasons
    )


def refused_by_pip(packages: Iterable[LockedPackage], facts: Facts) -> tuple[str, ...]:
    """Name every locked wheel that pip has refused to install since 24.1, one clause each; uv takes it."""
    return tuple(
        f"pip 24.1 and later refuse {package_label(package)}, as its metadata requires `{inside.refused}`; uv takes it"
        for package in packages
        if (inside := facts.metadata.get(package.sha256)) is not None and inside.refused
    )


def gone(requirements: Iterable[Requirement], offered: Mapping[NormalizedName, Iterable[IndexFile]]) -> tuple[str, ...]:
    """Say of each requirement that pins one version where the index has no file of that, one clause each.

    Args:
        requirements: those of the app, patched.
        offered: normalised name → what the index has of it.
    """
    clauses = []
    for requirement in requirements:
        pins = [spec.version for spec in requirement.specifier if spec.operator == "==" and "*" not in spec.version]
        files = offered.get(_name(requirement))
        if len(pins) == 1 and files and not any(of_version(file, Version(pins[0])) for file in files):
            clauses.append(f"the index has nothing of {_name(requirement)} {pins[0]}")
    return tuple(clauses)


def uploaded_until(files: Iterable[IndexFile], cut_off: str) -> tuple[IndexFile, ...]:
    """Keep the files that were uploaded until a cut-off, "" for none, or at a time that is not known."""
    if not cut_off:
        return tuple(files)
    day = datetime.datetime.fromisoformat(cut_off)
    return tuple(file for file in files if not file.uploaded or datetime.datetime.fromisoformat(file.uploaded) <= day)


def only_sdists(
    requirements: Iterable[Requirement], offered: Mapping[NormalizedName, Iterable[IndexFile]]
) -> tuple[tuple[NormalizedName, Version], ...]:
    """Name the distributions that have no wheel in any version that the requirements allow, and the newest of these.

    Args:
        requirements: those of the app, patched.
        offered: normalised name → what the index has of it.
    """
    bounds: dict[NormalizedName, SpecifierSet] = {}
    for requirement in requirements:
        bounds[_name(requirement)] = bounds.get(_name(requirement), SpecifierSet()) & requirement.specifier
    found = []
    for name, files in sorted(offered.items()):
        bound = bounds.get(name, SpecifierSet())
        wheels = (file.filename for file in reversed([*files]) if file.filename.endswith(".whl"))
        if any(_allowed(wheel, bound) for wheel in wheels):  # of thousands of files, mostly the first
            continue
        if versions := [version for file in files if (version := _allowed(file.filename, bound)) is not None]:
            found.append((name, max(versions, key=lambda version: (not version.is_prerelease, version))))
    return tuple(found)


_LOADS_CUDA = {"ctranslate2": "cuBLAS", "onnxruntime-gpu": "cuBLAS and cuDNN"}
"""Distributions whose wheels load CUDA's libraries and bring none of them → which.

Source: https://github.com/SYSTRAN/faster-whisper#gpu;
https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html#requirements"""


def without_cuda_libraries(packages: Iterable[LockedPackage]) -> tuple[str, ...]:
    """Name what loads CUDA's libraries on a card where nothing else brings them, as torch does; a clause each."""
    locked = {str(package.name): package.version for package in packages}
    if any(name == "torch" or name.startswith("nvidia-cublas") for name in locked):
        return ()
    return tuple(
        f"{name} {locked[name]} loads CUDA's {libraries}, which nothing in the lock brings, as it is without torch: "
        "the machine needs them"
        for name, libraries in _LOADS_CUDA.items()
        if name in locked
    )
