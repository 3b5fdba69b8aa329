"""Where else the file of a vendor may lie: the indexes and folders that this machine is set up with.

The place does not matter, as the sha256 does. uv looks for a file with an address of its own at that address alone.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from urllib.request import url2pathname

from packaging.utils import NormalizedName, canonicalize_name

from patchlock.core import atomic_files, http_ranges, uv
from patchlock.distributions import _index_pages
from patchlock.distributions._index_pages import Listed
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import PatchlockError
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage

_LINKS = (("UV_FIND_LINKS", r"\s*,\s*"), ("PIP_FIND_LINKS", r"\s+"))
_INDEXES = (
    *("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"),
)
"""Variables and, of the first ones, what stands between two places.

Source: https://docs.astral.sh/uv/reference/environment/ and https://pip.pypa.io/en/stable/topics/configuration/
"""
_NAMED = re.compile(r"([A-Za-z0-9._-]+)=(.+)")
"""A place in UV_INDEX may have a name, by which uv finds its password."""
_AT_ONCE = 16


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """A place that this machine is set up with."""

    address: str
    """`https://…`, `http://…` or `file://…`, with its password."""
    is_index: bool
    """Whether it has a page for each distribution (PEP 503, 691); otherwise one page, or a folder, has all files."""

    def __str__(self) -> str:
        return without_secrets(self.address)


@dataclass(frozen=True, kw_only=True)
class MirrorSearch:
    """What came of looking for one file."""

    addresses: tuple[str, ...]
    """Where it may lie, the first to be asked first."""
    notes: tuple[str, ...]
    """Of each place without it: what it is, and why, a clause each."""


def configured(*, online: bool) -> tuple[Mirror, ...]:
    """List the places that the variables of uv and pip name, folders and pages of links first, each once.

    Args:
        online: whether servers may be asked.
    """
    links = [
        Mirror(address=_address(text), is_index=False)
        for variable, between in _LINKS
        for text in re.split(between, os.environ.get(variable, "").strip())
        if text
    ]
    indexes = [
        Mirror(address=_address(text).rstrip("/"), is_index=True)
        for variable in _INDEXES
        for text in os.environ.get(variable, "").split()
    ]
    return tuple(dict.fromkeys(one for one in (*links, *indexes) if online or one.address.startswith("file:")))


def _address(text: str) -> str:
    """Give the address that a variable means, with user and password where uv has them in variables of their own."""
    named = _NAMED.fullmatch(text)
    name, text = (named[1], named[2]) if named else ("", text)
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text):
        return Path(text).expanduser().absolute().as_uri()
    parts = urlsplit(text)
    key = re.sub(r"[^A-Za-z0-9]", "_", name).upper()
    user, password = (os.environ.get(f"UV_INDEX_{key}_{what}", "") for what in ("USERNAME", "PASSWORD"))
    if not name or not (user or password) or "@" in parts.netloc:
        return text
    return parts._replace(netloc=f"{quote(user, safe='')}:{quote(password, safe='')}@{parts.netloc}").geturl()


def search(files: Iterable[tuple[NormalizedName, str, Sha256]]) -> dict[Sha256, MirrorSearch]:
    """Look for files at all places at the same time, each page once; a place that fails is passed over, with a note.

    Args:
        files: distribution, file name and sha256 of each.
    """
    places = configured(online=uv.is_online())
    wanted = tuple(files)
    if not places or not wanted:
        return {sha256: MirrorSearch(addresses=(), notes=()) for _, _, sha256 in wanted}
    pages = {(place, name if place.is_index else None): None for place in places for name, _, _ in wanted}
    with concurrent.futures.ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        listed = dict(zip(pages, pool.map(lambda page: _listed(*page), pages), strict=True))
    found = {}
    for name, filename, sha256 in wanted:
        addresses: list[str] = []
        notes = []
        for place in places:
            page = listed[place, name if place.is_index else None]
            here = page if isinstance(page, str) else _offered(page, place, filename, sha256)
            if isinstance(here, str):
                notes.append(f"{place}: {here}")
            else:
                addresses.append(here.url)
        found[sha256] = MirrorSearch(addresses=tuple(addresses), notes=tuple(notes))
    return found


def files_here(package: LockedPackage) -> list[Path]:
    """List what folders of this machine, and indexes that are one, have of a version; asks no network."""
    begin = canonicalize_name(f"{package.name}-{package.version}-")
    pages = [_listed(place, package.name if place.is_index else None) for place in configured(online=False)]
    files = [file for page in pages if not isinstance(page, str) for file in page if file.url.startswith("file:")]
    urls = (one.url for one in files if canonicalize_name(one.filename).startswith(begin))
    return [Path(url2pathname(urlsplit(url).path)) for url in urls]


def find_here(package: LockedPackage, sha256: str) -> Path | None:
    """Find a file of a version that has these bytes among `files_here`."""
    return next((path for path in files_here(package) if atomic_files.has_sha256(path, Sha256(sha256))), None)


def _offered(page: tuple[Listed, ...], place: Mirror, filename: str, sha256: Sha256) -> Listed | str:
    same = [file for file in page if file.filename == filename]
    for file in same:
        if file.sha256 in {None, sha256}:
            return dataclasses.replace(file, url=_signed(file.url, place.address))
    return "it has other bytes under that name" if same else "it does not have it"


def with_password(address: str) -> str:
    """Give a file the password of that place of this machine where it lies; uv's answers leave passwords out."""
    signed = (_signed(address, place.address) for place in configured(online=True))
    return next((one for one in signed if one != address), address)


def _signed(file: str, place: str) -> str:
    """Give a file the user and password of a place, if both are of one server."""
    own, of_place = urlsplit(file), urlsplit(place)
    same = (own.scheme, own.netloc) == (of_place.scheme, of_place.netloc.rpartition("@")[2])
    return own._replace(netloc=of_place.netloc).geturl() if same else file


def _listed(place: Mirror, name: NormalizedName | None) -> tuple[Listed, ...] | str:
    """List the files of a page, or say why there are none."""
    address = f"{place.address}/{name}/" if name is not None else place.address
    try:
        if address.startswith("file:"):
            return _of_path(Path(url2pathname(urlsplit(address).path)))
        page = http_ranges.page(address, accept=_index_pages.ACCEPT)
        return _index_pages.read(page.data, page.media_type, page.address) if page is not None else ()
    except PatchlockError as error:
        return error.what
    except OSError as error:
        return str(error.strerror or error).lower()


def _of_path(path: Path) -> tuple[Listed, ...]:
    """List what a folder has, by its page where it has one, or what a page of links has."""
    page = path / "index.html" if path.is_dir() else path
    if page.is_file() and page.suffix in {".html", ".htm"}:
        return _index_pages.read(page.read_bytes(), "text/html", page.as_uri())
    files = sorted(path.iterdir()) if path.is_dir() else []
    return tuple(
        Listed(
            filename=unquote(file.name),
            url=file.as_uri(),
            sha256=None,
            uploaded="",
            has_metadata=False,
            metadata_sha256=None,
            is_yanked=False,
        )
        for file in files
        if file.is_file()
    )
