"""An overlay in a Windows environment under Wine: loaded before torch's own libraries, which stay as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import miniature
import pytest
import standins
from conftest import ROOT
from standins import Standins

pytestmark = pytest.mark.wine

WINE = Path(os.environ.get("PATCHLOCK_WINE", ""))
DRIVER = r"""
import hashlib, importlib, json, os, pathlib, subprocess, sys

sys.path[:0] = [r"{installer}", r"{packages}"]
from patchlock.environments import venv, gate, overlays, preloads
from patchlock.core import atomic_files
from patchlock.catalogue.reader import Catalogue
from patchlock.model.errors import OverlayError
from patchlock.locks.lock_request import Request
from patchlock.model.platforms import PLATFORMS

drive = pathlib.Path(r"{drive}")
catalogue = Catalogue(root=drive / "catalogue")
app, profile = catalogue.app("mini"), catalogue.profile("tiny")
request = Request(app=app, profile=profile, platform=PLATFORMS["windows-amd64"], catalogue=catalogue, home=drive / "home",
                  cache=drive / "cache", archives=(drive / "ZLUDA-nightly.zip",))
folder = request.installation.environments
said = {{}}


def tree(path):
    return {{str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts}}


def whose(name, **extra):
    env = {{**venv.launch_variables(folder / name, {{}}, {{}}), **extra}}
    done = subprocess.run([str(venv.interpreter(folder / name)), "-c", "import torch; print(torch.whose())"],
                          env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.strip()


for name in ("one", "two"):
    gate.install_gate(folder / name, venv.interpreter(folder / name))
torch = folder / "two" / "Lib" / "site-packages" / "torch"
before = tree(folder / "one"), tree(folder / "two")
try:
    overlays.require_possible(request)
except OverlayError as error:
    said["missing"] = str(error)
os.environ["HIP_PATH"] = str(drive / "sdk") + os.sep
os.environ["PATH"] = os.environ["PATH"] + os.pathsep + "C:\\AMD\\ROCm\\6.4\\bin"
overlays.require_possible(request)
overlays.install_overlays(request, folder / "two", lambda text: None, lambda text: said.setdefault("note", text))
said["without"], said["with"] = whose("one"), whose("two")
env = venv.launch_variables(folder / "two", {{}}, {{}})
said["environment"] = [env["HIP_PATH"], env["ZLUDA_NVRTC_LIB"], "rocm" in env["PATH"].lower()]
said["problems"] = list(preloads.problems(folder / "two", preloads.archives(folder / "two")))
said["kept"] = all(digest == tree(folder / "two").get(path) for path, digest in before[1].items())
said["added"] = sorted(tree(folder / "two").keys() - before[1].keys())
library = preloads.folder_of(folder / "two", "zluda") / "cublas64_11.dll"
library.rename(library.with_suffix(".away"))
said["gone"] = whose("two").splitlines()[0]
atomic_files.remove_tree(folder / "two")
said["undone"] = [(folder / "two").exists(), tree(folder / "one") == before[0]]
(drive / "answer.json").write_text(json.dumps(said), "utf-8")
"""


def _run(*command: str) -> str:
    done = subprocess.run([str(WINE / "enter"), *command], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Standins:
    """Compile the stand-ins."""
    return standins.build(tmp_path_factory.mktemp("standins"), "nt")


@pytest.fixture
def drive(built: Standins) -> Iterator[Path]:
    """Make a folder on the drive C: with a catalogue, two environments that have torch, the SDK and the archive."""
    with tempfile.TemporaryDirectory(prefix="overlay-", dir=WINE / "prefix" / "drive_c") as name:
        folder = Path(name)
        world = miniature.build(folder)
        trust = 'trust-on-first-use = "its vendor publishes no sha256"'
        url = "https://example.invalid/ZLUDA-nightly.zip"
        world.profile.write_text(
            miniature.PROFILE
            + standins.table(url, built, platform="windows-amd64", trust=trust, sdk="C:/no such folder")
        )
        (folder / "ZLUDA-nightly.zip").write_bytes(built.archive)
        for path, data in built.sdk.items():
            (folder / "sdk" / path).parent.mkdir(parents=True)
            (folder / "sdk" / path).write_bytes(data)
        wheel = miniature.wheel(folder / "dist", "torch", "2.7.1", files=built.torch)
        for one in ("one", "two"):
            environment = rf"C:\{folder.name}\home\mini@tiny\environments\{one}"
            _run("uv", "venv", "-q", "-p", r"C:\python\python.exe", environment)
            python = rf"{environment}\Scripts\python.exe"
            _run("uv", "pip", "install", "-q", "--offline", "-p", python, rf"C:\{folder.name}\dist\{wheel.name}")
        yield folder


def test_overlay_is_found_first_and_torchs_own_files_stay(drive: Path, built: Standins) -> None:
    windows = rf"C:\{drive.name}"
    packages = sysconfig.get_path("purelib")
    script = DRIVER.format(installer=f"Z:{ROOT / 'installer'}", packages=f"Z:{packages}", drive=windows)
    (drive / "driver.py").write_text(script)
    _run("python", rf"{windows}\driver.py")
    said = json.loads((drive / "answer.json").read_text())
    two = rf"{windows}\home\mini@tiny\environments\two"
    assert said["missing"] == (
        "the overlay zluda needs the AMD HIP SDK 6.2 or 6.4, which is not found; install it from https://www.amd.com/hip-sdk, and run the same command again\n"
        "  HIP_PATH is not set\n  C:/no such folder, which has no bin/rocblas.dll"
    )
    assert said["note"].startswith("ZLUDA-nightly.zip: its vendor publishes no sha256; the file you gave, sha256 ")
    assert said["without"] == "linked theirs, by name theirs"
    assert said["with"] == "linked ours, by name ours"
    assert said["environment"] == [rf"{windows}\sdk", rf"{two}\Lib\site-packages/torch/lib/nvrtc", False]
    assert said["problems"] == []
    assert (said["kept"], said["added"]) == (True, [r"overlays\preload.json", r"overlays\zluda\cublas64_11.dll"])
    assert said["gone"] == (
        rf"patchlock: cublas64_11.dll of the overlay zluda is not in {two}\overlays\zluda; an antivirus may have taken it; "
        "run `patchlock install mini --profile tiny --reinstall`"
    )
    assert said["undone"] == [False, True]
