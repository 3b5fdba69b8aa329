"""A connection that is cut in the middle of an answer, from the n-th request on: one sentence, and the next run completes."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import Server, shared_server
from transactions import NEW, ONE, TRANSACTIONS, Places, says

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the server that runs commands forks")

KEEPS = next(t for t in TRANSACTIONS if t.name == "update")


class Cutting:
    """Serves a folder; from the n-th request on, every answer ends in its middle with a reset."""

    def __init__(self, folder: Path) -> None:
        self.cut_from = 10**9
        self.requests = 0
        outer = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *words: object) -> None:
                super().__init__(*words, directory=str(folder))  # type: ignore[arg-type]

            def do_GET(self) -> None:
                outer.requests += 1
                path = Path(self.translate_path(self.path))
                path = path / "index.html" if path.is_dir() else path
                if not path.is_file():
                    self.send_error(404)
                    return
                data = path.read_bytes()
                is_cut = outer.requests >= outer.cut_from
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Content-Type", "text/html" if path.suffix == ".html" else "application/octet-stream")
                self.end_headers()
                with contextlib.suppress(OSError):  # a client that had enough
                    self.wfile.write(data[: len(data) // 2] if is_cut else data)
                if is_cut:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Server:
    return shared_server()


@pytest.fixture
def places(tmp_path: Path, server: Server) -> Places:
    return Places(tmp_path, server)


@pytest.fixture
def cutting(places: Places) -> Iterator[Cutting]:
    """Serve the index of the world and its public repository."""
    places.put("installed")
    folder = places.folder.parent / "served"
    for wheel in (places.folder / "world" / "wheels").iterdir():
        project = folder / "index" / wheel.name.partition("-")[0]
        project.mkdir(parents=True, exist_ok=True)
        (project / wheel.name).write_bytes(wheel.read_bytes())
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        with (project / "index.html").open("a") as page:
            page.write(f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>\n')
    public = folder / "public.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(places.folder / "public"), str(public)], check=True)
    subprocess.run(["git", "update-server-info"], cwd=public, check=True)
    served = Cutting(folder)
    yield served
    served.close()


def test_cut_index(places: Places, server: Server, cutting: Cutting) -> None:
    env = {"UV_DEFAULT_INDEX": f"{cutting.url}/index", "UV_OFFLINE": "0", "UV_HTTP_RETRIES": "0"}
    for cut_from in (1, 3, 5, 10**9):
        places.put("locked")
        cutting.requests, cutting.cut_from = 0, cut_from
        fresh = places.env | env | {"UV_CACHE_DIR": str(places.folder / "fresh uv")}
        done = server.run("install", "mini", env=fresh)
        assert (done.returncode == 0) == (cut_from > cutting.requests), done.stderr
        if done.returncode:
            assert says(done)
            assert "error[network]: " in done.stderr
        cutting.cut_from = 10**9
        again = server.run("install", "mini", env=fresh)
        assert again.returncode == 0, again.stderr
        assert places.run("run", "mini").stdout == ONE
        assert places.leftovers(temporary=True) == []


def test_cut_upstream(places: Places, server: Server, cutting: Cutting) -> None:
    words = ("update", "mini", "--source", f"{cutting.url}/public.git")
    for cut_from in (1, 2, 4, 10**9):
        places.put("installed")
        cutting.requests, cutting.cut_from = 0, cut_from
        done = server.run(*words, env=places.env)
        assert (done.returncode == 0) == (cut_from > cutting.requests), done.stderr
        if done.returncode:
            assert says(done)
            assert "error[upstream]: the upstream of mini could not be fetched (" in done.stderr
            assert places.run("run", "mini").stdout == ONE
        cutting.cut_from = 10**9
        again = server.run(*words, env=places.env)
        assert again.returncode == 0, again.stderr
        assert places.run("run", "mini").stdout == NEW
        assert places.objections(KEEPS) == []
        assert places.leftovers(temporary=True) == []
