"""What all builds of an install share: what is pinned, its wheels, the interpreter and the variables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from packaging.utils import NormalizedName

from patchlock.core import uv
from patchlock.distributions import wheelhouse
from patchlock.environments.builds import _sandbox
from patchlock.locks import lock_request
from patchlock.locks.lock_request import Request
from patchlock.model.lockfile import Lock, LockedPackage
from patchlock.model.recipes import Jobs

Pins = Mapping[NormalizedName, LockedPackage]


@dataclass(frozen=True, kw_only=True)
class BuildContext:
    """What all builds of an install share."""

    request: Request
    lock: Lock
    pins: Pins
    """The pinned build requirements."""
    tell: Callable[[str], None]
    held: int

    @property
    def cache(self) -> Path:
        """Where what was fetched and built is kept."""
        return self.request.cache


def pins_of(request: Request, lock: Lock) -> Pins:
    """Read what the builds of a lock may require."""
    return {package.name: package for package in lock_request.build_pins(lock, request.build_path)}


def fetch_build_requirements(
    shop: BuildContext, already: Mapping[NormalizedName, Path]
) -> Mapping[NormalizedName, Path]:
    """Bring the wheels of all pinned build requirements to this machine, by hash.

    Raises:
        DownloadError: the index does not have one any more.
        NetworkError: the index does not answer.
    """
    places = dict(already)
    missing = []
    for pin in shop.pins.values():
        kept = places.get(pin.name) or wheelhouse.find(shop.cache, pin.sha256)
        if kept is None:
            missing.append(pin)
        else:
            places[pin.name] = kept
    return places | fetch_packages(shop, missing)


def fetch_packages(shop: BuildContext, packages: Iterable[LockedPackage]) -> dict[NormalizedName, Path]:
    """Bring files of the machine's index to this machine, by hash; all are asked for in one question.

    Raises:
        DownloadError, NetworkError, HashMismatchError: as `download.fetch`.
    """
    wanted = tuple(packages)
    if not wanted:
        return {}
    from patchlock.distributions import fetching, mirrors  # what speaks HTTP is imported late
    from patchlock.locks import addresses

    # What uv knows of an index that is not asked does not count.
    here = () if uv.is_online() else fetching.from_folders(wanted)
    found = {file.name: fetching.fetch_one(file, shop.cache) for file in here}
    wanted = tuple(package for package in wanted if package.name not in found)
    if not wanted:
        return found
    asked = dataclasses.replace(shop.lock, packages=wanted)
    located = addresses.locate(asked, shop.request.platform)
    for package in wanted:
        place = located[package.name]
        filename = place.filename or unquote(PurePosixPath(place.url).name)
        url = mirrors.with_password(place.url)
        file = fetching.FetchRequest(name=package.name, filename=filename, url=url, sha256=package.sha256)
        shop.tell(f"Downloading {filename}")
        if package.url:
            [file] = fetching.from_mirrors([file])
        found[package.name] = fetching.fetch_one(file, shop.cache)
        shop.tell(f"Downloaded {filename}")
    return found


def build_variables(work: Path, recipe: Mapping[str, str], jobs: Jobs) -> dict[str, str]:
    """Make the environment of a build, with uv's cache where it always is."""
    found = uv.run("cache", "dir", "--no-config", cwd=work, installing=True).text
    return {**_sandbox.variables(work, {}, jobs), "UV_CACHE_DIR": found, **recipe}


def python_of(request: Request, work: Path) -> str:
    """Find the interpreter that the environment has, too."""
    version = str(request.profile.python)
    return uv.run("python", "find", "--no-config", "--no-project", version, cwd=work, installing=True).text
