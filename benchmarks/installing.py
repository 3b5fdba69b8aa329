"""Time of installing as ratios in one run, beside `git clone` + `uv venv` + `uv pip sync` of the same lock.

    python benchmarks/installing.py [APP] [--profile P] [--source CLONE] [--commit C] [--runs N] [--report FILE]

All caches are warm: the first install, which fills them, is not counted. patchlock also proves what it has installed,
which the peer does not; so the time of its checks is shown on its own. Then what a person waits for afterwards: an
install with nothing to do, the quick and the deep verify. Each figure is the smallest of several runs, as noise only
ever adds; the middle ones stand beside them.

Each run has folders of its own, and all of them stay until the end: ext4 does not give out an inode that was freed in
the last minute, and looks at each of them for every new folder, so that removing 30,000 files between runs made the
later ones of both take three times as long (`recently_deleted`,
https://github.com/torvalds/linux/blob/v6.8/fs/ext4/ialloc.c).
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import uv

from patchlock.catalogue.reader import Catalogue
from patchlock.environments import inspection
from patchlock.environments.venv import interpreter
from patchlock.hardware.probes import probe
from patchlock.model import lockfile
from patchlock.model.app import GitUpstream
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.platforms import platform_of

ROOT = Path(__file__).resolve().parent.parent
_STAGE = re.compile(r"^(\w+) .*\((\d+\.\d) s\)$", re.MULTILINE)


def run(
    *command: str, env: Mapping[str, str], cwd: Path, allowed: Collection[int] = (0,)
) -> subprocess.CompletedProcess[str]:
    """Run a program that must succeed, or end with one of these codes: a machine without the card verifies nothing."""
    done = subprocess.run(command, cwd=cwd, env=dict(env), capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done


def seconds(work: Callable[[], object]) -> float:
    """Time a piece of work."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def peer(folder: Path, source: str, commit: str, lock: Path, python: str, env: Mapping[str, str]) -> float:
    """Install with git and uv alone: clone, environment, packages."""
    folder.mkdir()
    binary = uv.find_uv_bin()

    def work() -> None:
        if source:
            run("git", "clone", "-q", source, "source", env=env, cwd=folder)
            run("git", "-C", "source", "checkout", "-q", commit, env=env, cwd=folder)
        run(binary, "venv", "-q", "--python", python, "environment", env=env, cwd=folder)
        where = ("--python", str(interpreter(folder / "environment")))
        constraints = lock.with_name(f"{lock.stem}.build.txt")
        build = ("--build-constraints", str(constraints)) if constraints.is_file() else ()
        run(binary, "pip", "sync", "-q", "--require-hashes", *where, *build, str(lock), env=env, cwd=folder)

    return seconds(work)


