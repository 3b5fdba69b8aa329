"""Measure patchlock beside its peers in one run: `python benchmarks/road.py`. Ratios travel, times do not.

Each row is the median of several runs of two commands that take turns. The installation under test is a miniature, so
that what is measured is our own cost: start, no-op, the check of locks, and what `lock` adds to uv.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "installer"), str(ROOT / "tests"), str(ROOT / "tests" / "support")]

import miniature  # noqa: E402
import uv  # noqa: E402

RUNS = 11


def seconds(command: list[str], env: dict[str, str], cwd: Path) -> float:
    """Time one run of a command that must succeed."""
    started = time.perf_counter()
    subprocess.run(command, env=env, cwd=cwd, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - started


def compare(name: str, ours: list[str], peer: list[str], env: dict[str, str], cwd: Path) -> None:
    """Print both medians and their ratio."""
    pairs = [(seconds(ours, env, cwd), seconds(peer, env, cwd)) for _ in range(RUNS)]
    mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"{name:<52} {mine * 1e3:8.0f} ms {theirs * 1e3:8.0f} ms {mine / theirs:7.2f}")


def main() -> None:
    """Build a miniature, install it, and measure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world = miniature.build(folder)
        env = {
            **{key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"},
            **world.env,
            "PYTHONPATH": str(ROOT / "installer"),
            "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
            "PATCHLOCK_HOME": str(folder / "home"),
            "PATCHLOCK_CACHE_DIR": str(folder / "cache"),
            "UV_CACHE_DIR": str(folder / "uv"),
        }
        patchlock = [sys.executable, "-m", "patchlock"]
        seconds([*patchlock, "lock", "mini", "--profile", "tiny"], env, folder)
        seconds([*patchlock, "install", "mini"], env, folder)
        lock = next((world.catalogue / "lockfiles" / "mini").glob("*.txt"))
        requirements = folder / "requirements.txt"
        requirements.write_text("alpha==1.0\nbeta>=1\n")
        generation = next((folder / "home" / "mini@tiny" / "environments").iterdir())
        bare = [sys.executable, "-c", "pass"]
        binary = uv.find_uv_bin()
        compile_ = [binary, "pip", "compile", "-q", str(requirements), "-o", str(folder / "out.txt")]
        sync = [binary, "pip", "sync", "-q", "--require-hashes", "--python", str(generation), str(lock)]
        print(f"{'':<52} {'patchlock':>11} {'peer':>11} {'ratio':>7}")
        compare("--help / python -c pass", [*patchlock, "--help"], bare, env, folder)
        compare("install, nothing to do / uv pip sync, the same", [*patchlock, "install", "mini"], sync, env, folder)
        compare("lock --check, 4 locks / python -c pass", [*patchlock, "lock", "--check"], bare, env, folder)
        compare("lock, 4 pairs / uv pip compile, 1", [*patchlock, "lock", "mini"], compile_, env, folder)


if __name__ == "__main__":
    main()
