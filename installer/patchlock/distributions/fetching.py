"""Fetch several files into the wheelhouse at the same time, each by its sha256, and tell how far all of them are."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import NormalizedName

from patchlock.core import download
from patchlock.distributions import mirrors, wheelhouse
from patchlock.distributions.mirrors import MirrorSearch
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import BusyError, DownloadError, HashMismatchError, NetworkError
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage

if TYPE_CHECKING:
    import requests

AT_ONCE = 6
"""Files on their way together."""
_PATIENCE = 0.5
"""Seconds between two looks at a file that another patchlock fetches."""
_GRACE = 1.0
"""Seconds in which the others may stop after a failure."""
_PULSE = 0.25
"""Seconds between two tellings."""
_NAMED = 2
"""Running files that are named; there may be more."""


@dataclass(frozen=True, kw_only=True)
class FetchRequest:
    """A file that is to be fetched."""

    name: NormalizedName
    filename: str
    url: str
    """With the password, where one is needed."""
    sha256: Sha256
    size: int | None = None
    """Bytes; None where nobody says."""
    elsewhere: MirrorSearch | None = None
    """Where the file of a vendor may lie, too; None for one of the machine's index."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where it is fetched from, in this order."""
        return tuple(dict.fromkeys((*(self.elsewhere.addresses if self.elsewhere else ()), self.url)))


@dataclass(frozen=True, kw_only=True)
class FetchResult:
    """What came of it."""

    paths: Mapping[NormalizedName, Path]
    refused: Mapping[NormalizedName, DownloadError]
    """Files that their server would not give us."""


@dataclass(frozen=True, kw_only=True)
class Transferred:
    """How far all files are."""

    done: int
    """Bytes that are here, those of an earlier run included."""
    total: int
    """Bytes of all files; 0 where nobody says of one of them."""
    names: tuple[str, ...]
    """Some of those that are on their way, the biggest first."""


def from_mirrors(files: Iterable[FetchRequest]) -> tuple[FetchRequest, ...]:
    """Look at the places that this machine is set up with for files whose address in the lock is a vendor's."""
    wanted = tuple(files)
    found = mirrors.search((file.name, file.filename, file.sha256) for file in wanted)
    return tuple(dataclasses.replace(file, elsewhere=found[file.sha256]) for file in wanted)


def from_folders(packages: Iterable[LockedPackage]) -> tuple[FetchRequest, ...]:
    """Give the files of a lock that folders which this machine is set up with have; asks no network.

    A vendor's is also known by its name: other bytes are refused when it is fetched.
    """
    found = []
    for package in packages:
        named = (path for path in mirrors.files_here(package) if package.url and path.name == package.filename)
        if path := mirrors.find_here(package, package.sha256) or next(named, None):
            file = FetchRequest(name=package.name, filename=path.name, url=path.as_uri(), sha256=package.sha256)
            found.append(file)
    return tuple(found)


def _silent(_done: int, _size: int) -> None:
    pass


def fetch_one(
    file: FetchRequest,
    cache: Path,
    *,
    tell: download.ProgressCallback = _silent,
    over: requests.Session | None = None,
    pause: Callable[[float], None] = time.sleep,
    wait: float = download.OTHER_HOLDER,
) -> Path:
    """Bring one file into the wheelhouse, from the first of its addresses that gives its bytes.

    Arguments are those of `download.fetch`.

    Raises:
        BusyError, HashMismatchError, NetworkError, DownloadError: as `download.fetch`, about the last address; where
            else it was looked for is the evidence.
    """
    target = wheelhouse.place(cache, file.sha256, file.filename)
    failed = [] if file.elsewhere is None else list(file.elsewhere.notes)
    *others, last = file.addresses
    for address in others:
        try:
            return download.fetch(address, target, sha256=file.sha256, tell=tell, over=over, pause=pause, wait=wait)
        except (DownloadError, HashMismatchError, NetworkError) as error:
            failed.append(f"{without_secrets(address)}: {error.what}")
    try:
        return download.fetch(last, target, sha256=file.sha256, tell=tell, over=over, pause=pause, wait=wait)
    except (DownloadError, NetworkError) as error:
        if file.elsewhere is not None:
            error.remedy += "; or name a mirror that has it with UV_FIND_LINKS or UV_INDEX"
            error.evidence += tuple(f"looked for at {one}" for one in failed)
        raise


def begun(file: FetchRequest, cache: Path) -> int:
    """Say how many bytes of a file are here from an earlier run."""
    with contextlib.suppress(FileNotFoundError):
        return _part(file, cache).stat().st_size
    return 0


