"""Speed of patching as ratios in one run: beside `ast.parse` of all files, and beside `git status`.

    PATCHLOCK_UPSTREAMS=<folder of clones> python benchmarks/speed.py [--report FILE]

Cold: the whole patch set of an app on one commit, from bytes in memory to patched bytes, every check included; beside
it, `ast.parse` of all Python files of the same commit. Nothing to do: the question that `patch apply` asks first,
beside `git status` in the same clone. Each figure is the smallest of several runs, as noise only ever adds. Files that
a mirror lacks are left out of both.
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from patchlock.catalogue.reader import Catalogue
from patchlock.model.identities import CommitId
from patchlock.patches import engine, targets
from patchlock.patches.ops import syntax
from patchlock.worktree import clone_patches, patch_sets, trees, upstream_cache
from patchlock.worktree.upstream_files import PatchSet

APPS = {"amphion": "open-mmlab/Amphion", "advanced-rvc-inference": "ArkanDash/Advanced-RVC-Inference"}
ROOT = Path(__file__).resolve().parent.parent
RUNS = 5
HEAD = (
    "| upstream | .py files | patches | files changed | cold patching | `ast.parse` of all | ratio "
    "| nothing to do | `git status` | ratio |"
)


def clone_of(name: str) -> Path:
    """Find a clone by `owner+name` or `name`; a mirror may lie one folder deeper."""
    folder = Path(os.environ["PATCHLOCK_UPSTREAMS"])
    owner, _, short = name.partition("/")
    for candidate in (f"{owner}+{short}/repo", f"{owner}+{short}", short):
        if (folder / candidate).is_dir():
            return folder / candidate
    raise SystemExit(f"there is no clone of {name} in PATCHLOCK_UPSTREAMS")


def best(measured: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """Give the shortest of several runs, in seconds."""
    times = []
    for _ in range(RUNS):
        before()
        gc.collect()
        started = time.perf_counter()
        measured()
        times.append(time.perf_counter() - started)
    return min(times)


def forget() -> None:
    """Empty what patchlock keeps between patches, so that each run is a cold one."""
    syntax.parse.cache_clear()


def measure(app: str, name: str) -> str:
    """Measure one app, and give a row of the table."""
    catalogue = Catalogue(root=ROOT)
    wanted = patch_sets.of_app(catalogue, app, "cpu")
    commit = CommitId(wanted.seen or "")
    bare = clone_of(name)
    listed = upstream_cache.files(bare, commit, wanted.directory)
    lacking = missing(bare, listed.values())
    blobs = upstream_cache.blobs(bare, [blob for blob in listed.values() if blob not in lacking])
    contents = {path: blobs[blob] for path, blob in listed.items() if blob in blobs}
    python = {path: data for path, data in contents.items() if path.suffix == ".py"}
    chosen = targets.candidates(wanted.patches, contents)
    cold = best(lambda: engine.apply(wanted.patches, {path: contents[path] for path in chosen}), forget)
    parsed = best(lambda: parse_all(python))
    nothing, status = nothing_to_do(contents, wanted)
    changed = len(engine.apply(wanted.patches, {path: contents[path] for path in chosen}).changes)
    return (
        f"| {name} | {len(python)} | {len(wanted.patches)} | {changed} | {cold * 1000:.0f} ms | {parsed * 1000:.0f} ms "
        f"| **{cold / parsed:.2f}** | {nothing * 1000:.1f} ms | {status * 1000:.1f} ms | **{nothing / status:.2f}** |"
    )


def parse_all(files: dict[PurePosixPath, bytes]) -> None:
    """Parse every file as Python does, those that it refuses included."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for data in files.values():
            try:
                ast.parse(data)
            except (SyntaxError, ValueError):
                continue


def missing(repository: Path, blobs: Iterable[str]) -> frozenset[str]:
    """Name the blobs that a mirror lacks, as some do of the largest."""
    words = ["git", "-C", str(repository), "cat-file", "--batch-check"]
    answer = subprocess.run(words, input="\n".join(blobs), check=True, capture_output=True, text=True).stdout
    return frozenset(line.split()[0] for line in answer.splitlines() if line.endswith("missing"))


def nothing_to_do(contents: dict[PurePosixPath, bytes], wanted: PatchSet) -> tuple[float, float]:
    """Measure the second `patch apply` and `git status` in one clone."""
    with tempfile.TemporaryDirectory(prefix="patchlock-speed-") as folder:
        clone = Path(folder)
        for path, data in contents.items():
            (clone / path).parent.mkdir(parents=True, exist_ok=True)
            (clone / path).write_bytes(data)
        git = ["git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x@localhost"]
        for words in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "upstream"]):
            subprocess.run([*git, *words], check=True)
        tree = trees.open_tree(clone)
        if clone_patches.apply(tree, wanted, clone.parent / f"{clone.name}-cache") is None:
            raise SystemExit("nothing was applied")
        if not clone_patches.is_current(tree, wanted) or not trees.exists(tree, PurePosixPath(".git")):
            raise SystemExit("the patches are not current right after they were applied")
        asked = [*git, "status", "--porcelain"]
        status = best(lambda: subprocess.run(asked, check=True, capture_output=True))
        return best(lambda: clone_patches.is_current(tree, wanted)), status


def main() -> None:
    """Measure the apps and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--report", type=Path)
    arguments = parser.parse_args()
    rows = [
        HEAD,
        "|---|---|---|---|---|---|---|---|---|---|",
        *(measure(app, name) for app, name in APPS.items()),
    ]
    loaded = "libcst" in sys.modules
    text = "\n".join([*rows, "", f"LibCST was {'' if loaded else 'not '}imported.", ""])
    print(text)
    if arguments.report:
        arguments.report.write_text(
            f"# Speed of patching\n\nMade by `benchmarks/speed.py`.\n\n{text}", encoding="utf-8"
        )
    if loaded:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
