"""Fill an environment: from uv's cache and the wheelhouse if they have all; otherwise fetch what is missing first."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import NormalizedName

from patchlock.core import atomic_files, disk_space, uv
from patchlock.core.disk_space import SpaceRequirement
from patchlock.distributions import wheelhouse
from patchlock.distributions.wheelhouse import LocalWheel, LocalWheels
from patchlock.environments import _initial_check, file_owners, inspection, venv
from patchlock.environments.builds import _source_builds
from patchlock.environments.inspection import Contents, Deviation
from patchlock.locks.lock_request import Request
from patchlock.model.app import rules_of
from patchlock.model.errors import (
    CommandFailedError,
    DiskFullError,
    HashMismatchError,
    NetworkError,
    PatchlockError,
    UnsatisfiableError,
)
from patchlock.model.fits import Platform
from patchlock.model.lockfile import Lock, LockedPackage

if TYPE_CHECKING:
    from patchlock.distributions.fetching import Transferred
    from patchlock.model.progress import Progress


_NAMED = 2
"""Packages that a note names; of more it tells the number."""


@dataclass(frozen=True, kw_only=True)
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

    def tell(self, now: Transferred) -> None:
        self.say(f"downloading {', '.join(now.names)}" if now.names else "downloading")
        self.progress.transfer(now.done, now.total)

    def sync(self, local: LocalWheels, *, offline: bool) -> None:
        wheelhouse.require_inside(local)
        try:
            venv.sync(
                self.folder,
                self.lock,
                local,
                rules_of(self.request).source_builds,
                tell=_of_uv(self.say),
                lock=self.held,
                offline=offline,
                afresh=self.afresh,
            )
        except HashMismatchError as error:
            if wrong := self._other_bytes(error):
                error.remedy = f"replace {wrong}, which is another file, and run the same command again"
            where = f"{self.locked}: {error.where}"
            raise HashMismatchError(error.what, where=where, remedy=error.remedy) from error

    def _other_bytes(self, error: HashMismatchError) -> Path | None:
        """Find the file that uv took, where a folder of this machine has it."""
        from patchlock.distributions import mirrors

        asked = [one for one in self.lock.packages if error.found and error.what.startswith(f"{one.name}==")]
        return mirrors.find_here(asked[0], error.found) if asked else None


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
    """Fill an empty environment with exactly what a lock names, look at what uv's cache gave, and begin its ledger.

    Where the cache gave other bytes than a wheel has, the environment is filled once more, with that unpacked afresh.

    Where uv's cache and the wheelhouse have all of it, nobody is asked anything. Otherwise what is missing is fetched
    into the wheelhouse, once there is room for it; what is built from an sdist, and what only uv gets, is left to uv.

    Args:
        request: the pair.
        lock: what is to be installed.
        folder: the environment, as `environments.venv.create` made it.
        progress: told what goes on.
        held: descriptor of the installation's lock, for children.
        kept: another generation, whose lock is taken instead of the catalogue's.
        afresh: distributions that uv's cache is not trusted with; see `environments.venv.sync`.

    Raises:
        WheelError: a wheel has files that do not belong into an environment, or that another one has written.
        DiskFullError: there is not enough room; nothing was fetched or unpacked.
        HashMismatchError: somebody gave other bytes; nothing of them was kept.
        NetworkError: the index or a server does not answer.
        WheelsMissingError: the network is switched off, and not all of it is here.
        DownloadError: they do not have the files, or do not give them.
    """
    path, build = request.lock_path, request.build_path
    if kept is not None:
        path, build = kept / venv.LOCK, kept / venv.BUILD
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
    file_owners.require_one_owner(folder, contents, lock, rules_of(request).exceptions)
    seen = inspection.stat_files(contents)
    damaged = _damaged(job, contents, seen)
    if not damaged:
        _initial_check.create_ledger(folder, contents, seen)
        return
    progress.note(
        f"uv's cache has changed files, as an edit in another environment or a power cut leaves them; "
        f"unpacked again: {' '.join(sorted(damaged))}; "
        f"`{uv.cache_clean_command(*sorted(damaged))}` keeps them from coming back"
    )
    venv.recreate(folder, lock=held)
    _fill(dataclasses.replace(job, afresh=afresh | damaged))
    _initial_check.create_ledger(folder, inspection.read(folder))


def _damaged(job: _Filling, contents: Contents, seen: Mapping[str, os.stat_result]) -> frozenset[NormalizedName]:
    """Name the distributions of which uv's cache gave other bytes than their wheels have."""
    suspects: dict[NormalizedName, list[Deviation]] = {}
    for deviation in _initial_check.suspects(contents, seen):
        suspects.setdefault(deviation.distribution.name, []).append(deviation)
    found = set()
    for name, deviations in suspects.items():
        from patchlock.environments import wheel_members  # it may have to ask the index

        paths = [deviation.path for deviation in deviations]
        answer = wheel_members.members(job.folder, job.lock, job.request.platform, name, paths, cache=job.request.cache)
        if isinstance(answer, wheel_members.UnavailableWheel):
            job.progress.note(f"whether uv's cache has changed files of {name} is not known: {answer.why}")
        elif any(answer.get(deviation.path, deviation.sha256) != deviation.sha256 for deviation in deviations):
            found.add(name)
    return frozenset(found)


