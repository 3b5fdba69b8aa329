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


PROBES = """
import sys; sys.path.insert(0, {installer!r})
import tempfile, winreg
from pathlib import Path
from patchlock.hardware import resource_detection, system
from patchlock.core import file_lock
from patchlock.catalogue.reader import Catalogue
place = r"SYSTEM\\CurrentControlSet\\Control\\FileSystem"
key = winreg.CreateKeyEx(winreg.HKEY_LOCAL_MACHINE, place, access=winreg.KEY_ALL_ACCESS)
for value in (1, 0):
    winreg.SetValueEx(key, "LongPathsEnabled", 0, winreg.REG_DWORD, value)
    print("long paths", system.has_long_paths())
winreg.DeleteValue(key, "LongPathsEnabled")
print("long paths", system.has_long_paths())
print("drive", system.folder(Path("//server/share/ai"), "X").drive or "none", system.folder(Path("C:/ai"), "X").drive or "none")
catalogue = Catalogue(root=Path({root!r}))
for name in ("directx-12", "hip-sdk"):
    print(name, resource_detection.detect(catalogue.resource(name), "windows", ask_version=False).where.lower() or "none")
with tempfile.TemporaryDirectory() as folder, file_lock.hold(Path(folder) / "lock", wait=0):
    print("held", file_lock.holder(Path(folder) / "lock"))
"""


def test_machine_is_asked_on_windows(python: str, tmp_path: Path) -> None:
    script = tmp_path / "probes.py"
    script.write_text(PROBES.format(installer=f"Z:{ROOT / 'installer'}", root=f"Z:{ROOT}"))
    *lines, held = _run(python, f"Z:{script}").splitlines()
    assert lines == [
        "long paths True",
        "long paths False",
        "long paths False",
        "drive network none",
        r"directx-12 c:\windows\system32\d3d12.dll",
        "hip-sdk none",
    ]
    assert re.fullmatch(r"held , process \d+ since [\d:]{8}", held)
