"""A hub on loopback that answers as Hugging Face does, and a vendor's server beside it; it can fail in several ways."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import re
import threading


def commit_of(repository: str) -> str:
    """Name the only commit of a repository."""
    return hashlib.sha1(repository.encode()).hexdigest()


class LoopbackHub:
    """Serves files of repositories, by commit or by `main`, and below `/vendor/` files without any promise."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        """`owner/name/path`, or `vendor/path` → bytes."""
        self.in_git: set[str] = set()
        """Names of those that are no LFS files, which have the SHA-1 of git for an ETag."""
        self.sends: dict[str, bytes] = {}
        """Name → other bytes than those that are promised."""
        self.cuts: dict[str, list[int]] = {}
        """Name → after how many bytes each of the next answers ends."""
        self.token = ""
        """Without which everything is 401."""
        self.asked: list[tuple[str, str, str]] = []
        """Method, path, and the range that was asked for."""
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                outer._answer(self)

            def do_GET(self) -> None:
                with contextlib.suppress(ConnectionError):  # of a killed patchlock
                    outer._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def got(self, name: str) -> list[str]:
        """List the ranges of the answers that brought bytes of a file."""
        return [asked for method, path, asked in self.asked if method == "GET" and path.endswith(name)]

    def _answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        asked = request.headers.get("Range", "")
        self.asked.append((request.command, request.path, asked))
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            self._refuse(request, 401, "RepoNotFound")
            return
        if told := re.fullmatch(r"/api/models/([\w.-]+/[\w.-]+)", request.path.partition("?")[0]):
            self._describe(request, told[1])
            return
        resolved = re.fullmatch(r"/([\w.-]+/[\w.-]+)/resolve/([\w.-]+)/(.+)", request.path)
        name = f"{resolved[1]}/{resolved[3]}" if resolved else request.path.lstrip("/")
        if resolved and not any(file.startswith(f"{resolved[1]}/") for file in self.files):
            self._refuse(request, 404, "RepoNotFound")
            return
        if resolved and resolved[2] not in {"main", commit_of(resolved[1])}:
            self._refuse(request, 404, "RevisionNotFound")
            return
        if name not in self.files:
            self._refuse(request, 404, "EntryNotFound")
            return
        whole = self.files[name]
        sent = self.sends.get(name, whole)
        begins = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        body = sent[begins:]
        request.send_response(206 if asked else 200)
        if asked:
            request.send_header("Content-Range", f"bytes {begins}-{len(sent) - 1}/{len(sent)}")
        if resolved:
            blob = b"blob %d\0" % len(whole) + whole
            etag = hashlib.sha1(blob) if name in self.in_git else hashlib.sha256(whole)
            request.send_header("X-Repo-Commit", commit_of(resolved[1]))
            request.send_header("ETag", f'"{etag.hexdigest()}"')
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if request.command == "HEAD":
            return
        if self.cuts.get(name):
            request.wfile.write(body[: self.cuts[name].pop(0)])
            request.wfile.flush()
            request.close_connection = True
            request.connection.close()
            return
        request.wfile.write(body)

    def _describe(self, request: http.server.BaseHTTPRequestHandler, repository: str) -> None:
        """List the files of a repository, as the hub's API does."""
        names = [name for name in self.files if name.startswith(f"{repository}/")]
        if not names:
            self._refuse(request, 404, "RepoNotFound")
            return
        files = [{"rfilename": name.removeprefix(f"{repository}/"), "size": len(self.files[name])} for name in names]
        body = json.dumps({"id": repository, "sha": commit_of(repository), "siblings": files}).encode()
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _refuse(self, request: http.server.BaseHTTPRequestHandler, status: int, code: str) -> None:
        request.send_response(status)
        request.send_header("X-Error-Code", code)
        request.send_header("X-Error-Message", code)
        request.send_header("Content-Length", "0")
        request.end_headers()
