"""A download that was killed is gone on with from where it came to, by two installs at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import miniature
import pytest
from conftest import Patchlock
from depot import Depot, until
from miniature import World
from test_filling import ALPHA


@pytest.fixture
def big(world: World, patchlock: Patchlock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Depot]:
    """Give the test an app with one wheel of 3 MB."""
    noise = {"alpha.py": '__version__ = "1.0"\n', "alpha.bin": os.urandom(1_500_000).hex()}
    miniature.wheel(world.wheels, "alpha", "1.0", requires=("gamma<3",), files=noise)
    miniature.index(Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")), sorted(world.wheels.iterdir()))
    done = patchlock("lock", "mini")
    assert done.returncode == 0, done.stderr
    made = Depot(world.wheels)
    monkeypatch.setenv("UV_DEFAULT_INDEX", made.index)
    monkeypatch.setenv("UV_OFFLINE", "0")
    yield made
    made.close()


def _come(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "cache").glob(f"wheels/*/{ALPHA}.part"))


def _downloads(depot: Depot) -> list[str]:
    """List the ranges of the wheel that were asked for to its end; uv's looks at its metadata name one."""
    return [wanted for wanted in depot.asked_for(ALPHA) if wanted == "" or wanted.endswith("-")]


def _start(patchlock: Patchlock, folder: Path, home: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*patchlock.command, "install", "mini"],
        cwd=folder,
        env=patchlock.env({"PATCHLOCK_HOME": str(folder / home)}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _wait(runs: list[subprocess.Popen[bytes]], is_so: Callable[[], bool]) -> None:
    """Wait for what running installs come to; fail where one ends before."""
    until(lambda: is_so() or any(run.poll() is not None for run in runs))
    assert [run.communicate() for run in runs if run.poll() is not None] == []


def test_killed_download_is_gone_on_with_by_two_at_once(big: Depot, patchlock: Patchlock, tmp_path: Path) -> None:
    big.stalls[ALPHA] = 2_000_000
    killed = _start(patchlock, tmp_path, "one")
    _wait([killed], lambda: _come(tmp_path) >= 1_900_000)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    came = _come(tmp_path)
    big.stalls[ALPHA] = 0
    big.asked.clear()
    big.sent.clear()
    runs = [_start(patchlock, tmp_path, home) for home in ("one", "two")]
    _wait(runs, lambda: _downloads(big) != [])
    _wait(runs, lambda: all(list(tmp_path.glob(f"{home}/*/environments/*/lock.txt")) for home in ("one", "two")))
    big.go.set()
    for run in runs:
        _, stderr = run.communicate(timeout=600)
        assert run.returncode == 0, stderr
    assert _downloads(big) == [f"bytes={came}-"]
    ends = 2 * 2 * 64 * 1024  # of the file, which uv reads for its metadata, twice in each run at most
    assert 2_900_000 - came < big.sent[ALPHA] < len(big.files[ALPHA]) - came + ends
