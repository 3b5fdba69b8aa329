"""Facts about wheels: read from the end of the archive, once, by a server that counts what it is asked for."""

from __future__ import annotations

import hashlib
import http.server
import os
import re
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from miniature import index, wheel
from packaging.utils import NormalizedName
from packaging.version import Version
from policy_values import package

from patchlock.core import http_ranges, uv
from patchlock.distributions import file_locations, index_client, policy, wheel_facts
from patchlock.distributions.wheel_facts import Place
from patchlock.model.errors import DownloadError, NetworkError
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage
from patchlock.model.policy import IndexFile, WheelFile


class _Server(http.server.ThreadingHTTPServer):
    folder: Path
    asked: list[tuple[str, str]]
    status = 206


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.server.asked.append((self.path, wanted))
        file = self.server.folder / self.path.lstrip("/")
        if self.server.status >= 400 or not file.is_file():
            self._answer(self.server.status if self.server.status >= 400 else 404, b"")
            return
        data = file.read_bytes()
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted)
        if self.server.status == 200 or found is None:
            self._answer(200, data)
            return
        first = int(found[1]) if found[1] else max(0, len(data) - int(found[2]))
        last = min(int(found[2]), len(data) - 1) if found[1] else len(data) - 1
        self._answer(206, data[first : last + 1], f"bytes {first}-{last}/{len(data)}")

    def _answer(self, status: int, data: bytes, part: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if part:
            self.send_header("Content-Range", part)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[_Server]:
    made = _Server(("127.0.0.1", 0), _Handler)
    made.folder, made.asked = tmp_path, []
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def _locked(path: Path, server: _Server | None = None) -> tuple[LockedPackage, dict[Sha256, Place]]:
    sha256 = Sha256(hashlib.sha256(path.read_bytes()).hexdigest())
    url = f"http://127.0.0.1:{server.server_port}/{path.name}" if server else path.as_uri()
    name = path.name.split("-")[0]
    return package(name, "1.0", sha256=sha256), {sha256: Place(filename=path.name, url=url)}


def test_files_come_from_the_server_once_and_then_from_the_cache(server: _Server, tmp_path: Path) -> None:
    made = [
        wheel(tmp_path, "alpha", "1.0", files={"both/x.py": "1"}, requires=("Gamma_Ray>=2", "beta; extra == 'x'")),
        wheel(tmp_path, "beta", "1.0", files={"both/x.py": "22"}),
        wheel(tmp_path, "delta", "1.0"),
    ]
    pairs = [_locked(path, server) for path in made]
    packages, places = [one for one, _ in pairs], {k: v for _, place in pairs for k, v in place.items()}
    first = wheel_facts.collect(packages, places, cache=tmp_path / "cache", online=True)
    assert len(server.asked) == 3
    assert {tuple(f.path for f in files if "dist-info" not in f.path) for files in first.contents.values()} == {
        ("both/x.py",)
    }
    assert len(first.contents) == 2
    assert first.required == {"gamma-ray", "beta"}
    again = wheel_facts.collect(packages, {}, cache=tmp_path / "cache", online=False)
    assert (again.contents, again.required, again.filenames) == (first.contents, first.required, first.filenames)
    assert (len(server.asked), again.unknown) == (3, {})


def test_large_table_of_contents_takes_a_second_request(server: _Server, tmp_path: Path) -> None:
    path = wheel(tmp_path, "alpha", "1.0", files={f"alpha/a_rather_long_name_{n:05}.py": "" for n in range(1500)})
    one, places = _locked(path, server)
    wheel_facts.collect([one], places, cache=tmp_path / "cache", online=True)
    files = wheel_facts.contents(tmp_path / "cache" / wheel_facts.FOLDER, one.sha256)
    assert sum(file.path.startswith("alpha/") for file in files) == 1500
    assert WheelFile(path="alpha/a_rather_long_name_00007.py", crc=0, size=0) in files
    assert len(server.asked) == 3  # its end, the table, METADATA
    assert all(asked.startswith("bytes=") for _, asked in server.asked)


def test_data_folders_are_told_where_an_installer_puts_them(tmp_path: Path) -> None:
    files = {f"alpha-1.0.data/{place}/f": "" for place in ("purelib", "platlib", "scripts", "data", "headers")}
    one, places = _locked(wheel(tmp_path, "alpha", "1.0", files=files))
    wheel_facts.collect([one], places, cache=tmp_path / "cache", online=True)
    found = wheel_facts.contents(tmp_path / "cache" / wheel_facts.FOLDER, one.sha256)
    assert [f.path for f in found if "dist-info" not in f.path] == [
        "f", "f", "../bin/f", "../f", "../include/alpha/f",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        pytest.param(404, "127.0.0.1: the server answers 404", id="missing"),
        pytest.param(500, "127.0.0.1: the server answers 500", id="broken"),
        pytest.param(200, "127.0.0.1: the server gives no parts of files", id="no-ranges"),
    ],
)
def test_server_that_gives_no_parts_is_a_reason_and_no_failure(
    server: _Server, tmp_path: Path, status: int, reason: str
) -> None:
    server.status = status
    one, places = _locked(wheel(tmp_path, "alpha", "1.0", files={"alpha/large.bin": os.urandom(1_000_000)}), server)
    facts = wheel_facts.collect([one], places, cache=tmp_path / "cache", online=True)
    assert facts.unknown == {one.sha256: reason}


