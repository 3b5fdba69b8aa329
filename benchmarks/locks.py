"""Speed of locking as ratios in one run: beside bare `uv pip compile` on the same input, and pip-tools for scale.

    PATCHLOCK_UPSTREAMS=<folder of clones> python benchmarks/locks.py [--pip-tools] [--report FILE] [APP…]

Each pair is locked by `patchlock lock` as a whole process, and by a bare `uv pip compile` in a folder that holds
exactly what patchlock gives to uv. uv's caches are warm, and both ask the index whether its pages are still the same.
`cold` is what CI has: patchlock remembers nothing but upstream's commits; `warm` is a second run. Where sdists have to
be built, a lock pins what their builds require, too: that is another compile, and its time counts for uv as well. Then
all pairs at once, beside the sum of the bare compiles divided by the cores; and `lock --check` of the whole catalogue.
Locks are written to a copy of the catalogue. Each figure is the smallest of several runs, as noise only ever adds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from patchlock.catalogue.reader import Catalogue
from patchlock.core import uv
from patchlock.locks import _build_requirements, _resolve, _resolver_input, relock
from patchlock.locks import lock_request as locks_request
from patchlock.locks.lock_request import Request
from patchlock.model.app import App, GitUpstream

ROOT = Path(__file__).resolve().parent.parent
RUNS = 3
FORMAT = ("--format", "pylock.toml", "--no-header", "-q", "-o", "pylock.toml")
CORES = os.cpu_count() or 1
HEAD = "| pair | packages | `uv pip compile` | `patchlock lock`, cold | ratio | warm | ratio |"


def clone(app: App) -> str | None:
    """Give the local clone of an app, if there is one: the cache is filled from it before anything is timed."""
    folder = os.environ.get("PATCHLOCK_UPSTREAMS")
    if not folder or not isinstance(app.upstream, GitUpstream):
        return None
    owner, short = app.upstream.url.removesuffix(".git").split("/")[-2:]
    places = (Path(folder) / one for one in (f"{owner}+{short}/repo", f"{owner}+{short}", short))
    return next((str(place) for place in places if place.is_dir()), None)


def requests(catalogue: Catalogue, apps: Sequence[str], cache: Path) -> list[Request]:
    """List the pairs that have a lock."""
    found = []
    for app in [catalogue.app(name) for name in (apps or catalogue.app_names())]:
        for profile in [catalogue.profile(name) for name in catalogue.profile_names()]:
            for platform in profile.platforms:
                request = Request(
                    app=app,
                    profile=profile,
                    platform=platform,
                    catalogue=catalogue,
                    home=cache,
                    cache=cache,
                    source=clone(app),
                )
                if relock.current(request) is not None:
                    found.append(request)
    return found


def as_fetched(cache: Path) -> None:
    """Let what was taken from local clones stand where the cache has what was fetched from upstream's own address."""
    for repository in (cache / "upstreams").glob("*-????????????.git"):
        repository.replace(repository.with_name(f"{repository.stem[:-13]}.git"))


def prepare(request: Request, folder: Path) -> list[tuple[Path, tuple[str, ...]]]:
    """Write what uv is given for a pair into a folder of its own for each question, and name its arguments."""
    lock = relock.current(request)
    assert lock is not None
    made = lock.provenance
    order = locks_request.collect_inputs(request, locks_request.read_requirements(request), made.as_of, made.newer)
    names = [folder / "packages"]
    builds = _build_requirements.requirements(
        _build_requirements.stated(lock.packages, order.rules), order.other_builds
    )
    if builds:
        names.append(folder / "builds")
    for name in names:
        name.mkdir(parents=True)
    asked = [_resolver_input.write(order, names[0])]
    if builds:
        asked.append(_build_requirements.write(builds, _resolve.target(order), names[1]))
    return [(name, (*words, "--python", sys.executable, *FORMAT)) for name, words in zip(names, asked, strict=True)]


