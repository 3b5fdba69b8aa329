"""Ask a recorded index what it has now: its pages and the METADATA beside each wheel; downloads no wheel unasked."""

from __future__ import annotations

import concurrent.futures
import hashlib
import re
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    NormalizedName,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from patchlock.core import download
from patchlock.distributions import _index_pages, recorded_index
from patchlock.distributions._index_pages import Listed
from patchlock.distributions.recorded_index import Change, Kind
from patchlock.model.errors import DownloadError, HashMismatchError, IndexAnswerError, RecordChangedError, UsageError
from patchlock.model.identities import Sha256
from patchlock.model.recorded_index import RecordedIndex, RecordedSdist, RecordedWheel, RecordingFilter

if TYPE_CHECKING:
    import requests

PAGE_LIMIT = 64 * 2**20
"""Bytes. PyPI's largest pages have some 20 MiB."""
METADATA_LIMIT = 4 * 2**20
_AT_ONCE = 8
"""Requests under way at the same time; polite to a host, and enough to hide its latency."""

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Refreshed:
    """What an index has now."""

    wheels: tuple[RecordedWheel, ...]
    sdists: tuple[RecordedSdist, ...]
    whole: RecordingFilter
    """Of what the record is whole now."""
    changes: tuple[Change, ...]
    """Against the record, the refused files among them."""


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A wheel that can be recorded, or why not."""

    wheel: RecordedWheel | None
    why_not: str = ""


def refresh(
    index: RecordedIndex,
    *,
    accept: Iterable[str] = (),
    by_download: bool = False,
    today: str = "",
    tell: Tell = lambda _: None,
) -> Refreshed:
    """Ask the index for everything that its record keeps.

    Args:
        index: the record as it stands.
        accept: file names whose hash may be another one now.
        by_download: fetch files for which the index gives no hash or no METADATA, as a whole.
        today: the day, `2026-01-31`, with which a hash that was computed here is recorded.
        tell: called with what goes on.

    Raises:
        UsageError: the record does not say what it keeps, or `accept` names a file that it does not know.
        RecordChangedError: a known file has another hash, and `accept` does not name it.
        IndexAnswerError: an answer is no page or no METADATA.
        HashMismatchError: METADATA is not what the page promises.
        NetworkError, DownloadError: a page cannot be had.
    """
    keep = index.keep
    if keep is None:
        raise UsageError(
            f"the index {index.name} does not say what it keeps",
            where=index.origin.file,
            remedy="add [index.keep] with distributions, pythons and platforms",
        )
    known = {wheel.filename: wheel for wheel in index.wheels}
    if unknown := sorted(set(accept) - known.keys()):
        raise UsageError(
            f"{unknown[0]} is not recorded in {index.name}", remedy="give the file name as it stands there"
        )
    with download.session() as over, concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        listed = _listed(index, keep, over, tell)
        # Before anything else: what is left out below, for want of METADATA say, would lose its hash unseen.
        _require_known_hashes(index, [file for _, file in listed], frozenset(accept))
        wanted = [(page, file) for page, file in listed if recorded_index.is_kept(file, keep) and not file.is_yanked]
        metadata = list(pool.map(lambda one: _metadata(one[1], over), wanted))
    found = [
        _found(page, file, data, known.get(file.filename), by_download, today)
        for (page, file), data in zip(wanted, metadata, strict=True)
    ]
    tell(f"{sum(one.wheel is not None for one in found)} wheels")
    wheels = tuple(
        recorded_index.merged(known.get(one.wheel.filename), one.wheel) for one in found if one.wheel is not None
    )
    _require_known_hashes(index, wheels, frozenset(accept))
    refused = [
        Change(kind=Kind.REFUSED, filename=file.filename, detail=one.why_not)
        for (_, file), one in zip(wanted, found, strict=True)
        if one.wheel is None
    ]
    sdists, left_out = _sdists(index, keep, listed, by_download, today)
    refused += left_out
    new = {sdist.filename for sdist in sdists} - {sdist.filename for sdist in index.sdists}
    refused += [Change(kind=Kind.ADDED, filename=filename, detail="source alone") for filename in new]
    gone = _why_gone(listed, keep)
    changed = [*recorded_index.changes(index, wheels, gone | {r.filename: r.detail for r in refused}), *refused]
    left = [change.filename for change in refused if change.kind is Kind.REFUSED and change.filename.endswith(".whl")]
    whole = recorded_index.whole(keep, left)
    return Refreshed(
        wheels=wheels,
        sdists=sdists,
        whole=whole,
        changes=tuple(sorted(changed, key=lambda c: (c.filename, c.kind.value))),
    )


def _listed(
    index: RecordedIndex, keep: RecordingFilter, over: requests.Session, tell: Tell
) -> list[tuple[str, Listed]]:
    """Read the page of each distribution, or that of the one folder; each file once."""
    found: dict[str, tuple[str, Listed]] = {}
    names = dict.fromkeys(canonicalize_name(requirement.name) for requirement in keep.distributions)
    root = index.url.rstrip("/")
    for address in [f"{root}/"] if index.is_flat else [f"{root}/{name}/" for name in names]:
        tell(address)
        page = download.read_page(address, PAGE_LIMIT, accept=_index_pages.ACCEPT, over=over)
        for file in _index_pages.read(page.data, page.media_type, page.address):
            if index.is_flat and (named := _named(file.filename)) is not None and named[0] not in names:
                continue
            _, first = found.setdefault(file.filename, (address, file))
            if first.sha256 != file.sha256:
                raise IndexAnswerError(
                    f"{file.filename} is listed twice, with different hashes",
                    where=page.address,
                    remedy="the index is broken: report it to its operator",
                )
    return list(found.values())


def _why_gone(listed: list[tuple[str, Listed]], keep: RecordingFilter) -> dict[str, str]:
    return {
        file.filename: "yanked" if file.is_yanked else "`keep` leaves it out"
        for _, file in listed
        if file.is_yanked or not recorded_index.is_kept(file, keep)
    }


def _named(filename: str) -> tuple[NormalizedName, Version] | None:
    """Read name and version of a wheel or an sdist; None for any other file."""
    try:
        if filename.endswith(".whl"):
            return parse_wheel_filename(filename)[:2]
        return parse_sdist_filename(filename)
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None


def _sdists(
    index: RecordedIndex, keep: RecordingFilter, listed: list[tuple[str, Listed]], by_download: bool, today: str
) -> tuple[tuple[RecordedSdist, ...], list[Change]]:
    """Record what the index has as source alone: of a distribution that is kept, a version without any wheel."""
    wanted = {canonicalize_name(requirement.name): requirement.specifier for requirement in keep.distributions}
    with_wheels = {_named(file.filename) for _, file in listed if file.filename.endswith(".whl")}
    known = {sdist.filename: sdist for sdist in index.sdists}
    found, refused = dict(known), []
    for page, file in listed:
        named = None if file.filename.endswith(".whl") else _named(file.filename)
        if named is None or file.is_yanked or named in with_wheels or file.filename in known:
            continue
        name, version = named
        if name not in wanted or not wanted[name].contains(version, prereleases=False):
            continue
        sha256, source = file.sha256, page
        if sha256 is None and by_download:
            with tempfile.TemporaryDirectory(prefix="patchlock-record-") as folder:
                sha256 = download.fetch_unproved(file.url, Path(folder) / file.filename)
            source = _fetched(page, today)
        if sha256 is None:
            refused.append(Change(kind=Kind.REFUSED, filename=file.filename, detail=_NO_HASH))
        else:
            found[file.filename] = RecordedSdist(
                name=name, version=version, filename=file.filename, url=file.url, sha256=sha256, source=source
            )
    return tuple(found[filename] for filename in sorted(found)), refused


_NO_HASH = "the index gives no sha256 for it; `--download` fetches it whole"


def _fetched(page: str, today: str) -> str:
    return f"{page}, which gives no sha256; computed from the file{f' on {today}' if today else ''}"


def _found(
    page: str, file: Listed, metadata: bytes | None, known: RecordedWheel | None, by_download: bool, today: str
) -> _Found:
    """Make a record of a wheel; a missing hash comes from the record, or from the whole file if that is asked for."""
    sha256 = file.sha256 or (known.sha256 if known and not by_download else None)
    is_computed = by_download and sha256 is None
    if by_download and (sha256 is None or metadata is None):
        sha256, metadata = _by_download(file, sha256)
    if sha256 is None:
        return _Found(wheel=None, why_not=_NO_HASH)
    name, version, _, _ = parse_wheel_filename(file.filename)
    if metadata is not None:
        requires = _index_pages.requires(metadata, name, version, file.url)
    elif known is not None and known.sha256 == sha256:
        requires = known.requires
    else:
        return _Found(wheel=None, why_not="the index gives no METADATA for it; `--download` fetches it whole")
    wheel = RecordedWheel(
        name=name,
        version=version,
        filename=file.filename,
        url=file.url,
        sha256=sha256,
        requires=requires,
        source=_fetched(page, today) if is_computed else page,
        uploaded=file.uploaded,
        seen=today if is_computed else "",
    )
    return _Found(wheel=wheel)


def _metadata(file: Listed, over: requests.Session) -> bytes | None:
    """Fetch the METADATA beside a wheel (PEP 658); None where there is none and none is promised."""
    address = f"{file.url}.metadata"
    try:
        data = download.read_page(address, METADATA_LIMIT, over=over).data
    except DownloadError:
        if file.has_metadata:
            raise
        return None
    if file.metadata_sha256 is not None and hashlib.sha256(data).hexdigest() != file.metadata_sha256:
        raise HashMismatchError(
            f"the METADATA of {file.filename} is not what the index promises, and nothing was recorded",
            where=address,
            remedy="try again later; if it happens again, the index is broken: report it to its operator",
        )
    return data


def _by_download(file: Listed, sha256: Sha256 | None) -> tuple[Sha256, bytes]:
    with tempfile.TemporaryDirectory(prefix="patchlock-record-") as folder:
        path = Path(folder) / file.filename
        if sha256 is None:
            sha256 = download.fetch_unproved(file.url, path)
        else:
            download.fetch(file.url, path, sha256=sha256)
        try:
            with zipfile.ZipFile(path) as archive:
                entry = next(e for e in archive.infolist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", e.filename))
                with archive.open(entry) as metadata:
                    return sha256, metadata.read(METADATA_LIMIT)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, StopIteration) as error:
            raise IndexAnswerError(
                f"{file.filename} is not a wheel",
                where=file.url,
                remedy="the index is broken: report it to its operator",
            ) from error


def _require_known_hashes(
    index: RecordedIndex, files: Sequence[Listed | RecordedWheel], accept: frozenset[str]
) -> None:
    known = {wheel.filename: wheel for wheel in index.wheels if wheel.filename not in accept}
    changed = [f for f in files if f.sha256 and f.filename in known and known[f.filename].sha256 != f.sha256]
    if not changed:
        return
    more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
    raise RecordChangedError(
        f"{changed[0].filename}{more} has other bytes now under the same name, and nothing was written",
        where=f"{index.name}: {urljoin(changed[0].url, '.')}",
        remedy="find out why before anybody installs it; then `--accept-changed FILE` for each",
        evidence=tuple(
            f"{f.filename}: sha256 {known[f.filename].sha256} → {f.sha256}; {_why_changed(known[f.filename], f)}"
            for f in changed
        ),
    )


def _why_changed(known: RecordedWheel, now: Listed | RecordedWheel) -> str:
    """Tell publishing again from tampering, as far as the index and the record say something of it."""
    if before := next((one for one in known.earlier if one.sha256 == now.sha256), None):
        when = f" on {before.seen}" if before.seen else ""
        return f"these bytes were there before{when}, so that a mirror or a cache may be behind"
    since = known.uploaded or known.seen
    if now.uploaded and since and now.uploaded > since:
        return f"the index says that it was published on {now.uploaded}, and the record is of {since}"
    return "the index does not say that it was published again"
