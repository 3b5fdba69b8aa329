"""Each wall of the house falls when somebody breaks it: import-linter, on a copy where it is broken on purpose."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"
PLANTED = (
    ("model/planted.py", "import sqlite3", "patchlock.model.planted -> sqlite3"),
    ("model/planted.py", "from http import client", "patchlock.model.planted -> http"),
    ("patches/ops/planted.py", "def f() -> None:\n    import asyncio", "patchlock.patches.ops.planted -> asyncio"),
    ("patches/planted.py", "from patchlock.core import process", "patchlock.patches.planted -> patchlock.core.process"),
    ("core/planted.py", "import patchlock.hardware.probes", "patchlock.core.planted -> patchlock.hardware.probes"),
    ("locks/planted.py", "import rich.table", "patchlock.locks.planted -> rich"),
    (
        "locks/planted.py",
        "from patchlock.worktree import _merge",
        "patchlock.locks.planted -> patchlock.worktree._merge",
    ),
    (
        "locks/planted.py",
        "from patchlock.worktree.patch_cache import (\n    FOLDER,\n    _Cached,\n)",
        "patchlock.locks.planted -> patchlock.worktree.patch_cache._Cached",
    ),
    ("verify/_children/planted.py", "import patchlock", "patchlock.verify._children.planted -> patchlock"),
    (
        "verify/_children/planted.py",
        "from patchlock import __version__",
        "patchlock.verify._children.planted -> patchlock",
    ),
    (
        "verify/_children/patchlock_kernels/planted.py",
        "from patchlock.core import process",
        "patchlock.verify._children.patchlock_kernels.planted -> patchlock.core.process",
    ),
    ("verify/_children/planted.py", "import patchlock.model", "patchlock.verify._children.planted -> patchlock.model"),
    (
        "environments/builds/_children/planted.py",
        "from patchlock import core",
        "patchlock.environments.builds._children.planted -> patchlock.core",
    ),
)


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Look at the package in a folder with the contracts of this checkout."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "COLUMNS": "400"}
    command = [sys.executable, "-c", LINT, "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.slow
def test_each_wall_that_is_broken_is_named(tmp_path: Path) -> None:
    package = tmp_path / "patchlock"
    shutil.copytree(ROOT / "installer" / "patchlock", package, ignore=shutil.ignore_patterns("__pycache__"))
    sound = lint(tmp_path)
    assert (sound.returncode, "0 broken" in sound.stdout) == (0, True), sound.stdout + sound.stderr
    for place, text, _ in PLANTED:
        file = package / place
        file.parent.mkdir(exist_ok=True)
        (file.parent / "__init__.py").touch()
        with file.open("a", encoding="utf-8") as opened:
            opened.write(f"{text}\n")
    (package / "worktree" / "planted.py").write_text("from patchlock.worktree.patch_cache import _Cached\n")  # may
    broken = lint(tmp_path)
    assert broken.returncode == 1
    told = [line.strip(" -").partition(" (")[0] for line in broken.stdout.splitlines()]
    assert [wanted for _, _, wanted in PLANTED if wanted not in told] == []
    assert not any("worktree.planted" in line for line in told)
