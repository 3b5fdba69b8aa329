"""Read parts of a file that lies on a server, such as the table of contents of a wheel, without fetching the rest."""

from __future__ import annotations

import contextlib
import functools
import io
import math
import os
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

from patchlock.core import _http_sessions
from patchlock.model.errors import NetworkError

if TYPE_CHECKING:
    import requests
    from _typeshed import WriteableBuffer

TAIL = 64 * 1024
"""Bytes of the first request: what stands at the end of most wheels, their table of contents, in one go."""
SMALL = 1_000_000
"""Bytes of a file that is taken whole, where the server gives no parts."""
NO_PARTS = "the server gives no parts of files"
_CONNECT, _SILENCE = 10, 30
"""Seconds until a server must have taken the connection, and until it must have sent the next bytes."""
_ATTEMPTS = 2

AT_ONCE = 16
"""Requests that may be on their way together; each is small."""

_opening = threading.Lock()


class RemoteFile(io.RawIOBase):
    """A file on a server, as `zipfile` reads files: it keeps the end, and what it last fetched.

    Raises:
        NetworkError: the server does not answer, or not with parts of the file.
    """

    def __init__(self, address: str, *, ahead: int = 0) -> None:
        """Ask for the end of a file.

        Args:
            address: `https://…` or `http://…`.
            ahead: bytes to fetch at least, for reading on.
        """
        super().__init__()
        self._address = address
        self._ahead = ahead
        self._place = 0
        self.size = 0
        """Bytes of the whole file."""
        self._tail = self._fetch(f"bytes=-{TAIL}")
        self._last = self._tail

    def _fetch(self, wanted: str) -> tuple[int, bytes]:
        """Fetch a part; say where it begins."""
        import requests

        failed: Exception | None = None
        for _ in range(_ATTEMPTS):
            try:
                with _session().get(
                    self._address, headers={"Range": wanted}, timeout=(_CONNECT, _SILENCE), stream=True
                ) as answer:
                    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range", ""))
                    if answer.status_code == 200 and _length(answer) <= SMALL:
                        whole = answer.content
                        self.size = len(whole)
                        return 0, whole
                    if answer.status_code != 206 or found is None:
                        raise self._refused(answer.status_code)
                    self.size = int(found[2])
                    return int(found[1]), answer.content
            except requests.exceptions.ConnectTimeout as error:
                failed = error
                break
            except requests.exceptions.RequestException as error:
                failed = error
        raise NetworkError(
            "the server does not answer", where=self._host(), remedy="check the connection or the proxy"
        ) from failed

    def _refused(self, status: int) -> NetworkError:
        return NetworkError(
            NO_PARTS if status == 200 else f"the server answers {status}",
            where=self._host(),
            remedy="download the file, and name it on this machine",
        )

    def _host(self) -> str:
        return urlsplit(self._address).hostname or self._address

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be read from anywhere."""
        return True

    def tell(self) -> int:
        """Say where the next byte is read."""
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self.size}[whence]
        self._place = max(0, base + offset)
        return self._place

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read as many bytes as the buffer takes, or are left."""
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self.size - self._place)
        if wanted <= 0:
            return 0
        end = self._place + wanted
        for begin, kept in (self._tail, self._last):
            if begin <= self._place and end <= begin + len(kept):
                break
        else:
            last = min(self.size, max(end, self._place + self._ahead)) - 1
            begin, kept = self._last = self._fetch(f"bytes={self._place}-{last}")
        part = kept[self._place - begin : end - begin]
        view[: len(part)] = part
        self._place += len(part)
        return len(part)


def _length(answer: requests.Response) -> float:
    """Say how many bytes a server is about to give; infinite where it does not say."""
    length = answer.headers.get("Content-Length", "")
    return int(length) if length.isdigit() else math.inf


def open_file(address: str, *, ahead: int = 0) -> BinaryIO:
    """Open a file on a server or on this machine for reading from anywhere.

    Args:
        address: `https://…`, `http://…` or `file://…`.
        ahead: bytes to fetch at least with each request, for reading on.

    Raises:
        NetworkError: the server does not answer, or not with parts of the file; while reading, too.
        OSError: the file on this machine cannot be opened.
    """
    parts = urlsplit(address)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path)).open("rb")
    return io.BufferedReader(RemoteFile(address, ahead=ahead), buffer_size=1)


def size(address: str) -> int | None:
    """Ask how many bytes a file has, with one small request, or a second one where the server does not take the first.

    Args:
        address: `https://…`, `http://…` or `file://…`.

    Returns:
        None where nobody says; whoever fetches the file is told why.
    """
    import requests

    parts = urlsplit(address)
    with contextlib.suppress(requests.exceptions.RequestException, OSError):
        if parts.scheme == "file":
            return Path(url2pathname(parts.path)).stat().st_size
        with _session().head(address, allow_redirects=True, timeout=(_CONNECT, _SILENCE)) as answer:
            length = answer.headers.get("Content-Length", "")
            if answer.status_code == 200 and answer.headers.get("Content-Type", "").startswith("text/html"):
                return None  # a page of a proxy: no file of a lock is one
            if answer.status_code == 200 and length.isdigit():
                return int(length)
        if answer.status_code not in {401, 403, 404, 410}:
            one = {"Range": "bytes=0-0"}
            with _session().get(address, headers=one, stream=True, timeout=(_CONNECT, _SILENCE)) as answer:
                whole = re.fullmatch(r"bytes 0-0/(\d+)", answer.headers.get("Content-Range", ""))
                if answer.status_code == 206 and whole:
                    return int(whole[1])
    return None


def _session() -> requests.Session:
    with _opening:
        return _opened()


@functools.cache
def _opened() -> requests.Session:
    return _http_sessions.open_session(encoding="identity", at_once=AT_ONCE)


@dataclass(frozen=True, kw_only=True)
class SmallPage:
    """A small answer, whole."""

    data: bytes
    text: str
    media_type: str
    """As the server names it, lower case; "" where it does not."""
    address: str
    """Where it came from in the end."""


def page(address: str, *, accept: str) -> SmallPage | None:
    """Fetch a small text, such as a page of an index, in one attempt; None where the server has no such page.

    Raises:
        NetworkError: the server does not answer, or with a failure.
    """
    import requests

    host = urlsplit(address).hostname or address
    try:
        answer = _session().get(address, headers={"Accept": accept}, timeout=(_CONNECT, _SILENCE))
    except requests.exceptions.RequestException as error:
        raise NetworkError(
            "the server does not answer", where=host, remedy="check the connection or the proxy"
        ) from error
    if answer.status_code in {404, 410}:
        return None
    if answer.status_code != 200:
        raise NetworkError(f"the server answers {answer.status_code}", where=host, remedy="try again later")
    media_type = answer.headers.get("Content-Type", "").lower()
    return SmallPage(data=answer.content, text=answer.text, media_type=media_type, address=answer.url)
