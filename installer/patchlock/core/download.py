"""Fetch a file by its sha256, or read a page, from a server or this machine: the only HTTP; resumes what was cut."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from patchlock.core import _http_sessions, atomic_files, file_lock
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import DownloadError, HashMismatchError, NetworkError
from patchlock.model.identities import Sha256

if TYPE_CHECKING:
    import requests

_ATTEMPTS = 4
_CONNECT, _SILENCE = 15, 60
"""Seconds until a server must have taken the connection, and until it must have sent the next bytes."""
_BLOCK = 64 * 1024
_BUSY = frozenset({408, 425, 429})
_LONGEST_WAIT = 30.0
OTHER_HOLDER = 3600.0
"""Seconds to wait for another patchlock that fetches the same file."""
_AGAIN = "check the connection or the proxy, and run the same command again: what has come is kept"

_MARKUP = b"<"
"""How web pages begin, and none of the archives that are fetched here."""

_PAGE_TIME = 120.0
"""Seconds in which a page must have come whole, however steadily it drips."""

ProgressCallback = Callable[[int, int], None]
"""Called with the bytes that have come and the bytes of the whole file; 0 where the server does not say."""


def _silent(_done: int, _size: int) -> None:
    pass


def fetch(
    address: str,
    target: Path,
    *,
    sha256: Sha256,
    tell: ProgressCallback = _silent,
    over: requests.Session | None = None,
    pause: Callable[[float], None] = time.sleep,
    wait: float = OTHER_HOLDER,
) -> Path:
    """Bring one file to its place; it is there whole and right, or not at all.

    What was cut off lies beside the place as `<name>.part` and is gone on with. Proxies, certificates and credentials
    are those of the environment (`HTTPS_PROXY`, `SSL_CERT_FILE`, `REQUESTS_CA_BUNDLE`, netrc).

    Args:
        address: `https://…`, `http://…`, `file://…` or a path.
        target: where the file goes; its folder is made.
        sha256: what the file must be.
        tell: see `Tell`.
        over: what `session(encoding="identity")` has opened; None opens connections of its own.
        pause: waits some seconds before another attempt.
        wait: seconds to wait for another patchlock that fetches the same file.

    Raises:
        BusyError: that one did not end in time.
        HashMismatchError: other bytes came; they were removed.
        NetworkError: the server does not answer, or not to the end, several times over, or with a web page, as the
            login of a network does; what had come before is kept.
        DownloadError: it answers that it will not give the file, or the address is none.
    """
    if atomic_files.has_sha256(target, sha256):
        return target
    part = target.with_name(f"{target.name}.part")
    with file_lock.hold(part.with_name(f"{part.name}.lock"), wait=wait):
        if not atomic_files.has_sha256(target, sha256):
            with contextlib.nullcontext(over) if over is not None else session(encoding="identity") as opened:
                _bring(opened, address, part, sha256, tell, pause)
            with part.open("rb+") as file:  # its name promises its bytes, also after a power cut
                os.fsync(file.fileno())
            part.replace(target)
    return target


def fetch_unproved(
    address: str,
    target: Path,
    *,
    tell: ProgressCallback = _silent,
    over: requests.Session | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Sha256:
    """Bring a file whose hash nobody has said, and give the hash of what came; only for a person who asked for that.

    Args:
        address: as in `fetch`.
        target: as in `fetch`; its folder is there.
        tell: as in `fetch`.
        over: as in `fetch`.
        pause: as in `fetch`.

    Raises:
        NetworkError, DownloadError: as `fetch`.
    """
    part = target.with_name(f"{target.name}.part")
    with contextlib.nullcontext(over) if over is not None else session(encoding="identity") as opened:
        _download(opened, address, part, tell, pause)
    part.replace(target)
    return atomic_files.sha256(target)


@dataclass(frozen=True, kw_only=True)
class Page:
    """A small answer, whole."""

    data: bytes
    media_type: str
    """As the server names it, lower case, without parameters; "" where it does not."""
    address: str
    """Where it came from in the end."""


def read_page(
    address: str,
    limit: int,
    *,
    accept: str = "*/*",
    over: requests.Session | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Page:
    """Read a small answer, with the proxies, certificates, credentials and patience of `fetch`.

    Args:
        address: `https://…` or `http://…`.
        limit: most bytes that are read.
        accept: media types, as in the header of that name.
        over: what `session` has opened; None opens connections of its own.
        pause: see `fetch`.

    Raises:
        NetworkError: the server does not answer, or not to the end, several times over.
        DownloadError: it answers that it will not give the page, or gives more than `limit`, or the address is none.
    """
    import requests

    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise DownloadError(
            "only http and https addresses can be read", where=without_secrets(address), remedy="correct the address"
        )
    found: list[Page] = []

    def attempt(opened: requests.Session) -> float | None:
        started = time.monotonic()
        with opened.get(address, headers={"Accept": accept}, stream=True, timeout=(_CONNECT, _SILENCE)) as answer:
            if answer.status_code in _BUSY or answer.status_code >= 500:
                return _seconds(answer.headers.get("Retry-After", ""))
            if answer.status_code != 200:
                raise _refused(address, answer.status_code)
            if parts.scheme == "https" and not answer.url.startswith("https:"):
                raise DownloadError(
                    "the server leads from https to http",
                    where=without_secrets(answer.url),
                    remedy="correct the address",
                )
            data = bytearray()
            for block in answer.iter_content(_BLOCK):
                data += block
                if len(data) > limit:
                    raise DownloadError(
                        f"the answer has more than {limit} bytes",
                        where=without_secrets(address),
                        remedy="correct the address",
                    )
                if time.monotonic() - started > _PAGE_TIME:
                    raise requests.exceptions.ReadTimeout
            media_type = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            found.append(Page(data=bytes(data), media_type=media_type, address=answer.url))
        return None

    with contextlib.nullcontext(over) if over is not None else session() as opened:
        _with_retries(address, lambda: attempt(opened), pause)
    return found[-1]


def _bring(
    opened: requests.Session,
    address: str,
    part: Path,
    sha256: Sha256,
    tell: ProgressCallback,
    pause: Callable[[float], None],
) -> None:
    parts = urlsplit(address)
    local = _local(address)
    if local is not None:
        if not local.is_file():
            raise DownloadError("there is no such file", where=str(local), remedy="correct the path")
        shutil.copyfile(local, part)
    elif parts.scheme in {"http", "https"} and parts.hostname:
        resumed = part.is_file() and part.stat().st_size > 0
        _download(opened, address, part, tell, pause)
        if resumed and atomic_files.sha256(part) != sha256:  # what lay there may be of another file
            part.unlink()
            _download(opened, address, part, tell, pause)
    else:
        raise DownloadError(
            "only http, https and file addresses can be fetched",
            where=without_secrets(address),
            remedy="correct the address",
        )
    found = atomic_files.sha256(part)
    if found != sha256:
        part.unlink()
        gone = "was removed" if local is None else "the copy of it was removed"
        error = HashMismatchError(
            f"{_name(address)} is not the file that was promised, and {gone}",
            where=f"{without_secrets(address)} has sha256 {found[:12]}…, wanted {sha256[:12]}…",
            remedy="the server or a proxy sends different bytes: try again later or elsewhere"
            if local is None
            else "that file stays as it is: put the right one in its place",
        )
        error.found = found
        raise error


def _local(address: str) -> Path | None:
    """Give the path that an address means; a Windows drive is no scheme."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        from urllib.request import url2pathname  # takes as long as all the rest of this module

        return Path(url2pathname(parts.path))
    return Path(address) if not re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", address) else None


