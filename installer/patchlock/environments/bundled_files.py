"""The files that a bundle carries of an install, by the places that they have below the cache.

Gathering them fills the cache of the machine that makes the bundle; where it is used, the same places are filled, and
the roads of `install` find them there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.core import atomic_files, file_lock
from patchlock.distributions import fetching, index_client, mirrors, wheelhouse
from patchlock.distributions.fetching import FetchRequest, Transferred
from patchlock.environments import cache_pruning, fill, overlays
from patchlock.environments.builds import _records, _source_builds, _store
from patchlock.hardware import probes
from patchlock.locks import addresses, lock_request, patched_distributions, wheel_choice
from patchlock.locks.lock_request import Request
from patchlock.model.addresses import without_secrets
from patchlock.model.app import rules_of
from patchlock.model.digests import sha256
from patchlock.model.errors import DownloadError
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import Lock, LockedPackage
from patchlock.model.platforms import platform_of
from patchlock.model.progress import Progress
from patchlock.model.recipes import recipe_for

_PYTHONS = tuple(Version(text) for text in ("3.11", "3.12", "3.13", "3.14"))
"""What patchlock itself runs on; the machine that the bundle is for has one of them."""
_OTHER_HOLDER = 6 * 3600.0
"""Seconds to wait for another patchlock that gathers files."""


@contextlib.contextmanager
def hold(request: Request) -> Iterator[tuple[int, Path]]:
    """Keep other patchlocks from making bundles.

    Yields:
        The descriptor that holds the lock, and an empty folder of the cache; what a killed one left there is gone.
    """
    with file_lock.hold(request.cache / "bundle.lock", wait=_OTHER_HOLDER) as held:
        folder = request.cache / "bundling"
        atomic_files.remove_tree(folder)
        folder.mkdir()
        try:
            yield held, folder
        finally:
            atomic_files.remove_tree(folder)


def gather(request: Request, lock: Lock, progress: Progress, *, held: int) -> dict[str, Path]:
    """Bring every file of an install into the cache of this machine: wheels, sdists with what builds them, archives.

    What has no wheel is built too, where the bundle is for this kind of machine.

    Args:
        request: the pair.
        lock: of it.
        progress: told what goes on.
        held: descriptor of the lock, by `hold`; builds inherit it.

    Returns:
        POSIX path below the cache → the file.

    Raises:
        PatchlockError: as `environments.fill.fill`, of what is fetched, patched and built.
    """
    if platform_of(probes.basic()) == request.platform:
        made = fill.provide(request, lock, tell=progress.say, held=held)
    else:
        made = patched_distributions.provide(request, lock, progress.say)
    found = [wheel.path for wheel in made.values()]
    found += _fetched(request, lock, [one for one in lock.packages if one.original is None], progress)
    found += _fetched(request, lock, lock_request.build_pins(lock, request.build_path), progress)
    found += _build_files(request, lock, {wheel.sha256 for wheel in made.values()})
    found += overlays.fetch_archives(request, progress.say)
    return {path.relative_to(request.cache).as_posix(): path for path in found}


def _fetched(request: Request, lock: Lock, packages: Iterable[LockedPackage], progress: Progress) -> list[Path]:
    wanted = tuple(packages)
    here = {one: wheelhouse.find(request.cache, one.sha256) for one in wanted}
    paths = {one: path for one, path in here.items() if path and atomic_files.has_sha256(path, one.sha256)}
    missing = tuple(one for one in wanted if one not in paths)
    if missing:
        progress.say(f"asking where {len(missing)} files are")
        places = addresses.locate(dataclasses.replace(lock, packages=missing), request.platform)
        files = [
            FetchRequest(
                name=one.name,
                filename=places[one.name].filename,
                url=mirrors.with_password(places[one.name].url),
                sha256=one.sha256,
                size=places[one.name].size,
            )
            for one in missing
        ]
        vendors = {one.name for one in missing if one.url}
        of_vendors = fetching.from_mirrors(file for file in files if file.name in vendors)
        got = fetching.fetch(
            (*(file for file in files if file.name not in vendors), *of_vendors), request.cache, _tell(progress)
        )
        for error in got.refused.values():
            raise error
        paths |= {one: got.paths[one.name] for one in missing}
    return [paths[one] for one in wanted]


def _tell(progress: Progress) -> Callable[[Transferred], None]:
    def tell(now: Transferred) -> None:
        progress.say(f"downloading {', '.join(now.names)}" if now.names else "downloading")
        progress.transfer(now.done, now.total)

    return tell


def _build_files(request: Request, lock: Lock, made: set[Sha256]) -> list[Path]:
    """List what was written down of the builds whose wheels are carried."""
    found = []
    for folder in _build_folders(request, lock).values():
        for file in sorted(folder.glob(f"*/{cache_pruning.RECORD}")):
            record = _records.parse(file.read_text(encoding="utf-8"))
            if record is not None and made.intersection(record.files.values()):
                found.append(file)
    return found


def _build_folders(request: Request, lock: Lock) -> dict[str, Path]:
    """Name the folders of the builds of a lock, by their POSIX paths below the cache."""
    recipes, allowed = _source_builds.recipes_of(request), rules_of(request).source_builds
    folders = [
        _store.folder(request.cache, _source_builds.inputs_of(request, package, recipe).digest)
        for package in lock.packages
        if package.name in allowed
        for recipe in [recipe_for(package.name, package.version, recipes)]
    ]
    return {folder.relative_to(request.cache).as_posix(): folder for folder in folders}


def strangers(
    request: Request, lock: Lock, pieces: Mapping[str, Sha256], read: Callable[[str], bytes]
) -> tuple[str, ...]:
    """List the pieces that an install from a lock has no use for: nothing of them may come into the cache.

    Args:
        request: the pair.
        lock: the catalogue's own, not the bundle's.
        pieces: path below the cache → sha256.
        read: gives the bytes of a small piece.
    """
    wanted = {one.sha256 for one in (*lock.packages, *lock_request.build_pins(lock, request.build_path))}
    builds = _build_folders(request, lock)
    used = set()
    for name in pieces:
        path = PurePosixPath(name)
        if path.name == cache_pruning.RECORD and len(path.parts) == 4 and str(path.parents[1]) in builds:
            record = _records.parse(read(name).decode("utf-8", errors="replace"))
            if record is not None and sha256(read(name)) == pieces[name]:
                used.add(name)
                wanted |= set(record.files.values())
    archives = {
        f"{cache_pruning.OVERLAYS}/{pieces[name][:16]}/{one.filename}"
        for one in overlays.wanted(request)
        for name in pieces
        if not one.sha256 or one.sha256 == pieces[name]
    }
    for name, digest in pieces.items():
        path = PurePosixPath(name)
        in_wheelhouse = path.parts[:2] == (wheelhouse.FOLDER, digest[:16]) and len(path.parts) == 3
        if (in_wheelhouse and digest in wanted) or name in archives:
            used.add(name)
    return tuple(sorted(set(pieces) - used))


def missing(lock: Lock, of_builds: Iterable[LockedPackage], pieces: Mapping[str, Sha256]) -> tuple[str, ...]:
    """List the distributions of a lock that a bundle does not have, `name version` each."""
    there = set(pieces.values())
    return tuple(f"{one.name} {one.version}" for one in (*lock.packages, *of_builds) if one.sha256 not in there)


# --- what patchlock itself needs --------------------------------------------------------------------------------------

_PIN = re.compile(r"^([A-Za-z0-9._-]+==[^\\\n]+)", re.MULTILINE)


def tool_files(request: Request, lock: Path, progress: Progress) -> dict[str, Path]:
    """Fetch the wheels of patchlock itself, and uv with them, for the platform of a request and each of its Pythons.

    Args:
        request: the pair; its platform alone is looked at.
        lock: `lockfiles/patchlock.txt`.
        progress: told what goes on.

    Returns:
        File name → the file.

    Raises:
        DownloadError: the index does not have some of them; names all.
        NetworkError: the index or a server does not answer.
    """
    text = lock.read_text(encoding="utf-8")
    hashes = set(re.findall(r"--hash=sha256:([0-9a-f]{64})", text))
    pinned = [Requirement(line) for line in _PIN.findall(text)]
    found: dict[str, FetchRequest] = {}
    lacking: list[str] = []
    for python in _PYTHONS:
        progress.say(f"patchlock's own packages for Python {python}")
        seen = wheel_choice.marker_environment(request.platform, python)
        named = [
            (canonicalize_name(one.name), Version(next(iter(one.specifier)).version))
            for one in pinned
            if one.marker is None or one.marker.evaluate(dict[str, str | frozenset[str]](seen))
        ]
        try:
            offered = addresses.offered(named, str(python), request.platform)
        except DownloadError as error:
            lacking += [f"{one}, for Python {python}" for one in error.evidence]
            continue
        files = {located.filename: (digest, located) for digest, located in offered.items() if digest in hashes}
        profile = dataclasses.replace(request.profile, python=python)
        for name, version in named:
            names = [one for one in files if one.endswith(".whl") and _is_of(one, name, version)]
            best = wheel_choice.best_wheel(names, request.platform, profile)
            if best is None:
                lacking.append(f"{name} {version}, for Python {python}")
                continue
            digest, located = files[best]
            found[best] = FetchRequest(
                name=NormalizedName(best),
                filename=best,
                url=mirrors.with_password(located.url),
                sha256=Sha256(digest),
                size=located.size,
            )
    if lacking:
        raise DownloadError(
            "the package index does not have files of patchlock's own lock",
            where=without_secrets(index_client.address()),
            remedy="complete the mirror, or name an index that has them with UV_DEFAULT_INDEX or a folder with "
            "UV_FIND_LINKS",
            evidence=lacking,
        )
    got = fetching.fetch(tuple(found.values()), request.cache, _tell(progress))
    for refusal in got.refused.values():
        raise refusal
    return {filename: got.paths[NormalizedName(filename)] for filename in sorted(found)}


def _is_of(filename: str, name: NormalizedName, version: Version) -> bool:
    from packaging.utils import parse_wheel_filename

    return parse_wheel_filename(filename)[:2] == (name, version)