def _fill(job: _Filling) -> None:
    request, lock, held = job.request, job.lock, job.held
    venv.keep_lock(job.folder, job.locked, lock, job.build)
    made = provide(request, lock, tell=_of_uv(job.say), held=held)
    _source_builds.record_built_wheels(job.folder, request, lock, made)
    local = {**_kept(lock.packages, request.cache), **made}
    _require_room_for_copies(job, local)
    try:
        _from_here(job, local)
    except (NetworkError, UnsatisfiableError) as error:
        if not uv.is_online():
            _without_network(job, local, error)
            _initial_check.require_inside(job.folder)
            return
        made = {name: wheel for name, wheel in made.items() if wheel.path.is_file()}
        _with_what_is_missing(job, {**_kept(lock.packages, request.cache), **made})
    _initial_check.require_inside(job.folder)


def needs_network(lock: Lock, platform: Platform, cache: Path) -> bool:
    """Say whether something of a lock is on this machine nowhere, and has to be fetched; asks no network.

    Args:
        lock: which.
        platform: that it is for.
        cache: patchlock's.
    """
    from patchlock.distributions import mirrors

    kept = _kept(lock.packages, cache)
    absent = [one.upstream for one in lock.packages if one.name not in kept and one.why.rpartition(" · ")[2] != "sdist"]
    absent = [one for one in absent if wheelhouse.find(cache, one.sha256) is None]
    python = ("--target", ".", "--python-version", lock.provenance.python, "--python-platform", platform.uv)
    with tempfile.TemporaryDirectory(prefix="patchlock-uncached-") as folder:
        missing = uv.uncached(absent, Path(folder), *python)
    return any(not mirrors.files_here(one) for one in absent if one.name in missing)


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
        damaged = [wheel for wheel in local.values() if not atomic_files.has_sha256(wheel.path, wheel.sha256)]
        if not damaged:
            raise
        for wheel in damaged:
            wheel.path.unlink(missing_ok=True)
        names = ", ".join(wheel.path.name for wheel in damaged)
        job.progress.note(f"damaged in the wheelhouse, and removed: {names}")
        job.sync({name: wheel for name, wheel in local.items() if wheel not in damaged}, offline=True)


def _without_network(job: _Filling, local: LocalWheels, first: PatchlockError) -> None:
    """Fill with what folders of this machine have, too.

    Raises:
        WheelsMissingError: something is on this machine nowhere.
    """
    from patchlock.environments import _missing_wheels

    cache = job.request.cache
    if _missing_wheels.fetch_here(job.lock, local, cache, job.tell):
        local = {**local, **_kept(job.lock.packages, cache)}
        try:
            job.sync(local, offline=True)
        except (NetworkError, UnsatisfiableError) as error:
            first = error
        else:
            return
    raise _missing_wheels.missing_error(job.folder, job.lock, local, cache) from first


def _with_what_is_missing(job: _Filling, local: LocalWheels) -> None:
    from patchlock.environments import _missing_wheels  # it speaks HTTP, which nobody needs where everything is here

    has_sdists = any(_missing_wheels.is_sdist(p) for p in job.lock.packages if p.name not in local)
    refused = _missing_wheels.fetch(job.request, job.lock, job.folder, local, job.afresh, job.say, job.tell)
    for error in dict.fromkeys(refused.values()):
        names = sorted(name for name, one in refused.items() if one is error)
        what = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} packages"
        job.progress.note(f"uv downloads {what} itself, without progress: {error.what}")
    try:
        job.sync({**local, **_kept(job.lock.packages, job.request.cache)}, offline=not has_sdists and not refused)
    except (DiskFullError, HashMismatchError):
        raise
    except PatchlockError as error:
        if refused:
            raise next(iter(refused.values())) from error
        raise


def _require_room_for_copies(job: _Filling, local: LocalWheels) -> None:
    """Make sure that there is room for copies, where uv's cache is on another disk and cannot be linked to."""
    if local and uv.is_copied(job.folder, uv.folder(job.folder)):
        from patchlock.environments import _download_sizes  # rarely needed, and it brings HTTP along

        what = "copies of packages in the environment"
        need = SpaceRequirement(
            what=what,
            folder=job.folder,
            size=sum(_download_sizes.unpacked_here(wheel.path) for wheel in local.values()),
            variable="PATCHLOCK_HOME",
        )
        disk_space.require([need])


def _of_uv(say: Callable[[str], None]) -> Callable[[str], None]:
    """Turn what uv says into what goes on: `downloading av (34.1MiB), numpy (16.1MiB); building jieba==0.42.1`."""
    coming: dict[str, str] = {}
    building: dict[str, str] = {}

    def tell(line: str) -> None:
        verb, _, rest = line.strip().partition(" ")
        name = rest.partition(" ")[0]
        if verb == "Downloading":
            coming[name] = rest
        elif verb == "Building":
            building[name] = name
        elif verb == "Downloaded":
            coming.pop(name, None)
        elif verb == "Built":
            building.pop(name, None)
        elif verb != "Prepared":
            return
        going = [("downloading", coming), ("building", building)]
        say("; ".join(f"{what} {', '.join(names.values())}" for what, names in going if names) or "unpacking")

    return tell


def provide(request: Request, lock: Lock, *, tell: Callable[[str], None], held: int) -> LocalWheels:
    """Bring together all wheels that do not come from the index as they are.

    Args:
        request: the pair.
        lock: what is to be installed.
        tell: told what is being done, in a few words.
        held: descriptor of the installation's lock, for children.

    Raises:
        PatchlockError: as `environments.builds._source_builds.provide`.
    """
    from patchlock.environments.builds import _source_builds

    made = dict(_source_builds.provide(request, lock, tell=tell, held=held))
    if any(package.original for package in lock.packages):
        from patchlock.locks import patched_distributions  # most locks have no use for it

        made |= patched_distributions.provide(request, lock, tell)
    return made
