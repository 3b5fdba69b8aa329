"""Fetch into the wheelhouse what neither it nor uv's cache has of a lock, once there is room for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from packaging.utils import NormalizedName

from patchlock import addresses, disk_room, environments, fetching, indexes, sizes, uv_cache
from patchlock.disk_room import Need
from patchlock.errors import DownloadError, PatchlockError
from patchlock.exports.pylock import Located
from patchlock.fetching import Wanted
from patchlock.fits import Platform
from patchlock.gathering import Request
from patchlock.identities import Sha256
from patchlock.lockfile import Lock, LockedPackage
from patchlock.wheelhouse import LocalWheels


def fetch(
    request: Request,
    lock: Lock,
    folder: Path,
    local: LocalWheels,
    afresh: frozenset[NormalizedName],
    say: Callable[[str], None],
) -> Mapping[NormalizedName, PatchlockError]:
    """Fetch the wheels that are missing.

    Args:
        request: the pair.
        lock: what is to be installed.
        folder: the environment.
        local: the wheels that lie in the wheelhouse.
        afresh: distributions that uv's cache is not trusted with.
        say: told how far it is.

    Returns:
        What could not be had, each with the reason; uv may still get it.

    Raises:
        DiskFullError: there is not enough room; nothing was fetched.
        HashMismatchError: somebody gave other bytes.
        NetworkError: the index or a server does not answer.
    """
    wheels = [package for package in lock.packages if package.name not in local and not is_sdist(package)]
    say("asking where they lie")
    places, unknown = _locate(lock, wheels, request.platform)
    asked = [package for package in wheels if package.name in places]
    missing = uv_cache.uncached(asked, folder, environments.interpreter(folder)) if asked else frozenset()
    missing |= afresh
    files = _wanted([package for package in asked if package.name in missing], places, request.cache)
    _require_room(folder, files, local, request.cache)
    fetched = fetching.fetch(files, request.cache, say) if files else fetching.Fetched(paths={}, refused={})
    refused = {**fetched.refused, **({package.name: unknown for package in wheels} if unknown else {})}
    return {name: error for name, error in refused.items() if name not in fetched.paths}


def is_sdist(package: LockedPackage) -> bool:
    """Say whether a line of a lock is built where it is installed."""
    return package.why.endswith("sdist")


def _locate(
    lock: Lock, packages: list[LockedPackage], platform: Platform
) -> tuple[Mapping[NormalizedName, Located], DownloadError | None]:
    """Ask for the addresses of wheels; the error is about those of the index, where it does not have all of them."""
    by_address = [package for package in packages if package.url]
    try:
        return addresses.locate(_only(lock, packages), platform, installing=True), None
    except DownloadError as error:
        return addresses.locate(_only(lock, by_address), platform, installing=True), error


def _only(lock: Lock, packages: list[LockedPackage]) -> Lock:
    return dataclasses.replace(lock, packages=tuple(packages))


def _wanted(packages: list[LockedPackage], places: Mapping[NormalizedName, Located], cache: Path) -> tuple[Wanted, ...]:
    located = {
        package.sha256: dataclasses.replace(places[package.name], url=indexes.with_password(places[package.name].url))
        for package in packages
    }
    known: Mapping[Sha256, int] = sizes.gather(located, cache)
    return tuple(
        Wanted(
            name=package.name,
            filename=located[package.sha256].filename,
            url=located[package.sha256].url,
            sha256=package.sha256,
            size=known.get(package.sha256),
        )
        for package in packages
    )


def _require_room(folder: Path, files: tuple[Wanted, ...], local: LocalWheels, cache: Path) -> None:
    """Make sure that there is room for what is to be fetched and unpacked; files of unknown size are not counted."""
    cached = uv_cache.folder(folder)
    coming = sum((file.size or 0) - fetching.begun(file, cache) for file in files)
    unpacked = sum(sizes.unpacked(file.sha256, file.size, cache) for file in files if file.size)
    here = sum(sizes.unpacked_here(wheel.path) for wheel in local.values())
    copied = unpacked + here if uv_cache.is_copied(folder, cached) else 0
    disk_room.require(
        [
            Need(what="wheels to download", folder=cache, size=coming, variable="PATCHLOCK_CACHE_DIR"),
            Need(what="unpacked packages in uv's cache", folder=cached, size=unpacked, variable="UV_CACHE_DIR"),
            Need(what="copies of them in the environment", folder=folder, size=copied, variable="PATCHLOCK_HOME"),
        ]
    )
