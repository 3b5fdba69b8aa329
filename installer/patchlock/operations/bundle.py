"""One file with all that an install needs: made on a machine with a network, and taken into the cache of any other."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock import __version__
from patchlock.catalogue import location
from patchlock.catalogue.pairs import require_possible
from patchlock.core import bundles, command_lines
from patchlock.core.bundles import Manifest
from patchlock.environments import bundled_files, kept_catalogue, models, overlays
from patchlock.environments.models import CarriedModel
from patchlock.locks import lock_request
from patchlock.locks.lock_request import Request, fetch, read_patched, read_sealed_lock, require_fresh
from patchlock.model.app import joined_ref
from patchlock.model.byte_sizes import size_text
from patchlock.model.digests import sha256
from patchlock.model.errors import BundleError
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import Lock
from patchlock.model.progress import Progress
from patchlock.operations.install import commit_patched
from patchlock.worktree import upstream_cache

FORMAT = 1
_LOCK, _BUILD, _UPSTREAM = "lock.txt", "lock.build.txt", "upstream.bundle"
_CACHE, _MODELS, _TOOL, _PYTHON, _PATCHLOCK = "cache", "models", "tool", "python", "patchlock"
"""Folders of a bundle. What is in the last three is for whoever unpacks it by hand, before there is a patchlock."""


@dataclass(frozen=True, kw_only=True)
class MadeBundle:
    """A bundle that was made."""

    file: Path
    sha256: Sha256
    bytes: int
    pieces: int
    packages: int
    commit: str


def make(
    request: Request,
    target: Path,
    progress: Progress,
    *,
    with_models: bool = False,
    with_tool: bool = False,
    python: Path | None = None,
) -> MadeBundle:
    """Gather all that installing a pair needs, and write it into one file.

    Args:
        request: the pair; its platform may be another machine's.
        target: the file.
        progress: told what goes on.
        with_models: carry the app's models too.
        with_tool: carry patchlock itself: its files, its packages, uv; patchlock runs from a clone.
        python: an archive with a Python for the machine, to be carried as it is.

    Raises:
        LockMissingError, LockFormatError, LockStaleError: there is no lock that could be installed.
        UpstreamError: the commit, or its history, cannot be had.
        PatchlockError: a file cannot be fetched, patched or built.
    """
    require_possible(request.app, request.profile, request.platform)
    request.catalogue.require_trusted()
    lock, data = read_sealed_lock(request)
    about: dict[str, object] = {
        "patchlock-bundle": FORMAT,
        "patchlock": __version__,
        "app": request.app.name,
        "profile": request.profile.name,
        "platform": request.platform.name,
        "python": lock.provenance.python,
        "lock": sha256(data),
    }
    pieces = {_LOCK: request.lock_path}
    if lock.provenance.build_constraints:
        pieces[_BUILD] = request.build_path
    with bundled_files.hold(request) as (held, folder):
        with progress.stage("source"):
            snapshot = fetch(request)
            upstream = read_patched(request, snapshot)
            require_fresh(request, lock, upstream)
            ref, applied = commit_patched(request, upstream)
            about |= {"commit": snapshot.commit, "patched": applied}
            pieces[_UPSTREAM] = folder / _UPSTREAM
            refs = {f"refs/heads/{request.app.branch}": snapshot.commit, ref: applied}
            if snapshot.tree != snapshot.commit:
                refs[joined_ref(snapshot.commit, request.app.submodules)] = snapshot.tree
            with upstream_cache.held(snapshot.repository):
                upstream_cache.write_bundle(snapshot, refs, pieces[_UPSTREAM])
            progress.say(f"commit {snapshot.commit[:12]}, patched as {applied[:12]}")
        with progress.stage("packages"):
            gathered = bundled_files.gather(request, lock, progress, held=held)
            pieces |= {f"{_CACHE}/{name}": file for name, file in gathered.items()}
            progress.say(f"{len(lock.packages)} packages, each with its sha256")
        if with_models:
            with progress.stage("models"), models.hold(request):
                carried = models.carry(request, lambda _done, _size: None, progress.note)
                pieces |= {_piece_of(one): file for one, file in carried.items()}
                about["models"] = [dataclasses.asdict(one) for one in carried]
                progress.say(f"{len(carried)} files")
        if with_tool:
            with progress.stage("patchlock"):
                pieces |= _tool(request, progress)
                progress.say("its files, its packages and uv")
        if python is not None:
            pieces[f"{_PYTHON}/{python.name}"] = python
        with progress.stage("bundle"):
            digest = bundles.write(target, about, pieces)
            size = target.stat().st_size
            progress.say(f"{len(pieces)} pieces, {size_text(size)}")
    return MadeBundle(
        file=target,
        sha256=digest,
        bytes=size,
        pieces=len(pieces),
        packages=len(lock.packages),
        commit=snapshot.commit,
    )


def _piece_of(model: CarriedModel) -> str:
    return f"{_MODELS}/{model.sha256}"


def _tool(request: Request, progress: Progress) -> dict[str, Path]:
    """List patchlock's own files and what of the catalogue the pair needs, and fetch its packages."""
    root, checkout = request.catalogue.root, location.catalogue_root(None)
    own = checkout / "lockfiles" / "patchlock.txt"
    code = [one for one in (checkout / "installer").rglob("*") if one.is_file() and "__pycache__" not in one.parts]
    tool = (checkout / "install.sh", checkout / "install.ps1", own, *code)
    files = [request.lock_path, *kept_catalogue.files(root, request.app)]
    embedded = root / "patches" / request.app.name / "upstream"
    files += [one for one in embedded.rglob("*") if one.is_file() and "__pycache__" not in one.parts]
    if request.build_path.is_file():
        files.append(request.build_path)
    wheels = bundled_files.tool_files(request, own, progress)
    placed = [(file.relative_to(checkout), file) for file in tool] + [(file.relative_to(root), file) for file in files]
    return {f"{_PATCHLOCK}/{path.as_posix()}": file for path, file in placed} | {
        f"{_TOOL}/{name}": file for name, file in wheels.items()
    }


