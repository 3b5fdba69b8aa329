"""Ask the machine's package index what it has of a distribution, and what of it was yanked; fetches no package."""

from __future__ import annotations

import concurrent.futures
import html.parser
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename

from patchlock.core import http_ranges, uv
from patchlock.distributions import _index_pages
from patchlock.model.errors import DownloadError, NetworkError
from patchlock.model.policy import IndexFile

_ENOUGH = 4
"""Pages that are looked at where uv finds no version: an index that is none is none for each name."""
_UNKNOWN = re.compile(r"\bno versions? of ([A-Za-z0-9._-]*[A-Za-z0-9])|\b([A-Za-z0-9._-]+) was not found in")
_FILES = (".whl", ".tar.gz", ".zip", ".tar.bz2", ".tgz", ".egg", ".exe")
"""Source: https://packaging.python.org/en/latest/discussions/package-formats/, and what PyPI took in former years."""
_EMPTY = re.compile(r"(?i)\s*(?:(?:links for|index of|directory listing for)\b.*)?", re.DOTALL)
"""All text of a page without files: PyPI, devpi, Apache, nginx and Python's server each write a heading at most."""
_WANTED = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
"""Source: https://packaging.python.org/en/latest/specifications/simple-repository-api/."""


def address() -> str:
    """Name the index that uv asks on this machine."""
    named = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL")
    return named.rstrip("/") if named else uv.default_index()


def is_asked(*, online: bool) -> bool:
    """Say whether the index may be asked: one that is a folder of this machine needs no network."""
    return online or urlsplit(address()).scheme == "file"


def read(name: NormalizedName, index: str = "") -> tuple[IndexFile, ...]:
    """List all files that the index has of a distribution, in its order; empty where it does not know the name.

    Raises:
        NetworkError: the index does not answer.
        DownloadError: what it answers is no page of an index.
    """
    page = f"{index or address()}/{name}/"
    parts = urlsplit(page)
    if parts.scheme == "file":
        from urllib.request import url2pathname  # it brings all of HTTP along

        path = Path(url2pathname(parts.path)) / "index.html"
        return parse(path.read_text(encoding="utf-8", errors="replace"), str(path)) if path.is_file() else ()
    answer = http_ranges.page(page, accept=_WANTED)
    return parse(answer.text, page) if answer is not None else ()


def parse(text: str, where: str) -> tuple[IndexFile, ...]:
    """Read a page of the simple API, as JSON (PEP 691) or HTML (PEP 503, 592), without wheels that no installer takes.

    Raises:
        DownloadError: it is neither.
    """
    if text.lstrip().startswith("{"):
        try:
            return tuple(filter(_is_named_right, map(_of_json, json.loads(text)["files"])))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _no_page(where) from error
    reader = _Links()
    try:
        reader.feed(text)
        reader.close()
    except AssertionError as error:  # html.parser, of some malformed declarations
        raise _no_page(where) from error
    has_files = any(file.filename.endswith(_FILES) for file in reader.files)
    if not has_files and not _EMPTY.fullmatch("".join(reader.words)) and "pypi:repository-version" not in text:
        raise _no_page(where)  # a login page, a proxy's notice
    return tuple(filter(_is_named_right, reader.files))


def _is_named_right(file: IndexFile) -> bool:
    """Tell whether a file is no wheel, or one whose name can be read: PyPI has a pydantic-0.18-py36+-none-any.whl."""
    try:
        return not file.filename.endswith(".whl") or bool(parse_wheel_filename(file.filename))
    except InvalidWheelFilename:
        return False


def require_pages(words: str) -> None:
    """Look at the index's page of what uv finds no version of: uv takes any text for a page without files.

    Raises:
        NetworkError: the index answers with something else.
    """
    names = sorted({canonicalize_name(a or b) for a, b in _UNKNOWN.findall(words)})[:_ENOUGH]
    if not names or not is_asked(online=uv.is_online()):
        return
    for name in names:
        try:
            read(name)
        except DownloadError as error:
            raise uv.no_page(error.where) from error
        except (NetworkError, OSError):
            continue


def _no_page(where: str) -> DownloadError:
    parts = urlsplit(where)
    public = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if parts.netloc else where
    return DownloadError("that is not a page of a package index", where=public, remedy="check UV_DEFAULT_INDEX")


def _of_json(file: dict[str, object]) -> IndexFile:
    yanked = file.get("yanked", False)
    hashes = file.get("hashes")
    sha256 = hashes.get("sha256", "") if isinstance(hashes, dict) else ""
    reason = None if yanked is False or yanked is None else "" if yanked is True else str(yanked)
    uploaded = _index_pages.upload_time(file.get("upload-time"))
    return IndexFile(filename=str(file["filename"]), sha256=str(sha256), yanked=reason, uploaded=uploaded)


class _Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.files: list[IndexFile] = []
        self.words: list[str] = []

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        href = given.get("href")
        if tag != "a" or href is None:
            return
        file, _, fragment = href.partition("#")
        found = re.search(r"sha256=([0-9a-f]{64})", fragment)
        yanked = (given["data-yanked"] or "") if "data-yanked" in given else None
        self.files.append(
            IndexFile(
                filename=unquote(urlsplit(file).path.rpartition("/")[2]),
                sha256=found[1] if found else "",
                yanked=yanked,
                uploaded=_index_pages.upload_time(given.get("data-upload-time")),
            )
        )


def read_all(names: Iterable[NormalizedName]) -> dict[NormalizedName, tuple[IndexFile, ...]]:
    """List what the index has of several distributions; one that it does not answer for is left out."""
    wanted = sorted(set(names))
    index = address() if wanted else ""
    with concurrent.futures.ThreadPoolExecutor(max_workers=http_ranges.AT_ONCE) as pool:
        answers = zip(wanted, pool.map(lambda name: _read_or_none(name, index), wanted), strict=True)
        return {name: files for name, files in answers if files is not None}


def offered(names: Iterable[NormalizedName]) -> dict[NormalizedName, tuple[IndexFile, ...]]:
    """List what the index has of several distributions, where it may be asked; nothing elsewhere."""
    return read_all(names) if is_asked(online=uv.is_online()) else {}


def _read_or_none(name: NormalizedName, index: str) -> tuple[IndexFile, ...] | None:
    try:
        return read(name, index)
    except (NetworkError, DownloadError, OSError):
        return None
