"""Refreshing a recorded index from a server on loopback: what is recorded, what is refused, what stops everything."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator

import pytest
from loopback import LoopbackIndex
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from patchlock.core import download
from patchlock.distributions import index_recorder
from patchlock.distributions.index_recorder import Refreshed
from patchlock.distributions.recorded_index import Kind
from patchlock.model.errors import (
    DownloadError,
    HashMismatchError,
    IndexAnswerError,
    NetworkError,
    RecordChangedError,
    UsageError,
)
from patchlock.model.identities import Sha256
from patchlock.model.origins import Origin
from patchlock.model.platforms import PLATFORMS
from patchlock.model.recorded_index import EarlierBytes, RecordedIndex, RecordedWheel, RecordingFilter

ALPHA = "alpha-1.0+cu128-cp311-cp311-win_amd64.whl"
NEWER = "alpha-1.1+cu128-cp311-cp311-win_amd64.whl"
QUOTED = ALPHA.replace("+", "%2B")
OLD = Sha256("0" * 64)


def _metadata(filename: str = ALPHA, *requires: str) -> bytes:
    name, version, _, _ = parse_wheel_filename(filename)
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", *(f"Requires-Dist: {r}\n" for r in requires)]
    return "".join(lines).encode()


def _whole() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("alpha-1.0+cu128.dist-info/METADATA", _metadata(ALPHA, "beta==2"))
    return file.getvalue()


WHEEL = _whole()
SHA256 = Sha256(hashlib.sha256(WHEEL).hexdigest())


class Index(LoopbackIndex):
    """The index and what its record says."""

    def record(self, *wheels: RecordedWheel, keep: bool = True) -> RecordedIndex:
        """Make the record of this index."""
        wanted = RecordingFilter(
            distributions=(Requirement("alpha"),), pythons=(Version("3.11"),), platforms=(PLATFORMS["windows-amd64"],)
        )
        origin = Origin(file="profiles/indexes/cu128.toml", line=1)
        return RecordedIndex(name="cu128", url=self.url, wheels=wheels, origin=origin, keep=wanted if keep else None)

    def known(self, **values: object) -> RecordedWheel:
        """Make the record of alpha 1.0."""
        name, version, _, _ = parse_wheel_filename(ALPHA)
        wheel = RecordedWheel(
            name=name,
            version=version,
            filename=ALPHA,
            url=f"{self.url}/{QUOTED}",
            sha256=SHA256,
            requires=(Requirement("beta==2"),),
            source="somebody's lock",
        )
        return dataclasses.replace(wheel, **values)  # type: ignore[arg-type]


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "_ATTEMPTS", 1)
    made = Index()
    yield made
    made.close()


def _link(filename: str = ALPHA, sha256: str | None = SHA256, attributes: str = "") -> str:
    hashed = f"#sha256={sha256}" if sha256 else ""
    return f'<a href="/whl/cu128/{filename.replace("+", "%2B")}{hashed}" {attributes}>{filename}</a>'


def _found(refreshed: Refreshed) -> list[tuple[Kind, str, str]]:
    return [(change.kind, change.filename, change.detail) for change in refreshed.changes]


def test_new_wheel_is_recorded_from_two_small_answers(index: Index) -> None:
    metadata = _metadata(ALPHA, "gamma", "beta==2")
    digest = hashlib.sha256(metadata).hexdigest()
    index.html(_link(attributes=f'data-dist-info-metadata="sha256={digest}" data-upload-time="2025-01-01T00:00:00Z"'))
    index.file(f"{QUOTED}.metadata", metadata)
    refreshed = index_recorder.refresh(index.record())
    assert index.asked == ["/whl/cu128/alpha/", f"/whl/cu128/{QUOTED}.metadata"]
    assert index.accepted.startswith("application/vnd.pypi.simple.v1+json")
    assert refreshed.wheels == (
        index.known(
            requires=(Requirement("beta==2"), Requirement("gamma")),
            source=f"{index.url}/alpha/",
            uploaded="2025-01-01T00:00:00Z",
        ),
    )
    assert _found(refreshed) == [(Kind.ADDED, ALPHA, "2025-01-01T00:00:00Z")]


def test_json_page_is_read(index: Index) -> None:
    file = {"filename": ALPHA, "url": f"../{QUOTED}", "hashes": {"sha256": SHA256}, "core-metadata": True}
    page = json.dumps({"meta": {"api-version": "1.1"}, "files": [file]}).encode()
    index.paths["/whl/cu128/alpha/"] = (200, "application/vnd.pypi.simple.v1+json", page)
    index.file(f"{QUOTED}.metadata", _metadata(ALPHA, "beta==2"))
    assert index_recorder.refresh(index.record()).wheels == (index.known(source=f"{index.url}/alpha/"),)


def test_record_that_is_up_to_date_stays(index: Index) -> None:
    index.html(_link())
    index.file(f"{QUOTED}.metadata", _metadata(ALPHA, "beta==2"))
    refreshed = index_recorder.refresh(index.record(index.known()))
    assert (refreshed.wheels, refreshed.changes) == ((index.known(),), ())


def test_other_requirements_are_told(index: Index) -> None:
    index.html(_link())
    index.file(f"{QUOTED}.metadata", _metadata(ALPHA, "beta==3"))
    refreshed = index_recorder.refresh(index.record(index.known()))
    assert refreshed.wheels == (index.known(requires=(Requirement("beta==3"),)),)
    assert _found(refreshed) == [(Kind.REQUIRES, ALPHA, "-beta==2  +beta==3")]


@pytest.mark.parametrize(
    ("links", "why"),
    [
        pytest.param([_link(NEWER, attributes="data-yanked")], "no longer listed", id="not-listed"),
        pytest.param([_link(attributes='data-yanked="broken"')], "yanked", id="yanked"),
    ],
)
def test_wheel_that_is_gone_is_told(index: Index, links: list[str], why: str) -> None:
    index.html(*links)
    refreshed = index_recorder.refresh(index.record(index.known()))
    assert (refreshed.wheels, _found(refreshed)) == ((), [(Kind.REMOVED, ALPHA, why)])


def test_wheel_that_keep_leaves_out_now_is_told(index: Index) -> None:
    index.html(_link())
    record = index.record(index.known())
    assert record.keep is not None
    narrower = dataclasses.replace(record, keep=dataclasses.replace(record.keep, pythons=(Version("3.12"),)))
    assert _found(index_recorder.refresh(narrower)) == [(Kind.REMOVED, ALPHA, "`keep` leaves it out")]


@pytest.mark.parametrize(
    ("link", "has_metadata", "why"),
    [
        pytest.param(_link(sha256=None), True, "the index gives no sha256 for it; `--download` fetches it whole", id="hash"),
        pytest.param(_link(), False, "the index gives no METADATA for it; `--download` fetches it whole", id="metadata"),
    ],
)  # fmt: skip
def test_wheel_of_which_too_little_is_said_is_left_out_unless_it_may_be_fetched(
    index: Index, link: str, has_metadata: bool, why: str
) -> None:
    index.html(link)
    index.file(QUOTED, WHEEL)
    if has_metadata:
        index.file(f"{QUOTED}.metadata", _metadata(ALPHA, "beta==2"))
    refreshed = index_recorder.refresh(index.record())
    assert (refreshed.wheels, _found(refreshed)) == ((), [(Kind.REFUSED, ALPHA, why)])
    assert f"/whl/cu128/{QUOTED}" not in index.asked
    fetched = index_recorder.refresh(index.record(), by_download=True, today="2026-11-23")
    page = f"{index.url}/alpha/"
    computed = {"source": f"{page}, which gives no sha256; computed from the file on 2026-11-23", "seen": "2026-11-23"}
    assert fetched.wheels == (index.known(**(computed if "sha256" in why else {"source": page})),)


def test_known_wheel_keeps_its_hash_where_the_page_says_none(index: Index) -> None:
    index.html(_link(sha256=None))
    refreshed = index_recorder.refresh(index.record(index.known()))
    assert (refreshed.wheels, refreshed.changes) == ((index.known(),), ())


def test_known_wheel_is_fetched_where_the_page_says_no_hash_and_that_is_asked(index: Index) -> None:
    index.html(_link(sha256=None))
    index.file(QUOTED, WHEEL)
    with pytest.raises(RecordChangedError):
        index_recorder.refresh(index.record(index.known(sha256=OLD)), by_download=True)


def test_known_name_with_another_hash_stops_everything(index: Index) -> None:
    index.html(_link(), _link(NEWER))
    index.file(f"{QUOTED}.metadata", _metadata(ALPHA, "beta==2"))
    index.file(f"{NEWER.replace('+', '%2B')}.metadata", _metadata(NEWER))
    record = index.record(index.known(sha256=OLD))
    with pytest.raises(RecordChangedError) as caught:
        index_recorder.refresh(record)
    assert str(caught.value).splitlines()[0] == (
        f"{ALPHA} has other bytes now under the same name, and nothing was written (cu128: {index.url}/); find out why "
        "before anybody installs it; then `--accept-changed FILE` for each"
    )
    assert caught.value.evidence == (
        f"{ALPHA}: sha256 {OLD} → {SHA256}; the index does not say that it was published again",
    )
    refreshed = index_recorder.refresh(record, accept=[ALPHA])
    before = EarlierBytes(sha256=OLD, source="somebody's lock")
    assert refreshed.wheels[0] == index.known(source=f"{index.url}/alpha/", earlier=(before,))
    assert (Kind.HASH, ALPHA, f"sha256 {OLD} → {SHA256}") in _found(refreshed)


@pytest.mark.parametrize("by_download", [False, True])
@pytest.mark.parametrize("attributes", ["", "data-yanked"])
def test_another_hash_stops_everything_also_where_there_is_no_metadata(
    index: Index, attributes: str, by_download: bool
) -> None:
    index.html(_link(attributes=attributes))
    with pytest.raises(RecordChangedError) as caught:
        index_recorder.refresh(index.record(index.known(sha256=OLD)), by_download=by_download)
    assert [one.partition(";")[0] for one in caught.value.evidence] == [f"{ALPHA}: sha256 {OLD} → {SHA256}"]
    assert index.asked == ["/whl/cu128/alpha/"]


@pytest.mark.parametrize(
    ("known", "uploaded", "said"),
    [
        pytest.param(
            {"seen": "2026-04-14"},
            "2026-05-11T00:00:00Z",
            "the index says that it was published on 2026-05-11T00:00:00Z, and the record is of 2026-04-14",
            id="published-again",
        ),
        pytest.param(
            {"seen": "2026-05-11"},
            "2026-04-14T00:00:00Z",
            "the index does not say that it was published again",
            id="older",
        ),
        pytest.param(
            {"earlier": (EarlierBytes(sha256=SHA256, seen="2026-04-14", source="a lock"),)},
            "2026-05-11T00:00:00Z",
            "these bytes were there before on 2026-04-14, so that a mirror or a cache may be behind",
            id="what-it-was-before",
        ),
    ],
)
def test_publishing_again_is_told_from_tampering(
    index: Index, known: dict[str, object], uploaded: str, said: str
) -> None:
    index.html(_link(attributes=f'data-upload-time="{uploaded}"'))
    with pytest.raises(RecordChangedError) as caught:
        index_recorder.refresh(index.record(index.known(sha256=OLD, **known)))
    assert caught.value.evidence == (f"{ALPHA}: sha256 {OLD} → {SHA256}; {said}",)


def test_bytes_that_come_back_are_no_earlier_ones_any_more(index: Index) -> None:
    index.html(_link())
    index.file(f"{QUOTED}.metadata", _metadata(ALPHA, "beta==2"))
    first = EarlierBytes(sha256=SHA256, seen="2026-04-14", source="a lock")
    known = index.known(sha256=OLD, seen="2026-05-11", earlier=(first,))
    refreshed = index_recorder.refresh(index.record(known), accept=[ALPHA])
    second = EarlierBytes(sha256=OLD, seen="2026-05-11", source="somebody's lock")
    assert refreshed.wheels == (index.known(source=f"{index.url}/alpha/", earlier=(second,)),)


SOURCE = "alpha-1.1.tar.gz"


def test_folder_without_pages_and_hashes_is_recorded_by_download(index: Index) -> None:
    links = f'<a href="{QUOTED}">1</a><a href="{SOURCE}">2</a><a href="beta-1.0.tar.gz">3</a><a href="../">up</a>'
    index.paths["/whl/cu128/"] = (200, "text/html", links.encode())
    index.file(QUOTED, WHEEL)
    index.file(SOURCE, b"source")
    record = dataclasses.replace(index.record(), is_flat=True)
    left_out = index_recorder.refresh(record)
    assert (left_out.wheels, left_out.sdists) == ((), ())
    assert [change[:2] for change in _found(left_out)] == [(Kind.REFUSED, ALPHA), (Kind.REFUSED, SOURCE)]
    assert "beta" not in str(left_out)
    fetched = index_recorder.refresh(record, by_download=True, today="2026-11-23")
    source = f"{index.url}/, which gives no sha256; computed from the file on 2026-11-23"
    assert fetched.wheels == (index.known(source=source, seen="2026-11-23"),)
    (sdist,) = fetched.sdists
    assert (sdist.name, sdist.sha256, sdist.source) == ("alpha", hashlib.sha256(b"source").hexdigest(), source)
    assert [change[:2] for change in _found(fetched)] == [(Kind.ADDED, ALPHA), (Kind.ADDED, SOURCE)]


def test_source_beside_a_wheel_is_not_recorded(index: Index) -> None:
    index.html(_link(), f'<a href="../alpha-1.0+cu128.tar.gz#sha256={OLD}">source</a>')
    index.file(f"{QUOTED}.metadata", _metadata(ALPHA, "beta==2"))
    assert index_recorder.refresh(index.record()).sdists == ()


@pytest.mark.parametrize(
    ("page", "metadata", "kind", "words"),
    [
        pytest.param((404, b""), None, DownloadError, "could not be fetched: the server does not have it", id="page-404"),
        pytest.param((500, b""), None, NetworkError, "could not be fetched in 1 attempts: the server is busy", id="page-500"),
        pytest.param((200, b"<html>log in</html>"), None, IndexAnswerError, "not with the page of an index", id="page-garbage"),
        pytest.param((200, f"{_link()}{_link(sha256=OLD)}".encode()), None, IndexAnswerError, f"{ALPHA} is listed twice, with different hashes", id="two-hashes"),
        pytest.param((200, _link(attributes='data-core-metadata="true"').encode()), None, DownloadError, "the server does not have it", id="promised-metadata-404"),
        pytest.param((200, _link().encode()), (500, b""), NetworkError, "the server is busy", id="metadata-500"),
        pytest.param((200, _link().encode()), (200, b"<html>log in</html>"), IndexAnswerError, "something else than the METADATA of alpha 1.0+cu128", id="metadata-garbage"),
        pytest.param((200, _link(attributes=f'data-core-metadata="sha256={OLD}"').encode()), (200, _metadata()), HashMismatchError, f"the METADATA of {ALPHA} is not what the index promises", id="metadata-hash"),
    ],
)  # fmt: skip
def test_bad_answer_is_one_sentence(
    index: Index, page: tuple[int, bytes], metadata: tuple[int, bytes] | None, kind: type[Exception], words: str
) -> None:
    index.paths["/whl/cu128/alpha/"] = (page[0], "text/html", page[1])
    if metadata is not None:
        index.file(f"{QUOTED}.metadata", metadata[1], metadata[0])
    with pytest.raises(kind) as caught:
        index_recorder.refresh(index.record(index.known()))
    assert words in str(caught.value)


def test_fetched_file_that_is_no_wheel_is_refused(index: Index) -> None:
    index.html(_link(sha256=None))
    index.file(QUOTED, b"no zip")
    with pytest.raises(IndexAnswerError, match=r"is not a wheel"):
        index_recorder.refresh(index.record(), by_download=True)


def test_record_that_does_not_say_what_it_keeps_is_refused(index: Index) -> None:
    with pytest.raises(UsageError) as caught:
        index_recorder.refresh(index.record(keep=False))
    assert str(caught.value) == (
        "the index cu128 does not say what it keeps (profiles/indexes/cu128.toml); add [index.keep] with distributions, "
        "pythons and platforms"
    )


def test_acceptance_of_an_unknown_file_is_refused(index: Index) -> None:
    with pytest.raises(UsageError, match="is not recorded in cu128; give the file name as it stands there"):
        index_recorder.refresh(index.record(), accept=[ALPHA])
    assert index.asked == []