# --- using one --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class BundleHeader:
    """What a bundle says it is for; nothing of it was looked at but that."""

    app: str
    profile: str
    platform: str
    lock: str
    """sha256 of the lock that it was made from."""
    commit: str = ""
    """Of upstream; "" where the catalogue has upstream itself."""


def read_header(file: Path, app: str, profile: str | None) -> BundleHeader:
    """Read what a bundle is for.

    Args:
        file: the bundle.
        app: that is to be installed.
        profile: that is to be installed on; None takes the bundle's.

    Raises:
        BundleError: it is no bundle, or for something else.
    """
    about = bundles.read_manifest(file).about
    if about.get("patchlock-bundle") != FORMAT:
        raise BundleError(
            f"this patchlock reads bundles of format {FORMAT}, and this one has {about.get('patchlock-bundle')}",
            where=str(file),
            remedy="make it with the same patchlock as is used here",
        )
    found = BundleHeader(
        **{name: str(about.get(name, "")) for name in ("app", "profile", "platform", "lock", "commit")}
    )
    if found.app != app or profile not in {None, found.profile}:
        raise _of_another(
            file,
            f"{found.app} on {found.profile}, not for {app}" + (f" on {profile}" if profile else ""),
            f"install that with `patchlock install {found.app} --from {command_lines.quoted(str(file))}`, or make "
            f"another one with `patchlock bundle {app}{f' --profile {profile}' if profile else ''} -o {app}.bundle`",
        )
    return found


def require_lock(request: Request, header: BundleHeader, file: Path) -> Lock:
    """Compare the lock of a bundle with the catalogue's; gives the latter.

    Raises:
        BundleError: it is another one, or for another platform.
    """
    if header.platform != request.platform.name:
        raise _of_another(
            file,
            f"{header.platform}, and this machine is {request.platform.name}",
            f"make another one with `patchlock bundle {header.app} --profile {header.profile} "
            f"--platform {request.platform.name} -o {header.app}.bundle`",
        )
    lock, data = read_sealed_lock(request)
    if sha256(data) != header.lock:
        raise _of_another(
            file,
            f"another lock than {request.lock_name}, which the catalogue has here",
            "use the catalogue that it was made from, or make it again from this one with `patchlock bundle`",
        )
    return lock


def _of_another(file: Path, what: str, remedy: str) -> BundleError:
    return BundleError(
        f"the bundle was not used: it is for {what}; nothing was touched", where=str(file), remedy=remedy
    )


