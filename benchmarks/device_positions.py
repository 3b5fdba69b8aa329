"""Measure `device-literals` on real code: `PATCHLOCK_UPSTREAMS=<clones> python benchmarks/device_positions.py`.

First, the op's answer is compared with `labels/device_positions*.toml`, which were made by hand. Then, with
`--sweep N`, every Python file at N commits of each repository is patched: the op must not raise, its result must parse,
differ only inside the edits, and settle; the ensure must hold, and fail where one edit is left out (up to five are
tried); or the op must have refused with a line.

    --misses     name each position that was decided wrongly
    --sweep N    all Python files at N commits of each repository
    --device D   the device of the machine; `cpu`
"""

from __future__ import annotations

import argparse
import ast
import collections
import os
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "installer")]

from patchlock.model.patch import Located  # noqa: E402
from patchlock.model.text_files import SourceText, decode, encode, splice  # noqa: E402
from patchlock.patches.ops._device.op import DeviceLiterals  # noqa: E402
from patchlock.patches.postconditions._device import WithoutCuda  # noqa: E402

LABELS = tuple(ROOT / "benchmarks" / "labels" / f"device_positions{which}.toml" for which in ("", "_held_out"))


def git(clone: Path, *arguments: str) -> bytes:
    """Ask a clone, which may be bare or not."""
    return subprocess.run(["git", "-C", str(clone), *arguments], check=True, capture_output=True).stdout


def clone_of(upstreams: Path, repository: str) -> Path:
    """Find `owner/name` in the folder: as `owner+name/repo`, `owner+name`, `owner/name` or `name`."""
    flat = repository.replace("/", "+")
    places = [upstreams / flat / "repo", upstreams / flat, upstreams / repository, upstreams / Path(repository).name]
    return next((place for place in places if place.exists()), upstreams / repository)


def span(source: SourceText, line: int, column: int) -> tuple[int, int]:
    """Give the range of the outermost position that begins at a place: a text, a call, or the end of a method call."""
    starts = source.line_starts()
    nodes = [
        node
        for node in ast.walk(ast.parse(source.text))
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.Call)
        and (node.lineno, node.col_offset) == (line, column)
    ]
    texts = [node for node in nodes if not isinstance(node, ast.Call)]
    methods = [
        n for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "cuda"
    ]
    node = (texts or methods or sorted(nodes, key=lambda n: (n.end_lineno or 0, n.end_col_offset or 0)))[0]

    def offset(row: int, byte: int) -> int:
        rest = source.text[starts[row - 1] :]
        return starts[row - 1] + len(rest.encode()[:byte].decode())

    begin, end = offset(line, column), offset(node.end_lineno or 0, node.end_col_offset or 0)
    if node in methods and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        begin = offset(node.func.end_lineno or 0, (node.func.end_col_offset or 0) - len("cuda"))
    return begin, end


def answer(where: Located, source: SourceText, line: int, column: int) -> str:
    """Say what the op does with a position."""
    begin, end = span(source, line, column)
    if any((edit.start < end and begin < edit.end) or begin == edit.start == edit.end for edit in where.edits):
        return "edit"
    first, last = source.text.count("\n", 0, begin) + 1, source.text.count("\n", 0, end) + 1
    return "refuse" if any(first <= refusal.line <= last for refusal in where.refusals) else "leave"


def compare(upstreams: Path, op: DeviceLiterals, labelled: Path, *, shows_misses: bool) -> None:
    """Print how many labelled positions are decided rightly."""
    right: collections.Counter[str] = collections.Counter()
    pairs: collections.Counter[tuple[str, str]] = collections.Counter()
    index = 0 if op.device == "cpu" else -1
    for origin, positions in tomllib.loads(labelled.read_text(encoding="utf-8")).items():
        repository, _, commit = origin.partition("@")
        clone = clone_of(upstreams, repository)
        located: dict[str, tuple[SourceText, Located]] = {}
        for place, labels in positions.items():
            path, line, column = place.rsplit(":", 2)
            if path not in located:
                decoded = decode(PurePosixPath(path), git(clone, "show", f"{commit}:{path}"))
                assert isinstance(decoded, SourceText)
                located[path] = (decoded, op.locate(decoded))
            label = labels.split("|")[index]
            source, where = located[path]
            got = answer(where, source, int(line), int(column))
            pairs[label, got] += 1
            right[repository] += label == got
            if shows_misses and label != got:
                print(f"{label} → {got}: {repository}: {place}")
    total, hits = sum(pairs.values()), sum(right.values())
    print(f"{labelled.name}, device {op.device}: {hits} of {total} right ({hits / total:.1%})")
    for label in ("edit", "leave", "refuse"):
        row = {got: pairs[label, got] for got in ("edit", "leave", "refuse")}
        print(f"  {label:<7} {sum(row.values()):>4}: " + ", ".join(f"{got} {count}" for got, count in row.items()))


