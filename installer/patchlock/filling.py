"""Fill an environment: from uv's cache and the wheelhouse if they have all; otherwise fetch what is missing first."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import NormalizedName

from patchlock import (
    addresses,
    disk_room,
    download,
    environments,
    fetching,
    indexes,
    inspection,
    originals,
    providing,
    settling,
    sizes,
    source_builds,
    uv,
    uv_cache,
    wheelhouse,
)
from patchlock.disk_room import Need
from patchlock.errors import (
    CommandFailedError,
    DiskFullError,
    DownloadError,
    HashMismatchError,
    NetworkError,
    PatchlockError,
    UnsatisfiableError,
)
from patchlock.exports.pylock import Located
from patchlock.fetching import Wanted
from patchlock.gathering import Request, rules_of
from patchlock.inspection import Contents, Deviation
from patchlock.lockfile import Lock, LockedPackage
from patchlock.model import Sha256
from patchlock.originals import Unknown
from patchlock.wheelhouse import LocalWheel, LocalWheels

if TYPE_CHECKING:
    from patchlock.install import Progress


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Filling:
    """One environment that is being filled."""

    request: Request
    lock: Lock
    folder: Path
    progress: Progress
    held: int
    locked: Path
    build: Path | None
    afresh: frozenset[NormalizedName]

    @property
    def packages(self) -> str:
        return f"{len(self.lock.packages)} packages"

    def say(self, text: str) -> None:
        self.progress.say(f"{self.packages}: {text}")

    def sync(self, local: LocalWheels, *, offline: bool) -> None:
        environments.sync(
            self.folder,
            self.locked,
            local,
            rules_of(self.request).source_builds,
            self.build,
            tell=_of_uv(self.say),
            lock=self.held,
            offline=offline,
            afresh=self.afresh,
        )


def fill(
    request: Request,
    lock: Lock,
    folder: Path,
    progress: Progress,
    held: int,
    *,
    kept: Path | None = None,
    afresh: frozenset[NormalizedName] = frozenset(),
) -> None:
    """Fill an empty environment with exactly what a lock names.

    Where uv's cache and the wheelhouse have all of it, nobody is asked anything. Otherwise what is missing is fetched
    into the wheelhouse, once there is room for it; what is built from an sdist, and what only uv gets, is left to uv.

    Args:
        request: the pair.
        lock: what is to be installed.
        folder: the environment, as `environments.create` made it.
        progress: told what goes on.
        held: descriptor of the installation's lock, for children.
        kept: another generation, whose lock is taken instead of the catalogue's.
        afresh: distributions that uv's cache is not trusted with; see `environments.sync`.

    Raises:
        WheelError: a wheel has files that do not belong into an environment.
        DiskFullError: there is not enough room; nothing was fetched or unpacked.
        HashMismatchError: somebody gave other bytes; nothing of them was kept.
        NetworkError: the index or a server does not answer.
        DownloadError: they do not have the files, or do not give them.
    """
    path = request.catalogue.lock_path(request.app, request.profile, request.platform)
    build = request.catalogue.build_path(path)
    if kept is not None:
        path, build = kept / environments.LOCK, kept / environments.BUILD
    job = _Filling(
        request=request,
        lock=lock,
        folder=folder,
        progress=progress,
        held=held,
        locked=path,
        build=build if lock.provenance.build_constraints else None,
        afresh=afresh,
    )
    _fill(job)
    contents = inspection.read(folder)
    seen = inspection.look(contents)
    spoilt = _spoilt(job, contents, seen)
    if spoilt:
        names = " ".join(sorted(spoilt))
        progress.note(
            f"uv's cache has changed files, as an edit in another environment or a power cut leaves them; "
            f"unpacked afresh: {names}; "
            f"`{uv.clean(*sorted(spoilt))}` keeps them from coming back"
        )
        environments.empty(folder, lock=held)
        _fill(dataclasses.replace(job, afresh=afresh | spoilt))
        contents = inspection.read(folder)
        seen = inspection.look(contents)
    settling.settle(folder, contents, seen)


def _spoilt(job: _Filling, contents: Contents, seen: Mapping[str, os.stat_result]) -> frozenset[NormalizedName]:
    """Name the distributions of which uv's cache gave other bytes than their wheels have."""
    suspects: dict[NormalizedName, list[Deviation]] = {}
    for deviation in settling.suspects(contents, seen):
        suspects.setdefault(deviation.distribution.name, []).append(deviation)
    found = set()
    for name, deviations in suspects.items():
        paths = [deviation.path for deviation in deviations]
        answer = originals.members(job.folder, job.lock, job.request.platform, name, paths, cache=job.request.cache)
        if isinstance(answer, Unknown):
            job.progress.note(f"whether uv's cache has changed files of {name} is not known: {answer.why}")
        elif any(answer.get(deviation.path, deviation.sha256) != deviation.sha256 for deviation in deviations):
            found.add(name)
    return frozenset(found)


def _fill(job: _Filling) -> None:
    request, lock, held = job.request, job.lock, job.held
    made = providing.provide(request, lock, tell=_of_uv(job.say), held=held)
    source_builds.note(job.folder, request, lock, made)
    local = {**_kept(lock.packages, request.cache), **made}
    _require_room_for_copies(job, local)
    try:
        _from_here(job, local)
    except (NetworkError, UnsatisfiableError):
        if not uv.is_online():
            raise
        made = {name: wheel for name, wheel in made.items() if wheel.path.is_file()}
        _with_what_is_missing(job, {**_kept(lock.packages, request.cache), **made})


