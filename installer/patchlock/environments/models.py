"""The models of an installed app: which are there, and bringing them into a store and to where the app looks.

A model of Hugging Face is stored in the user's cache of Hugging Face, which other programs share; any other one in
`<home>/models/`. What an app looks for in a folder is linked there from the store. No file of the user's is touched.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from patchlock.core import atomic_files, disk_space, download, file_lock
from patchlock.core.disk_space import SpaceRequirement
from patchlock.environments import _hugging_face, _trust_on_first_use, generations, kept_catalogue
from patchlock.locks.lock_request import Request
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import DownloadError, HashMismatchError, ModelError, NetworkError, PatchlockError
from patchlock.model.identities import Sha256
from patchlock.model.models import PACKAGES, USER_CACHE, Model, ModelFile, models_for

if TYPE_CHECKING:
    from collections.abc import Mapping

_STORE, _INCOMING = "models", "models"
"""Below the home: what was fetched; below the cache: what is on its way."""
_FETCHED = "fetched.json"
"""In the store: what patchlock has put into caches of Hugging Face."""
_OTHER_HOLDER = 3600.0
"""Seconds to wait for another patchlock that fetches models."""

Tell = Callable[[int, int], None]
"""Called with the bytes of a file that have come, and those of the whole file; 0 where nobody knows."""


@dataclass(frozen=True, kw_only=True)
class LocatedFile:
    """One file of a model, and whether the app would find it."""

    model: Model
    file: ModelFile
    place: Path
    """Where the app looks; in a cache of Hugging Face that does not have it, the folder of the repository."""
    state: Literal["there", "missing", "different"]
    """By its size, where that is known."""


def locate(request: Request) -> tuple[LocatedFile, ...]:
    """Say of each file of the app's models whether it is where the app looks; asks no network, and hashes nothing."""
    return tuple(
        _located(request, model, file)
        for model in models_for(request.app.models, request.profile.name)
        for file in model.files
    )


def _located(request: Request, model: Model, file: ModelFile) -> LocatedFile:
    if model.into:
        place = _place(request, model, file)
    else:
        cache = _cache(request, model)
        place = _hugging_face.cached(model.repository, file.path, model.revision, cache) or _hugging_face.folder(
            model.repository, cache
        )
    state: Literal["there", "missing", "different"] = "missing"
    if place.is_file():
        state = "different" if file.bytes and place.stat().st_size != file.bytes else "there"
    return LocatedFile(model=model, file=file, place=place, state=state)


def _place(request: Request, model: Model, file: ModelFile) -> Path:
    return _base(request, model) / model.placed(file)


def _base(request: Request, model: Model) -> Path:
    if model.base == USER_CACHE:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if model.base == PACKAGES:
        receipt = generations.current(request.installation)
        environment = generations.generation(request.installation, receipt.id if receipt else "none")
        found = environment.glob("Lib/site-packages" if os.name == "nt" else "lib/python*/site-packages")
        return next(found, environment)
    return request.installation.source / request.app.directory


def _cache(request: Request, model: Model) -> Path:
    """Name the cache of Hugging Face that the app asks for a model."""
    if model.hub_cache:
        return request.installation.source / request.app.directory / model.hub_cache
    return _hugging_face.user_cache()


# --- fetching ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def hold(request: Request) -> Iterator[None]:
    """Keep other patchlocks from fetching models, or removing them, and clear what a killed one left in the store."""
    with file_lock.hold(_incoming(request) / "lock", wait=_OTHER_HOLDER):
        for file in _store(request.home).rglob(".*.new"):
            file.unlink()
        yield


def _incoming(request: Request) -> Path:
    return request.cache / _INCOMING


def require_room(request: Request, wanted: Iterable[LocatedFile]) -> None:
    """Make sure that what is going to be fetched fits on the disk.

    Raises:
        DiskFullError: it does not.
    """
    sizes = {True: 0, False: 0}
    for one in wanted:
        sizes[one.model.is_hub] += one.file.bytes
    ours = SpaceRequirement(what="models", folder=_store(request.home), size=sizes[False], variable="PATCHLOCK_HOME")
    needs = [ours]
    if sizes[True]:
        folder = _hugging_face.user_cache()
        needs.append(SpaceRequirement(what="models", folder=folder, size=sizes[True], variable="HF_HOME"))
    disk_space.require(needs)


