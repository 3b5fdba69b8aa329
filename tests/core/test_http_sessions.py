"""`core._http_sessions`: certificates are read once for all connections, and those of the environment hold."""

from __future__ import annotations

import concurrent.futures
import http.server
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
import requests

from patchlock.core import _http_sessions, download
from patchlock.model.errors import NetworkError

VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


class Here(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    file = tmp_path / "own.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run(
        ["openssl", *words.split(), "-keyout", file, "-out", tmp_path / "c"], check=True, capture_output=True
    )
    file.write_bytes(file.read_bytes() + (tmp_path / "c").read_bytes())
    return file


@pytest.fixture
def server(certificate: Path) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    opened = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Here)
    opened.socket = context.wrap_socket(opened.socket, server_side=True)
    threading.Thread(target=opened.serve_forever, daemon=True).start()
    yield f"https://localhost:{opened.server_address[1]}/"
    opened.shutdown()
    opened.server_close()


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("variable", VARIABLES)
def test_the_certificates_of_the_environment_hold(
    server: str, certificate: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(certificate))
    with _http_sessions.open_session(encoding="identity", at_once=2) as session:
        assert session.get(server, timeout=10).text == "ok"


def test_nobody_else_is_trusted(server: str) -> None:
    with (
        _http_sessions.open_session(encoding="identity", at_once=2) as session,
        pytest.raises(requests.exceptions.SSLError),
    ):
        session.get(server, timeout=10)


def test_a_name_that_the_certificate_lacks_is_not_trusted(
    server: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with (
        _http_sessions.open_session(encoding="identity", at_once=2) as session,
        pytest.raises(requests.exceptions.SSLError),
    ):
        session.get(server.replace("localhost", "127.0.0.1"), timeout=10)


def test_certificates_are_read_once_for_all_connections(
    server: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with _http_sessions.open_session(encoding="identity", at_once=4) as session:
        certificate.unlink()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda _: session.get(server, timeout=10).text, range(8))) == ["ok"] * 8


@pytest.mark.parametrize("variable", VARIABLES)
def test_certificates_that_cannot_be_read_are_named(
    tmp_path: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "certificates.pem"
    file.write_text("none")
    monkeypatch.setenv(variable, str(file))
    with pytest.raises(NetworkError) as caught:
        _http_sessions.open_session(encoding="identity", at_once=1)
    assert str(caught.value) == f"the certificates cannot be read ({file}); correct or remove {variable}"


@pytest.mark.parametrize(
    ("variable", "named"),
    [
        ("", "SSL_CERT_FILE"),
        ("SSL_CERT_FILE", "SSL_CERT_FILE"),
        ("CURL_CA_BUNDLE", "CURL_CA_BUNDLE, which is set and wins over SSL_CERT_FILE"),
        ("REQUESTS_CA_BUNDLE", "REQUESTS_CA_BUNDLE, which is set and wins over SSL_CERT_FILE"),
    ],
    ids=["none", "uv's", "curl's", "requests'"],
)
def test_variable_that_decides_is_named(
    server: str, certificate: Path, tmp_path: Path, variable: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable != "SSL_CERT_FILE":
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate) if variable else "")
    if variable:
        monkeypatch.setenv(variable, certifi.where())
    with pytest.raises(NetworkError) as caught:
        download.read_page(server, 10)
    assert str(caught.value) == (
        f"the certificate of the server is not trusted (localhost); "
        f"name the certificates of your network or proxy with {named}, and run this again"
    )
