"""Wheels on this machine, by sha256: what was fetched, patched or built here, ready for uv; asks no network."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.core import archive_names, file_lock
from patchlock.model.errors import BusyError, WheelError
from patchlock.model.identities import Sha256

FOLDER = "wheels"
"""Of the cache."""
_KEY = 16
"""Digits of a sha256 that name the folder of its file."""


@dataclass(frozen=True, kw_only=True)
class LocalWheel:
    """A wheel that lies on this machine."""

    name: NormalizedName
    version: Version
    path: Path
    """The file, under its own name, alone in its folder."""
    sha256: Sha256


LocalWheels = Mapping[NormalizedName, LocalWheel]


def place(cache: Path, sha256: Sha256, filename: str) -> Path:
    """Name the place of a file in the cache, whether it is there or not; no two files share a folder."""
    return cache / FOLDER / sha256[:_KEY] / filename


def find(cache: Path, sha256: Sha256) -> Path | None:
    """Find a wheel or an sdist by its sha256; its bytes are not read, as uv reads them when it installs."""
    folder = cache / FOLDER / sha256[:_KEY]
    if not folder.is_dir():
        return None
    return next((path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz", ".zip"))), None)


def require_inside(wheels: LocalWheels) -> None:
    """Look at the names of all files in wheels before an installer gets them; one that is damaged is left to it.

    Raises:
        WheelError: a file would leave the environment: installers drop it without a word, or worse.
    """
    for wheel in wheels.values():
        with contextlib.suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(wheel.path) as archive:
            names = [name for name in archive.namelist() if archive_names.escape_reason(name)]
            if names:
                raise WheelError(
                    f"{wheel.path.name} has a file that {archive_names.escape_reason(names[0])}: {names[0]!r}",
                    where=str(wheel.path.parent),
                    remedy="do not install it; report it to its authors",
                    evidence=map(repr, names[1:20]),
                )


def listing(wheels: LocalWheels) -> str:
    """Write wheels as requirements for an installer that may look at no index: each by its hash, and where it lies."""
    ordered = [wheels[name] for name in sorted(wheels)]
    places = [f"--find-links {wheel.path.parent.absolute().as_uri()}" for wheel in ordered]
    pins = [f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}" for wheel in ordered]
    return "\n".join(["--no-index", *places, *pins]) + "\n"


# --- housekeeping -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Unneeded:
    """A file of the wheelhouse that no generation of any home was made from, or what has come of one."""

    folder: Path
    filename: str
    """Of the wheel or sdist, also where only a part of it has come."""
    size: int
    """Bytes, of the file and its parts together."""


def unneeded(cache: Path, kept: Collection[Sha256]) -> tuple[Unneeded, ...]:
    """List the files of the wheelhouse that are not to be kept, in the order of their names; whole or in part.

    Args:
        cache: the cache of patchlock.
        kept: what `environments.cache_pruning.needed` says.
    """
    keys = {sha256[:_KEY] for sha256 in kept}
    folders = [] if not (cache / FOLDER).is_dir() else [path for path in (cache / FOLDER).iterdir() if path.is_dir()]
    found = []
    for folder in folders:
        files = [path for path in folder.iterdir() if path.is_file()]
        if folder.name not in keys and files:
            name = min(files, key=lambda path: (len(path.name), path.name)).name
            filename = name.removesuffix(".lock").removesuffix(".part")
            size = sum(path.stat().st_size for path in files)
            found.append(Unneeded(folder=folder, filename=filename, size=size))
    return tuple(sorted(found, key=lambda one: (one.filename, one.folder)))


def remove(files: Iterable[Unneeded]) -> tuple[Unneeded, ...]:
    """Remove files from the wheelhouse; one that another patchlock fetches just now stays.

    Returns:
        What was removed.
    """
    removed = []
    for one in files:
        lock = one.folder / f"{one.filename}.part.lock"
        with contextlib.suppress(BusyError), file_lock.hold(lock, wait=0):
            for path in sorted(one.folder.iterdir(), key=lambda path: path == lock):
                path.unlink(missing_ok=True)
            removed.append(one)
        with contextlib.suppress(OSError):  # somebody has begun to fetch it again
            one.folder.rmdir()
    return tuple(removed)
