"""Gather what the rules judge wheels by: their files, from the archive's end on the server; kept in the user's cache.

A wheel is named by its sha256, so that what was once read holds for ever. No large one is fetched whole, nothing runs.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import io
import json
import re
import threading
import time
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from patchlock.core import archive_names, atomic_files, http_ranges
from patchlock.distributions import index_client
from patchlock.distributions.policy._owners import roots, suspects
from patchlock.distributions.policy.fitting import of_version
from patchlock.model import environment_layout
from patchlock.model.errors import NetworkError
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage
from patchlock.model.policy import Facts, IndexFile, MetadataHead, WheelFile

FOLDER = "wheel-facts"
"""Of the cache."""
_FORMAT = 5
_FRESH = 24 * 3600.0
"""Seconds for which an index's answer about one version is believed."""
_METADATA = 32 * 1024
"""Bytes that hold most METADATA files, with the archive's own header before them."""
_NAMED = re.compile(r"^(Name|Version): *(\S*)[ \t]*$", re.MULTILINE)
_REQUIRES = re.compile(r"^Requires-Dist: *(([A-Za-z0-9][A-Za-z0-9._-]*).*)$", re.MULTILINE)
_SECTIONS = re.compile(r"^\[(?:console_scripts|gui_scripts)\][^\n]*\n((?:(?!\[)[^\n]*(?:\n|\Z))*)", re.MULTILINE)
_SCRIPT = re.compile(r"^([^=#;\n]+)=", re.MULTILINE)
_SCHEMES = {"purelib": "", "platlib": "", "scripts": "../bin/", "data": "../", "headers": "../include/"}
"""Folder in `<wheel>.data` → where its files go, from site-packages (PEP 427)."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the file of a locked package lies."""

    filename: str
    url: str
    """`https://…`, `http://…` or `file://…`."""
    is_asked: bool = True
    """False for a vendor's host, which a lock never depends on."""


@dataclass(frozen=True, kw_only=True)
class _Known:
    filename: str
    roots: frozenset[str]
    required: tuple[NormalizedName, ...]
    metadata: MetadataHead
    outside: tuple[str, ...]


def collect(
    packages: Iterable[LockedPackage],
    places: Mapping[Sha256, Place],
    *,
    cache: Path,
    online: bool,
    pinned: Iterable[NormalizedName] = (),
) -> Facts:
    """Gather the facts about a lock, from the cache where they are there, otherwise in parallel from the servers.

    What cannot be read is unknown, with a reason, and never an error.

    Args:
        packages: the lock.
        places: where each file lies; one that is not there is only looked for in the cache.
        cache: folder for what was read.
        online: whether servers may be asked.
        pinned: distributions of which the index is asked whether the locked version was yanked, changed or deleted.
    """
    locked = tuple(packages)
    folder = cache / FOLDER
    known = {package.sha256: found for package in locked if (found := _head(folder, package.sha256)) is not None}
    missing = {p.sha256: places[p.sha256] for p in locked if p.sha256 not in known and p.sha256 in places}
    missing = {sha256: place for sha256, place in missing.items() if place.is_asked and _is_wheel(place)}
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as beside:
        offered = beside.submit(_offered, locked, frozenset(pinned), cache / "index-answers", online=online)
        unknown = _read_all(missing, folder, online=online)
    known |= {sha256: found for sha256 in missing if (found := _head(folder, sha256)) is not None}
    doubtful = suspects({sha256: found.roots for sha256, found in known.items()})
    return Facts(
        contents={sha256: contents(folder, sha256) for sha256 in doubtful},
        outside={sha256: found.outside for sha256, found in known.items() if found.outside},
        filenames={sha256: place.filename for sha256, place in places.items()}
        | {sha256: found.filename for sha256, found in known.items()},
        required=frozenset(name for found in known.values() for name in found.required),
        metadata={sha256: found.metadata for sha256, found in known.items()},
        unknown=unknown,
        offered=offered.result(),
    )


def _is_wheel(place: Place) -> bool:
    return place.filename.endswith(".whl")