def _download(
    opened: requests.Session, address: str, part: Path, tell: ProgressCallback, pause: Callable[[float], None]
) -> None:
    """Try several times; each attempt goes on where the one before stopped."""
    _with_retries(address, lambda: _attempt(opened, address, part, tell), pause)


@contextlib.contextmanager
def session(*, encoding: str = "gzip", at_once: int = 10) -> Iterator[requests.Session]:
    """Open connections that several pages can be read over, also in several threads; keeps no cookies.

    Args:
        encoding: what the server may pack its answers with.
        at_once: connections to one server that are kept open.
    """
    with _http_sessions.open_session(encoding=encoding, at_once=at_once) as opened:
        yield opened


def _with_retries(address: str, attempt_once: Callable[[], float | None], pause: Callable[[float], None]) -> None:
    """Try several times, and name what failed.

    Args:
        address: for messages.
        attempt_once: gives None when all has come, or the seconds after which the server wants to be asked again.
        pause: waits some seconds before another attempt.
    """
    import requests

    failed = ""
    for attempt in range(_ATTEMPTS):
        try:
            wait = attempt_once()
        except requests.exceptions.SSLError as error:
            variable = _http_sessions.deciding_variable()
            wins = variable not in {"", "SSL_CERT_FILE"}
            raise NetworkError(
                "the certificate of the server is not trusted",
                where=_host(address),
                remedy=f"name the certificates of your network or proxy with {variable or 'SSL_CERT_FILE'}"
                f"{', which is set and wins over SSL_CERT_FILE' if wins else ''}, and run this again",
            ) from error
        except (requests.exceptions.InvalidURL, requests.exceptions.TooManyRedirects) as error:
            raise DownloadError(
                "the address leads nowhere", where=without_secrets(address), remedy="correct the address"
            ) from error
        except requests.exceptions.RequestException as error:
            failed, wait = _reason(error), 0.0
        else:
            if wait is None:
                return
            failed = "the server is busy"
        if attempt + 1 < _ATTEMPTS:
            pause(min(max(wait, 2.0**attempt), _LONGEST_WAIT))
    raise NetworkError(
        f"{_name(address)} could not be fetched in {_ATTEMPTS} attempts: {failed}", where=_host(address), remedy=_AGAIN
    )


