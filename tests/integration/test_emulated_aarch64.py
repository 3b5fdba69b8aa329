"""Real locks in an emulated aarch64 Debian: `tests/aarch64-root` makes it, PATCHLOCK_AARCH64 names it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = [pytest.mark.aarch64, pytest.mark.online]

EMULATED = Path(os.environ.get("PATCHLOCK_AARCH64", ""))


def _run(command: str) -> str:
    done = subprocess.run([str(EMULATED / "enter"), command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("lock", "proof", "says"),
    [
        pytest.param("demo/cpu.linux-aarch64.txt", "import onnxruntime as o; print(o.__version__)", "1.", id="demo"),
        pytest.param(
            "tts-service/cpu.linux-aarch64.txt", "import piper, soundfile; print('speaks')", "speaks", id="tts"
        ),
    ],
)
def test_lock_installs_and_imports_on_aarch64(lock: str, proof: str, says: str) -> None:
    folder = f"/tmp/{lock.partition('/')[0]}"
    _run(f"rm -rf {folder} && uv venv -q -p /usr/bin/python3 {folder}")
    (EMULATED / "root" / folder[1:] / "lock.txt").write_bytes((ROOT / "lockfiles" / lock).read_bytes())
    _run(f"uv pip sync -q -p {folder}/bin/python --require-hashes --only-binary :all: {folder}/lock.txt")
    assert says in _run(f'{folder}/bin/python -c "{proof}"')
