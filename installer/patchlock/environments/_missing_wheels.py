"""Fetch into the wheelhouse what neither it nor uv's cache has of a lock, once there is room for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from packaging.utils import NormalizedName

from patchlock.core import disk_space, uv
from patchlock.core.disk_space import SpaceRequirement
from patchlock.distributions import fetching, mirrors, recorded_index, wheelhouse
from patchlock.distributions.fetching import FetchRequest
from patchlock.distributions.wheelhouse import LocalWheels
from patchlock.environments import _download_sizes, venv
from patchlock.locks import addresses
from patchlock.locks.exports.pylock import Located
from patchlock.locks.lock_request import Request
from patchlock.model.errors import DownloadError, HashMismatchError, PatchlockError, WheelsMissingError
from patchlock.model.fits import Platform
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import Lock, LockedPackage


def fetch(
    request: Request,
    lock: Lock,
    folder: Path,
    local: LocalWheels,
    afresh: frozenset[NormalizedName],
    say: Callable[[str], None],
    tell: Callable[[fetching.Transferred], None],
) -> Mapping[NormalizedName, PatchlockError]:
    """Fetch the wheels that are missing.

    Args:
        request: the pair.
        lock: what is to be installed.
        folder: the environment.
        local: the wheels that lie in the wheelhouse.
        afresh: distributions that uv's cache is not trusted with.
        say: told what goes on.
        tell: told how far it is.

    Returns:
        What could not be had, each with the reason; uv may still get it.

    Raises:
        DiskFullError: there is not enough room; nothing was fetched.
        HashMismatchError: somebody gave other bytes.
        NetworkError: the index or a server does not answer.
    """
    wheels = [package for package in lock.packages if package.name not in local and not is_sdist(package)]
    say("asking where they are")
    places, unknown = _locate(lock, wheels, request.platform)
    asked = [package for package in wheels if package.name in places]
    missing = uv.uncached(asked, folder, "--python", str(venv.interpreter(folder))) if asked else frozenset()
    missing |= afresh
    files = _wanted([package for package in asked if package.name in missing], places, request.cache)
    _require_room(folder, files, local, request.cache)
    try:
        fetched = fetching.fetch(files, request.cache, tell) if files else fetching.FetchResult(paths={}, refused={})
    except HashMismatchError as error:
        raise _told(error, files, request) from error
    refused = {**fetched.refused, **({package.name: unknown for package in wheels} if unknown else {})}
    return {name: error for name, error in refused.items() if name not in fetched.paths}


def _told(error: HashMismatchError, files: tuple[FetchRequest, ...], request: Request) -> HashMismatchError:
    """Say of other bytes what the records of the profile know of them: whether the file was published again."""
    indexes = [request.catalogue.index(name) for name in request.profile.indexes]
    for file in files:
        if error.found and file.filename.endswith(".whl") and file.filename in error.what:
            known, remedy = recorded_index.told_of_bytes(file.filename, Sha256(error.found), indexes)
            if known:
                return HashMismatchError(f"{error.what}; {known}", where=error.where, remedy=remedy)
    return error


def is_sdist(package: LockedPackage) -> bool:
    """Say whether a line of a lock is built where it is installed."""
    return package.why.endswith("sdist")


def _locate(
    lock: Lock, packages: list[LockedPackage], platform: Platform
) -> tuple[Mapping[NormalizedName, Located], DownloadError | None]:
    """Ask for the addresses of wheels; the error is about those of the index, where it does not have all of them."""
    by_address = [package for package in packages if package.url]
    try:
        return addresses.locate(_only(lock, packages), platform), None
    except DownloadError as error:
        return addresses.locate(_only(lock, by_address), platform), error


def _only(lock: Lock, packages: list[LockedPackage]) -> Lock:
    return dataclasses.replace(lock, packages=tuple(packages))


def _wanted(
    packages: list[LockedPackage], places: Mapping[NormalizedName, Located], cache: Path
) -> tuple[FetchRequest, ...]:
    files = [
        FetchRequest(
            name=package.name,
            filename=places[package.name].filename,
            url=mirrors.with_password(places[package.name].url),
            sha256=package.sha256,
        )
        for package in packages
    ]
    vendors = {package.name for package in packages if package.url}
    of_vendors = fetching.from_mirrors(file for file in files if file.name in vendors)
    files = [file for file in files if file.name not in vendors] + list(of_vendors)
    located = {file.sha256: dataclasses.replace(places[file.name], url=file.addresses[0]) for file in files}
    known: Mapping[Sha256, int] = _download_sizes.collect(located, cache)
    return tuple(dataclasses.replace(file, size=known.get(file.sha256)) for file in files)


def fetch_here(lock: Lock, local: LocalWheels, cache: Path, tell: Callable[[fetching.Transferred], None]) -> bool:
    """Take files from folders that this machine is set up with; asks no network.

    uv takes those of an index from there by itself, unless it knows the index's own address of the file.

    Returns:
        Whether there was any.

    Raises:
        HashMismatchError: one has other bytes.
    """
    absent = (one for one in lock.packages if one.name not in local and not is_sdist(one))
    files = fetching.from_folders(absent)
    return bool(files and fetching.fetch(files, cache, tell).paths)


def missing_error(folder: Path, lock: Lock, local: LocalWheels, cache: Path) -> WheelsMissingError:
    """Say which files of a lock this machine does not have, and that nobody was asked for them."""
    absent = [package for package in lock.packages if package.name not in local]
    asked = [package for package in absent if mirrors.find_here(package, package.sha256) is None] or absent
    # One by one: asked together, those of an index count as missing together.
    python = ("--python", str(venv.interpreter(folder)))
    files = sorted(package.filename for package in asked if uv.uncached([package], folder, *python))
    files = files or sorted(package.filename for package in asked)
    count = f"{len(files)} files of the lock are" if len(files) > 1 else f"{files[0]} is"
    return WheelsMissingError(
        f"{count} not on this machine: neither the wheelhouse nor uv's cache has the file",
        where=str(cache / wheelhouse.FOLDER),
        remedy=f"run the same command without UV_OFFLINE, or put {'them' if len(files) > 1 else 'it'} into a folder "
        "that UV_FIND_LINKS names",
        evidence=files if len(files) > 1 else (),
    )


def _require_room(folder: Path, files: tuple[FetchRequest, ...], local: LocalWheels, cache: Path) -> None:
    """Make sure that there is room for what is to be fetched and unpacked; files of unknown size are not counted."""
    cached = uv.folder(folder)
    coming = sum((file.size or 0) - fetching.begun(file, cache) for file in files)
    unpacked = sum(_download_sizes.unpacked_size(file.sha256, file.size, cache) for file in files if file.size)
    here = sum(_download_sizes.unpacked_here(wheel.path) for wheel in local.values())
    copied = unpacked + here if uv.is_copied(folder, cached) else 0
    disk_space.require(
        [
            SpaceRequirement(what="wheels to download", folder=cache, size=coming, variable="PATCHLOCK_CACHE_DIR"),
            SpaceRequirement(
                what="unpacked packages in uv's cache", folder=cached, size=unpacked, variable="UV_CACHE_DIR"
            ),
            SpaceRequirement(
                what="copies of them in the environment", folder=folder, size=copied, variable="PATCHLOCK_HOME"
            ),
        ]
    )
