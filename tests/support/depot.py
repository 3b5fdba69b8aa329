"""An index with its files on loopback for tests: it resumes, cuts, throttles, lies and refuses as the test says."""

from __future__ import annotations

import hashlib
import http.server
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

_BLOCK = 16 * 1024


class Depot:
    """Serves each file of a folder, with the pages of a PEP 503 index; every path that was asked is written down."""

    def __init__(self, wheels: Path) -> None:
        self.files = {path.name: path.read_bytes() for path in sorted(wheels.iterdir())}
        self.promised = {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()}
        """What the pages say; as the files were first."""
        self.status: dict[str, int] = {}
        """File → the answer instead of it."""
        self.cuts: dict[str, list[int]] = {}
        """File → after how many bytes each answer ends; then no more."""
        self.stalls: dict[str, int] = {}
        """File → bytes after which the answer waits for `go`, where the file or its rest was asked for: uv's looks
        at the wheel's metadata, which name an end, wait for nothing. A byte in a second comes meanwhile, so that
        nobody takes the server for dead however long that is."""
        self.has_ranges = self.has_lengths = self.has_heads = True
        self.redirects = False
        self.wants_login = frozenset[str]()
        """`simple`, `files`: what is answered with the login page of a network, whatever was asked for."""
        self.speed = 0
        """Bytes in a second of one answer; 0 for as fast as it goes."""
        self.go = threading.Event()
        self.asked: list[tuple[str, str, str]] = []
        """Method, path and range."""
        self.sent: dict[str, int] = {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.asked.append((self.command, self.path, self.headers.get("Range", "")))
                outer._answer(self)

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.host = f"http://127.0.0.1:{self._server.server_port}"
        self.index = f"{self.host}/simple"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """End, and all answers with it."""
        self.go.set()
        self._server.shutdown()
        self._server.server_close()

    def url(self, name: str) -> str:
        """Name the address of a file."""
        return f"{self.host}/files/{name}"

    def asked_for(self, name: str) -> list[str]:
        """List the ranges in which a file was asked for, "" for all of it."""
        return [wanted for method, path, wanted in self.asked if method == "GET" and path == f"/files/{name}"]

    def _answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        kind, _, name = handler.path.strip("/").partition("/")
        if kind in self.wants_login:
            self._send(handler, 200, b"<!DOCTYPE html><title>Guests</title><h1>Please sign in</h1>")
        elif kind == "simple":
            links = [
                f'<a href="/files/{file}#sha256={self.promised[file]}" data-upload-time="2025-06-01T00:00:00Z">{file}</a>'
                for file in self.files
                if file.split("-")[0].replace("_", "-").lower() == name
            ]
            self._send(handler, 200 if links else 404, ("<!DOCTYPE html>\n" + "<br>\n".join(links)).encode())
        elif self.redirects and kind == "files":
            self._send(handler, 302, b"", Location=f"/elsewhere/{name}")
        elif name not in self.files or name in self.status:
            self._send(handler, self.status.get(name, 404), b"<html>no</html>")
        elif handler.command == "HEAD" and not self.has_heads:
            self._send(handler, 405, b"")
        else:
            self._file(handler, name)

    def _file(self, handler: http.server.BaseHTTPRequestHandler, name: str) -> None:
        data = self.files[name]
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", handler.headers.get("Range", "")) if self.has_ranges else None
        if asked is None:
            self._send(handler, 200, data, name)
            return
        first = int(asked[1]) if asked[1] else max(0, len(data) - int(asked[2]))
        last = int(asked[2]) if asked[1] and asked[2] else len(data) - 1
        if first >= len(data):
            self._send(handler, 416, b"", Content_Range=f"bytes */{len(data)}")
        else:
            part = data[first : last + 1]
            self._send(handler, 206, part, name, Content_Range=f"bytes {first}-{first + len(part) - 1}/{len(data)}")

    def _send(
        self, handler: http.server.BaseHTTPRequestHandler, status: int, body: bytes, name: str = "", **headers: str
    ) -> None:
        handler.send_response(status)
        for key, value in headers.items():
            handler.send_header(key.replace("_", "-"), value)
        handler.send_header("Content-Type", "application/octet-stream" if name else "text/html")
        handler.send_header("Connection", "close")
        if self.has_lengths or not name:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.close_connection = True
        if handler.command == "HEAD":
            return
        end = self.cuts[name].pop(0) if self.cuts.get(name) else len(body)
        wanted = handler.headers.get("Range", "-")
        stall = self.stalls.get(name, end) if wanted.endswith("-") else end
        for start in range(0, min(end, len(body)), _BLOCK):
            block = body[start : min(start + _BLOCK, end)]
            try:
                while stall <= start and not self.go.wait(1):
                    handler.wfile.write(block[:1])
                    self.sent[name] = self.sent.get(name, 0) + 1
                    block = block[1:]
                if self.speed:
                    time.sleep(len(block) / self.speed)
                handler.wfile.write(block)
            except OSError:
                return
            self.sent[name] = self.sent.get(name, 0) + len(block)


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that another thread or process does; ten minutes at most, for a test must not hang."""
    deadline = time.monotonic() + 600
    while not is_so():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)