def _kept(packages: Iterable[LockedPackage], cache: Path) -> dict[NormalizedName, LocalWheel]:
    """Find the wheels of a lock that lie in the wheelhouse."""
    places = {package: wheelhouse.find(cache, package.sha256) for package in packages}
    return {
        package.name: LocalWheel(name=package.name, version=package.version, path=path, sha256=package.sha256)
        for package, path in places.items()
        if path is not None and path.suffix == ".whl"
    }


def _from_here(job: _Filling, local: LocalWheels) -> None:
    """Fill from this machine alone; what lies damaged in the wheelhouse is removed, and then missing.

    Raises:
        NetworkError, UnsatisfiableError: something is missing.
    """
    try:
        job.sync(local, offline=True)
    except (HashMismatchError, CommandFailedError):
        damaged = [wheel for wheel in local.values() if not download.is_there(wheel.path, wheel.sha256)]
        if not damaged:
            raise
        for wheel in damaged:
            wheel.path.unlink(missing_ok=True)
        names = ", ".join(wheel.path.name for wheel in damaged)
        job.progress.note(f"damaged in the wheelhouse, and removed: {names}")
        job.sync({name: wheel for name, wheel in local.items() if wheel not in damaged}, offline=True)


def _with_what_is_missing(job: _Filling, local: LocalWheels) -> None:
    wheels = [p for p in job.lock.packages if p.name not in local and not _is_sdist(p)]
    has_sdists = any(_is_sdist(p) for p in job.lock.packages if p.name not in local)
    job.say("asking where they lie")
    places, unknown = _locate(job, wheels)
    asked = [package for package in wheels if package.name in places]
    missing = uv_cache.uncached(asked, job.folder, environments.interpreter(job.folder)) if asked else frozenset()
    missing |= job.afresh
    files = _wanted([package for package in asked if package.name in missing], places, job.request.cache)
    _require_room(job, files, local)
    fetched = fetching.fetch(files, job.request.cache, job.say) if files else fetching.Fetched(paths={}, refused={})
    refused = {**fetched.refused, **({package.name: unknown for package in wheels} if unknown else {})}
    refused = {name: error for name, error in refused.items() if name not in fetched.paths}
    for error in dict.fromkeys(refused.values()):
        names = ", ".join(sorted(name for name, one in refused.items() if one is error))
        job.progress.note(f"left to uv, without a word on how far it is: {names}; {error.what}")
    try:
        job.sync({**local, **_kept(job.lock.packages, job.request.cache)}, offline=not has_sdists and not refused)
    except (DiskFullError, HashMismatchError):
        raise
    except PatchlockError as error:
        if refused:
            raise next(iter(refused.values())) from error
        raise


def _is_sdist(package: LockedPackage) -> bool:
    return package.why.endswith("sdist")


def _locate(
    job: _Filling, packages: list[LockedPackage]
) -> tuple[Mapping[NormalizedName, Located], DownloadError | None]:
    """Ask for the addresses of wheels; the error is about those of the index, where it does not have all of them."""
    by_address = [package for package in packages if package.url]
    platform = job.request.platform
    try:
        return addresses.locate(_only(job.lock, packages), platform, installing=True), None
    except DownloadError as error:
        return addresses.locate(_only(job.lock, by_address), platform, installing=True), error


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


# --- room -------------------------------------------------------------------------------------------------------------


def _require_room(job: _Filling, files: tuple[Wanted, ...], local: LocalWheels) -> None:
    """Make sure that there is room for what is to be fetched and unpacked; files of unknown size are not counted."""
    cache, home, cached = job.request.cache, job.folder, uv_cache.folder(job.folder)
    coming = sum((file.size or 0) - fetching.begun(file, cache) for file in files)
    unpacked = sum(sizes.unpacked(file.sha256, file.size, cache) for file in files if file.size)
    copied = unpacked + _unpacked_here(local) if _is_copied(home, cached) else 0
    disk_room.require(
        [
            Need(what="wheels to download", folder=cache, size=coming, variable="PATCHLOCK_CACHE_DIR"),
            Need(what="unpacked packages in uv's cache", folder=cached, size=unpacked, variable="UV_CACHE_DIR"),
            Need(what="copies of them in the environment", folder=home, size=copied, variable="PATCHLOCK_HOME"),
        ]
    )


def _require_room_for_copies(job: _Filling, local: LocalWheels) -> None:
    """Make sure that there is room for copies, where uv's cache is on another disk and cannot be linked to."""
    if local and _is_copied(job.folder, uv_cache.folder(job.folder)):
        what = "copies of packages in the environment"
        need = Need(what=what, folder=job.folder, size=_unpacked_here(local), variable="PATCHLOCK_HOME")
        disk_room.require([need])


def _is_copied(home: Path, cached: Path) -> bool:
    return disk_room.look(home).device != disk_room.look(cached).device or uv.copies()


def _unpacked_here(local: LocalWheels) -> int:
    return sum(sizes.unpacked_here(wheel.path) for wheel in local.values())


def _of_uv(say: Callable[[str], None]) -> Callable[[str], None]:
    """Turn what uv says into what is still on its way: `downloading av (34.1MiB), numpy (16.1MiB)`."""
    waiting: dict[str, str] = {}

    def tell(line: str) -> None:
        verb, _, rest = line.strip().partition(" ")
        name = rest.partition(" ")[0]
        if verb in {"Downloading", "Building"}:
            waiting[name] = rest
        elif verb in {"Downloaded", "Built"}:
            waiting.pop(name, None)
        elif verb != "Prepared":
            return
        say(f"downloading {', '.join(waiting.values())}" if waiting else "unpacking")

    return tell
