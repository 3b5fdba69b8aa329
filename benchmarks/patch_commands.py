"""The `patch` commands as a person waits for them, beside the engine alone and beside git, in one run.

    PATCHLOCK_UPSTREAMS=<folder of clones> python benchmarks/patch_commands.py [--runs 5] [--report FILE]

CPU time (user and system, of all processes), its median. Cold: the catalogue's commit, a fresh clone, an empty cache.
The engine alone patches the same bytes in memory, codemods included. The update goes over the 50 commits before the
catalogue's. git's peers do the same with the result of the patches: `git apply` of their diff, and stash, merge and
stash pop over the same commits.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from speed import clone_of

from patchlock.catalogue.reader import Catalogue
from patchlock.worktree import patch_sets

APPS = {"xtts-webui": "daswer123/xtts-webui", "rvc-python": "daswer123/rvc-python"}
ROOT = Path(__file__).resolve().parent.parent
ENGINE = """
import sys
from pathlib import Path
from patchlock.catalogue.reader import Catalogue
from patchlock.patches import engine, targets
from patchlock.worktree import patch_sets, upstream_cache
wanted = patch_sets.of_app(Catalogue(root=Path(sys.argv[1])), sys.argv[2], "cpu")
clone = Path(sys.argv[3])
listed = upstream_cache.files(clone, wanted.seen, wanted.directory)
chosen = targets.candidates(wanted.patches, listed)
blobs = upstream_cache.blobs(clone, [listed[path] for path in chosen])
engine.apply(wanted.patches, {path: blobs[listed[path]] for path in chosen})
"""


def cpu(words: list[str], **variables: str) -> float:
    """Run a program, and give the CPU seconds of it and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, env=os.environ | variables, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.decode()[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Bench:
    """One app: a clone of its upstream at the catalogue's commit, made afresh for each run."""

    def __init__(self, app: str, bare: Path, work: Path) -> None:
        self.app, self.work = app, work
        self.commit = str(patch_sets.of_app(Catalogue(root=ROOT), app, "cpu").seen)
        self.upstream, self.clone, self.cache = work / "upstream", work / "clone", work / "cache"
        self.git("clone", "-q", "--bare", str(bare), str(self.upstream), folder=work)
        history = self.git("rev-list", "--first-parent", self.commit, folder=self.upstream).split()
        self.old = history[min(50, len(history) - 1)]

    def git(self, *words: str, folder: Path | None = None) -> str:
        """Run git in the clone, or elsewhere."""
        named = ["git", "-C", str(folder or self.clone), "-c", "user.name=x", "-c", "user.email=x@localhost", *words]
        return subprocess.run(named, capture_output=True, check=True, text=True).stdout

    def patchlock(self, *words: str) -> float:
        """Run a `patch` command on the clone, and give its CPU seconds."""
        program = [sys.executable, "-P", "-m", "patchlock", "patch", *words, "--source", str(self.clone)]
        return cpu(program, PYTHONPATH=str(ROOT / "installer"), PATCHLOCK_CACHE_DIR=str(self.cache))

    def fresh(self, commit: str) -> None:
        """Make the clone anew, its branch at a commit."""
        shutil.rmtree(self.clone, ignore_errors=True)
        self.git("update-ref", "refs/heads/bench", commit, folder=self.upstream)
        self.git("clone", "-q", "-b", "bench", str(self.upstream), str(self.clone), folder=self.work)

    def commands(self) -> dict[str, float]:
        """Run everything once."""
        found: dict[str, float] = {}
        apply = ("apply", self.app, "--profile", "cpu")
        shutil.rmtree(self.cache, ignore_errors=True)
        self.fresh(self.commit)
        engine = [sys.executable, "-P", "-c", ENGINE, str(ROOT), self.app, str(self.clone)]
        found["engine alone"] = cpu(engine, PYTHONPATH=str(ROOT / "installer"))
        found["`patch apply`, cold"] = self.patchlock(*apply)
        found["`patch apply`, nothing to do"] = self.patchlock(*apply)
        found["`patch status`"] = self.patchlock("status")
        diff = self.work / "patches.diff"
        self.git("diff", "--binary", f"--output={diff}", "HEAD")
        found["`patch undo`"] = self.patchlock("undo")
        found["`patch apply` after `undo`"] = self.patchlock(*apply)
        self.fresh(self.commit)
        found["`patch apply`, another clone"] = self.patchlock(*apply)
        self.fresh(self.commit)
        found["`git apply` of the diff"] = cpu(["git", "-C", str(self.clone), "apply", str(diff)])
        self.fresh(self.old)
        self.patchlock(*apply)
        self.git("update-ref", "refs/heads/bench", self.commit, folder=self.upstream)
        found["`patch update`, 50 commits"] = self.patchlock("update")
        self.fresh(self.old)
        (self.clone / "README.md").write_text("mine\n")
        self.git("update-ref", "refs/heads/bench", self.commit, folder=self.upstream)
        script = f"cd {self.clone} && git stash -q && git pull -q && {{ git stash pop -q || true; }}"
        found["stash, pull, pop"] = cpu(["sh", "-c", script])
        return found


def measure(app: str, name: str, runs: int) -> dict[str, float]:
    """Give the median of each command, CPU seconds."""
    with tempfile.TemporaryDirectory(prefix="patchlock-commands-") as work:
        bench = Bench(app, clone_of(name), Path(work))
        rounds = [bench.commands() for _ in range(runs)]
    return {what: statistics.median(one[what] for one in rounds) for what in rounds[0]}


def main() -> None:
    """Measure the apps and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--report", type=Path)
    arguments = parser.parse_args()
    tables = {app: measure(app, name, arguments.runs) for app, name in APPS.items()}
    against: dict[str, Callable[[dict[str, float]], float]] = {
        "`patch apply`, cold": lambda row: row["engine alone"],
        "`patch status`": lambda row: row["`patch apply`, nothing to do"],
        "`patch update`, 50 commits": lambda row: row["stash, pull, pop"],
        "`patch apply`, another clone": lambda row: row["`git apply` of the diff"],
    }
    lines = [f"| CPU seconds, median of {arguments.runs} | {' | '.join(tables)} |", "|---|" + "---|" * len(tables)]
    for what in next(iter(tables.values())):
        cells = []
        for row in tables.values():
            ratio = f" (**{row[what] / against[what](row):.1f} ×**)" if what in against else ""
            cells.append(f"{row[what]:.2f}{ratio}")
        lines.append(f"| {what} | {' | '.join(cells)} |")
    said = (
        "Ratios: cold against the engine alone, `status` against nothing to do, `update` against stash, pull and pop, "
        "another clone against `git apply`."
    )
    text = "\n".join([*lines, "", said, ""])
    print(text)
    if arguments.report:
        arguments.report.write_text(
            f"# The `patch` commands\n\nMade by `benchmarks/patch_commands.py`.\n\n{text}", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
