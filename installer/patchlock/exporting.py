"""Bring a lock into another shape: reads the lock, asks for what the shape needs besides, writes nothing."""

from __future__ import annotations

from patchlock import addresses, gathering, patching, planning
from patchlock.errors import LockFormatError
from patchlock.exports import cyclonedx, dockerfile, pylock
from patchlock.exports.cyclonedx import AppliedPatch
from patchlock.gathering import Request, Upstream
from patchlock.lockfile import Lock
from patchlock.model import Sha256


def as_pylock(request: Request) -> str:
    """Write the lock as PEP 751, with the addresses of this machine's index.

    Raises:
        LockMissingError: there is no lock.
        LockFormatError: the lock was changed by hand.
        DownloadError: the index does not have the files.
    """
    lock, _ = _lock(request)
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
    return cyclonedx.document(request.app, lock, date=upstream.snapshot.date, patches=applied(request, upstream))


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
    contents = upstream.contents
    found = []
    for patch in patching.for_profile(request.app.patches, request.profile.name):
        changes = patching.apply((patch,), contents, upstream.seen).changes
        if changes:
            contents = contents | {change.path: change.after for change in changes}
            diff = planning.diff(changes, before="a", after="b")
            found.append(AppliedPatch(id=patch.id, why=patch.why, source=patch.source, diff=diff))
    return tuple(found)


def _lock(request: Request) -> tuple[Lock, Sha256]:
    planning.require_possible(request.app, request.profile, request.platform)
    lock, data = gathering.read_lock(request)
    if not lock.is_intact:
        path = request.catalogue.lock_path(request.app, request.profile, request.platform)
        raise LockFormatError(
            "its lines were changed since it was written",
            where=path.relative_to(request.catalogue.root).as_posix(),
            remedy=f"run `patchlock lock {request.app.name} --profile {request.profile.name}`",
        )
    return lock, planning.sha256(data)


def _upstream(request: Request, lock: Lock) -> Upstream:
    upstream = gathering.read_upstream(request)
    patching.require_complete(upstream.patched, f"{request.app.name} at {upstream.snapshot.commit[:12]}")
    gathering.require_fresh(request, lock, upstream)
    return upstream
