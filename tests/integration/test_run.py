"""`run` as a launcher: what the device answers, where the page is, which variables an app gets, and how it all ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World, lock_here

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries and sockets are looked at as on Linux")

APP = b'''"""An app that serves a page."""
import http.server, json, os, sys

if __name__ == "__main__":
    names = ("PATCHLOCK_DEVICE", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "MINI_LIBRARY", "NUMBA_CACHE_DIR")
    print(json.dumps({name: os.environ.get(name) for name in names}), "computed on cpu", flush=True)
    if sys.argv[1:] == ["serve"]:
        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
            def log_message(self, *words):
                pass
        http.server.HTTPServer(("127.0.0.1", PORT), Page).serve_forever()
'''
with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    PORT: int = listener.getsockname()[1]
NEED = """\
[need]
kind = "library"
title = "the library"
source = "https://example.com/why"
variable = "MINI_LIBRARY"

[find]
linux = ["libmini.so.1"]
"""


@pytest.fixture
def mini(world: World, patchlock: Patchlock, tmp_path: Path) -> World:
    """Install an app that needs a library, on the profile of a card."""
    (world.upstream / "app.py").write_bytes(APP.replace(b"PORT", str(PORT).encode()))
    text = world.app.read_text()
    at = text.index('[[patch]]\nid = "on-the-cpu"')
    text = text[:at] + text[text.index("[[check]]") :]
    need = '[[need]]\nname = "mini"\nwhy = "it is loaded"\nsource = "https://example.com/why"\nrequired = false\n\n'
    world.app.write_text(text.replace("[[patch]]", need + "[[patch]]", 1))
    needs = world.profile.parent / "needs"
    needs.mkdir(exist_ok=True)
    (needs / "mini.toml").write_text(NEED)
    world.profile.write_text(world.profile.read_text() + 'back-end = "cuda"\n')
    world.name_commit(tmp_path)
    (tmp_path / "libmini.so.1").touch()
    for words in (lock_here(), ("install", "mini", "--no-device")):
        done = patchlock(*words)
        assert done.returncode == 0, done.stderr
    return world


def _env(tmp_path: Path, **extra: str) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": str(tmp_path), **extra}


def _answer(done: subprocess.CompletedProcess[str]) -> dict[str, str | None]:
    assert done.returncode == 0, done.stderr
    found: dict[str, str | None] = json.loads(done.stdout.partition("} ")[0] + "}")
    return found


@pytest.mark.skipif(Path("/proc/driver/nvidia/version").exists(), reason="this machine has a card")
def test_device_that_does_not_answer_is_told_and_the_app_starts(
    mini: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    assert mini
    done = patchlock("run", "mini", env=_env(tmp_path))
    found = _answer(done)
    assert found["MINI_LIBRARY"] == str(tmp_path / "libmini.so.1")
    assert (found["NUMBA_CACHE_DIR"] or "").endswith("/bytecode/numba")
    assert found["CUDA_VISIBLE_DEVICES"] is None
    assert "device: cuda does not answer: NVIDIA's driver is not loaded; `patchlock doctor mini` names" in done.stderr
    own = patchlock("run", "mini", env=_env(tmp_path, MINI_LIBRARY="/mine", NUMBA_CACHE_DIR="/tmp/n"))
    assert [_answer(own)[name] for name in ("MINI_LIBRARY", "NUMBA_CACHE_DIR")] == ["/mine", "/tmp/n"]


def test_one_variable_forces_the_processor_or_a_card(mini: World, patchlock: Patchlock, tmp_path: Path) -> None:
    assert mini
    done = patchlock("run", "mini", env=_env(tmp_path, PATCHLOCK_DEVICE="cpu"))
    assert [_answer(done)[name] for name in ("PATCHLOCK_DEVICE", "CUDA_VISIBLE_DEVICES")] == ["cpu", ""]
    assert "device: the CPU, as PATCHLOCK_DEVICE says" in done.stderr
    done = patchlock("run", "mini", env=_env(tmp_path, PATCHLOCK_DEVICE="1"))
    assert [_answer(done)[name] for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")] == ["1", "PCI_BUS_ID"]
    done = patchlock("run", "mini", env=_env(tmp_path, PATCHLOCK_DEVICE="gpu"))
    assert (done.returncode, done.stdout) == (2, "")
    assert 'PATCHLOCK_DEVICE is "gpu", and must be `cpu` or the number of a card, as `0`' in done.stderr


def test_page_is_named_when_it_answers_and_ctrl_c_ends_the_app(
    mini: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    listens = f'[launch.listens]\nport = {PORT}\nsource = "https://example.com/why"\n\n[[need]]'
    text = mini.app.read_text().replace('["python", "app.py"]', '["python", "app.py", "serve"]', 1)
    mini.app.write_text(text.replace("[[need]]", listens, 1))
    for words in (lock_here(), ("install", "mini", "--no-device")):
        done = patchlock(*words)
        assert done.returncode == 0, done.stderr
    env = patchlock.env(_env(tmp_path, PATCHLOCK_DEVICE="cpu"))
    argv = ["env", "--default-signal=INT", *patchlock.command, "run", "mini"]
    with subprocess.Popen(
        argv, env=env, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stderr is not None
        line = next(line for line in run.stderr if "answers" in line)
        assert f"mini answers: http://127.0.0.1:{PORT}" in line
        again = patchlock("run", "mini", env=_env(tmp_path, PATCHLOCK_DEVICE="cpu"))
        address = f"it answers at http://127.0.0.1:{PORT}/"
        running = f"mini is already running; {address}; stop it with Ctrl-C in its terminal\n"
        assert again.stderr.count(running) == 2  # before the app's own words, and after them
        assert again.stderr.endswith(running)
        os.kill(run.pid, signal.SIGINT)
        run.communicate(timeout=60)
        assert run.returncode == 128 + signal.SIGINT


def test_card_is_not_forced_where_there_is_none_to_take(world: World, patchlock: Patchlock) -> None:
    assert world
    for words in (lock_here(), ("install", "mini")):
        assert patchlock(*words).returncode == 0
    done = patchlock("run", "mini", env={"PATCHLOCK_DEVICE": "0"})
    assert (done.returncode, done.stdout) == (2, "")
    assert "PATCHLOCK_DEVICE is 0, but this profile runs on the CPU only; install the app on" in done.stderr
