"""Patched distributions in locks and installs: a lock names the wheel that patching gives; each machine makes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from pathlib import Path
from urllib.parse import unquote

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.catalogue.distributions import Distribution
from patchlock.catalogue.reader import Catalogue
from patchlock.core import atomic_files
from patchlock.distributions import fetching, file_locations, wheelhouse, wheels
from patchlock.distributions.fetching import FetchRequest
from patchlock.distributions.wheel_patching import apply, patch, write
from patchlock.distributions.wheelhouse import LocalWheel, LocalWheels
from patchlock.locks.lock_request import Request
from patchlock.locks.resolution_inputs import ResolutionInputs
from patchlock.model.errors import DownloadError, HashMismatchError, LockStaleError, PolicyError
from patchlock.model.lockfile import Lock, LockedPackage, Original
from patchlock.model.patch import Outcome, OutcomeKind

Say = Callable[[str], None]
_CHANGES_NOTHING = frozenset({OutcomeKind.GONE, OutcomeKind.FIXED_UPSTREAM})


# --- while locking ----------------------------------------------------------------------------------------------------


def substitute_wheels(order: ResolutionInputs, lock: Lock) -> Lock:
    """Put the wheels that we patch in the place of upstream's, each proved with its cases.

    Where upstream has fixed it, its own wheel stays, and that is told.

    Args:
        order: what was asked.
        lock: as resolved; its rules were judged on upstream's wheels.

    Raises:
        PolicyError: the app patches a distribution that nobody asks for, or one that has no wheel.
        UnknownDistributionError: the patches are not for the version that was chosen.
        PatchError: the patches do not do what they say for its wheel.
        DownloadError: the index does not have the wheel any more.
        NetworkError: the index does not answer.
        HashMismatchError: the index has another file under a name that the catalogue knows.
    """
    packages = {package.name: package for package in lock.packages}
    _require_asked(order, packages.keys())
    notices = list(lock.notices)
    for name in dict.fromkeys(rule.name for rule in order.rules.distributions):
        if name in packages:
            packages[name], told = _entered(order, packages[name])
            notices += told
    return dataclasses.replace(lock, packages=tuple(packages.values()), notices=tuple(notices))


def _require_asked(order: ResolutionInputs, names: Collection[NormalizedName]) -> None:
    idle = [rule for rule in order.app.rules.of(order.profile.name).distributions if rule.name not in names]
    if idle:
        raise PolicyError(
            "; ".join(f"nobody asks for {rule.name}, which is to be patched" for rule in idle),
            where=", ".join(str(rule.origin) for rule in idle),
            remedy="remove that [[distribution]]",
        )


def _entered(order: ResolutionInputs, package: LockedPackage) -> tuple[LockedPackage, list[str]]:
    distribution = order.catalogue.distribution(package.name)
    if not package.why.rpartition(" · ")[2].startswith("wheel "):
        raise PolicyError(
            f"{package.name} {package.version} is locked as an sdist, and only wheels are patched",
            where=str(distribution.origin),
            remedy="use a version that has a wheel, or remove the [[distribution]]",
        )
    fixed = distribution.fixed_from
    if fixed and package.version >= fixed and not distribution.versions.contains(package.version, prereleases=True):
        return package, [f"{package.name} {package.version} enters as it is: fixed upstream from {fixed} on"]
    of = Original(version=package.version, url=package.url, sha256=package.sha256, patches=())
    path = _original(package.name, of, str(order.profile.python), order.cache)
    _require_known(distribution, path, of)
    made = patch(distribution, order.catalogue.root, path, sha256=of.sha256)
    told = [f"{package.name} {package.version}: {notice}" for notice in made.notices]
    if made.packed is None:
        return package, [f"{package.name} {package.version} has it fixed upstream, and enters as it is", *told]
    _keep(order.cache, made.packed)
    entered = dataclasses.replace(
        package,
        version=made.packed.version,
        url="",
        sha256=made.packed.sha256,
        original=dataclasses.replace(of, patches=_effective(made.outcomes)),
    )
    return entered, [f"{package.name} enters patched, as {entered.version} ({made.kind.value})", *told]


def _effective(outcomes: tuple[Outcome, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.patch for one in outcomes if one.kind not in _CHANGES_NOTHING))


def _require_known(distribution: Distribution, path: Path, of: Original) -> None:
    known = next((wheel for wheel in distribution.wheels if wheel.filename == path.name), None)
    if known is not None and known.sha256 != of.sha256:
        raise HashMismatchError(
            f"the index has another {path.name} than the one that the patches were tried on",
            where=f"sha256 {of.sha256[:12]}…, wanted {known.sha256[:12]}…",
            remedy="find out from its publisher why it changed before anybody installs it",
        )


# --- while installing -------------------------------------------------------------------------------------------------


def provide(request: Request, lock: Lock, say: Say) -> LocalWheels:
    """Make the patched wheels of a lock on this machine; what lies here already is only hashed.

    Args:
        request: whose lock it is.
        lock: what is to be installed.
        say: told what is being done, in the words of uv.

    Raises:
        LockStaleError: the patches of the catalogue give another wheel than the lock names.
        PatchError: they do not fit upstream's wheel any more.
        DownloadError: the index does not have upstream's wheel any more.
        NetworkError: the index does not answer.
    """
    return {
        package.name: LocalWheel(
            name=package.name,
            version=package.version,
            path=_made(request, package, package.original, lock.provenance.python, say),
            sha256=package.sha256,
        )
        for package in lock.packages
        if package.original is not None
    }


def _made(request: Request, package: LockedPackage, of: Original, python: str, say: Say) -> Path:
    kept = wheelhouse.find(request.cache, package.sha256)
    if kept is not None and atomic_files.has_sha256(kept, package.sha256):
        return kept
    say(f"Building {package.name}=={of.version}")
    packed = _repacked(request.catalogue, package.name, _original(package.name, of, python, request.cache), of)
    say(f"Built {package.name}=={of.version}")
    if packed.sha256 != package.sha256:
        raise LockStaleError(
            f"the patches of {package.name} make {packed.version} of {of.version} now, and the lock names "
            f"{package.version}",
            where=request.lock_name,
            remedy=f"run `patchlock lock {request.app.name} --profile {request.profile.name}`",
        )
    return _keep(request.cache, packed)


def _repacked(catalogue: Catalogue, name: NormalizedName, path: Path, of: Original) -> wheels.PackedWheel:
    """Patch without running the cases: they passed for the bytes that the lock names, and other bytes are refused."""
    original = wheels.read(path, of.sha256)
    patched = apply(catalogue.distribution(name), original)
    return wheels.repack(original, {change.path: change.after for change in patched.changes})


def _keep(cache: Path, packed: wheels.PackedWheel) -> Path:
    return write(packed, wheelhouse.place(cache, packed.sha256, packed.filename).parent)


def original(request: Request, package: LockedPackage, python: str) -> Path:
    """Bring the wheel of upstream that a patched one is made from to this machine; see `provide` for what it raises."""
    of = package.original
    assert of is not None  # noqa: S101 - the caller asks for patched ones only
    return _original(package.name, of, python, request.cache)


def _original(name: NormalizedName, of: Original, python: str, cache: Path) -> Path:
    kept = wheelhouse.find(cache, of.sha256)
    if kept is not None and atomic_files.has_sha256(kept, of.sha256):
        return kept
    if of.url:
        filename = unquote(of.url.rpartition("/")[2])
        wanted = FetchRequest(name=name, filename=filename, url=of.url, sha256=of.sha256)
        return fetching.fetch_one(fetching.from_mirrors([wanted])[0], cache)
    filename, address = _offered(name, of.version, of.sha256, python)
    return fetching.fetch_one(FetchRequest(name=name, filename=filename, url=address, sha256=of.sha256), cache)


def _offered(name: NormalizedName, version: Version, sha256: str, python: str) -> tuple[str, str]:
    for wheel in file_locations.wheels(name, version, python=python):
        if wheel.sha256 == sha256:
            return wheel.filename, wheel.url
    raise DownloadError(
        f"the index does not have the wheel of {name} {version} that is to be patched",
        where=f"sha256 {sha256[:12]}…",
        remedy="name the index that has it with UV_DEFAULT_INDEX, or make the lock again with `patchlock lock`",
    )