def _read_all(missing: Mapping[Sha256, Place], folder: Path, *, online: bool) -> dict[Sha256, str]:
    """Read the wheels that nothing is known about; give the reason for each that could not be read."""
    if not missing:
        return {}
    silent: dict[str, str] = {}  # hosts that failed once are not asked again; the first reason holds for all
    guard = threading.Lock()

    def one(sha256: Sha256, place: Place) -> str:
        host = urlsplit(place.url).hostname or ""
        if not online and host:
            return "the network is switched off"
        with guard:
            if host in silent:
                return silent[host]
        try:
            store(folder, sha256, place)
        except NetworkError as error:
            if error.what == http_ranges.NO_PARTS:
                return f"{host}: {error.what}"  # it gives small files, whole
            with guard:
                return silent.setdefault(host, f"{host}: {error.what}")
        except (OSError, zipfile.BadZipFile, ValueError) as error:
            return f"the archive cannot be read: {error}"
        return ""

    with concurrent.futures.ThreadPoolExecutor(max_workers=http_ranges.AT_ONCE) as pool:
        reasons = pool.map(one, missing, missing.values())
        return {sha256: why for sha256, why in zip(missing, reasons, strict=True) if why}


def store(folder: Path, sha256: Sha256, place: Place) -> None:
    """Read the table of contents of one wheel, and what it requires, and keep both.

    Raises:
        NetworkError: the server does not answer, or gives no parts of files.
        OSError: the file on this machine, or the cache, cannot be used.
        zipfile.BadZipFile: it is no archive.
    """
    with http_ranges.open_file(place.url, ahead=_METADATA) as opened, zipfile.ZipFile(opened) as archive:
        files = tuple(
            WheelFile(path=_installed(info.filename), crc=info.CRC, size=info.file_size)
            for info in archive.infolist()
            if not info.is_dir()
        )
        text = _info(archive, "METADATA").partition("\n\n")[0]
        required = _REQUIRES.findall(text)
        sections = _SECTIONS.findall(_info(archive, "entry_points.txt"))
        scripts = [name.strip() for section in sections for name in _SCRIPT.findall(section)]
        outside = [name for name in archive.namelist() if _is_outside(name)]
        outside += [name for name in scripts if _is_outside(f"x-1.data/scripts/{name}")]
    head = {
        "format": _FORMAT,
        "filename": place.filename,
        "metadata": dict(reversed(_NAMED.findall(text))),  # the first of each counts
        "roots": sorted(roots(files)),
        "requires": sorted({canonicalize_name(name) for _, name in required}),
        "refused": next((line.strip() for line, _ in required if not _is_requirement(line)), ""),
        **({"outside": outside} if outside else {}),
    }
    lines = [json.dumps(head), *(f"{file.crc:08x} {file.size} {file.path}" for file in files)]
    _write(_path(folder, sha256), "\n".join(lines) + "\n")


def _is_requirement(text: str) -> bool:
    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True


def _info(archive: zipfile.ZipFile, name: str) -> str:
    """Read a file of a wheel's `.dist-info`, whatever its line endings; "" where there is none."""
    found = [path for path in archive.namelist() if re.fullmatch(rf"[^/]+\.dist-info/{re.escape(name)}", path)]
    if not found:
        return ""
    with archive.open(found[0]) as file:
        return io.TextIOWrapper(file, encoding="utf-8", errors="replace").read()  # wheels made on Windows have CRLF


def _is_outside(member: str) -> bool:
    """Say whether a member leaves the environment, or takes the place of a file that no wheel may write."""
    place = _installed(member)
    own = place.removeprefix("../") if place.startswith("../") else f"site-packages/{place}"
    return bool(archive_names.escape_reason(member)) or environment_layout.is_reserved(own)


def _installed(path: str) -> str:
    """Say where an installer puts a member of a wheel."""
    found = ".data/" in path and re.fullmatch(r"([^/]+)-[^/]+\.data/([^/]+)/(.+)", path)
    if not found or found[2] not in _SCHEMES:
        return path
    own = f"{found[1]}/" if found[2] == "headers" else ""
    return f"{_SCHEMES[found[2]]}{own}{found[3]}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.atomic_write(path, text, sync=False)


def _path(folder: Path, sha256: Sha256) -> Path:
    return folder / sha256[:2] / f"{sha256}.txt"