@pytest.mark.parametrize(
    ("asks", "refused"),
    [("beta (>=1,<2) ; python_version > '3'", ""), ("PyYAML (>=5.1.*)", "PyYAML (>=5.1.*)"), ("no name", "no name")],
)
def test_requirement_that_pip_refuses_is_known_and_told(tmp_path: Path, asks: str, refused: str) -> None:
    locked, places = _locked(wheel(tmp_path, "alpha", "1.0", requires=("gamma", asks)))
    facts = wheel_facts.collect([locked], places, cache=tmp_path / "cache", online=False)
    assert facts.metadata[locked.sha256].refused == refused
    told = f"pip 24.1 and later refuse alpha 1.0, as its metadata requires `{refused}`; uv takes it"
    assert policy.notices((locked,), facts) == ((told,) if refused else ())


def test_metadata_with_the_line_endings_of_windows_say_what_they_say_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "alpha-1.0-py3-none-win_amd64.whl"
    text = (
        "Name: alpha\nVersion: 1.0\nRequires-Dist: beta\nRequires-Dist: gamma; extra == 'x'\n\nRequires-Dist: no name\n"
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("alpha-1.0.dist-info/METADATA", text.replace("\n", "\r\n"))
    locked, places = _locked(path)
    facts = wheel_facts.collect([locked], places, cache=tmp_path / "cache", online=False)
    head = facts.metadata[locked.sha256]
    assert (head.name, head.version, head.refused, facts.required) == ("alpha", "1.0", "", {"beta", "gamma"})


@pytest.mark.parametrize(
    ("change", "online", "reason"),
    [
        pytest.param({}, False, "the network is switched off", id="offline"),
        pytest.param({"is_asked": False}, True, "", id="vendor"),
        pytest.param({"filename": "alpha-1.0.tar.gz"}, True, "", id="sdist"),
        pytest.param({"url": "http://127.0.0.1:9/x.whl"}, True, "127.0.0.1: the server does not answer", id="nobody-there"),
    ],
)  # fmt: skip
def test_files_that_could_not_be_read_have_a_reason(
    tmp_path: Path, change: dict[str, object], online: bool, reason: str
) -> None:
    sha256 = Sha256("1" * 64)
    place = {"filename": "alpha-1.0-py3-none-any.whl", "url": "http://vendor.invalid/x.whl", **change}
    facts = wheel_facts.collect(
        [package("alpha", "1.0", sha256=sha256)], {sha256: Place(**place)}, cache=tmp_path, online=online
    )
    assert facts.unknown == ({sha256: reason} if reason else {})


def test_server_that_failed_once_is_one_reason_for_all_its_files(server: _Server, tmp_path: Path) -> None:
    server.status = 503
    pairs = [_locked(wheel(tmp_path, f"alpha{number}", "1.0"), server) for number in range(40)]
    places = {sha256: place for _, found in pairs for sha256, place in found.items()}
    facts = wheel_facts.collect([one for one, _ in pairs], places, cache=tmp_path / "cache", online=True)
    assert set(facts.unknown.values()) == {"127.0.0.1: the server answers 503"}
    assert len(facts.unknown) == 40


def test_small_wheel_is_fetched_whole_where_the_server_gives_no_parts(server: _Server, tmp_path: Path) -> None:
    server.status = 200
    large = _locked(wheel(tmp_path, "alpha", "1.0", files={"alpha/large.bin": os.urandom(1_000_000)}), server)
    script = {"beta-1.0.dist-info/entry_points.txt": "[gui_scripts]\npython3 = beta:x\n"}
    small = _locked(wheel(tmp_path, "beta", "1.0", files=script), server)
    facts = wheel_facts.collect([large[0], small[0]], large[1] | small[1], cache=tmp_path / "cache", online=True)
    assert facts.unknown == {large[0].sha256: "127.0.0.1: the server gives no parts of files"}
    assert facts.outside == {small[0].sha256: ("python3",)}


def test_file_that_is_no_archive_has_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "alpha-1.0-py3-none-any.whl"
    path.write_bytes(b"no archive")
    one, places = _locked(path)
    facts = wheel_facts.collect([one], places, cache=tmp_path / "cache", online=True)
    assert facts.unknown == {one.sha256: "the archive cannot be read: File is not a zip file"}


def test_damaged_cache_is_read_again(tmp_path: Path) -> None:
    one, places = _locked(wheel(tmp_path, "alpha", "1.0"))
    wheel_facts.collect([one], places, cache=tmp_path / "cache", online=True)
    [kept] = (tmp_path / "cache" / wheel_facts.FOLDER).rglob("*.txt")
    right = kept.read_text()
    kept.write_text("{")
    wheel_facts.collect([one], places, cache=tmp_path / "cache", online=True)
    assert kept.read_text() == right


def test_file_on_a_server_reads_like_one_here(server: _Server, tmp_path: Path) -> None:
    path = tmp_path / "big.bin"
    path.write_bytes(bytes(range(256)) * 1024)
    with http_ranges.open_file(f"http://127.0.0.1:{server.server_port}/big.bin", ahead=4096) as file:
        for start, count in ((0, 10), (10, 10), (5000, 300), (262140, 100), (262144, 1), (7, 0)):
            file.seek(start)
            assert file.read(count) == path.read_bytes()[start : start + count]
    assert len(server.asked) == 3


# --- index pages ------------------------------------------------------------------------------------------------------

HTML = """<!DOCTYPE html><html><body>
<a href="../../x/x-1.0.tar.gz#sha256={a}" data-yanked="bad &amp; old">x-1.0.tar.gz</a>
<a href="https://files.invalid/x-1.0%2Bcpu-py3-none-any.whl#sha256={b}" data-requires-python="&gt;=3">x</a>
<a href="x-2.0.tar.gz" data-yanked data-upload-time="2026-01-01T00:00:00Z">x-2.0.tar.gz</a></body></html>"""
JSON = """{{"files": [
 {{"filename": "x-1.0.tar.gz", "url": "u", "hashes": {{"sha256": "{a}"}}, "yanked": "bad & old"}},
 {{"filename": "x-1.0+cpu-py3-none-any.whl", "url": "u", "hashes": {{"sha256": "{b}"}}, "yanked": false}},
 {{"filename": "x-2.0.tar.gz", "url": "u", "hashes": {{}}, "yanked": true, "upload-time": "2026-01-01T00:00:00Z"}}]}}"""


@pytest.mark.parametrize("page", [pytest.param(HTML, id="html"), pytest.param(JSON, id="json")])
def test_page_of_an_index(page: str) -> None:
    a, b = "a" * 64, "b" * 64
    assert index_client.parse(page.format(a=a, b=b), "x") == (
        IndexFile(filename="x-1.0.tar.gz", sha256=a, yanked="bad & old"),
        IndexFile(filename="x-1.0+cpu-py3-none-any.whl", sha256=b, yanked=None),
        IndexFile(filename="x-2.0.tar.gz", sha256="", yanked="", uploaded="2026-01-01T00:00:00Z"),
    )


@pytest.mark.parametrize(
    "page", ['<a href="x-1-py36+-none-any.whl">x</a>', '{"files": [{"filename": "x-1-py36+-none-any.whl"}]}']
)
def test_wheel_that_no_installer_takes_is_none_of_an_index(page: str) -> None:
    assert index_client.parse(page, "x") == ()


@pytest.mark.parametrize(
    "page",
    [
        *("{}", '{"files": 3}', "{broken", "Bad gateway", "\0\xff<<!o page", "<![x y> z"),
        '<!DOCTYPE html><title>Sign in</title><form action="/login"></form><a href="/help.html">Help</a>',
    ],
)
def test_what_is_no_page_is_said(page: str) -> None:
    with pytest.raises(DownloadError) as caught:
        index_client.parse(page, "https://index.invalid/x/")
    assert str(caught.value) == (
        "that is not a page of a package index (https://index.invalid/x/); check UV_DEFAULT_INDEX"
    )


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html>\n",
        "<!DOCTYPE html><title>Links for x</title><h1>Links for x</h1>",
        "<title>Directory listing for /x/</title><h1>Directory listing for /x/</h1><hr><ul></ul><hr>",
        '<html><head><title>Index of /x/</title></head><body><h1>Index of /x/</h1><a href="../">../</a></body></html>',
        '<meta name="pypi:repository-version" content="1.0"><title>x</title>',
    ],
    ids=["bare", "devpi", "python", "nginx", "meta"],
)
def test_page_without_files_is_a_page(page: str) -> None:
    assert [one for one in index_client.parse(page, "x") if one.sha256] == []