def _part(file: FetchRequest, cache: Path) -> Path:
    target = wheelhouse.place(cache, file.sha256, file.filename)
    return target.with_name(f"{target.name}.part")


def fetch(
    files: tuple[FetchRequest, ...], cache: Path, tell: Callable[[Transferred], None], *, pulse: float = _PULSE
) -> FetchResult:
    """Bring files into the wheelhouse, the biggest first.

    A failure stops all of them; what has come is kept, and gone on with by the next run.

    Args:
        files: what is wanted.
        cache: of patchlock.
        tell: told how far all files are, only by the calling thread.
        pulse: seconds between two tellings.

    Raises:
        HashMismatchError: other bytes came; they were removed.
        NetworkError: a server does not answer, or not to the end, several times over.
    """
    running = _Running(files, cache)
    waiting = collections.deque(
        (file, concurrent.futures.Future[None]()) for file in sorted(files, key=lambda file: -(file.size or 0))
    )
    left = {future for _, future in waiting}
    with download.session(encoding="identity", at_once=AT_ONCE) as opened:
        # Of our own, because those of a pool are waited for, and one that hears nothing from its server may take a
        # minute to see that it should stop.
        threads = [
            threading.Thread(target=_work, args=(waiting, running, cache, opened), daemon=True)
            for _ in range(min(AT_ONCE, len(files)))
        ]
        for thread in threads:
            thread.start()
        try:
            while left:
                done, left = concurrent.futures.wait(left, pulse, concurrent.futures.FIRST_EXCEPTION)
                for one in done:
                    one.result()
                tell(running.told())
        except BaseException:
            running.stop.set()
            waiting.clear()
            for thread in threads:
                thread.join(_GRACE / len(threads))
            raise
    return FetchResult(paths=running.paths, refused=running.refused)


def _work(
    waiting: collections.deque[tuple[FetchRequest, concurrent.futures.Future[None]]],
    running: _Running,
    cache: Path,
    opened: requests.Session,
) -> None:
    """Bring one file after another; runs in a thread, and hands every failure to the one that waits."""
    while not running.stop.is_set():
        try:
            file, future = waiting.popleft()
        except IndexError:
            return
        try:
            running.bring(file, cache, opened)
        except BaseException as error:  # noqa: BLE001 - as a pool does
            future.set_exception(error)
        else:
            future.set_result(None)


class _Running:
    """What the threads have brought so far."""

    def __init__(self, files: tuple[FetchRequest, ...], cache: Path) -> None:
        self.stop = threading.Event()
        self.paths: dict[NormalizedName, Path] = {}
        self.refused: dict[NormalizedName, DownloadError] = {}
        self._guard = threading.Lock()
        self._sizes = {file.name: file.size for file in files}
        self._done = {file.name: begun(file, cache) for file in files}
        self._active: set[NormalizedName] = set()

    def bring(self, file: FetchRequest, cache: Path, opened: requests.Session) -> None:
        """Bring one file; runs in a thread."""

        def tell(done: int, size: int) -> None:
            if self.stop.is_set():
                raise concurrent.futures.CancelledError
            with self._guard:
                self._done[file.name] = done
                self._sizes[file.name] = size or self._sizes[file.name]

        def pause(seconds: float) -> None:
            if self.stop.wait(seconds):
                raise concurrent.futures.CancelledError

        with self._guard:
            self._active.add(file.name)
        try:
            while True:
                with contextlib.suppress(BusyError):
                    target = fetch_one(file, cache, tell=tell, over=opened, pause=pause, wait=_PATIENCE)
                    break
                tell(begun(file, cache), 0)  # another patchlock fetches it, and this one watches
            size = target.stat().st_size
            with self._guard:
                self.paths[file.name] = target
                self._done[file.name] = self._sizes[file.name] = size
        except DownloadError as error:
            with self._guard:
                self.refused[file.name] = error
                del self._done[file.name]
        finally:
            with self._guard:
                self._active.discard(file.name)

    def told(self) -> Transferred:
        """Say how far all files are."""
        with self._guard:
            done, sizes, active = dict(self._done), dict(self._sizes), set(self._active)
        known = [sizes[name] for name in done]
        total = sum(max(size or 0, got) for size, got in zip(known, done.values(), strict=True))
        running = sorted((name for name in done if name in active), key=lambda name: -(sizes[name] or 0))
        return Transferred(done=sum(done.values()), total=0 if None in known else total, names=tuple(running[:_NAMED]))
