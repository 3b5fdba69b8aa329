"""Fetching a file by its hash: whole and right, or not at all; what was cut off is gone on with."""

from __future__ import annotations

import hashlib
import http.server
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patchlock.core import download
from patchlock.model.errors import DownloadError, HashMismatchError, NetworkError, PatchlockError

DATA = bytes(range(256)) * 4000
SHA256 = hashlib.sha256(DATA).hexdigest()
Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


class Server:
    """A server on loopback whose answers are written down in advance; the last one is given again."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.ranges: list[str | None] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.ranges.append(self.headers.get("Range"))
                (outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0])(self)
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/files/alpha-1.0-py3-none-any.whl"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = Server()
    yield made
    made.close()


def _send(handler: http.server.BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content_Length": str(len(body)), "Connection": "close", **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def whole(handler: http.server.BaseHTTPRequestHandler) -> None:
    _send(handler, 200, DATA)


def ranged(handler: http.server.BaseHTTPRequestHandler) -> None:
    asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    if asked is None:
        whole(handler)
    elif int(asked[1]) >= len(DATA):
        _send(handler, 416, b"", Content_Range=f"bytes */{len(DATA)}")
    else:
        start = int(asked[1])
        _send(handler, 206, DATA[start:], Content_Range=f"bytes {start}-{len(DATA) - 1}/{len(DATA)}")


def cut(handler: http.server.BaseHTTPRequestHandler) -> None:
    _send(handler, 200, DATA[:300_000], Content_Length=str(len(DATA)))


def other(handler: http.server.BaseHTTPRequestHandler) -> None:
    _send(handler, 200, b"PK of another file")


def portal(handler: http.server.BaseHTTPRequestHandler) -> None:
    """Answer as a network that wants a login first: with its page, whatever was asked for."""
    _send(handler, 200, b"\r\n<!doctype html><title>please log in</title>", Content_Type="text/html")


def status(code: int, **headers: str) -> Answer:
    return lambda handler: _send(handler, code, b"", **headers)


def _fetch(
    address: str,
    target: Path,
    sha256: str = SHA256,
    *,
    pauses: list[float] | None = None,
    tell: download.ProgressCallback | None = None,
) -> Path:
    pause = (pauses if pauses is not None else []).append
    return download.fetch(address, target, sha256=sha256, pause=pause, **({"tell": tell} if tell else {}))


def test_file_comes_whole_into_a_new_folder(server: Server, tmp_path: Path) -> None:
    server.answers = [whole]
    told: list[tuple[int, int]] = []
    target = _fetch(server.url, tmp_path / "a" / "b.whl", tell=lambda done, size: told.append((done, size)))
    assert target.read_bytes() == DATA
    assert told[-1] == (len(DATA), len(DATA))
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert not (tmp_path / "a" / "b.whl.part").exists()


def test_file_that_is_there_is_not_asked_for(server: Server, tmp_path: Path) -> None:
    server.answers = [status(500)]
    (tmp_path / "b.whl").write_bytes(DATA)
    assert _fetch(server.url, tmp_path / "b.whl").read_bytes() == DATA
    assert server.ranges == []


def test_wrong_file_that_is_there_is_replaced(server: Server, tmp_path: Path) -> None:
    server.answers = [whole]
    (tmp_path / "b.whl").write_bytes(b"old")
    assert _fetch(server.url, tmp_path / "b.whl").read_bytes() == DATA


def test_cut_off_file_is_gone_on_with(server: Server, tmp_path: Path) -> None:
    server.answers = [cut, ranged]
    pauses: list[float] = []
    assert _fetch(server.url, tmp_path / "b.whl", pauses=pauses).read_bytes() == DATA
    assert server.ranges == [None, f"bytes={300_000 // 65536 * 65536}-"]
    assert pauses == [1.0]


def test_rest_of_an_earlier_run_is_gone_on_with(server: Server, tmp_path: Path) -> None:
    server.answers = [ranged]
    (tmp_path / "b.whl.part").write_bytes(DATA[:1000])
    told: list[tuple[int, int]] = []
    assert _fetch(server.url, tmp_path / "b.whl", tell=lambda *t: told.append(t)).read_bytes() == DATA
    assert server.ranges == ["bytes=1000-"]
    assert told[-1] == (len(DATA), len(DATA))


def test_server_without_ranges_sends_it_all_again(server: Server, tmp_path: Path) -> None:
    server.answers = [whole]
    (tmp_path / "b.whl.part").write_bytes(DATA[:1000])
    assert _fetch(server.url, tmp_path / "b.whl").read_bytes() == DATA


def test_whole_rest_of_an_earlier_run_is_only_proved(server: Server, tmp_path: Path) -> None:
    server.answers = [ranged]
    (tmp_path / "b.whl.part").write_bytes(DATA)
    assert _fetch(server.url, tmp_path / "b.whl").read_bytes() == DATA
    assert server.ranges == [f"bytes={len(DATA)}-"]


@pytest.mark.parametrize("rest", [b"x" * 1000, b"x" * len(DATA), DATA + b"more"], ids=["short", "as-long", "longer"])
def test_rest_of_another_file_is_thrown_away(server: Server, tmp_path: Path, rest: bytes) -> None:
    server.answers = [ranged]
    (tmp_path / "b.whl.part").write_bytes(rest)
    assert _fetch(server.url, tmp_path / "b.whl").read_bytes() == DATA


def test_answer_with_another_range_is_not_believed(server: Server, tmp_path: Path) -> None:
    server.answers = [lambda handler: _send(handler, 206, DATA[:5], Content_Range="bytes 0-4/9"), whole]
    (tmp_path / "b.whl.part").write_bytes(DATA[:1000])
    assert _fetch(server.url, tmp_path / "b.whl").read_bytes() == DATA


def test_busy_server_is_asked_again_when_it_says(server: Server, tmp_path: Path) -> None:
    server.answers = [status(503), status(429, Retry_After="7"), status(503, Retry_After="9999"), whole]
    pauses: list[float] = []
    _fetch(server.url, tmp_path / "b.whl", pauses=pauses)
    assert pauses == [1.0, 7.0, 30.0]


def test_wrong_file_of_this_machine_stays(tmp_path: Path) -> None:
    own = tmp_path / "mine" / "alpha-1.0-py3-none-any.whl"
    own.parent.mkdir()
    own.write_bytes(b"other")
    with pytest.raises(HashMismatchError) as caught:
        _fetch(own.as_uri(), tmp_path / "b.whl")
    assert caught.value.what == f"{own.name} is not the file that was promised, and the copy of it was removed"
    assert caught.value.remedy == "that file stays as it is: put the right one in its place"
    assert own.read_bytes() == b"other"


def test_wrong_bytes_are_removed(server: Server, tmp_path: Path) -> None:
    server.answers = [other]
    with pytest.raises(HashMismatchError) as caught:
        _fetch(server.url.replace("//", "//me:secret@") + "?token=secret", tmp_path / "b.whl")
    found = hashlib.sha256(b"PK of another file").hexdigest()
    assert str(caught.value) == (
        "alpha-1.0-py3-none-any.whl is not the file that was promised, and was removed "
        f"({server.url} has sha256 {found[:12]}…, wanted {SHA256[:12]}…); "
        "the server or a proxy sends different bytes: try again later or elsewhere"
    )
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["b.whl.part.lock"]


@pytest.mark.parametrize(
    ("answer", "error", "sentence"),
    [
        (status(404), DownloadError, "alpha-1.0-py3-none-any.whl could not be fetched: the server does not have it"),
        (status(403), DownloadError, "alpha-1.0-py3-none-any.whl could not be fetched: the server does not allow it"),
        (status(401), DownloadError, "alpha-1.0-py3-none-any.whl could not be fetched: the server asks for a password"),
        (status(418), DownloadError, "alpha-1.0-py3-none-any.whl could not be fetched: the server answers 418"),
        (status(302, Location="/files/x"), DownloadError, "the address leads nowhere"),
        (
            status(503),
            NetworkError,
            "alpha-1.0-py3-none-any.whl could not be fetched in 4 attempts: the server is busy",
        ),
        (
            cut,
            NetworkError,
            "alpha-1.0-py3-none-any.whl could not be fetched in 4 attempts: the connection ended too early",
        ),
    ],
    ids=["404", "403", "401", "418", "round-in-circles", "busy", "cut"],
)
def test_refusal_is_one_sentence(
    server: Server, tmp_path: Path, answer: Answer, error: type[PatchlockError], sentence: str
) -> None:
    server.answers = [answer]
    with pytest.raises(error) as caught:
        _fetch(server.url, tmp_path / "b.whl")
    assert caught.value.what == sentence
    assert caught.value.where
    assert caught.value.remedy
    assert not (tmp_path / "b.whl").exists()


def test_what_came_of_a_broken_download_is_kept(server: Server, tmp_path: Path) -> None:
    server.answers = [cut]
    with pytest.raises(NetworkError):
        _fetch(server.url, tmp_path / "b.whl")
    assert (tmp_path / "b.whl.part").stat().st_size > 0


@pytest.mark.parametrize("begun", [0, 300_000], ids=["at once", "in the middle"])
def test_web_page_in_the_place_of_a_file_is_named_and_overwrites_nothing(
    server: Server, tmp_path: Path, begun: int
) -> None:
    target, part = tmp_path / "b.whl", tmp_path / "b.whl.part"
    if begun:
        part.write_bytes(DATA[:begun])
    server.answers = [portal]
    with pytest.raises(NetworkError) as caught:
        _fetch(server.url, target)
    assert str(caught.value) == (
        "alpha-1.0-py3-none-any.whl could not be fetched: the answer is a web page, perhaps the login of this network "
        "(127.0.0.1); open it in a browser and sign in, or correct the proxy; then run the same command again: what has "
        "come is kept"
    )
    assert (part.read_bytes() if part.exists() else b"") == DATA[:begun]
    server.answers = [ranged]
    assert _fetch(server.url, target).read_bytes() == DATA
    assert server.ranges[-1] == (f"bytes={begun}-" if begun else None)


def test_nobody_listens(server: Server, tmp_path: Path) -> None:
    server.close()
    pauses: list[float] = []
    with pytest.raises(NetworkError) as caught:
        _fetch(server.url, tmp_path / "b.whl", pauses=pauses)
    assert str(caught.value) == (
        "alpha-1.0-py3-none-any.whl could not be fetched in 4 attempts: there is no connection (127.0.0.1); check the "
        "connection or the proxy, and run the same command again: what has come is kept"
    )
    assert pauses == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("form", ["path", "address"])
def test_file_of_this_machine(tmp_path: Path, form: str) -> None:
    source = tmp_path / "größe 1.whl"
    source.write_bytes(DATA)
    address = str(source) if form == "path" else source.as_uri()
    assert _fetch(address, tmp_path / "to" / "b.whl").read_bytes() == DATA
    assert source.read_bytes() == DATA
    with pytest.raises(HashMismatchError):
        _fetch(address, tmp_path / "to" / "c.whl", "0" * 64)
    source.unlink()
    with pytest.raises(DownloadError, match=r"^there is no such file"):
        _fetch(address, tmp_path / "to" / "d.whl")


@pytest.mark.parametrize("address", ["ftp://host.test/a.whl", "https:///a.whl", "data:text/plain,a"])
def test_other_addresses_are_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(DownloadError, match=r"^only http, https and file addresses can be fetched"):
        _fetch(address, tmp_path / "b.whl")


def test_two_at_once_do_not_write_into_each_other(server: Server, tmp_path: Path) -> None:
    server.answers = [whole]
    threads = [threading.Thread(target=_fetch, args=(server.url, tmp_path / "b.whl")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "b.whl").read_bytes() == DATA
    assert len(server.ranges) == 1


def _page(server: Server, limit: int = 10**6) -> download.Page:
    return download.read_page(server.url, limit, accept="text/html", pause=lambda _: None)


def test_page_comes_whole(server: Server) -> None:
    def moved(handler: http.server.BaseHTTPRequestHandler) -> None:
        _send(handler, 301, b"", Location="/elsewhere/")

    server.answers = [moved, lambda handler: _send(handler, 200, b"<a>", Content_Type="Text/HTML; charset=utf-8")]
    page = _page(server)
    assert (page.data, page.media_type) == (b"<a>", "text/html")
    assert page.address == server.url.replace("/files/alpha-1.0-py3-none-any.whl", "/elsewhere/")


def test_page_of_a_busy_server_is_asked_for_again(server: Server) -> None:
    server.answers = [status(503), status(429), lambda handler: _send(handler, 200, b"<a>")]
    assert _page(server).data == b"<a>"


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        pytest.param(whole, DownloadError, "the answer has more than 1000 bytes", id="too-long"),
        pytest.param(status(404), DownloadError, "could not be fetched: the server does not have it", id="404"),
        pytest.param(status(500), NetworkError, "could not be fetched in 4 attempts: the server is busy", id="500"),
        pytest.param(cut, NetworkError, "in 4 attempts: the connection ended too early", id="cut-off"),
    ],
)
def test_page_that_does_not_come_is_said(
    server: Server, answer: Answer, kind: type[PatchlockError], words: str
) -> None:
    server.answers = [answer]
    with pytest.raises(kind) as caught:
        _page(server, limit=10**7 if answer is cut else 1000)
    assert words in str(caught.value)


def test_page_that_drips_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_PAGE_TIME", 0.0)
    server.answers = [whole]
    with pytest.raises(NetworkError, match="there was no answer in time"):
        _page(server)


def test_page_that_is_silent_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    silence = threading.Event()
    monkeypatch.setattr(download, "_SILENCE", 0.05)
    server.answers = [lambda _: silence.wait(10) and None]
    with pytest.raises(NetworkError, match="there was no answer in time"):
        _page(server)
    silence.set()


@pytest.mark.parametrize("address", ["file:///etc/hosts", "ftp://x.test/", "/whl/", "https://"])
def test_page_of_another_kind_of_address_is_refused(address: str) -> None:
    with pytest.raises(DownloadError, match="only http and https addresses can be read"):
        download.read_page(address, 1000)
