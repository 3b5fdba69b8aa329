"""Measure run-time-pip on public repositories that were labelled by hand: `python benchmarks/run_time_pip.py`.

PATCHLOCK_UPSTREAMS names a folder of clones, `<owner>+<name>/repo` or `<owner>+<name>`; repositories that are not there
are left out and named. A file is found if its installing calls were replaced, the result parses and settles, and the
independent check holds; a refusal is counted apart, and is not silent.
"""

from __future__ import annotations

import ast
import dataclasses
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
LABELS = ROOT / "benchmarks" / "labels" / "run_time_pip.toml"
sys.path[:0] = [str(ROOT / "installer")]

from patchlock.model.text_files import SourceText, decode, encode, splice  # noqa: E402
from patchlock.patches.ops._run_time_pip.op import RunTimePip  # noqa: E402
from patchlock.patches.postconditions._run_time_pip import NoRunTimePip  # noqa: E402


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """What a person found in one file."""

    repository: str
    commit: str
    path: str
    lines: frozenset[int]
    """Where the calls begin that install; empty: it installs nothing."""


def labels(table: list[str]) -> Iterator[Label]:
    """Read `owner/name@commit:path[:line,line]`."""
    for text in table:
        repository, _, rest = text.partition("@")
        commit, path, *lines = rest.split(":")
        numbers = frozenset(int(line) for line in lines[0].split(",")) if lines else frozenset()
        yield Label(repository=repository, commit=commit, path=path, lines=numbers)


def read(clones: Path, label: Label) -> bytes | None:
    """Read a file at its commit; None where the clone or the commit is not there."""
    folder = clones / label.repository.replace("/", "+")
    for clone in (folder / "repo", folder):
        done = subprocess.run(
            ["git", "-C", str(clone), "cat-file", "blob", f"{label.commit}:{label.path}"],
            capture_output=True,
            check=False,
        )
        if done.returncode == 0:
            return done.stdout
    return None


def outcome(data: bytes, label: Label) -> tuple[str, set[int]]:
    """Patch one file: `found`, `refused`, `silent`, or what is wrong with the result; and which lines were replaced."""
    path = PurePosixPath(label.path)
    source = decode(path, data)
    if not isinstance(source, SourceText):
        return "unreadable", set()
    located = RunTimePip().locate(source)
    lines = {site.line for site in located.sites}
    if located.refusals:
        return "refused", lines
    if not located.edits:
        return "silent", lines
    after = splice(source, located.edits)
    try:
        ast.parse(after.text)
    except SyntaxError:
        return "does not parse", lines
    if RunTimePip().locate(after).edits:
        return "does not settle", lines
    return ("check fails" if NoRunTimePip().problems(path, encode(after)) else "found"), lines


def main() -> None:
    """Print one row for each set of labels, and every file that is not as labelled."""
    clones = Path(os.environ["PATCHLOCK_UPSTREAMS"])
    tables = tomllib.loads(LABELS.read_text(encoding="utf-8"))
    columns = ("files", "found", "refused", "silent", "recall", "calls", "replaced", "wrong")
    print(f"{'set':<10}", *(f"{column:>9}" for column in columns))
    remarks: list[str] = []
    for name, table in tables.items():
        counts: dict[str, int] = {}
        wanted = replaced = wrong = 0
        for label in (*labels(table["installs"]), *labels(table["others"])):
            data = read(clones, label)
            where = f"{label.repository}@{label.commit[:12]}:{label.path}"
            if data is None:
                remarks.append(f"{name}: {where}: not there")
                continue
            kind, lines = outcome(data, label)
            wrong += len(lines - label.lines)
            if label.lines:
                counts[kind] = counts.get(kind, 0) + 1
                wanted += len(label.lines)
                replaced += len(lines & label.lines)
            if kind != ("found" if label.lines else "silent") or lines != label.lines:
                told = f"expected {sorted(label.lines)}, replaced {sorted(lines)}"
                remarks.append(f"{name}: {where}: {kind}, {told}")
        files = sum(counts.values())
        found = counts.get("found", 0)
        recall = f"{found / max(files, 1):.1%}"
        row = (files, found, counts.get("refused", 0), counts.get("silent", 0), recall, wanted, replaced, wrong)
        print(f"{name:<10}", *(f"{value:>9}" for value in row), flush=True)
    print(*remarks, sep="\n")


if __name__ == "__main__":
    main()