def forget(cache: Path) -> None:
    """Remove all that patchlock remembers, but for what was fetched from upstream."""
    for kept in cache.iterdir():
        if kept.name != "upstreams":
            shutil.rmtree(kept) if kept.is_dir() else kept.unlink()


def best(command: Sequence[str], cwd: Path, env: Mapping[str, str], before: Callable[[], None] = lambda: None) -> float:
    """Give the shortest of several runs of a program, in seconds."""
    times = []
    for _ in range(RUNS):
        before()
        (cwd / "pylock.toml").unlink(missing_ok=True)
        started = time.perf_counter()
        done = subprocess.run(command, cwd=cwd, env=dict(env), capture_output=True, text=True, check=False)
        times.append(time.perf_counter() - started)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return min(times)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("apps", nargs="*")
    parser.add_argument("--pip-tools", action="store_true", help="pip-compile on the first pair, for scale")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        lines = measure(Path(name), options.apps, options.pip_tools)
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if options.report:
        options.report.write_text(f"# Locks\n\nWritten by `benchmarks/locks.py`; {CORES} cores.\n\n{text}")


def measure(folder: Path, apps: Sequence[str], with_pip_tools: bool) -> list[str]:
    """Give the lines of the report."""
    for part in ("profiles", "patches", "lockfiles"):
        shutil.copytree(ROOT / part, folder / "catalogue" / part)
    catalogue = Catalogue(root=folder / "catalogue")
    env = {**os.environ, "PATCHLOCK_CATALOGUE": str(catalogue.root), "PATCHLOCK_CACHE_DIR": str(folder / "cache")}
    env |= {"PATCHLOCK_TRUSTED_CATALOGUES": str(catalogue.root)}
    env |= {"PYTHONPATH": str(ROOT / "installer"), "NO_COLOR": "1", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # a person's patchlock is compiled once
    patchlock = (sys.executable, "-m", "patchlock", "lock")
    pairs = requests(catalogue, apps, folder / "cache")
    lines = [HEAD, "|---|---|---|---|---|---|---|"]
    bare = 0.0
    places = [folder / "bare" / str(number) for number in range(len(pairs))]
    asked = [prepare(request, place) for request, place in zip(pairs, places, strict=True)]
    as_fetched(folder / "cache")
    for request, questions in zip(pairs, asked, strict=True):
        lock = relock.current(request)
        assert lock is not None
        row = f"| {request.app.name} × {request.profile.name} × {request.platform.name} | {len(lock.packages)} "
        ours = (*patchlock, request.app.name, "--profile", request.profile.name, "--platform", request.platform.name)
        theirs = sum(best((str(uv.find()), "pip", "compile", *words), place, env) for place, words in questions)
        bare += theirs
        cold = best(ours, folder, env, before=lambda: forget(folder / "cache"))
        warm = best(ours, folder, env)
        lines.append(
            f"{row}| {theirs:.2f} s | {cold:.2f} s | {cold / theirs:.2f} | {warm:.2f} s | {warm / theirs:.2f} |"
        )
    together = best((*patchlock, *apps), folder, env, before=lambda: forget(folder / "cache"))
    share = bare / CORES
    lines.append(
        f"\nAll {len(pairs)} pairs at once, cold: {together:.2f} s; the bare compiles one after another "
        f"{bare:.2f} s, divided by {CORES} cores {share:.2f} s: ratio {together / share:.2f}."
    )
    lines.append(f"\n`lock --check` of the whole catalogue: {best((*patchlock, '--check'), folder, env):.2f} s.")
    if with_pip_tools:
        lines.append(beside_pip_tools(pairs[0], places[0] / "packages", env))
    return lines


def beside_pip_tools(request: Request, place: Path, env: Mapping[str, str]) -> str:
    """Resolve a pair's direct requirements with pip's own resolver, which knows this platform only."""
    files = [f"upstream/{path}" for path in request.app.requirement_files]
    command = (sys.executable, "-m", "piptools", "compile", "-q", "--dry-run", *files)
    return f"\npip-compile on the same requirement files, for scale: {best(command, place, env):.2f} s."


if __name__ == "__main__":
    main()
