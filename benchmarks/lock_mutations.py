"""Change what locks are made from, one file at a time: does the matrix name exactly the pairs concerned?

    python benchmarks/lock_mutations.py [--count 1000] [--seed 18] [--report FILE]

Each mutation is made in a copy of the catalogue: in a random file of a kind, a line is dropped, doubled, or one of its
characters is another one, or a comment is added, or the file is gone. Then `matrix --changed-since` and `lock --check`
are asked, and answered from nothing remembered. What is expected is read from the heads of the locks alone: the pairs
whose `[inputs]` have the file, those whose own lock or build file it is, and those without a lock.

- refused: the catalogue cannot be read any more, so that every command says why and none goes on;
- exact: the matrix names what is expected, which is something;
- policy: no lock is made from the file, and it names the pairs that `lock --check` now refuses;
- harmless: no lock is made from the file, and it names none;
- wrong: anything else. Each is printed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import json
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from patchlock.catalogue import pairs
from patchlock.catalogue.reader import Catalogue
from patchlock.cli import main as patchlock
from patchlock.model import lockfile
from patchlock.model.errors import PatchlockError

ROOT = Path(__file__).resolve().parent.parent
KINDS = {
    "locks": "lockfiles/*/*.txt",
    "build files": "lockfiles/*/*.build.txt",
    "profiles": "profiles/*.toml",
    "patches": "patches/*/*",
    "shared sets": "patches/shared/*.toml",
    "distributions": "patches/distributions/*/*",
    "policy": "profiles/policy/*.toml",
    "indexes": "profiles/indexes/*.toml",
}
CHARACTERS = "abcxyz0189-_.=\"'[]# "


def files(kind: str) -> list[str]:
    """List the files of a kind, from the catalogue's root."""
    found = (path for path in ROOT.glob(KINDS[kind]) if path.is_file() and path.suffix in {".toml", ".py", ".txt"})
    return sorted(
        path.relative_to(ROOT).as_posix()
        for path in found
        if path.name.endswith(".build.txt") == (kind == "build files")
        and (kind != "patches" or path.parent.name not in {"shared", "distributions"})
    )


def mutated(text: str, chance: random.Random) -> tuple[str, str | None]:
    """Change a file in one of five ways; None: it is gone."""
    lines = text.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    match chance.choice(("drop", "double", "character", "character", "comment", "gone")):
        case "drop":
            return f"line {at + 1} dropped", "".join(lines[:at] + lines[at + 1 :])
        case "double":
            return f"line {at + 1} doubled", "".join(lines[: at + 1] + lines[at:])
        case "character":
            place = chance.randrange(len(text))
            other = chance.choice([one for one in CHARACTERS if one != text[place]])
            return f"character {place} {text[place]!r} → {other!r}", text[:place] + other + text[place + 1 :]
        case "comment":
            return "a comment added", text + "# corrected\n"
        case _:
            return "gone", None


@contextlib.contextmanager
def mutation(path: Path, after: str | None) -> Iterator[None]:
    """Put a mutation into the copy, and take it back."""
    before = path.read_bytes()
    try:
        if after is None:
            path.unlink()
        else:
            path.write_bytes(after.encode())
        yield
    finally:
        path.write_bytes(before)


def run(*words: str) -> tuple[int, dict[str, object]]:
    """Run a command in this process, and give its JSON envelope."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        code = patchlock([*words, "--json"])
    return code, json.loads(said.getvalue())


def expected(root: Path, file: str, inputs: dict[str, frozenset[str]]) -> set[str]:
    """Say which locks a mutation concerns, by the heads of the locks as they were."""
    catalogue = Catalogue(root=root)
    found = set()
    for pair in pairs.pairs(*catalogue.read_all()):
        path = catalogue.lock_path(pair.app, pair.profile, pair.platform)
        lock = path.relative_to(root).as_posix()
        own = {lock, lock.removesuffix(".txt") + ".build.txt"}
        if not pair.refused and (file in own or file in inputs.get(lock, ()) or not path.is_file()):
            found.add(lock)
    return found


def judge(root: Path, file: str, inputs: dict[str, frozenset[str]]) -> tuple[str, str]:
    """Name what became of a mutation; with what is wrong, if it is."""
    try:
        wanted = expected(root, file, inputs)
    except (PatchlockError, OSError):
        wanted = None
    code, told = run("matrix", "--changed-since", "HEAD")
    _, checked = run("lock", "--check")
    if wanted is None or checked["data"] is None:
        return ("refused", "") if code != 0 and checked["data"] is None else ("wrong", "the catalogue is not refused")
    if code != 0:
        return "wrong", f"the matrix is an error: {told['error']}"
    named = {pair["lock"] for pair in told["data"]["include"]}  # type: ignore[index]
    rows = checked["data"]["pairs"]  # type: ignore[index]
    unsound = {row["file"] for row in rows if row["state"] not in {"fresh", "refused"}} - {
        row["file"] for row in rows if row["file"] == row["pair"]
    }
    if named == wanted:
        if not wanted:
            return ("harmless", "") if not unsound else ("wrong", f"checked and not named: {sorted(unsound)}")
        missed = wanted - unsound
        return ("exact", "") if not missed else ("exact, and only the matrix sees it", f"{sorted(missed)}")
    if not wanted and named == {row["file"] for row in rows if row["code"] == "policy"}:
        return "policy", ""
    return "wrong", f"named {sorted(named - wanted)} too much, {sorted(wanted - named)} too little"


def main() -> None:
    """Print a table, and what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--report", type=Path)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    table: dict[str, collections.Counter[str]] = {kind: collections.Counter() for kind in KINDS}
    remarks = []
    with tempfile.TemporaryDirectory(prefix="patchlock-mutations-") as name:
        root = Path(name) / "catalogue"
        for folder in ("lockfiles", "patches", "profiles"):
            shutil.copytree(ROOT / folder, root / folder)
        git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b.test", "-c", "core.autocrlf=false"]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
            subprocess.run([*git, *words], check=True)
        os.environ |= {
            "PATCHLOCK_CATALOGUE": str(root),
            "PATCHLOCK_CACHE_DIR": f"{name}/cache",
            "PATCHLOCK_HOME": f"{name}/home",
        }
        inputs = {
            lock: frozenset(lockfile.parse((root / lock).read_text(encoding="utf-8"), lock).provenance.inputs)
            for lock in files("locks")
        }
        for number in range(asked.count):
            kind = list(KINDS)[number % len(KINDS)]
            file = chance.choice(files(kind))
            text = (root / file).read_bytes().decode()
            how, after = mutated(text, chance)
            if after == text:
                continue
            with mutation(root / file, after):
                outcome, detail = judge(root, file, inputs)
            table[kind][outcome] += 1
            if detail:
                remarks.append(f"- {outcome}: {file}, {how}: {detail}")
    outcomes = sorted({outcome for counts in table.values() for outcome in counts})
    rows = [
        f"| mutated | {' | '.join(outcomes)} | all |",
        f"|---|{'---:|' * (len(outcomes) + 1)}",
        *(
            f"| {kind} | {' | '.join(str(counts[one]) for one in outcomes)} | {counts.total()} |"
            for kind, counts in table.items()
        ),
    ]
    report = "\n".join([*rows, "", *remarks]).rstrip() + "\n"
    print(report)
    if asked.report:
        asked.report.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
