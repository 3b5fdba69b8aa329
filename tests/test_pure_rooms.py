"""The rooms that do no I/O do none: shown by their work with every door shut, and by what their code calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from conftest import ROOT

from patchlock.patches.ops import OPS
from patchlock.patches.postconditions import ENSURES

WORK = ROOT / "tests" / "support" / "pure_work.py"


def test_pure_rooms_work_with_every_door_shut() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "installer")}
    done = subprocess.run(
        [sys.executable, str(WORK)], env=env, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"ops": sorted(OPS), "checks": sorted(ENSURES)}
