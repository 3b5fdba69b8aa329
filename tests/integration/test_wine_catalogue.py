"""A large real lock for Windows, installed under Wine by our own code; `tests/wine-root` makes it, PATCHLOCK_WINE names it.

What cannot run there: git, so that the steps of `install` before and after the environment are left out; torch_directml,
whose native half needs Windows' dxcore.dll and a driver of DirectX 12. Needs 5 GB below PATCHLOCK_WINE, and minutes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import packaging
import pytest
from conftest import ROOT

from patchlock import uv

pytestmark = [pytest.mark.wine, pytest.mark.online]

WINE = Path(os.environ.get("PATCHLOCK_WINE", ""))
LOCK = ROOT / "lockfiles" / "diffrhythm2" / "directml-vega.txt"
INSTALL = r"""
import contextlib, json, os, subprocess, sys
sys.path += [r"{installer}", r"{packages}"]
from pathlib import Path
from patchlock import environments, filling, mutex, readiness
from patchlock.catalogue import Catalogue
from patchlock.gathering import Request, read_lock
from patchlock.platforms import PLATFORMS

class Progress:
    def stage(self, name): return contextlib.nullcontext()
    def say(self, text): print(text, flush=True)
    def note(self, text): print(text, flush=True)

catalogue = Catalogue(root=Path(r"{root}"))
drive = Path(r"{drive}")
request = Request(app=catalogue.app("diffrhythm2"), profile=catalogue.profile("directml-vega"), catalogue=catalogue,
                  platform=PLATFORMS["windows-amd64"], home=drive / "home", cache=drive / "cache")
lock, _ = read_lock(request)
folder = request.installation.environments / "one"
request.installation.folder.mkdir(parents=True)
with mutex.hold(request.installation.folder / "lock", wait=0) as held:
    environments.create(folder, r"C:\python\python.exe", lock=held)
    filling.fill(request, lock, folder, Progress(), held).settle()
python = str(environments.interpreter(folder))
env = environments.launch_environment(folder, {{}}, {{}})

def ask(*arguments):
    done = subprocess.run(arguments, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.strip()

print(json.dumps({{
    "freeze": ask("uv", "pip", "freeze", "-p", python).splitlines(),
    "check": ask("uv", "pip", "check", "-p", python),
    "torch": ask(python, "-c", "import torch, torchaudio, torchvision; print(torch.__version__, (torch.ones(2, 3) @ torch.ones(3, 2)).sum().item())"),
    "built": ask(python, "-c", "import jieba, muq; print(len(jieba.lcut('\u6211\u6765\u5230\u5317\u4eac')))").splitlines()[-1:],
    "directml": ask(python, "-c", "import torch_directml").splitlines()[-1:],
    "recorded": (folder / "builds.toml").read_text("utf-8"),
}}))
"""


def _install(drive: Path) -> dict[str, Any]:
    packages = Path(packaging.__file__).parent.parent
    text = INSTALL.format(
        installer=f"Z:{ROOT / 'installer'}", packages=f"Z:{packages}", root=f"Z:{ROOT}", drive=rf"C:\{drive.name}"
    )
    (drive / "install.py").write_text(text, encoding="utf-8")
    env = {**os.environ, "UV_CACHE_DIR": rf"C:\{drive.name}\uv"}
    # uv is looked for beside patchlock; everything else that it imports is Python alone, and may be that of this machine.
    own = rf"C:\{drive.name}\own"
    for arguments in (
        ("venv", "-q", "-p", r"C:\python\python.exe", own),
        ("pip", "install", "-q", "-p", own, f"uv=={uv.version()}"),
    ):
        subprocess.run([str(WINE / "enter"), "uv", *arguments], check=True, env=env, timeout=300)
    command = [str(WINE / "enter"), rf"{own}\Scripts\python.exe", "-B", rf"C:\{drive.name}\install.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600, env=env)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def test_diffrhythm2_for_vega_is_installed_on_windows_as_its_lock_says() -> None:
    pins = set(re.findall(r"^([\w.-]+==[^\s+]+)", LOCK.read_text("utf-8"), re.MULTILINE))
    built = set(re.findall(r"^([\w.-]+)==\S+ .*· sdist$", LOCK.read_text("utf-8"), re.MULTILINE))
    with tempfile.TemporaryDirectory(prefix="vega-", dir=WINE / "prefix" / "drive_c") as folder:
        said = _install(Path(folder))
    frozen = {line.lower() for line in said["freeze"] if "==" in line}
    assert frozen == {pin.lower() for pin in pins}
    assert "All installed packages are compatible" in said["check"]
    assert said["torch"].splitlines()[-1] == "2.4.1+cpu 12.0"
    assert said["built"] == ["3"]
    assert set(re.findall(r'^name = "([\w-]+)"', said["recorded"], re.MULTILINE)) == built
    # Wine has no dxcore.dll: the wheel is there, and its native half finds nothing to load.
    assert said["directml"][0].startswith("ImportError: DLL load failed while importing torch_directml_native")