def take(request: Request, file: Path, header: BundleHeader, progress: Progress) -> tuple[Request, bool]:
    """Look at a bundle whole, then bring its pieces to where an install looks for them, as if it had downloaded them.

    Nothing that the catalogue's lock has no use for is taken, whatever the manifest says.

    Returns:
        The request, which takes archives of overlays from the bundle; and whether it has models.

    Raises:
        BundleError: something about the bundle is not right; nothing was touched.
    """
    lock = require_lock(request, header, file)
    with progress.stage("bundle"):
        progress.say("comparing every piece with its sha256")
        manifest = bundles.require_whole(file)
        places, carried = _places(request, lock, file, manifest)
        bundles.extract(file, places)
        upstream_cache.fetch_bundle(request.app, places[_UPSTREAM], request.cache)
        places[_UPSTREAM].unlink()
        models.name_carried(request, carried, progress.note)
        progress.say(f"{len(manifest.pieces)} pieces, each with its sha256")
    unpublished = {one.filename for one in overlays.wanted(request) if not one.sha256}
    archives = tuple(place for place in places.values() if place.name in unpublished)
    return dataclasses.replace(request, archives=(*request.archives, *archives)), bool(carried)


def _places(
    request: Request, lock: Lock, file: Path, manifest: Manifest
) -> tuple[dict[str, Path], tuple[CarriedModel, ...]]:
    """Say where each piece belongs; every one must have a place here, or be of those that are unpacked by hand."""
    of_cache = {_within(name): digest for name, digest in manifest.pieces.items() if name.startswith(f"{_CACHE}/")}
    strange = bundled_files.strangers(
        request, lock, of_cache, lambda name: bundles.read_piece(file, f"{_CACHE}/{name}")
    )
    if strange:
        raise _refused(file, f"{_CACHE}/{strange[0]} is one piece too many: the lock does not name it")
    if missing := bundled_files.missing(lock, lock_request.build_pins(lock, request.build_path), of_cache):
        raise _refused(file, f"{missing[0]} of the lock is missing")
    expected = {_LOCK: sha256(request.lock_path.read_bytes()), _UPSTREAM: manifest.pieces.get(_UPSTREAM)}
    if lock.provenance.build_constraints:
        expected[_BUILD] = lock.provenance.build_constraints
    for name, digest in expected.items():
        if digest is None or manifest.pieces.get(name) != digest:
            raise _refused(file, f"{name} is missing, or another one")
    places = {f"{_CACHE}/{name}": request.cache / name for name in of_cache}
    places[_UPSTREAM] = request.cache / "upstreams" / f"{request.app.name}.bundle"
    models_here = models.places(request, _carried(file, manifest), lambda one: bundles.read_piece(file, _piece_of(one)))
    places |= {_piece_of(one): place for one, place in models_here.items()}
    by_hand = {name for name in manifest.pieces if PurePosixPath(name).parts[0] in {_TOOL, _PYTHON, _PATCHLOCK}}
    if strange := tuple(sorted(set(manifest.pieces) - set(places) - expected.keys() - by_hand)):
        raise _refused(file, f"{strange[0]} is one piece too many: nothing here asks for it")
    return places, tuple(models_here)


def _carried(file: Path, manifest: Manifest) -> tuple[CarriedModel, ...]:
    listed = manifest.about.get("models", [])
    try:
        assert isinstance(listed, list)  # noqa: S101 - the next line says what becomes of it
        found = tuple(
            CarriedModel(
                url=str(one["url"]), sha256=Sha256(one["sha256"]), commit=str(one["commit"]), etag=str(one["etag"])
            )
            for one in listed
        )
    except (AssertionError, KeyError, TypeError) as error:
        raise _refused(file, f"{bundles.MANIFEST} cannot be read: models") from error
    return tuple(one for one in found if manifest.pieces.get(_piece_of(one)) == one.sha256)


def _within(name: str) -> str:
    return name.partition("/")[2]


def _refused(file: Path, why: str) -> BundleError:
    return BundleError(
        f"the bundle was not used: {why}; nothing was touched",
        where=str(file),
        remedy="make it again from the same catalogue with `patchlock bundle`",
    )
