"""A real lock in a Windows CPython under Wine: `tests/wine-root` makes it, PATCHLOCK_WINE names it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PureWindowsPath

import pytest
from conftest import ROOT, Said

pytestmark = [pytest.mark.wine, pytest.mark.online]

WINE = Path(os.environ.get("PATCHLOCK_WINE", ""))
LOCK = ROOT / "lockfiles" / "demo" / "cpu.windows-amd64.txt"
PIN = re.compile(r"^[\w.-]+==\S+", re.MULTILINE)


def _run(*command: str) -> str:
    done = subprocess.run([str(WINE / "enter"), *command], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python() -> Iterator[str]:
    """Install the demo's lock into an environment on the drive C:, and give its Python."""
    with tempfile.TemporaryDirectory(prefix="locked-", dir=WINE / "prefix" / "drive_c") as folder:
        drive = f"C:\\{Path(folder).name}"
        shutil.copy(LOCK, Path(folder) / "lock.txt")
        program = rf"{drive}\env\Scripts\python.exe"
        _run("uv", "venv", "-q", "-p", r"C:\python\python.exe", rf"{drive}\env")
        sync = ("uv", "pip", "sync", "-q", "-p", program, "--require-hashes", "--only-binary", ":all:")
        _run(*sync, rf"{drive}\lock.txt")
        yield program


def test_lock_installs_all_its_pins_and_they_import_on_windows(python: str) -> None:
    assert set(PIN.findall(_run("uv", "pip", "freeze", "-p", python))) == set(PIN.findall(LOCK.read_text()))
    code = "import av, numpy, onnxruntime, pydantic, gradio_client, os, sys; print(os.name, sys.prefix)"
    assert f"nt {PureWindowsPath(python).parent.parent}" in _run(python, "-c", code)


def test_patched_demo_computes_on_windows(python: str, tmp_path: Path, face: Callable[..., Said]) -> None:
    source = shutil.copytree(ROOT / "patches" / "demo" / "upstream", tmp_path / "demo")
    assert face("patch", "apply", "demo", "--profile", "cpu", "--source", str(source)).returncode == 0
    assert "selftest ok on CPUExecutionProvider" in _run(python, f"Z:{source / 'app.py'}", "--selftest")
