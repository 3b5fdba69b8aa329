"""The lock of a Jetson Thor, installed by our own code in an emulated aarch64 Debian with Python 3.12.

`tests/aarch64-root` makes it on a machine that has a python3.12, PATCHLOCK_AARCH64 names it. All wheels are those of the board; the
named sdists are built there. What cannot run: git and the patches are left out, as LibCST in emulation takes a quarter of an hour;
nothing is asked of CUDA, which has no device there; Debian 12 stands for Ubuntu 24.04, whose glibc is newer. Needs 15 GB.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

from patchlock import uv

pytestmark = [pytest.mark.aarch64, pytest.mark.online]

EMULATED = Path(os.environ.get("PATCHLOCK_AARCH64", ""))
PYTHON = "/opt/python3.12/bin/python3.12"
LOCK = ROOT / "lockfiles" / "amphion" / "cuda13-thor-aarch64.txt"
DEPENDENCIES = "click packaging tomlkit requests rich platformdirs ruamel.yaml libcst"
WHEELS = r"^([\w.-]+==[^\s+]+) .*· wheel \S+$"
INSTALL = """
import contextlib, json, subprocess, sys
from pathlib import Path
from patchlock import environments, filling, mutex
from patchlock.catalogue import Catalogue
from patchlock.gathering import Request, read_lock
from patchlock.platforms import PLATFORMS

class Progress:
    def stage(self, name): return contextlib.nullcontext()
    def say(self, text): print(text, flush=True)
    def note(self, text): print(text, flush=True)

root = Path("/tmp/thor")
catalogue = Catalogue(root=root / "catalogue")
request = Request(app=catalogue.app("amphion"), profile=catalogue.profile("cuda13-thor-aarch64"), catalogue=catalogue,
                  platform=PLATFORMS["linux-aarch64"], home=root / "home", cache=root / "cache")
lock, _ = read_lock(request)
folder = request.installation.environments / "one"
request.installation.folder.mkdir(parents=True)
with mutex.hold(request.installation.folder / "lock", wait=0) as held:
    environments.create(folder, sys.argv[1], lock=held)
    filling.fill(request, lock, folder, Progress(), held).settle()
python = str(environments.interpreter(folder))

def ask(*arguments):
    return subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.strip()

COMPUTES = "import torch, torchaudio; print(torch.__version__, torch.version.cuda, (torch.ones(2, 3) @ torch.ones(3, 2)).sum().item())"
print(json.dumps({
    "freeze": ask("uv", "pip", "freeze", "-p", python).splitlines(),
    "check": ask("uv", "pip", "check", "-p", python).splitlines()[-1],
    "torch": ask(python, "-c", COMPUTES).splitlines()[-1],
    "built": ask(python, "-c", "import encodec, jieba, langid, pyworld, whisper; print('built')").splitlines()[-1],
    "recorded": (folder / "builds.toml").read_text("utf-8"),
}))
"""


@pytest.fixture
def inside() -> Iterator[Path]:
    """Lay the catalogue and patchlock down in the emulated system, and take everything away again."""
    if not (EMULATED / "root" / PYTHON[1:]).exists():
        pytest.skip(
            "there is no Python 3.12 in the emulated system; tests/aarch64-root makes it where this machine has one"
        )
    folder = EMULATED / "root" / "tmp" / "thor"
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("profiles", "patches", "lockfiles"):
        shutil.copytree(ROOT / part, folder / "catalogue" / part)
    shutil.copytree(ROOT / "installer" / "patchlock", folder / "installer" / "patchlock")
    (folder / "install.py").write_text(INSTALL, encoding="utf-8")
    yield folder
    shutil.rmtree(folder)


@pytest.mark.usefixtures("inside")
def test_amphion_for_thor_is_installed_from_wheels_and_the_named_builds() -> None:
    command = (
        f"cd /tmp/thor && export UV_CACHE_DIR=/tmp/thor/uv PYTHONPATH=installer && uv venv -q -p {PYTHON} own && "
        f"uv pip install -q -p own/bin/python {DEPENDENCIES} uv=={uv.version()} && "
        f"PATH={Path(PYTHON).parent}:$PATH own/bin/python install.py {PYTHON}"
    )
    done = subprocess.run([str(EMULATED / "enter"), command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    text = LOCK.read_text("utf-8")
    wheels = set(re.findall(WHEELS, text, re.MULTILINE))
    builds = set(re.findall(r"^([\w.-]+)==\S+ .*· sdist$", text, re.MULTILINE))
    assert len(builds) < 10 < len(wheels)
    assert {line.lower() for line in said["freeze"]} >= {pin.lower() for pin in wheels}
    assert "compatible" in said["check"]
    assert said["torch"] == "2.11.0+cu130 13.0 12.0"
    assert said["built"] == "built"
    assert set(re.findall(r'^name = "([\w-]+)"', said["recorded"], re.MULTILINE)) >= builds
