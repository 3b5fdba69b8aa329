"""Import each module of a tree with stand-ins for what is heavy: `importing.py TREE DEEPSPEED`; prints who fails and why, as JSON."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from comparison import heavy


def main() -> None:
    """Import each that is no program; DEEPSPEED is absent or present; torch has no CUDA, and what starts a process is noted."""
    heavy.Record.deepspeed = sys.argv.pop()
    tree = Path(sys.argv.pop())
    os.chdir(tree)
    os.environ["DEVICE"] = "cuda"
    heavy.install(tree)
    failed = {}
    modules = sorted(_modules(tree))
    for name in modules:
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                importlib.import_module(name)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever upstream raises is the answer
                failed[name] = f"{type(error).__name__}: {error}"
    print(json.dumps({"modules": len(modules), "failed": failed, "processes": heavy.Record.processes}))


def _modules(tree: Path) -> set[str]:
    paths = (path.relative_to(tree) for path in tree.rglob("*.py"))
    names = {".".join((path.parent if path.name == "__init__.py" else path.with_suffix("")).parts) for path in paths}
    return {name for name in names if name and "__main__" not in name and all(map(str.isidentifier, name.split(".")))}


if __name__ == "__main__":
    main()