def _head(folder: Path, sha256: Sha256) -> _Known | None:
    """Read what is kept of a wheel but for its files; None where nothing is, or another version wrote it."""
    try:
        with _path(folder, sha256).open(encoding="utf-8") as file:
            head = json.loads(file.readline())
        if head["format"] != _FORMAT:
            return None
        inside, refused = head["metadata"], head["refused"]
        return _Known(
            filename=head["filename"],
            roots=frozenset(head["roots"]),
            required=tuple(head["requires"]),
            metadata=MetadataHead(name=inside.get("Name", ""), version=inside.get("Version", ""), refused=refused),
            outside=tuple(head.get("outside", ())),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def contents(folder: Path, sha256: Sha256) -> tuple[WheelFile, ...]:
    """Read the files of a wheel from the cache, in the order of the archive."""
    lines = _path(folder, sha256).read_text(encoding="utf-8").splitlines()[1:]
    return tuple(
        WheelFile(path=path, crc=int(crc, 16), size=int(size))
        for crc, size, path in (line.split(" ", 2) for line in lines)
    )


def longest_path(folder: Path, sha256: Sha256) -> int:
    """Count the characters of the longest path in a wheel; 0 where nothing is known of it."""
    if _head(folder, sha256) is None:
        return 0
    return max((len(file.path) for file in contents(folder, sha256)), default=0)


# --- what the index says of a version ---------------------------------------------------------------------------------


def _offered(
    packages: tuple[LockedPackage, ...], pinned: frozenset[NormalizedName], folder: Path, *, online: bool
) -> dict[NormalizedName, tuple[IndexFile, ...]]:
    wanted = [package for package in packages if package.name in pinned and not package.url]
    found: dict[NormalizedName, tuple[IndexFile, ...]] = {}
    waiting: list[LockedPackage] = []
    for package in wanted:
        kept = _answer(folder, package)
        if kept is None:
            waiting.append(package)
        else:
            found[package.name] = kept
    may_ask = waiting and index_client.is_asked(online=online)
    answers = index_client.read_all(package.name for package in waiting) if may_ask else {}
    for package in waiting:
        if package.name in answers:
            files = tuple(file for file in answers[package.name] if of_version(file, package.version))
            found[package.name] = files
            _keep(folder, package, files)
    return found


def _answer(folder: Path, package: LockedPackage) -> tuple[IndexFile, ...] | None:
    path = _answer_path(folder, package.name, package.version)
    with contextlib.suppress(OSError, ValueError, TypeError):
        if time.time() - path.stat().st_mtime < _FRESH:
            rows = json.loads(path.read_text(encoding="utf-8"))
            return tuple(IndexFile(**row) for row in rows)
    return None


def _keep(folder: Path, package: LockedPackage, files: tuple[IndexFile, ...]) -> None:
    rows = [dataclasses.asdict(file) for file in files]
    _write(_answer_path(folder, package.name, package.version), json.dumps(rows))


def _answer_path(folder: Path, name: NormalizedName, version: Version) -> Path:
    return folder / f"{name}-{version}.json"


# --- which modules a wheel has ----------------------------------------------------------------------------------------


def known_roots(folder: Path, sha256: Sha256) -> frozenset[str] | None:
    """Give the shortest folders and files that hold all that a wheel brings; None where nothing is known of it."""
    found = _head(folder, sha256)
    return found.roots if found is not None else None


def known_requirements(folder: Path, sha256: Sha256) -> frozenset[NormalizedName]:
    """Name what a wheel requires anywhere, for any extra; nothing where nothing is known of it."""
    found = _head(folder, sha256)
    return frozenset(found.required) if found is not None else frozenset()


def releases(folder: Path) -> Mapping[tuple[NormalizedName, str], tuple[Sha256, ...]]:
    """Give the known wheels of each release, by its name and its public version.

    A local version (`2.7.0+cpu`) has the API of its public one. Source: PEP 440, "Local version identifiers".
    """
    found: dict[tuple[NormalizedName, str], tuple[Sha256, ...]] = {}
    for file in sorted(folder.glob("??/*.txt")):
        known = _head(folder, Sha256(file.stem))
        with contextlib.suppress(InvalidWheelFilename):
            name, version, _, _ = parse_wheel_filename(known.filename if known is not None else "")
            key = (name, version.public)
            found[key] = (*found.get(key, ()), Sha256(file.stem))
    return found
