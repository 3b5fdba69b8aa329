"""Several files at once, from servers that cut, lie and refuse: right by their hash, or not at all."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from depot import Depot, until
from packaging.utils import canonicalize_name

from patchlock.core import download
from patchlock.distributions import fetching, wheelhouse
from patchlock.distributions.fetching import FetchRequest, Transferred
from patchlock.environments import _download_sizes
from patchlock.locks.exports.pylock import Located
from patchlock.model.errors import HashMismatchError, NetworkError
from patchlock.model.identities import Sha256

BIG = "big-1-py3-none-any.whl"
SMALL = "small-1-py3-none-any.whl"
DATA = {BIG: bytes(range(256)) * 4000, SMALL: b"small" * 100}
ALL = sum(map(len, DATA.values()))


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second attempt follow the first one soon, and no proxy stand between."""
    monkeypatch.setattr(download, "_LONGEST_WAIT", 0.01)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def depot(tmp_path: Path) -> Iterator[Depot]:
    (tmp_path / "files").mkdir()
    for name, data in DATA.items():
        (tmp_path / "files" / name).write_bytes(data)
    made = Depot(tmp_path / "files")
    yield made
    made.close()


def _wanted(depot: Depot, *names: str) -> tuple[FetchRequest, ...]:
    return tuple(
        FetchRequest(
            name=canonicalize_name(name.split("-")[0]),
            filename=name,
            url=depot.url(name),
            sha256=Sha256(depot.promised[name]),
            size=len(depot.files[name]),
        )
        for name in names
    )


def _in_wheelhouse(cache: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in cache.glob("wheels/*/*") if not path.name.endswith(".lock")}


def _fetch(depot: Depot, cache: Path, *names: str) -> list[Transferred]:
    said: list[Transferred] = []
    done = fetching.fetch(_wanted(depot, *names), cache, said.append, pulse=0.01)
    assert not done.refused
    assert sorted(path.name for path in done.paths.values()) == sorted(names)
    return said


def test_files_come_the_biggest_first_and_are_told_together(depot: Depot, tmp_path: Path) -> None:
    said = _fetch(depot, tmp_path / "cache", SMALL, BIG)
    assert _in_wheelhouse(tmp_path / "cache") == DATA
    assert said[-1] == Transferred(done=ALL, total=ALL, names=())
    assert sorted(path for _, path, _ in depot.asked) == [f"/files/{BIG}", f"/files/{SMALL}"]


def test_running_files_are_named_with_what_has_come(depot: Depot, tmp_path: Path) -> None:
    depot.stalls[BIG] = 600_000
    said: list[Transferred] = []
    run = threading.Thread(target=lambda: fetching.fetch(_wanted(depot, BIG, SMALL), tmp_path, said.append, pulse=0.01))
    run.start()
    until(lambda: any(one.names == ("big",) and 500_000 < one.done < one.total == ALL for one in said))
    depot.go.set()
    run.join()
    assert (said[-1].done, said[-1].total) == (ALL, ALL)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="well"),
        pytest.param({"has_lengths": False}, id="no length"),
        pytest.param({"has_ranges": False}, id="no ranges"),
        pytest.param({"redirects": True}, id="redirects"),
        pytest.param({"cuts": {BIG: [300_000, 500_000]}}, id="cuts twice"),
        pytest.param({"cuts": {BIG: [300_000]}, "has_ranges": False}, id="cuts and has no ranges"),
    ],
)
def test_file_comes_from_servers_of_every_kind(depot: Depot, tmp_path: Path, change: dict[str, object]) -> None:
    for name, value in change.items():
        setattr(depot, name, value)
    _fetch(depot, tmp_path, BIG)
    assert _in_wheelhouse(tmp_path) == {BIG: DATA[BIG]}


def test_what_was_cut_off_is_not_sent_twice(depot: Depot, tmp_path: Path) -> None:
    depot.cuts[BIG] = [300_000]
    _fetch(depot, tmp_path, BIG)
    first, second = depot.asked_for(BIG)
    assert first == ""
    kept = int(second.removeprefix("bytes=").removesuffix("-"))
    assert 0 < kept <= 300_000
    assert depot.sent[BIG] == 300_000 + len(DATA[BIG]) - kept