def size(folder: Path) -> tuple[int, int]:
    """Count the files of a folder, and their bytes."""
    sizes = [path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return len(sizes), sum(sizes)


def catalogue_of(options: argparse.Namespace, folder: Path) -> Path:
    """Give the catalogue, with another commit of upstream where a clone does not have the catalogue's."""
    if not options.commit:
        return ROOT
    for part in ("profiles", "patches", "lockfiles"):
        shutil.copytree(ROOT / part, folder / "catalogue" / part)
    file = folder / "catalogue" / "patches" / options.app / "app.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r'(?m)^commit = "[0-9a-f]{40}"', f'commit = "{options.commit}"', text), encoding="utf-8")
    for lock in (folder / "catalogue" / "lockfiles" / options.app).glob("*.txt"):
        if not lock.name.endswith(".build.txt"):
            _name_commit(lock, options.commit, file)
    return folder / "catalogue"


def _name_commit(lock: Path, commit: str, app: Path) -> None:
    """Make a lock fresh for another commit: of a stale one, install asks first what uv would be asked."""
    read = lockfile.parse(lock.read_text(encoding="utf-8"), str(lock))
    name = f"patches/{app.parent.name}/{app.name}"
    inputs = {**read.provenance.inputs, name: Sha256(hashlib.sha256(app.read_bytes()).hexdigest())}
    made = dataclasses.replace(read.provenance, commit=CommitId(commit), inputs=inputs)
    lock.write_text(lockfile.render(dataclasses.replace(read, provenance=made)), encoding="utf-8")


def measure(options: argparse.Namespace, folder: Path) -> list[str]:
    """Give the lines of the report."""
    catalogue = Catalogue(root=catalogue_of(options, folder))
    app, profile, platform = catalogue.app(options.app), catalogue.profile(options.profile), platform_of(probe())
    assert platform is not None
    lock = catalogue.lock_path(app, profile, platform)
    commit = app.upstream.commit
    is_git = isinstance(app.upstream, GitUpstream)
    source = options.source or (app.upstream.url if isinstance(app.upstream, GitUpstream) else "")
    homes = [folder / f"home{number}" for number in range(options.runs + 1)]
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    env |= {
        "PATCHLOCK_CATALOGUE": str(catalogue.root),
        "PYTHONPATH": str(ROOT / "installer"),
    }
    env |= {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "NO_COLOR": "1"}
    env.setdefault("PATCHLOCK_CACHE_DIR", str(folder / "cache"))
    place = ("--source", options.source) if options.source else ()
    what = (app.name, "--profile", profile.name)
    patchlock = (sys.executable, "-m", "patchlock")
    theirs, ours, proving = [], [], []
    for number, home in enumerate(homes):
        env["PATCHLOCK_HOME"] = str(home)
        started = time.perf_counter()
        said = run(*patchlock, "install", *what, *place, env=env, cwd=folder).stderr
        took = time.perf_counter() - started
        beside = peer(folder / f"peer{number}", source if is_git else "", commit, lock, str(profile.python), env)
        if number:  # the first run fills the caches
            ours.append(took)
            theirs.append(beside)
            proving.append(sum(float(spent) for stage, spent in _STAGE.findall(said) if stage == "verify"))
    best = min(range(options.runs), key=lambda n: ours[n] - proving[n])
    (generation,) = (homes[-1] / f"{app.name}@{profile.name}" / "environments").iterdir()
    files, count = size(generation)
    own = [took - spent for took, spent in zip(ours, proving, strict=True)]
    bare, usual = min(own), statistics.median(own) / statistics.median(theirs)
    lines = [
        f"{app.name} × {profile.name} × {platform.name}: {files} files, {count / 1e9:.2f} GB.\n",
        "| | seconds | ratio |",
        "|---|---|---|",
        f"| git clone + uv venv + uv pip sync | {min(theirs):.2f} | 1 |",
        f"| `install`, without its checks | {bare:.2f} | {bare / min(theirs):.2f}, of the medians {usual:.2f} |",
        f"| the checks of `install` | {proving[best]:.2f} | |",
    ]
    again = (*patchlock, "install", *what, *place)
    rows = [
        ("`install` again", again),
        *((f"`verify --{kind}`", (*patchlock, "verify", *what, f"--{kind}")) for kind in ("quick", "deep")),
    ]
    for name, command in rows:
        times = [
            seconds(lambda command=command: run(*command, env=env, cwd=folder, allowed=(0, 1)))
            for _ in range(options.runs)
        ]  # type: ignore[misc]
        lines.append(f"| {name} | {min(times):.2f} | |")
    started = time.perf_counter()
    read = inspection.read(generation)
    deviations = inspection.find_content_deviations(read, lambda _done, _all: None)
    took = time.perf_counter() - started
    lines.append(f"\nEvery byte against RECORD: {count / 1e6 / took:.0f} MB/s, {len(deviations)} deviations.")
    return lines


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("app", nargs="?", default="demo")
    parser.add_argument("--profile", default="cpu")
    parser.add_argument("--source", default="", help="a clone of upstream on this machine")
    parser.add_argument("--commit", default="", help="40 digits, where the clone does not have the catalogue's")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        lines = measure(options, Path(name))
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if options.report:
        options.report.write_text(
            f"# Installing\n\nWritten by `benchmarks/installing.py`; {os.cpu_count()} cores.\n\n{text}"
        )


if __name__ == "__main__":
    main()
