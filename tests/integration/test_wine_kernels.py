"""Kernels on Windows, under Wine: exit codes of Windows are named, and what hangs is ended."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.wine

WINE = Path(os.environ.get("PATCHLOCK_WINE", ""))
DRIVER = r"""
import json, os, sys
from pathlib import Path
sys.path.insert(0, r"Z:{installer}")
from patchlock.verify import _task_runner
from patchlock.model import kernel_results
env = {{**os.environ, "PYTHONPATH": r"Z:{here}", "PRETEND_TORCH": "bmm=hang,lstm=exit,rfft=raise,topk=abort,sdpa=shifted"}}
where = _task_runner.ProcessContext(python=Path(sys.executable), options=("-X", "utf8"), folder=Path(r"Z:{here}"), variables=env)
with _task_runner.open_runner(where, "torch") as workshop:
    found = {{}}
    for name in ("mm-f32", "bmm", "lstm", "rfft", "topk", "sdpa"):
        task = _task_runner.Task(name=name, program="compute", arguments=("cuda:0", name), seconds=10, memory=1 << 30)
        ended = workshop.run(task)
        found[name] = [kernel_results.classify_exit(ended, "cuda:0").verdict.value, ended.code]
print(json.dumps(found))
"""


def test_kernels_end_as_what_they_are_on_windows() -> None:
    with tempfile.TemporaryDirectory() as here:
        shutil.copy(ROOT / "tests" / "support" / "pretend_torch.py", Path(here) / "torch.py")
        driver = Path(here) / "driver.py"
        driver.write_text(DRIVER.format(installer=ROOT / "installer", here=here))
        done = subprocess.run(
            [str(WINE / "enter"), "python", f"Z:{driver}"], capture_output=True, text=True, check=False, timeout=200
        )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("bmm")[0] == "hangs"
    assert found == {
        "mm-f32": ["works", 0],
        "lstm": ["crashes", 3],
        "rfft": ["raises", 0],
        "topk": ["crashes", 0xC0000409],
        "sdpa": ["wrong numbers", 0],
    }