def versions(clone: Path, commits: int) -> Iterator[tuple[str, bytes]]:
    """Give each distinct Python file at commits that are spread evenly over the history, the newest included."""
    history = git(clone, "rev-list", "--first-parent", "HEAD").decode().split()
    chosen = sorted({round(i * (len(history) - 1) / max(1, commits - 1)) for i in range(commits)})
    blobs: dict[str, str] = {}
    for commit in (history[at] for at in chosen):
        for row in git(clone, "ls-tree", "-rz", commit).decode("utf-8", "replace").split("\0"):
            meta, _, path = row.partition("\t")
            if path.endswith(".py") and not meta.startswith(("160000", "120000")):
                blobs.setdefault(meta.split()[-1], f"{commit[:9]}:{path}")
    command = ["git", "-C", str(clone), "cat-file", "--batch"]
    data = subprocess.run(command, input="\n".join(blobs).encode(), capture_output=True, check=True).stdout
    at = 0
    for name in blobs.values():
        end = data.index(b"\n", at)
        header = data[at:end].split()
        size = int(header[2]) if header[1] == b"blob" else -1  # a mirror may lack a blob
        if size >= 0:
            yield name, data[end + 1 : end + 1 + size]
        at = end + size + 2


def outcome(op: DeviceLiterals, ensure: WithoutCuda, name: str, data: bytes) -> str:
    """Patch one file, and name how that ended."""
    path = PurePosixPath(name.rpartition(":")[2])
    source = decode(path, data)
    if not isinstance(source, SourceText):
        return "not text"
    where = op.locate(source)
    if where.refusals:
        return "not Python" if where.refusals[0].kind.value == "unparsable upstream" else "refused"
    result = splice(source, where.edits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(result.text)
    again = op.locate(result)
    if again.edits or again.refusals:
        return "NOT SETTLED"
    kept = "".join(source.text[a:b] for a, b in gaps(where.edits, len(source.text)))
    shifted = 0
    ranges = []
    for edit in sorted(where.edits, key=lambda e: (e.start, e.end)):
        ranges.append((edit.start + shifted, edit.start + shifted + len(edit.text)))
        shifted += len(edit.text) - (edit.end - edit.start)
    left, at = "", 0
    for start, end in ranges:
        left, at = left + result.text[at:start], end
    if kept != left + result.text[at:]:
        return "OTHER BYTES"
    if problems := ensure.problems(path, encode(result)):
        return f"ENSURE FAILS: {problems[0]}"
    for left in where.edits[:: max(1, len(where.edits) // 5)]:
        fewer = splice(source, tuple(edit for edit in where.edits if edit is not left))
        if not ensure.problems(path, encode(fewer)):
            return f"MISSING EDIT UNSEEN: {fewer.text.count(chr(10), 0, left.start) + 1}"
    return "edited" if where.edits else "settled" if where.settled else "nothing"


def gaps(edits: tuple, length: int) -> Iterator[tuple[int, int]]:
    """Give what lies between edits."""
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        yield at, edit.start
        at = edit.end
    yield at, length


def sweep(upstreams: Path, op: DeviceLiterals, commits: int, *, shows_misses: bool) -> None:
    """Print how every file ended."""
    ensure = WithoutCuda(device=op.device)
    ends: collections.Counter[str] = collections.Counter()
    for origin in tomllib.loads(LABELS[0].read_text(encoding="utf-8")):
        for name, data in versions(clone_of(upstreams, origin.partition("@")[0]), commits):
            if b"cuda" not in data and b'"CPU"' not in data:
                ends["no mention"] += 1
                continue
            end = outcome(op, ensure, name, data)
            ends[end.partition(":")[0]] += 1
            if shows_misses and end.partition(":")[0].isupper():
                print(f"{end}: {origin.partition('@')[0]} {name}")
    print(f"{sum(ends.values())} files: " + ", ".join(f"{end} {count}" for end, count in ends.most_common()))


def main() -> None:
    """Compare, and sweep where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--sweep", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    upstreams = Path(os.environ["PATCHLOCK_UPSTREAMS"])
    op = DeviceLiterals(device=arguments.device)
    for labelled in LABELS:
        compare(upstreams, op, labelled, shows_misses=arguments.misses)
    if arguments.sweep:
        sweep(upstreams, op, arguments.sweep, shows_misses=arguments.misses)


if __name__ == "__main__":
    main()
