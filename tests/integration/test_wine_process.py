"""Programs that leave others behind on Windows, under Wine: nobody waits for these."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.wine

WINE = Path(os.environ.get("PATCHLOCK_WINE", ""))
DRIVER = r"""
import json, pathlib, sys
sys.path.insert(0, r"Z:{installer}")
from patchlock.core import process
from patchlock.model.errors import CommandFailedError

ENDED = pathlib.Path(r"Z:{ended}")
CHILD = f"import pathlib, time; time.sleep(60); pathlib.Path({{str(ENDED)!r}}).touch()"
LEAVES = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {{CHILD!r}}]); print('left', flush=True); "
found = []
for code in (LEAVES, LEAVES + "time.sleep(60)"):
    ENDED.unlink(missing_ok=True)
    try:
        said = process.run(sys.executable, "-c", code, env=process.environment(), timeout=20).text
    except CommandFailedError as error:
        said = error.what
    found.append([said, ENDED.exists()])
read = process.run(sys.executable, "-c", "import sys; sys.stderr.write('heard'); print(sys.stdin.read())",
                   env=process.environment(), stdin=b"given")
found.append([read.text, read.stderr])
with open(r"Z:{answer}", "w") as file:
    json.dump(found, file)
"""


def test_nobody_waits_for_what_a_program_leaves_behind_on_windows() -> None:
    with tempfile.TemporaryDirectory() as here:
        driver, answer, ended = (Path(here) / name for name in ("driver.py", "answer.json", "ended"))
        driver.write_text(DRIVER.format(installer=ROOT / "installer", answer=answer, ended=ended))
        subprocess.run([str(WINE / "enter"), "python", f"Z:{driver}"], capture_output=True, check=True, timeout=300)
        left, late, read = json.loads(answer.read_text())
    assert left == ["left", False]
    assert late == ["python.exe did not end within 20 seconds", False]
    assert read == ["given", "heard"]
