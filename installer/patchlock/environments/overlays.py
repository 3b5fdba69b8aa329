"""Bring the overlays of a profile into a new environment: archives fetched, known by hash, unpacked, written down."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from patchlock.core import atomic_files, download, file_lock
from patchlock.core.atomic_files import remove_tree
from patchlock.environments import _trust_on_first_use, cache_pruning, preloads
from patchlock.locks.lock_request import Request
from patchlock.model import overlays
from patchlock.model.errors import ArchiveError, HashMismatchError, UsageError
from patchlock.model.identities import Sha256
from patchlock.model.overlays import Overlay

_OTHER_HOLDER = 3600.0
"""Seconds to wait for another patchlock that fetches an overlay."""


def require_possible(request: Request) -> None:
    """Refuse, before anything is fetched, what no overlay of the profile could work with; free where it has none.

    Raises:
        OverlayError: something is missing on this machine.
        UsageError: an archive or a name that the user gives is of no overlay.
    """
    of_pair = wanted(request)
    names = {overlay.filename for overlay in of_pair}
    for given in (*(path.name for path in request.archives), *request.accept_changed):
        if given not in names:
            told = f"its archives: {', '.join(sorted(names))}" if names else "it has no overlays"
            raise UsageError(f"{request.profile.name} has no overlay whose archive is called {given}", remedy=told)
    for overlay in of_pair:
        if overlay.sdk is not None:
            preloads.require_sdk(overlay.sdk, os.environ, overlay.id)


def install_overlays(
    request: Request, environment: Path, tell: Callable[[str], None], note: Callable[[str], None]
) -> None:
    """Put all overlays of the profile into an environment that is not complete yet; other files of it stay as they are.

    Args:
        request: the pair.
        environment: its folder.
        tell: told what is being done.
        note: told what a person must read: what is trusted though nobody has promised it.

    Raises:
        HashMismatchError: an archive has other bytes than promised, or than at its first use.
        ArchiveError: an archive must not be unpacked, or lacks a library.
        NetworkError, DownloadError: it cannot be fetched.
    """
    placed: dict[str, tuple[Overlay, str]] = {}
    for overlay in wanted(request):
        tell(f"fetching {overlay.filename}")
        with file_lock.hold(_cache(request) / "lock", wait=_OTHER_HOLDER):
            archive, sha256 = _archive(request, overlay)
            _unpack(overlay, archive, preloads.folder_of(environment, overlay.id))
            if not overlay.sha256:
                _trust(request, overlay, sha256, note)
        placed[overlay.id] = (overlay, sha256)
    if placed:
        preloads.write(environment, placed)


def wanted(request: Request) -> tuple[Overlay, ...]:
    """List the overlays of a pair."""
    return tuple(overlays.for_platform(request.profile.overlays, request.platform.name))


def fetch_archives(request: Request, tell: Callable[[str], None]) -> list[Path]:
    """Bring the archives of all overlays of a pair into the cache, and nothing into an environment.

    Raises:
        HashMismatchError: an archive has other bytes than promised, or than at its first use.
        NetworkError, DownloadError: it cannot be fetched.
    """
    found = []
    for overlay in wanted(request):
        tell(f"fetching {overlay.filename}")
        with file_lock.hold(_cache(request) / "lock", wait=_OTHER_HOLDER):
            found.append(_archive(request, overlay)[0])
    return found


def _unpack(overlay: Overlay, archive: Path, folder: Path) -> None:
    try:
        from patchlock.core import archives  # with every kind of archive, and few profiles have an overlay

        archives.unpack(archive, folder, pick=overlays.archive_members(overlay))
    except ArchiveError:
        archive.unlink(missing_ok=True)  # the next attempt fetches it again
        raise


def _cache(request: Request) -> Path:
    return request.cache / cache_pruning.OVERLAYS


def _archive(request: Request, overlay: Overlay) -> tuple[Path, Sha256]:
    """Find or fetch the archive of an overlay, and say what it is."""
    given = next((path for path in request.archives if path.name == overlay.filename), None)
    expected = _expected(request, overlay)
    if expected is not None and given is None:
        place = _place(request, overlay, expected)
        if atomic_files.has_sha256(place, expected):
            return place, expected
        if overlay.sha256:
            return download.fetch(overlay.url, place, sha256=expected), expected
    for left in _cache(request).glob("incoming-*"):  # of one that was killed: we hold the lock
        remove_tree(left)
    with tempfile.TemporaryDirectory(prefix="incoming-", dir=_cache(request)) as folder:
        incoming = Path(folder) / overlay.filename
        if given is not None:
            shutil.copyfile(given, incoming)
            found = atomic_files.sha256(incoming)
        else:
            found = download.fetch_unproved(overlay.url, incoming)
        if expected is not None and found != expected:
            raise _changed(request, overlay, expected, found, given)
        place = _place(request, overlay, found)
        place.parent.mkdir(parents=True, exist_ok=True)
        incoming.replace(place)
    return place, found


def _expected(request: Request, overlay: Overlay) -> Sha256 | None:
    if overlay.sha256:
        return Sha256(overlay.sha256)
    return None if overlay.filename in request.accept_changed else _trust_on_first_use.known(request.home, overlay.url)


def _place(request: Request, overlay: Overlay, sha256: Sha256) -> Path:
    return _cache(request) / sha256[:16] / overlay.filename


def _changed(
    request: Request, overlay: Overlay, expected: Sha256, found: Sha256, given: Path | None
) -> HashMismatchError:
    name = overlay.filename
    where = f"{given or overlay.url} has sha256 {found}, wanted {expected}"
    if overlay.sha256:
        return HashMismatchError(
            f"{name} is not the file that {request.profile.name} names", where=where, remedy="fetch it again"
        )
    command = f"patchlock install {request.app.name} --profile {request.profile.name} --accept-changed {name}"
    return HashMismatchError(
        f"{name} is not the file that was trusted at its first use, as {_trust_on_first_use.path(request.home)} has it",
        where=where,
        remedy=f"find out at {overlay.source} who changed it and why; if the new one is right, run `{command}`",
    )


def _trust(request: Request, overlay: Overlay, sha256: Sha256, note: Callable[[str], None]) -> None:
    before = _trust_on_first_use.known(request.home, overlay.url)
    if before == sha256:
        return
    given = any(path.name == overlay.filename for path in request.archives)
    note(
        f"{overlay.filename}: {overlay.unpublished}; "
        f"{'the file you gave' if given else 'this first download'}, sha256 {sha256}, is trusted without proof, "
        f"and every later one must be the same ({_trust_on_first_use.path(request.home)})"
    )
    by = f"{request.app.name}@{request.profile.name}"
    _trust_on_first_use.record(request.home, overlay.url, sha256, by, replacing=before)
