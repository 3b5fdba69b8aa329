"""Asking the machine's index for the wheels of a version; uv asks, so that nothing else has to know where it is."""

from __future__ import annotations

import base64
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from miniature import PYTHON, index, wheel
from packaging.version import Version

from patchlock.core import download
from patchlock.distributions import file_locations, mirrors
from patchlock.model.errors import DownloadError, NetworkError


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    found = [
        wheel(tmp_path / "wheels", "alpha", "1.0"),
        wheel(tmp_path / "wheels", "alpha", "2.0", tag="cp311-cp311-win_amd64"),
        wheel(tmp_path / "wheels", "alpha", "2.0", tag="cp311-cp311-manylinux_2_28_x86_64"),
        wheel(tmp_path / "wheels", "alpha", "3.0+cu118", requires=("nowhere",)),
    ]
    monkeypatch.setenv("UV_DEFAULT_INDEX", index(tmp_path / "index", found))
    return found


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        pytest.param("1.0", (0,), id="one"),
        pytest.param("2.0", (2, 1), id="for-every-platform"),
        pytest.param("3.0+cu118", (3,), id="local-version-without-its-requirements"),
    ],
)
def test_wheels_come_with_address_and_hash(
    made: list[Path], tmp_path: Path, version: str, numbers: tuple[int, ...]
) -> None:
    offered = file_locations.wheels("alpha", Version(version), python="3.11")
    expected = [(made[i].name, hashlib.sha256(made[i].read_bytes()).hexdigest()) for i in numbers]
    assert [(one.filename, one.sha256) for one in offered] == expected
    assert all(download.fetch(one.url, tmp_path / one.filename, sha256=one.sha256).is_file() for one in offered)
    assert all(one.url.startswith("file://") for one in offered)


def test_missing_version_is_said(made: list[Path]) -> None:
    with pytest.raises(DownloadError) as caught:
        file_locations.wheels("alpha", Version("4.0"), python=PYTHON)
    assert caught.value.what == "the index has no wheel of alpha 4.0"
    assert caught.value.remedy == "check the version, or give the file with `--wheel`"


def test_index_that_cannot_be_reached_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.delenv("UV_OFFLINE")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(NetworkError, match=r"^the package index does not answer"):
        file_locations.wheels("alpha", Version("1.0"), python=PYTHON)


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """Serve an index with a password; gives its host and its one wheel."""
    path = wheel(tmp_path / "wheels", "alpha", "1.0")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    page = f'<!DOCTYPE html><a href="/files/{path.name}#sha256={digest}">{path.name}</a>'.encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = self.headers.get("Authorization") == "Basic " + base64.b64encode(b"me:p@ss").decode()
            body = (page if self.path.startswith("/simple/") else path.read_bytes()) if allowed else b""
            self.send_response(200 if allowed else 401)
            self.send_header("Content-Type", "text/html" if body == page else "application/octet-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.delenv("UV_OFFLINE")
    yield f"127.0.0.1:{server.server_port}", path
    server.shutdown()
    server.server_close()


def test_password_of_the_index_is_used_for_its_files(
    guarded: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, path = guarded
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://me:p%40ss@{host}/simple")
    (offered,) = file_locations.wheels("alpha", Version("1.0"), python=PYTHON)
    fetched = download.fetch(offered.url, tmp_path / "got" / path.name, sha256=offered.sha256)
    assert fetched.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("address", ["http://me:p@index.test/simple", "https://me:p@other.test/simple", ""])
def test_password_of_the_index_goes_nowhere_else(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", address)
    assert mirrors.with_password("https://index.test/a.whl") == "https://index.test/a.whl"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://me:p@index.test/simple")
    assert mirrors.with_password("https://index.test/a.whl") == "https://me:p@index.test/a.whl"


def test_password_of_a_named_index_goes_to_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_INDEX", "mine=https://index.test/simple")
    monkeypatch.setenv("UV_INDEX_MINE_USERNAME", "me")
    monkeypatch.setenv("UV_INDEX_MINE_PASSWORD", "p@ss")
    assert mirrors.with_password("https://index.test/a.whl") == "https://me:p%40ss@index.test/a.whl"
    assert mirrors.with_password("https://other.test/a.whl") == "https://other.test/a.whl"