def test_rest_of_a_killed_run_is_gone_on_with(depot: Depot, tmp_path: Path) -> None:
    (wanted,) = _wanted(depot, BIG)
    part = wheelhouse.place(tmp_path, wanted.sha256, f"{BIG}.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(DATA[BIG][:700_000])
    assert fetching.begun(wanted, tmp_path) == 700_000
    _fetch(depot, tmp_path, BIG)
    assert depot.asked_for(BIG) == ["bytes=700000-"]
    assert depot.sent[BIG] == len(DATA[BIG]) - 700_000


LIES = {
    "flipped bit": DATA[BIG][:-1] + b"\0",
    "truncated": DATA[BIG][:-1],
    "another file": DATA[SMALL],
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_wrong_bytes_are_refused_and_kept_nowhere(depot: Depot, tmp_path: Path, lie: bytes) -> None:
    depot.files[BIG] = lie
    with pytest.raises(HashMismatchError) as refused:
        fetching.fetch(_wanted(depot, BIG), tmp_path, lambda _: None, pulse=0.01)
    found = hashlib.sha256(lie).hexdigest()
    assert refused.value.what == f"{BIG} is not the file that was promised, and was removed"
    assert refused.value.where == (f"{depot.url(BIG)} has sha256 {found[:12]}…, wanted {depot.promised[BIG][:12]}…")
    assert _in_wheelhouse(tmp_path) == {}


def test_page_of_a_proxy_is_told_as_one_and_kept_nowhere(depot: Depot, tmp_path: Path) -> None:
    depot.files[BIG] = b"<html>please log in</html>"
    with pytest.raises(NetworkError, match="the answer is a web page, perhaps the login of this network"):
        fetching.fetch(_wanted(depot, BIG), tmp_path, lambda _: None, pulse=0.01)
    assert _in_wheelhouse(tmp_path) == {}


@pytest.mark.parametrize(
    ("status", "what"), [(403, "does not allow it"), (404, "does not have it"), (401, "asks for a password")]
)
def test_refused_file_is_named_and_the_others_come(depot: Depot, tmp_path: Path, status: int, what: str) -> None:
    depot.status[BIG] = status
    done = fetching.fetch(_wanted(depot, BIG, SMALL), tmp_path, lambda _: None, pulse=0.01)
    assert {name: error.what for name, error in done.refused.items()} == {
        "big": f"{BIG} could not be fetched: the server {what}"
    }
    assert _in_wheelhouse(tmp_path) == {SMALL: DATA[SMALL]}


def test_first_failure_stops_the_others_and_keeps_what_has_come(depot: Depot, tmp_path: Path) -> None:
    depot.stalls[BIG] = 600_000
    depot.status[SMALL] = 503
    with pytest.raises(NetworkError, match=f"{SMALL} could not be fetched in 4 attempts: the server is busy"):
        fetching.fetch(_wanted(depot, BIG, SMALL), tmp_path, lambda _: None, pulse=0.01)
    depot.status.clear()
    until(lambda: fetching.begun(_wanted(depot, BIG)[0], tmp_path) > 500_000)
    (part,) = tmp_path.glob("wheels/*/*.part")
    assert DATA[BIG].startswith(part.read_bytes())


def test_two_at_once_share_one_download(depot: Depot, tmp_path: Path) -> None:
    depot.stalls[BIG] = 600_000
    told: tuple[list[Transferred], list[Transferred]] = ([], [])
    runs = [threading.Thread(target=fetching.fetch, args=(_wanted(depot, BIG), tmp_path, said.append)) for said in told]
    for run in runs:
        run.start()
    until(lambda: all(any(500_000 < one.done < one.total for one in said) for said in told))
    depot.go.set()
    for run in runs:
        run.join()
    assert depot.asked_for(BIG) == [""]
    assert [(said[-1].done, said[-1].total) for said in told] == [(len(DATA[BIG]), len(DATA[BIG]))] * 2


# --- sizes ------------------------------------------------------------------------------------------------------------


def _located(depot: Depot, name: str, size: int | None = None) -> dict[Sha256, Located]:
    return {Sha256(depot.promised[name]): Located(filename=name, url=depot.url(name), size=size)}


@pytest.mark.parametrize(
    ("change", "methods"),
    [
        pytest.param({}, ["HEAD"], id="head"),
        pytest.param({"has_heads": False}, ["HEAD", "GET"], id="no head"),
        pytest.param({"has_lengths": False}, ["HEAD", "GET"], id="no length"),
    ],
)
def test_size_is_asked_for_once(depot: Depot, tmp_path: Path, change: dict[str, object], methods: list[str]) -> None:
    for name, value in change.items():
        setattr(depot, name, value)
    for _ in range(2):
        assert list(_download_sizes.collect(_located(depot, BIG), tmp_path).values()) == [len(DATA[BIG])]
    assert [method for method, _, _ in depot.asked] == methods
    assert depot.sent.get(BIG, 0) <= 1


def test_size_that_the_index_says_is_believed(depot: Depot, tmp_path: Path) -> None:
    assert list(_download_sizes.collect(_located(depot, BIG, 77), tmp_path).values()) == [77]
    assert depot.asked == []


def test_size_of_a_page_of_a_proxy_is_not_believed(depot: Depot, tmp_path: Path) -> None:
    depot.status[BIG] = 200
    assert _download_sizes.collect(_located(depot, BIG), tmp_path) == {}
    assert not (tmp_path / "sizes").exists()


def test_size_that_nobody_says_is_left_out(depot: Depot, tmp_path: Path) -> None:
    depot.status[BIG] = 404
    assert _download_sizes.collect(_located(depot, BIG) | _located(depot, SMALL), tmp_path) == {
        Sha256(depot.promised[SMALL]): len(DATA[SMALL])
    }


@pytest.mark.parametrize(
    ("size", "unpacked"), [(1_000_000, 3_500_000), (200_000_000, 400_000_000)], ids=["small", "big"]
)
def test_unpacked_size_is_estimated(tmp_path: Path, size: int, unpacked: int) -> None:
    assert _download_sizes.unpacked_size(Sha256("0" * 64), size, tmp_path) == unpacked