def bring(request: Request, one: LocatedFile, tell: Tell, note: Callable[[str], None]) -> bool:
    """Bring a file to where the app looks for it; it is there whole and right, or not at all.

    The caller holds the installation and the models.

    Args:
        request: the installed pair.
        one: the file.
        tell: told how much has come.
        note: told what a person must read: what is trusted though nobody has promised it.

    Returns:
        False where it was there already.

    Raises:
        ModelError: other bytes lie where it belongs, or the server does not have it for this user.
        HashMismatchError: other bytes came than promised, or than at the first use.
        NetworkError, DownloadError: it cannot be fetched; says how a person can bring it instead.
    """
    model, file = one.model, one.file
    known = _known(request, model, file)
    if one.place.is_file():
        if known is not None and not atomic_files.has_sha256(one.place, known):
            raise ModelError(
                f"{file.path} of {model.repository} is not the file that lies in its place",
                where=str(one.place),
                remedy=f"move that file away, and run `patchlock models {request.app.name} --fetch` again",
            )
        if known is not None or one.state == "there":
            return False
    try:
        stored = store(request, model, file, tell, note)
    except (NetworkError, DownloadError) as error:
        error.remedy += f"; or {by_hand(one)}"
        if model.into:
            one.place.parent.mkdir(parents=True, exist_ok=True)  # for who does it by hand
        raise
    if model.hub_cache:
        own, name = _cache(request, model), _hugging_face.name_of(stored, file.path)
        _link(stored.resolve(), _hugging_face.blob(model.repository, name.etag, own))
        _hugging_face.name_blob(model.repository, file.path, name, model.revision, own)
    if model.into:
        _link(stored.resolve(), one.place)
    return True


def by_hand(one: LocatedFile) -> str:
    """Say how a person brings a file that cannot be fetched."""
    if one.model.into:
        return f"download {without_secrets(one.model.url(one.file))} in a browser, and save it as {one.place}"
    return f"copy the folder {one.place} from a computer that has it"


def store(request: Request, model: Model, file: ModelFile, tell: Tell, note: Callable[[str], None]) -> Path:
    """Bring a file into the store of its kind, unless it is there; for the arguments and errors see `bring`."""
    known = _known(request, model, file)
    if model.is_hub:
        return _from_hub(request, model, file, known, tell, note)
    return _from_server(request, model, file, known, tell, note)


def _known(request: Request, model: Model, file: ModelFile) -> Sha256 | None:
    """Give the sha256 that a file must have; None where nobody has said, and it was never used."""
    if file.sha256:
        return Sha256(file.sha256)
    if file.path.name in request.accept_changed:
        return None
    return _trust_on_first_use.known(request.home, model.url(file))


def _from_server(
    request: Request, model: Model, file: ModelFile, known: Sha256 | None, tell: Tell, note: Callable[[str], None]
) -> Path:
    """Bring a file of the vendor's own server into the store, unless it is there."""
    stored = _store(request.home) / model.storage_path(file)
    if known is not None and atomic_files.has_sha256(stored, known):
        return stored
    url = model.url(file)
    incoming = _incoming(request) / hashlib.sha256(url.encode()).hexdigest()
    incoming.parent.mkdir(parents=True, exist_ok=True)
    if known is not None:
        with _first_use_told(request, model, file, known):
            download.fetch(url, incoming, sha256=known, tell=tell, pause=_told_pause(url, note))
    else:  # what a killed one has left may be of another edition, which nothing would show
        incoming.with_name(f"{incoming.name}.part").unlink(missing_ok=True)
        _trust(
            request, model, file, download.fetch_unproved(url, incoming, tell=tell, pause=_told_pause(url, note)), note
        )
    _move(incoming, stored)
    return stored


def _told_pause(url: str, note: Callable[[str], None]) -> Callable[[float], None]:
    """Wait before another attempt, and say so."""

    def pause(seconds: float) -> None:
        note(f"{urlsplit(url).hostname} does not answer; trying again in {seconds:.0f} s")
        time.sleep(seconds)

    return pause


def _from_hub(
    request: Request, model: Model, file: ModelFile, known: Sha256 | None, tell: Tell, note: Callable[[str], None]
) -> Path:
    """Bring a file into the user's cache of Hugging Face, unless it is there; gives its name there."""
    shared = _hugging_face.user_cache()
    pointer = _hugging_face.cached(model.repository, file.path, model.revision, shared)
    if pointer is None or (known is not None and not atomic_files.has_sha256(pointer, known)):
        pointer = _fetched(request, model, file, known, tell, note, shared)
    return pointer


