"""Processor time of the checks of a warm install, beside the bare commands: `python benchmarks/check_time.py`.

    python benchmarks/check_time.py [--against CHECKOUT] [--runs N]

The demo is installed again and again, from warm caches, into a home without it. The peer makes the same environment
with `uv venv` and `uv pip sync`, and runs the app's own check in it once: with nothing compiled, as after an install.
What the checks take is counted for the processes of the environment's own Python alone. All take turns, and the
smallest of several runs counts, as noise only ever adds. `--against` measures another checkout of patchlock in the same
way. Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import uv

from patchlock.environments.venv import interpreter, python_version

ROOT = Path(__file__).resolve().parent.parent
_LOOK = 0.003
"""Seconds between two looks at the processes."""


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Seconds of the processor."""

    total: float
    checks: float
    """Of processes that run in the folder that was named."""


def spend(*command: str, env: Mapping[str, str], cwd: Path, within: Path) -> Spent:
    """Run a command that must succeed, and count what it and all that it starts take."""
    child = subprocess.Popen(command, env=dict(env), cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    taken: dict[int, float] = {}
    while True:
        number, status, usage = os.wait4(child.pid, os.WNOHANG)
        if number:
            break
        taken |= _taken(within)
        time.sleep(_LOOK)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ends with exit code {child.returncode}")
    return Spent(total=usage.ru_utime + usage.ru_stime, checks=sum(taken.values()))


def _taken(within: Path) -> dict[int, float]:
    """Give the seconds that each process whose program lies in a folder has taken so far.

    Source: https://docs.kernel.org/scheduler/sched-stats.html (/proc/<pid>/schedstat)
    """
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            environment = (process / "environ").read_bytes()
            inside = os.fsencode(within)
            if words[0].startswith(inside) or b"VIRTUAL_ENV=" + inside in environment:
                threads = (process / "task").iterdir()
                nanoseconds = sum(int((one / "schedstat").read_text("ascii").split()[0]) for one in threads)
                found[int(process.name)] = nanoseconds / 1e9
    return found


class Installer:
    """A checkout of patchlock with a home and a cache of its own."""

    def __init__(self, checkout: Path, folder: Path, base: Mapping[str, str]) -> None:
        self.checkout, self.folder = checkout, folder
        folder.mkdir()
        self.home = folder / "home"
        self._env = {
            **base,
            "PYTHONPATH": str(checkout / "installer"),
            "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
            "PATCHLOCK_CATALOGUE": str(checkout),
            "PATCHLOCK_HOME": str(self.home),
            "PATCHLOCK_CACHE_DIR": str(folder / "cache"),
        }

    def run(self, *words: str) -> Spent:
        """Run a command of patchlock."""
        command = (sys.executable, "-P", "-m", "patchlock", *words)
        return spend(*command, env=self._env, cwd=self.folder, within=self.home)


class Peer:
    """Makes the same environment with uv alone, and runs the app's own check in it."""

    def __init__(self, folder: Path, made: Path, source: Path, base: Mapping[str, str]) -> None:
        self._folder, self._source, self._env = folder, source, dict(base)
        folder.mkdir()
        shutil.copyfile(made / "lock.txt", folder / "lock.txt")
        self._python = python_version(made)

    def run(self) -> Spent:
        """Do it anew."""
        place, binary = self._folder / "environment", uv.find_uv_bin()
        shutil.rmtree(place, ignore_errors=True)
        python = str(interpreter(place))
        commands: Sequence[tuple[str, ...]] = (
            (binary, "venv", "-q", "--python", self._python, str(place)),
            (binary, "pip", "sync", "-q", "--require-hashes", "--python", python, str(self._folder / "lock.txt")),
            (python, "app.py", "--selftest"),
        )
        spent = [spend(*command, env=self._env, cwd=self._source, within=place) for command in commands]
        return Spent(total=sum(one.total for one in spent), checks=sum(one.checks for one in spent))


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="another checkout of patchlock")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    base = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    checkouts = {"this checkout": ROOT} | ({"the other one": options.against} if options.against else {})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        installers = {
            which: Installer(path, folder / str(i), base) for i, (which, path) in enumerate(checkouts.items())
        }
        for one in installers.values():
            one.run("install", "demo", "--profile", "cpu")
        ours = installers["this checkout"].home / "demo@cpu"
        (made,) = (ours / "environments").iterdir()
        peer = Peer(folder / "peer", made, ours / "source", base)
        spent: dict[str, list[Spent]] = {which: [] for which in ("bare commands", *installers)}
        for _ in range(options.runs):
            for which, one in installers.items():
                one.run("uninstall", "demo", "--profile", "cpu")
                spent[which].append(one.run("install", "demo", "--profile", "cpu"))
            spent["bare commands"].append(peer.run())
    least = {which: (min(one.total for one in runs), min(one.checks for one in runs)) for which, runs in spent.items()}
    whole, part = least["bare commands"]
    print("| seconds of the processor | in all | ratio | checks | ratio |\n|---|---|---|---|---|")
    for which, (total, checks) in least.items():
        print(f"| {which} | {total:.2f} | {total / whole:.2f} | {checks:.2f} | {checks / part:.2f} |")


if __name__ == "__main__":
    main()