def test_index_of_files_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", index(tmp_path / "index", [wheel(tmp_path, "alpha", "1.0")]))
    assert [file.filename for file in index_client.read(NormalizedName("alpha"))] == ["alpha-1.0-py3-none-any.whl"]
    assert index_client.read(NormalizedName("nowhere")) == ()


def test_index_that_fails_is_said(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{server.server_port}/simple/")
    assert index_client.read(NormalizedName("alpha")) == ()
    server.status = 503
    with pytest.raises(NetworkError) as caught:
        index_client.read(NormalizedName("alpha"))
    assert caught.value.what == "the server answers 503"
    assert index_client.read_all([NormalizedName("alpha")]) == {}


def test_answer_of_the_index_about_a_pin_is_kept_for_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = wheel(tmp_path, "alpha", "1.0")
    monkeypatch.setenv("UV_DEFAULT_INDEX", index(tmp_path / "index", [path, wheel(tmp_path, "alpha", "2.0")]))
    one, places = _locked(path)
    pinned = [NormalizedName("alpha")]
    first = wheel_facts.collect([one], places, cache=tmp_path / "cache", online=True, pinned=pinned)
    assert [file.filename for file in first.offered[one.name]] == [path.name]
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9")
    assert wheel_facts.collect([one], places, cache=tmp_path / "cache", online=False, pinned=pinned) == first
    other = wheel_facts.collect([one], places, cache=tmp_path / "cache", online=True)
    assert other.offered == {}


@pytest.mark.online
def test_files_of_a_real_wheel_are_read_by_its_end(tmp_path: Path) -> None:
    offered = file_locations.wheels(NormalizedName("torchvision"), Version("0.29.2"), python="3.12")
    (found,) = [one for one in offered if one.filename.endswith("win_amd64.whl")]
    sha256 = found.sha256
    place = Place(filename=found.filename, url=found.url)
    facts = wheel_facts.collect(
        [package("torchvision", "0.29.2", sha256=sha256)], {sha256: place}, cache=tmp_path, online=True
    )
    assert facts.unknown == {}
    assert {"torch", "numpy", "pillow"} <= set(facts.required)
    files = wheel_facts.contents(tmp_path / wheel_facts.FOLDER, sha256)
    assert "torchvision/__init__.py" in {file.path for file in files}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(None, True, id="unset"),
        pytest.param("", True, id="empty"),
        pytest.param("0", True, id="0"),
        pytest.param("False", True, id="false"),
        pytest.param("1", False, id="1"),
        pytest.param("true", False, id="true"),
    ],
)
def test_offline_means_what_it_means_to_uv(monkeypatch: pytest.MonkeyPatch, value: str | None, expected: bool) -> None:
    monkeypatch.delenv("UV_OFFLINE", raising=False)
    if value is not None:
        monkeypatch.setenv("UV_OFFLINE", value)
    assert uv.is_online() is expected
