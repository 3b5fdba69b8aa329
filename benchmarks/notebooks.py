"""Patch the notebooks of real clones and compare: `PATCHLOCK_UPSTREAMS=<clones> python benchmarks/notebooks.py`.

Each notebook at HEAD is read and joined; each op is applied; what is not the source of a code cell must be equal, the
cells must have the change that the joined code has, the second time nothing changes, and every JSON token but those of
edited sources stays where it was.
"""

from __future__ import annotations

import collections
import json
import os
import sys
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "installer"), str(ROOT / "benchmarks")]

from optional_imports import _git, clones  # noqa: E402

from patchlock.model.patch import Op, Refusal  # noqa: E402
from patchlock.model.text_files import SourceText, decode, encode, splice  # noqa: E402
from patchlock.patches import _notebooks  # noqa: E402
from patchlock.patches.ops._device.op import DeviceLiterals  # noqa: E402
from patchlock.patches.ops._python import NeutraliseCall, ReplaceExpression  # noqa: E402
from patchlock.patches.ops._run_time_pip.op import RunTimePip  # noqa: E402
from patchlock.patches.ops.optional_import._op import OptionalImport  # noqa: E402
from patchlock.patches.ops.syntax import parse  # noqa: E402

OPS: dict[str, Op] = {
    'replace "cuda"': ReplaceExpression(pattern='"cuda"', replacement='"cpu"'),
    "replace torch.device": ReplaceExpression(pattern="torch.device($*a)", replacement='torch.device("cpu")'),
    "neutralise print": NeutraliseCall(call="print($*a)"),
    "replace open": ReplaceExpression(pattern="open($*a)", replacement='open(\n    "é", $*a\n)'),
    "device-literals": DeviceLiterals(always=True),
    "run-time-pip": RunTimePip(),
    **{f"optional {name}": OptionalImport(package=name) for name in ("os", "torch", "numpy", "TTS", "sys")},
}


def others(data: bytes) -> Any:
    """Give a notebook without the sources of its code cells."""
    root = json.loads(data)
    for cell in root["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = None
    return root


def judge(op: Op, source: SourceText) -> str:
    """Apply an op, and say what came of it."""
    located = _notebooks.locate(op, source)
    if located.refusals:
        return f"refused: {located.refusals[0].why}"
    if not located.edits:
        return "nothing there"
    data = encode(splice(source, located.edits))
    again = decode(source.path, data)
    before, after = _notebooks.read(source), _notebooks.read(again)  # type: ignore[arg-type]
    assert isinstance(before, _notebooks.Notebook)
    assert isinstance(after, _notebooks.Notebook)
    assert after.code.text == splice(before.code, op.locate(before.code).edits).text
    assert others(data) == others(encode(source))
    assert not isinstance(parse(after.code), Refusal)
    assert not _notebooks.locate(op, again).edits  # type: ignore[arg-type]
    indents = {len(line) - len(line.lstrip()) for line in source.text.splitlines()}
    assert {len(line) - len(line.lstrip()) for line in data.decode().splitlines()} <= indents
    return "patched"


def main() -> None:
    """Try every notebook."""
    ends: collections.Counter[tuple[str, str]] = collections.Counter()
    count = 0
    for name, clone in clones(Path(os.environ["PATCHLOCK_UPSTREAMS"])).items():
        rows = _git(clone, "ls-tree", "-r", "-z", "HEAD").decode(errors="replace").split("\0")
        for row in rows:
            meta, _, path = row.partition("\t")
            if not path.endswith(".ipynb"):
                continue
            data = _git(clone, "cat-file", "blob", meta.split()[2])
            source = decode(PurePosixPath(path), data)
            if not isinstance(source, SourceText):
                print(f"{name} {path}: {source.why}")
                continue
            count += 1
            assert encode(splice(source, ())) == data
            notebook = _notebooks.read(source)
            if isinstance(notebook, Refusal):
                print(f"{name} {path}: {notebook.why}")
                continue
            tree = parse(notebook.code)
            if isinstance(tree, Refusal):
                print(f"{name} {path}: line {tree.line} of the code: {tree.why}")
            for title, op in OPS.items():
                ends[title, judge(op, source)] += 1
    for (title, end), number in sorted(ends.items()):
        print(f"{title:<24} {end:<80} {number:>4}")
    print(f"{count} notebooks")


if __name__ == "__main__":
    main()
