"""A program that serves a page: its address is said when it answers, and nothing of it is left when it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patchlock.core import process, service
from patchlock.model.errors import ProgramMissingError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows' console tells its programs itself")

SERVER = """\
import http.server, json, os, pathlib, signal, subprocess, sys, time
ignored, child, ready = [pathlib.Path(sys.argv[1]) / name for name in ("ignored", "child", "ready")]
if {stubborn}:
    signal.signal(signal.SIGINT, lambda *_: ignored.touch())
code = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
worker.stdout.readline()
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ready.with_name("asked").touch()
        self.send_response(200 if ready.exists() and self.path == "/health" else 503)
        self.end_headers()
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Page)
child.with_suffix(".new").write_text(json.dumps([os.getpid(), worker.pid, server.server_port]))
child.with_suffix(".new").rename(child)
while True:
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        break
"""
RUNNER = """\
import os, pathlib, signal, sys
from patchlock.core import service
for number in (signal.SIGINT, signal.SIGHUP):  # what started the tests may ignore them
    signal.signal(number, signal.SIG_DFL)
server, folder = sys.argv[1:]
raise SystemExit(service.run(sys.executable, server, folder, env=dict(os.environ), cwd=pathlib.Path(folder), port=1,
    path="/health", answers=lambda address: print(address, flush=True)))
"""


class _Run:
    """A runner, its server, and the server's worker."""

    def __init__(self, folder: Path, *, stubborn: bool) -> None:
        self.folder = folder
        (folder / "server.py").write_text(SERVER.format(stubborn=stubborn))
        env = process.environment({"PYTHONPATH": str(Path(service.__file__).parents[2])})
        argv = [sys.executable, "-c", RUNNER, str(folder / "server.py"), str(folder)]
        self.runner = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)
        until((folder / "child").exists)
        self.server, self.worker, self.port = json.loads((folder / "child").read_text())

    def close(self) -> None:
        for number in (self.server, self.worker, self.runner.pid):
            if is_alive(number):
                os.kill(number, signal.SIGKILL)
        self.runner.communicate()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.fixture(params=[False], ids=["obeys"])
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[_Run]:
    made = _Run(tmp_path, stubborn=request.param)
    yield made
    made.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody says where a program listens")
def test_address_is_said_when_the_page_answers_with_success_and_not_before(run: _Run) -> None:
    assert run.runner.stdout is not None
    until((run.folder / "asked").exists)
    assert select.select([run.runner.stdout], [], [], 0.5)[0] == [], "it was told that the page is not ready"
    (run.folder / "ready").touch()
    assert run.runner.stdout.readline() == f"http://127.0.0.1:{run.port}/health\n"


def test_ctrl_c_ends_the_program_and_the_worker_that_does_not_listen_to_it(run: _Run) -> None:
    os.kill(run.runner.pid, signal.SIGINT)
    assert run.runner.wait(60) == 0
    assert [is_alive(run.server), is_alive(run.worker)] == [False, False]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 128 + 15), (signal.SIGHUP, 128 + 1)])
def test_other_signals_reach_the_program_too(run: _Run, number: signal.Signals, code: int) -> None:
    os.kill(run.runner.pid, number)
    assert run.runner.wait(60) == code
    assert [is_alive(run.server), is_alive(run.worker)] == [False, False]


@pytest.mark.parametrize("run", [True], indirect=True, ids=["stubborn"])
def test_second_ctrl_c_ends_a_program_that_ignores_the_first(run: _Run) -> None:
    os.kill(run.runner.pid, signal.SIGINT)
    until((run.folder / "ignored").exists)
    assert run.runner.poll() is None
    os.kill(run.runner.pid, signal.SIGINT)
    assert run.runner.wait(60) == 128 + signal.SIGTERM
    assert [is_alive(run.server), is_alive(run.worker)] == [False, False]


def test_exit_code_is_the_program_s(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    code = service.run(
        *(sys.executable, "-c", "raise SystemExit(7)"),
        env=process.environment(),
        cwd=tmp_path,
        port=1,
        path="/",
        answers=print,
    )
    assert code == 7
    assert signal.getsignal(signal.SIGTERM) is before


def test_missing_program_has_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ProgramMissingError, match=r"^nonesuch is not installed; install it and"):
        service.run("nonesuch", env={"PATH": ""}, cwd=tmp_path, port=1, path="/", answers=print)