def _fetched(
    request: Request,
    model: Model,
    file: ModelFile,
    known: Sha256 | None,
    tell: Tell,
    note: Callable[[str], None],
    cache: Path,
) -> Path:
    found = _hugging_face.describe(model.repository, file.path, model.revision, note)
    blob = _hugging_face.blob(model.repository, found.etag, cache)
    promised = known or (Sha256(found.etag) if _is_sha256(found.etag) else None)
    if known is not None and _is_sha256(found.etag) and found.etag != known:
        raise _changed(request, model, file, known, found.etag)
    is_new = not blob.is_file()
    if is_new or (promised is not None and not atomic_files.has_sha256(blob, promised)):
        incoming = _incoming(request) / hashlib.sha256(model.url(file).encode()).hexdigest()
        incoming.parent.mkdir(parents=True, exist_ok=True)
        pause = _told_pause(found.url, note)
        with download.session(encoding="identity") as opened:
            opened.headers.update(found.headers)
            if promised is not None:
                with _first_use_told(request, model, file, promised):
                    download.fetch(found.url, incoming, sha256=promised, tell=tell, over=opened, pause=pause)
            else:
                download.fetch_unproved(found.url, incoming, tell=tell, over=opened, pause=pause)
                _require_git_hash(model, file, incoming, found.etag)
        _move(incoming, blob)
    if known is None:
        _trust(request, model, file, atomic_files.sha256(blob), note)
    pointer = _hugging_face.name_blob(model.repository, file.path, found, model.revision, cache)
    if is_new:
        ours = (str(cache), model.repository, found.commit, str(file.path))
        _write_fetched(request.home, {*_read_fetched(request.home), ours})
    return pointer


