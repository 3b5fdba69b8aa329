"""Bring a lock into another shape: reads the lock, asks for what the shape needs besides, writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from packaging.utils import NormalizedName

from patchlock.catalogue.pairs import require_possible
from patchlock.locks import addresses
from patchlock.locks.exports import cyclonedx, dockerfile, pylock
from patchlock.locks.exports.cyclonedx import AppliedPatch
from patchlock.locks.lock_request import Request, Upstream, read_patched, read_sealed_lock, require_fresh, sources
from patchlock.model import lockfile
from patchlock.model.digests import sha256
from patchlock.model.errors import RefusedError
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import Lock
from patchlock.model.patch import Patch
from patchlock.patches import engine, outcomes, targets


def as_pylock(request: Request) -> str:
    """Write the lock as PEP 751, with the addresses of this machine's index.

    Raises:
        LockMissingError: there is no lock.
        LockFormatError: the lock was changed by hand.
        RefusedError: the lock has patched wheels, which no index has.
        DownloadError: the index does not have the files.
    """
    lock, _ = _lock(request)
    if patched := [f"{package.name} {package.version}" for package in lock.packages if package.original]:
        path = request.catalogue.lock_path(request.app, request.profile, request.platform)
        make = " && ".join(lockfile.patch_commands(lock.packages))
        raise RefusedError(
            f"PEP 751 asks for an address of every file, and there is none of {', '.join(patched)}, which is patched "
            "on each machine",
            remedy=f"take the lock itself: `{make} && uv pip sync --require-hashes --find-links wheels {path}`",
        )
    return pylock.document(lock, request.platform, addresses.locate(lock, request.platform))


def as_cyclonedx(request: Request) -> str:
    """Write the lock and the patched app as an SBOM.

    Raises:
        LockMissingError: there is no lock.
        LockStaleError: the lock was made from something else.
        PatchError: a patch cannot do what it says.
    """
    lock, _ = _lock(request)
    upstream = _upstream(request, lock)
    return cyclonedx.document(
        request.app,
        lock,
        date=upstream.snapshot.date,
        patches=applied(request, upstream),
        distributions=_of_distributions(request, lock),
    )


def as_dockerfile(request: Request, base: str = "") -> str:
    """Write how an image of the pair is built.

    Args:
        request: the pair.
        base: the image to build on, "" for the usual one.

    Raises:
        RefusedError: no image can be for that platform.
        LockMissingError: there is no lock.
        LockStaleError: the lock was made from something else.
        PatchError: a patch cannot do what it says.
    """
    lock, digest = _lock(request)
    path = request.catalogue.lock_path(request.app, request.profile, request.platform)
    text = dockerfile.document(
        request.app,
        request.profile,
        request.platform,
        lock,
        file=path.relative_to(request.catalogue.root).as_posix(),
        sha256=digest,
        base=base,
    )
    _upstream(request, lock)  # proves that the build can do it
    return text


def applied(request: Request, upstream: Upstream) -> tuple[AppliedPatch, ...]:
    """List the patches that change the app's source, each with its own diff, in the order in which they go."""
    wanted = engine.for_profile(request.app.patches, request.profile.name)
    given = sources(request, upstream.snapshot)
    return _steps(wanted, given.contents, given.seen)


def _of_distributions(request: Request, lock: Lock) -> dict[NormalizedName, tuple[AppliedPatch, ...]]:
    """List the patches that change something in distributions of a lock; their wheels are fetched if need be."""
    found = {}
    for package in lock.packages:
        if package.original is not None:
            from patchlock.distributions import wheels  # most locks have no use for them
            from patchlock.locks import patched_distributions

            path = patched_distributions.original(request, package, lock.provenance.python)
            contents = wheels.read(path, package.original.sha256).contents()
            found[package.name] = _steps(request.catalogue.distribution(package.name).patches, contents, {})
    return found


def _steps(
    patches: Iterable[Patch], contents: Mapping[PurePosixPath, bytes], seen: Mapping[PurePosixPath, bytes]
) -> tuple[AppliedPatch, ...]:
    found = []
    for patch in patches:
        wanted = {path: contents[path] for path in targets.candidates((patch,), contents)}
        changes = engine.apply((patch,), wanted, seen).changes
        if changes:
            contents = {**contents, **{change.path: change.after for change in changes}}
            diff = outcomes.diff(changes, before="a", after="b")
            found.append(AppliedPatch(id=patch.id, why=patch.why, source=patch.source, diff=diff))
    return tuple(found)


def _lock(request: Request) -> tuple[Lock, Sha256]:
    require_possible(request.app, request.profile, request.platform)
    lock, data = read_sealed_lock(request)
    return lock, sha256(data)


def _upstream(request: Request, lock: Lock) -> Upstream:
    upstream = read_patched(request)
    require_fresh(request, lock, upstream)
    return upstream
