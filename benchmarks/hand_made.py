"""Compare with a tree made by hand: `PATCHLOCK_UPSTREAMS=FOLDER python benchmarks/hand_made.py --report FILE`.

The tree is the folder `xtts-webui/` of apollo-mg/ComfyUI-Zluda-MyFix. The same checks are run on upstream, on that tree
and on upstream with our patches, each in a child process with stand-ins for the heavy packages, without network and
with a time limit. The folder holds clones named `owner+name` or `name`, bare or not; nothing is written into them.

    --resolve    also ask uv, and with it the index, whether the requirements of each tree have a solution
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "installer"), str(ROOT / "benchmarks")]

from comparison import resolving  # noqa: E402
from comparison.rows import RESOLVED, ROWS, Row  # noqa: E402
from histories.repository import environment, find  # noqa: E402

from patchlock.catalogue.reader import Catalogue  # noqa: E402
from patchlock.model.app import App, GitUpstream  # noqa: E402
from patchlock.patches import engine, targets  # noqa: E402

UPSTREAM = "daswer123/xtts-webui"
HAND_MADE = "apollo-mg/ComfyUI-Zluda-MyFix"
HAND_MADE_COMMIT = "69e91282df58fcf0fdf4300b9897b2ded16bdb70"
PROFILE = "cpu"
TREES = ("upstream", "hand-made", "ours")
SECONDS = 60


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What one row gave on the three trees."""

    row: Row
    why: tuple[str, ...]
    """Why it fails on each tree, "" where it holds."""

    @property
    def wrong(self) -> str:
        """Say why this row does not show what it should, or ""."""
        if self.why[-1]:
            return f"ours: {self.why[-1]}"
        return "" if any(self.why[:-1]) else "it holds for all three, so it shows nothing"


def main() -> None:
    """Build the trees, ask them, and print the table."""
    parser = argparse.ArgumentParser(description="Compare our patches for xtts-webui with a tree made by hand.")
    parser.add_argument("--report", type=Path, help="write the report to this file, as Markdown")
    parser.add_argument("--resolve", action="store_true", help="also resolve the requirements; needs uv and the index")
    arguments = parser.parse_args()
    folder = os.environ.get("PATCHLOCK_UPSTREAMS")
    if not folder:
        parser.error("set PATCHLOCK_UPSTREAMS to a folder of clones")
    app = Catalogue(root=ROOT).app("xtts-webui")
    with tempfile.TemporaryDirectory(prefix="patchlock-compare-") as name:
        trees = build(Path(folder), app, Path(name))
        answers = [Answer(row=row, why=tuple(ask(row.check, tree, trees[0]) for tree in trees)) for row in ROWS]
        solved: list[resolving.Solution] = []
        if arguments.resolve:
            profile = Catalogue(root=ROOT).profile(PROFILE)
            solved = [resolving.resolve(tree, app, profile if tree == trees[-1] else None) for tree in trees]
            answers += [Answer(row=row, why=tuple(resolving.judge(row.check, s) for s in solved)) for row in RESOLVED]
    text = report(app, answers) + (resolving.told(solved[-1]) if solved else "")
    print(text)
    if arguments.report:
        arguments.report.write_text(text, encoding="utf-8")
    wrong = [f"{answer.row.check}: {answer.wrong}" for answer in answers if answer.wrong]
    print(*wrong, sep="\n", file=sys.stderr)
    sys.exit(1 if wrong else 0)


def build(clones: Path, app: App, folder: Path) -> tuple[Path, ...]:
    """Write the three trees, in the order of `TREES`."""
    trees = tuple(folder / name for name in TREES)
    commit = _commit(app)
    extract(clones, UPSTREAM, commit, trees[0])
    extract(clones, HAND_MADE, f"{HAND_MADE_COMMIT}:xtts-webui", trees[1])
    extract(clones, UPSTREAM, commit, trees[2])
    paths = [PurePosixPath(path.relative_to(trees[2]).as_posix()) for path in trees[2].rglob("*") if path.is_file()]
    patches = engine.for_profile(app.patches, PROFILE)
    contents = {path: (trees[2] / path).read_bytes() for path in targets.candidates(patches, paths)}
    patched = engine.apply(patches, contents)
    engine.require_complete(patched, f"{app.name} at {commit}")
    for change in patched.changes:
        (trees[2] / change.path).write_bytes(change.after)
    return trees


