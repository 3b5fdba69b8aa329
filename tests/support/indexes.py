"""Indexes on the loopback address for tests: one that serves files, below a path and with a password, and bad ones."""

from __future__ import annotations

import base64
import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

SLOW = 2.5
"""Seconds; tests let uv wait for one."""


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass

    def _answer(self, status: int, body: bytes, kind: str = "text/html", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextlib.contextmanager
def _serve(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def failing(kind: str) -> Iterator[str]:
    """Run an index that is broken in one way, and give its address."""

    class Broken(_Quiet):
        def do_GET(self) -> None:
            match kind:
                case "garbage":
                    self._answer(200, b"\0\xff<<< no page" * 20, "text/html")
                case "login":
                    form = b'<form action="/login"><input name="user"></form><a href="/help.html">Help</a>'
                    self._answer(200, b"<!doctype html><title>Sign in</title>" + form)
                case "half-json":
                    self._answer(200, b'{"meta": {}, "files": [', "application/vnd.pypi.simple.v1+json")
                case "not-a-page":
                    self._answer(200, b"\0\1\2", "application/octet-stream")
                case "slow":
                    time.sleep(SLOW)
                case "closes":
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\nContent-Type: text/html\r\n\r\n<ht")
                    self.close_connection = True
                case _:
                    self._answer(int(kind), b"no")

    with _serve(Broken) as host:
        yield f"http://{host}/simple"


@contextlib.contextmanager
def serving(
    index: Path, files: Path, *, prefix: str, user: str = "", password: str = "", max_age: int = 0
) -> Iterator[str]:
    """Serve the pages of a `file://` index and its files below a path, and give the address, with the password.

    Beside it, `files/` is one page with links to all files, without their hashes.

    Args:
        index: a folder with a page for each project, whose links lead to files of `files`.
        files: the folder of these files.
        prefix: path of the index.
        user: asked for if not empty.
        password: of the user.
        max_age: seconds that a page of the index may be kept.
    """
    wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    class Index(_Quiet):
        def do_GET(self) -> None:
            if user and self.headers.get("Authorization") != wanted:
                self._answer(401, b"who?", WWW_Authenticate='Basic realm="index"')
                return
            kind, _, name = unquote(self.path).removeprefix(prefix).strip("/").partition("/")
            path = index / name.strip("/") / "index.html" if kind == "simple" else files / name
            if kind == "files" and not name:
                links = "".join(f'<a href="{quote(file.name)}">{file.name}</a>' for file in sorted(files.iterdir()))
                self._answer(200, links.encode())
            elif not path.is_file():
                self._answer(404, b"no")
            elif kind == "simple":
                page = path.read_text().replace(files.as_uri(), f"{prefix}/files").encode()
                self._answer(200, page, Cache_Control=f"max-age={max_age}")
            else:
                self._answer(200, path.read_bytes(), "application/octet-stream")

        do_HEAD = do_GET  # noqa: N815

    with _serve(Index) as host:
        who = f"{user}:{password}@" if user else ""
        yield f"http://{who}{host}{prefix}/simple"
