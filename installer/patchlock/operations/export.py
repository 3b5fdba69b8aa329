"""Bring a lock into another shape: reads the lock, asks for what the shape needs besides, writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from packaging.utils import NormalizedName

from patchlock.catalogue import location
from patchlock.catalogue.pairs import require_possible
from patchlock.core import atomic_files, bundles, command_lines
from patchlock.locks import addresses
from patchlock.locks.exports import cyclonedx, dockerfile, pylock
from patchlock.locks.exports.cyclonedx import AppliedPatch
from patchlock.locks.lock_request import Request, Upstream, read_patched, read_sealed_lock, require_fresh, sources
from patchlock.model import lockfile, needs
from patchlock.model.digests import sha256
from patchlock.model.errors import BundleError, RefusedError
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import Lock
from patchlock.model.patch import Patch
from patchlock.operations import bundle as bundle_operations
from patchlock.patches import engine, outcomes, targets


def as_pylock(request: Request) -> str:
    """Write the lock as PEP 751, with the addresses of this machine's indexes and folders.

    Raises:
        LockMissingError: there is no lock.
        LockFormatError: the lock was changed by hand.
        RefusedError: the lock has patched wheels, which no index has.
        DownloadError: the index does not have the files.
    """
    lock, _ = _lock(request)
    if patched := [f"{package.name} {package.version}" for package in lock.packages if package.original]:
        file = command_lines.quoted(str(request.lock_path))
        sync = f"uv pip sync --require-hashes --find-links wheels {file}"
        make = command_lines.sequence([*lockfile.patch_commands(lock.packages), sync])
        raise RefusedError(
            f"PEP 751 asks for an address of every file, and there is none of {', '.join(patched)}, which is patched "
            "on each machine",
            remedy=f"take the lock itself: `{make}`",
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


def as_dockerfile(request: Request, base: str = "", bundle: Path | None = None, options: Sequence[str] = ()) -> str:
    """Write how an image of the pair is built.

    Args:
        request: the pair.
        base: the image that the app is installed and runs on, "" for the usual one.
        bundle: a bundle of the pair, from which the image is built.
        options: further words of the command that writes it.

    Raises:
        RefusedError: no image can be for that platform.
        LockMissingError: there is no lock.
        LockStaleError: the lock was made from something else.
        PatchError: a patch cannot do what it says.
        BundleError: the bundle is damaged, of another lock, or does not have patchlock itself.
    """
    lock, digest = _lock(request)
    wanted = needs.needs_for((*request.profile.needs, *request.app.needs), request.profile.name, request.platform.name)
    packages = {name for need in wanted for name in request.catalogue.resource(need.name).packages.get("apt", ())}
    text = dockerfile.document(
        request.app,
        request.profile,
        request.platform,
        lock,
        file=request.lock_name,
        sha256=digest,
        base=base,
        packages=sorted(packages),
        bundle=_image_bundle(request, bundle) if bundle is not None else None,
        is_in_checkout=location.is_bundled(root := request.catalogue.root) or (root / "installer").is_dir(),
        options=options,
    )
    if bundle is None:
        _upstream(request, lock)  # proves that the build can do it
    return text


def _image_bundle(request: Request, file: Path) -> dockerfile.ImageBundle:
    """Look at a bundle whole; an image is built from one that has patchlock itself."""
    header = bundle_operations.read_header(file, request.app.name, request.profile.name)
    bundle_operations.require_lock(request, header, file)
    if not any(name.startswith("tool/") for name in bundles.require_whole(file).pieces):
        raise BundleError(
            "the bundle has no patchlock in it, which patches the app while the image is built",
            where=str(file),
            remedy="make it with --with-tool",
        )
    return dockerfile.ImageBundle(file=file.name, sha256=atomic_files.sha256(file))


def as_compose(request: Request, options: Sequence[str] = ()) -> str:
    """Write how the image of the pair is built and run by `docker compose`.

    Args:
        request: the pair.
        options: further words of the command that writes it.

    Raises:
        RefusedError: no image can be for that platform.
        LockMissingError: there is no lock.
    """
    lock, _ = _lock(request)
    return dockerfile.compose(request.app, request.profile, request.platform, lock, options)


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
