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
from urllib.request import url2pathname

from packaging.utils import NormalizedName

from patchlock import ranges, uv
from patchlock.errors import DownloadError, NetworkError
from patchlock.policy.values import IndexFile

_AT_ONCE = 16
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
        path = Path(url2pathname(parts.path)) / "index.html"
        return parse(path.read_text(encoding="utf-8"), str(path)) if path.is_file() else ()
    answer = ranges.get(page, accept=_WANTED)
    return parse(answer, page) if answer is not None else ()


def parse(text: str, where: str) -> tuple[IndexFile, ...]:
    """Read a page of the simple API, as JSON (PEP 691) or HTML (PEP 503, 592).

    Raises:
        DownloadError: it is neither.
    """
    if text.lstrip().startswith("{"):
        try:
            return tuple(_of_json(file) for file in json.loads(text)["files"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _no_page(where) from error
    reader = _Links()
    reader.feed(text)
    if not reader.files and "<a" not in text and "<!doctype html" not in text.lower():
        raise _no_page(where)
    return tuple(reader.files)


def _no_page(where: str) -> DownloadError:
    return DownloadError("that is no page of a package index", where=where, remedy="check UV_DEFAULT_INDEX")


def _of_json(file: dict[str, object]) -> IndexFile:
    yanked = file.get("yanked", False)
    hashes = file.get("hashes")
    sha256 = hashes.get("sha256", "") if isinstance(hashes, dict) else ""
    reason = None if yanked is False or yanked is None else "" if yanked is True else str(yanked)
    return IndexFile(filename=str(file["filename"]), sha256=str(sha256), yanked=reason)


class _Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.files: list[IndexFile] = []

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
            )
        )


def read_all(names: Iterable[NormalizedName]) -> dict[NormalizedName, tuple[IndexFile, ...]]:
    """List what the index has of several distributions; one that it does not answer for is left out."""
    wanted = sorted(set(names))
    index = address() if wanted else ""
    with concurrent.futures.ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        answers = zip(wanted, pool.map(lambda name: _read_or_none(name, index), wanted), strict=True)
        return {name: files for name, files in answers if files is not None}


def _read_or_none(name: NormalizedName, index: str) -> tuple[IndexFile, ...] | None:
    try:
        return read(name, index)
    except (NetworkError, DownloadError, OSError):
        return None