def extract(clones: Path, repository: str, tree: str, to: Path) -> None:
    """Write a tree of a clone, as git would check it out."""
    git = find(clones, repository)
    if git is None:
        sys.exit(f"{repository} is not in {clones}; clone it there")
    command = ["git", "--git-dir", str(git), "archive", "--format=tar", tree]
    made = subprocess.run(command, env=environment(), capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        archive.extractall(to, filter="data")


def ask(check: str, tree: Path, upstream: Path) -> str:
    """Run one check on one tree in a child process; give why it fails, or ""."""
    child = ROOT / "benchmarks" / "comparison" / "child.py"
    command = [sys.executable, "-I", "-B", "-X", "utf8", str(child), check, str(tree), str(upstream)]
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.defpath, "HOME": home, "TMPDIR": home, "NUMBA_CACHE_DIR": home}
        try:
            done = subprocess.run(
                command,
                cwd=tree,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"it did not end within {SECONDS} seconds"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it ended"])[-1]
    return str(json.loads(done.stdout)).replace(str(tree), ".").replace(sys.executable, "python")


def report(app: App, answers: Iterable[Answer]) -> str:
    """Write the table."""
    answers = tuple(answers)
    held = [sum(not answer.why[number] for answer in answers) for number in range(len(TREES))]
    patches = engine.for_profile(app.patches, PROFILE)
    lines = [
        "# xtts-webui: upstream, a tree made by hand, and ours",
        "",
        "Made by `benchmarks/hand_made.py`; anyone with the two clones can make it again.",
        "",
        f"- upstream: {UPSTREAM} at {_commit(app)}",
        f"- hand-made: {HAND_MADE}, folder `xtts-webui/`, at {HAND_MADE_COMMIT}",
        f"- ours: upstream with the {len(patches)} patches of `patches/xtts-webui/app.toml` for the profile {PROFILE}",
        "",
        "Every answer comes from a child process that imports and calls the tree's own modules, with small stand-ins",
        "for the heavy packages (`benchmarks/comparison/heavy.py`): deepspeed is absent, nothing reaches a network,",
        "and a process that the code would start is noted and not started. **no** is explained below the table.",
        "",
        "| change of the hand-made tree | what must hold | upstream | hand-made | ours |",
        "|---|---|---|---|---|",
    ]
    notes: list[str] = []
    for answer in answers:
        cells = []
        for tree, why in zip(TREES, answer.why, strict=True):
            if why:
                notes.append(f"{len(notes) + 1}. {tree}: {_one_line(why)}")
            cells.append(f"**no** ({len(notes)})" if why else "yes")
        lines.append(f"| {answer.row.change} | {answer.row.says} | {' | '.join(cells)} |")
    lines += [f"| | **{len(answers)} rows** | {' | '.join(map(str, held))} |", "", "## Why not", "", *notes, ""]
    return "\n".join([*lines, *LEFT_OUT])


LEFT_OUT = (
    "## What ours leaves out",
    "",
    "- int8 quantization of the model (`load_local_model`) changes what the app computes and repairs nothing. The",
    "  optional patch `int8` does that, and reaches the layers of GPT-2, which `quantize_dynamic` alone passes over.",
    "- `install.bat` and `install.sh` stay as they are: `patchlock install` takes their place, and its environment is",
    "  made from the lock. The ZLUDA launcher belongs to a profile that does not exist yet.",
    "- Comments of the hand-made tree (`local_generation`) change nothing.",
    "",
)


def _commit(app: App) -> str:
    if not isinstance(app.upstream, GitUpstream):
        sys.exit(f"{app.name} has no git upstream")
    return app.upstream.commit


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) < 450 else line[:449] + "…"


if __name__ == "__main__":
    main()