def _is_sha256(etag: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{64}", etag) is not None


@contextlib.contextmanager
def _first_use_told(request: Request, model: Model, file: ModelFile, known: Sha256) -> Iterator[None]:
    """Say of other bytes whether the catalogue promised the right ones, or the first download did."""
    try:
        yield
    except HashMismatchError as error:
        if file.sha256 or _trust_on_first_use.known(request.home, model.url(file)) != known:
            raise
        raise _changed(request, model, file, known, "another one") from error


def _changed(request: Request, model: Model, file: ModelFile, known: Sha256, found: str) -> HashMismatchError:
    where = f"{model.url(file)} has sha256 {found}, wanted {known}"
    if file.sha256:
        return HashMismatchError(
            f"{file.path} of {model.repository} is not the file that {request.app.name} is made for",
            where=where,
            remedy=f"its makers have changed it: report that, with {model.source}",
        )
    command = f"patchlock models {request.app.name} --fetch --accept-changed {file.path.name}"
    return HashMismatchError(
        f"{file.path} of {model.repository} is not the file that was trusted at its first use, "
        f"as {_trust_on_first_use.path(request.home)} has it",
        where=where,
        remedy=f"find out who changed it and why; if the new one is right, run `{command}`",
    )


def _require_git_hash(model: Model, file: ModelFile, incoming: Path, etag: str) -> None:
    """Compare a small file with the name that git gives it, which is all that the server says of its bytes."""
    if _git_hash(incoming.read_bytes()) != etag:
        incoming.unlink()
        raise HashMismatchError(
            f"{file.path} of {model.repository} is not the file that was promised, and was removed",
            where=model.url(file),
            remedy="the server or a proxy sends different bytes: try again later",
        )


def _git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _trust(request: Request, model: Model, file: ModelFile, sha256: Sha256, note: Callable[[str], None]) -> None:
    url = model.url(file)
    before = _trust_on_first_use.known(request.home, url)
    if before == sha256:
        return
    note(
        f"{file.path} of {model.repository}: the catalogue has no sha256 of it; this first download, sha256 {sha256}, "
        f"is trusted, and every later one must be the same ({_trust_on_first_use.path(request.home)})"
    )
    by = f"{request.app.name}@{request.profile.name}"
    _trust_on_first_use.record(request.home, url, sha256, by, replacing=before)


def _move(source: Path, target: Path) -> None:
    """Put a whole and checked file into its place, in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.replace(target)
    except OSError:  # another file system
        atomic_files.atomic_copy(source, target)
        source.unlink()


def _link(source: Path, place: Path) -> None:
    """Let a file of the store appear where the app looks: as a link, or as a copy where neither kind works."""
    if place.is_symlink() and not place.exists():  # to a store that was emptied
        place.unlink()
    if place.is_file() and place.samefile(source):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    for link in (os.link, os.symlink):
        with contextlib.suppress(OSError, NotImplementedError):
            link(source, place)
            return
    atomic_files.atomic_copy(source, place)


# --- carrying to another machine --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CarriedModel:
    """A file of a model, as a bundle has it."""

    url: str
    """Its public address, by which the catalogue knows it."""
    sha256: Sha256
    commit: str = ""
    """Of the repository at Hugging Face; "" for a file of another server."""
    etag: str = ""


def carry(request: Request, tell: Tell, note: Callable[[str], None]) -> dict[CarriedModel, Path]:
    """Bring all files of the app's models into their stores, for a bundle; nothing is put where an app looks.

    Raises:
        PatchlockError: as `bring`.
    """
    found = {}
    for model, file in _files(request):
        path = store(request, model, file, tell, note)
        name = _hugging_face.name_of(path, file.path) if model.is_hub else _hugging_face.CachedName(commit="", etag="")
        carried = CarriedModel(
            url=model.url(file), sha256=atomic_files.sha256(path), commit=name.commit, etag=name.etag
        )
        found[carried] = path.resolve()
    return found


def _files(request: Request) -> Iterator[tuple[Model, ModelFile]]:
    for model in models_for(request.app.models, request.profile.name):
        for file in model.files:
            yield model, file


def places(
    request: Request, carried: Iterable[CarriedModel], read: Callable[[CarriedModel], bytes]
) -> dict[CarriedModel, Path]:
    """Name the place in its store of each carried file that the catalogue knows, and that may have these bytes.

    Args:
        request: the pair.
        carried: of the bundle.
        read: gives the bytes of a small file.
    """
    files = {model.url(file): (model, file) for model, file in _files(request)}
    found = {}
    for one in carried:
        if one.url in files:
            model, file = files[one.url]
            known = _known(request, model, file)
            is_named = re.fullmatch(r"[0-9a-f]{40}", one.commit) and _is_own_etag(one, read)
            if known in {None, one.sha256} and (is_named or not model.is_hub):
                found[one] = (
                    _hugging_face.blob(model.repository, one.etag, _hugging_face.user_cache())
                    if model.is_hub
                    else _store(request.home) / model.storage_path(file)
                )
    return found


def _is_own_etag(one: CarriedModel, read: Callable[[CarriedModel], bytes]) -> bool:
    """Say whether a blob of Hugging Face's cache is named by what it has, so that no other one's place is taken."""
    if _is_sha256(one.etag):
        return one.etag == one.sha256
    return re.fullmatch(r"[0-9a-f]{40}", one.etag) is not None and _git_hash(read(one)) == one.etag


def name_carried(request: Request, carried: Iterable[CarriedModel], note: Callable[[str], None]) -> None:
    """Name files that were put into their places as they are looked for, and remember their bytes."""
    files = {model.url(file): (model, file) for model, file in _files(request)}
    for one in carried:
        model, file = files[one.url]
        if model.is_hub:
            cache = _hugging_face.user_cache()
            name = _hugging_face.CachedName(commit=one.commit, etag=one.etag)
            _hugging_face.name_blob(model.repository, file.path, name, model.revision, cache)
            ours = (str(cache), model.repository, one.commit, str(file.path))
            _write_fetched(request.home, {*_read_fetched(request.home), ours})
        if not file.sha256:
            _trust(request, model, file, one.sha256, note)


# --- removing ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StoredModels:
    """What the store keeps for an app, and no other installation of the home uses."""

    files: tuple[Path, ...]
    """Of `<home>/models/`."""
    commits: tuple[tuple[Path, str, str, tuple[str, ...]], ...]
    """Cache of Hugging Face, repository, commit and files; only what patchlock has put there."""
    bytes: int


def unlink(request: Request) -> None:
    """Remove the app's models from its folder where the store has the same bytes; other files there are the user's."""
    folder = request.installation.source / request.app.directory
    for model in models_for(request.app.models, request.profile.name):
        if model.hub_cache and (folder / model.hub_cache).is_dir():
            _hugging_face.remove_linked(model.repository, folder / model.hub_cache, _hugging_face.user_cache())
        if not model.into or model.base:  # an environment goes as a whole
            continue
        for file in model.files:
            place = _place(request, model, file)
            stored = _stored(request, model, file)
            if stored is not None and stored.is_file() and _is_copy(place, stored):
                place.unlink()
                _remove_empty(place.parent, folder)


def _stored(request: Request, model: Model, file: ModelFile) -> Path | None:
    if not model.is_hub:
        return _store(request.home) / model.storage_path(file)
    found = _hugging_face.cached(model.repository, file.path, model.revision, _hugging_face.user_cache())
    return found.resolve() if found is not None else None


def _is_copy(place: Path, stored: Path) -> bool:
    return place.is_file() and (
        place.samefile(stored)
        or (place.stat().st_size == stored.stat().st_size and atomic_files.sha256(place) == atomic_files.sha256(stored))
    )


def _remove_empty(folder: Path, root: Path) -> None:
    while folder != root and root in folder.parents and not folder.is_symlink():
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def unused(request: Request) -> StoredModels:
    """Find what the store keeps for an app, and no other installation of the home uses; removes nothing."""
    mine = models_for(request.app.models, request.profile.name)
    if not mine:
        return StoredModels(files=(), commits=(), bytes=0)
    others = _urls_of_others(request)
    if others is None:
        return StoredModels(files=(), commits=(), bytes=0)
    free = [(model, file) for model in mine for file in model.files if model.url(file) not in others]
    places = [_store(request.home) / model.storage_path(file) for model, file in free if not model.is_hub]
    files = tuple(path for path in places if path.is_file())
    wanted = {(model.repository, str(file.path)) for model, file in free if model.is_hub}
    kept: dict[tuple[str, str, str], list[str]] = {}
    for cache, repository, commit, name in sorted(_read_fetched(request.home)):
        if (repository, name) in wanted:
            kept.setdefault((cache, repository, commit), []).append(name)
    commits = tuple(
        (Path(cache), repository, commit, tuple(names)) for (cache, repository, commit), names in kept.items()
    )
    pointers = (
        _hugging_face.cached(repository, PurePosixPath(name), commit, cache)
        for cache, repository, commit, names in commits
        for name in names
    )
    size = sum(path.stat().st_size for path in (*files, *pointers) if path is not None)
    return StoredModels(files=files, commits=commits, bytes=size)


def remove(request: Request, stored: StoredModels) -> None:
    """Remove from the store what `unused` has found; killed anywhere, the next call goes on."""
    root = _store(request.home)
    for path in stored.files:
        path.unlink(missing_ok=True)
        _remove_empty(path.parent, root)
    for cache, repository, commit, paths in stored.commits:
        _hugging_face.forget(repository, commit, map(PurePosixPath, paths), cache)
        left = _read_fetched(request.home) - {(str(cache), repository, commit, path) for path in paths}
        _write_fetched(request.home, left)
    with contextlib.suppress(OSError):
        root.rmdir()


def _urls_of_others(request: Request) -> frozenset[str] | None:
    """List the files of the other installations of a home, as the catalogues say that they were made from.

    Returns:
        Addresses; None where one of these catalogues cannot be read, so that nobody knows.
    """
    from patchlock.catalogue.reader import Catalogue

    found: set[str] = set()
    for installation in generations.installations(request.home):
        if installation.folder == request.installation.folder or generations.current(installation) is None:
            continue
        root = kept_catalogue.root(installation)
        try:
            app = (request.catalogue if root is None else Catalogue(root=root)).app(installation.app)
        except PatchlockError:
            return None
        found |= {model.url(file) for model in models_for(app.models, installation.profile) for file in model.files}
    return frozenset(found)


def _store(home: Path) -> Path:
    return home / _STORE


def _read_fetched(home: Path) -> set[tuple[str, str, str, str]]:
    try:
        rows = json.loads((_store(home) / _FETCHED).read_text(encoding="utf-8"))
        return {(str(r["cache"]), str(r["repository"]), str(r["commit"]), str(r["path"])) for r in rows}
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # nothing is ours then, and nothing is removed
        return set()


def _write_fetched(home: Path, rows: Iterable[tuple[str, str, str, str]]) -> None:
    path = _store(home) / _FETCHED
    names = ("cache", "repository", "commit", "path")
    data: list[Mapping[str, str]] = [dict(zip(names, row, strict=True)) for row in sorted(rows)]
    if not data:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.atomic_write(path, json.dumps(data, indent=1))
