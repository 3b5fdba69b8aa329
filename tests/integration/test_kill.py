"""SIGKILL at moments spread over the time of an install: nothing half-built is called installed, the next completes.

Here the moments are those of a clock, and uv and git die too; `test_faults` chooses each event of our own process.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World, this_platform

from patchlock.model import launchers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

MOMENTS = 3


@pytest.fixture(scope="module")
def took(locked_once: World, tmp_path_factory: pytest.TempPathFactory) -> float:
    """Measure one whole install in seconds, with nothing in uv's cache."""
    folder = tmp_path_factory.mktemp("took")
    here = {"PATCHLOCK_HOME": "installed", "PATCHLOCK_CACHE_DIR": "cache", "UV_CACHE_DIR": "uv"}
    env = locked_once.env | {name: str(folder / where) for name, where in here.items()}
    env |= {"HOME": str(folder), "UV_OFFLINE": "1", "UV_PYTHON_DOWNLOADS": "never"}
    started = time.monotonic()
    assert Patchlock(folder).alone("install", "mini", env=env).returncode == 0
    return time.monotonic() - started


def _kill_after(patchlock: Patchlock, seconds: float, group: bool) -> None:
    running = subprocess.Popen(
        [*patchlock.command, "install", "mini"],
        env=patchlock.env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(running.pid, signal.SIGKILL)
    running.wait()


def _assert_honest(home: Path) -> None:
    """Whatever is called installed has its receipt."""
    for pointer in home.glob("*/current"):
        generation = pointer.parent / "environments" / pointer.read_text().strip()
        assert (generation / "receipt.toml").is_file()


@pytest.mark.parametrize("group", [True, False], ids=["with-its-children", "alone"])
def test_killed_install_is_completed_by_the_next(
    took: float, locked: World, patchlock: Patchlock, tmp_path: Path, group: bool
) -> None:
    for moment in range(MOMENTS):
        _kill_after(patchlock, took * (moment + (0.3 if group else 0.8)) / MOMENTS, group)
        _assert_honest(tmp_path / "installed")
        done = patchlock("install", "mini")
        assert done.returncode == 0, f"moment {moment}: {done.stderr}"
        _assert_honest(tmp_path / "installed")
        folder = tmp_path / "installed" / "mini@tiny"
        assert [path.name for path in (folder / "environments").iterdir()] == [(folder / "current").read_text().strip()]
        others = {path.name for path in folder.iterdir()} - set(launchers.names("mini", "tiny"))
        assert others - {"choice.json"} == {"current", "environments", "lock", "source"}
        assert patchlock("run", "mini").stdout == "computed on cpu\n"
        shutil.rmtree(tmp_path / "installed")
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)


def test_killed_update_leaves_an_app_that_runs(
    took: float, locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    app = locked.upstream / "app.py"
    assert patchlock("install", "mini").returncode == 0
    for moment in range(MOMENTS):
        app.write_text(app.read_text() + f"# edition {moment}\n")
        locked.name_commit(tmp_path / f"{moment}")
        assert patchlock("lock", "mini", "--platform", this_platform().name).returncode == 0
        _kill_after(patchlock, took * (moment + 1) / MOMENTS, group=bool(moment % 3))
        _assert_honest(tmp_path / "installed")
        assert patchlock("run", "mini").stdout == "computed on cpu\n"
        done = patchlock("install", "mini")
        assert done.returncode == 0, f"moment {moment}: {done.stderr}"
        source = tmp_path / "installed" / "mini@tiny" / "source"
        assert (source / "app.py").read_text().endswith(f"# edition {moment}\n")
    assert patchlock("verify", "mini").returncode == 0


@pytest.mark.parametrize("part", [0.3, 0.7])
def test_interrupted_install_says_so_and_is_completed_by_the_next(
    took: float, locked: World, patchlock: Patchlock, tmp_path: Path, part: float
) -> None:
    running = subprocess.Popen(
        [*patchlock.command, "install", "mini"],
        env=patchlock.env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # A shell ignores SIGINT in what it runs in the background, and a child would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    time.sleep(took * part)
    os.killpg(running.pid, signal.SIGINT)
    _, seen = running.communicate()
    assert running.returncode in {130, 0, -signal.SIGINT}  # it may have ended first, or not have begun
    if running.returncode == 130:
        assert b"interrupted; run the same command again to finish it" in seen
    _assert_honest(tmp_path / "installed")
    assert patchlock("install", "mini").returncode == 0