def _attempt(session: requests.Session, address: str, part: Path, tell: ProgressCallback) -> float | None:
    """Fetch what is missing.

    Returns:
        None when the server has sent all, or the seconds after which it wants to be asked again.
    """
    have = part.stat().st_size if part.is_file() else 0
    headers = {"Range": f"bytes={have}-"} if have else {}
    with session.get(address, headers=headers, stream=True, timeout=(_CONNECT, _SILENCE)) as answer:
        if answer.status_code == 416:  # nothing is left of it: the file is whole, or another one
            whole = re.fullmatch(r"bytes \*/(\d+)", answer.headers.get("Content-Range", ""))
            if whole and int(whole[1]) == have:
                return None
            part.unlink()
            return 0.0
        if answer.status_code in _BUSY or answer.status_code >= 500:
            return _seconds(answer.headers.get("Retry-After", ""))
        if answer.status_code not in {200, 206}:
            raise _refused(address, answer.status_code)
        begins = re.match(rf"bytes {have}-", answer.headers.get("Content-Range", ""))
        kept = have if answer.status_code == 206 and begins else 0
        if answer.status_code == 206 and not begins:
            part.unlink(missing_ok=True)
            return 0.0
        size = answer.headers.get("Content-Length", "")
        _write(answer, address, part, kept, kept + int(size) if size.isdigit() else 0, tell)
    return None


def _reason(error: requests.exceptions.RequestException) -> str:
    """Say in a clause what requests says in a paragraph."""
    from requests import exceptions

    if isinstance(error, exceptions.ProxyError):
        return "the proxy does not answer"
    if isinstance(error, exceptions.Timeout):
        return "there was no answer in time"
    if isinstance(error, exceptions.ChunkedEncodingError):
        return "the connection ended too early"
    return "there is no connection" if isinstance(error, exceptions.ConnectionError) else type(error).__name__


def _write(answer: requests.Response, address: str, part: Path, kept: int, size: int, tell: ProgressCallback) -> None:
    import requests

    done = kept
    blocks = answer.iter_content(_BLOCK)
    first = next(blocks, b"")
    if not kept and first.lstrip().startswith(_MARKUP):  # before what has come is overwritten
        raise _web_page(address, answer.url)
    with part.open("ab" if kept else "wb") as file:
        for block in itertools.chain([first], blocks):
            file.write(block)
            done += len(block)
            tell(done, size)
    if size and done < size:
        raise requests.exceptions.ChunkedEncodingError("fewer bytes than promised")


def _web_page(address: str, answered: str) -> NetworkError:
    return NetworkError(
        f"{_name(address)} could not be fetched: the answer is a web page, perhaps the login of this network",
        where=_host(answered),
        remedy="open it in a browser and sign in, or correct the proxy; then run the same command again: what has come "
        "is kept",
    )


def _refused(address: str, status: int) -> DownloadError:
    known = {401: "asks for a password", 403: "does not allow it", 404: "does not have it", 410: "has it no more"}
    remedy = "check the address and the access, or download the file yourself and name it"
    return DownloadError(
        f"{_name(address)} could not be fetched: the server {known.get(status, f'answers {status}')}",
        where=without_secrets(address),
        remedy=remedy,
    )


def _seconds(text: str) -> float:
    """Read `Retry-After`; a date is not worth a parser."""
    return float(text) if text.isdigit() else 0.0


def _name(address: str) -> str:
    return unquote(urlsplit(address).path.rpartition("/")[2]) or _host(address)


def _host(address: str) -> str:
    return urlsplit(address).hostname or address
