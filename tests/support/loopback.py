"""An index on loopback for tests, whose every answer is written down by the test."""

from __future__ import annotations

import http.server
import threading


class LoopbackIndex:
    """An index on loopback; every path is written down by the test, and every other one is 404."""

    def __init__(self) -> None:
        self.paths: dict[str, tuple[int, str, bytes]] = {}
        self.asked: list[str] = []
        self.accepted = ""
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                if self.path.endswith("/"):
                    outer.accepted = self.headers["Accept"]
                status, kind, body = outer.paths.get(self.path, (404, "text/plain", b""))
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/whl/cu128"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def html(self, *links: str) -> None:
        """Give the page of alpha."""
        self.paths["/whl/cu128/alpha/"] = (200, "text/html; charset=utf-8", "<br>".join(links).encode())

    def file(self, path: str, data: bytes, status: int = 200) -> None:
        """Give a file below the channel."""
        self.paths[f"/whl/cu128/{path}"] = (status, "application/octet-stream", data)
