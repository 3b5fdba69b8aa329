"""The lock of a Jetson Thor, installed by our own code in an emulated aarch64 Debian with Python 3.12.

`tests/aarch64-root` makes it on a machine that has a python3.12, PATCHLOCK_AARCH64 names it. All wheels are those of the board; the
named sdists and the extension in the app's tree are built there, and the app's own checks run there. What cannot run:

- CUDA has no device there, and the profile's preflight would refuse a machine that is not a Thor: neither is asked.
- The patches are applied here, and the tree is brought there as one commit: LibCST in emulation takes a quarter of an hour.
- MaskGCT and Metis open a model of upstream's tree on import; where the clone lacks it, as a partial one does, they end there.
- Debian 12 stands for Ubuntu 24.04, whose glibc is newer.

It needs 15 GB. What was fetched and built is kept in `root/var/cache/thor`, so that a run that was stopped is gone on with.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from upstream_trees import patched, write

from patchlock.core import uv

pytestmark = [pytest.mark.aarch64, pytest.mark.online, pytest.mark.upstream]

EMULATED = Path(os.environ.get("PATCHLOCK_AARCH64", ""))
PYTHON = "/opt/python3.12/bin/python3.12"
KEPT = "/var/cache/thor"
APP, PROFILE = "amphion", "cuda13-thor-aarch64"
LOCK = ROOT / "lockfiles" / APP / f"{PROFILE}.txt"
DEPENDENCIES = "click packaging tomlkit requests rich platformdirs ruamel.yaml libcst"
WHEELS = r"^([\w.-]+==[^\s+]+) .*· wheel \S+$"

MISNAMED = {"The package `nvidia-cusparselt-cu13` was built for a different platform"}
"""NVIDIA's wheel of 0.8.0 is called manylinux2014_aarch64, and its WHEEL says manylinux2014_sbsa; it is the right one."""


@pytest.fixture
def inside() -> Iterator[Path]:
    """Lay the catalogue, patchlock and the patched app down in the emulated system, and take them away again."""
    if not (EMULATED / "root" / PYTHON[1:]).exists():
        pytest.skip(
            "there is no Python 3.12 in the emulated system; tests/aarch64-root makes it where this machine has one"
        )
    tree = patched(APP, PROFILE)
    folder = EMULATED / "root" / "tmp" / "thor"
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("profiles", "patches", "lockfiles"):
        shutil.copytree(ROOT / part, folder / "catalogue" / part)
    shutil.copytree(ROOT / "installer" / "patchlock", folder / "installer" / "patchlock")
    shutil.copy(ROOT / "tests" / "support" / "emulated_install.py", folder)
    write(folder / "home" / f"{APP}@{PROFILE}" / "source", tree)
    yield folder
    shutil.rmtree(folder)


def _committed(source: Path) -> str:
    """Make a repository of a folder; gives its one commit."""
    git = ["git", "-C", str(source), "-c", "user.name=x", "-c", "user.email=x@example.invalid"]
    for command in (["init", "-q"], ["add", "-f", "."], ["commit", "-qm", "patched"]):
        subprocess.run([*git, *command], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def test_amphion_for_thor_is_installed_from_wheels_and_the_named_builds(inside: Path) -> None:
    commit = _committed(inside / "home" / f"{APP}@{PROFILE}" / "source")
    command = (
        f"mkdir -p {KEPT} && cd /tmp/thor && export UV_CACHE_DIR={KEPT}/uv PYTHONPATH=installer && "
        f"uv venv -q -p {PYTHON} own && uv pip install -q -p own/bin/python {DEPENDENCIES} uv=={uv.version()} && "
        f"PATH={Path(PYTHON).parent}:$PATH own/bin/python emulated_install.py "
        f"{APP} {PROFILE} {PYTHON} {commit} {KEPT}/patchlock"
    )
    log = EMULATED / "thor.log"
    with log.open("w", encoding="utf-8") as told:
        done = subprocess.run([str(EMULATED / "enter"), command], stdout=told, stderr=subprocess.STDOUT, check=False)
    said = log.read_text("utf-8")
    assert done.returncode == 0, said[-3000:]
    _judge(json.loads(said.splitlines()[-1]), inside / "home" / f"{APP}@{PROFILE}" / "source")


def _judge(said: dict[str, Any], source: Path) -> None:
    lines = LOCK.read_text("utf-8")
    wheels = set(re.findall(WHEELS, lines, re.MULTILINE))
    builds = set(re.findall(r"^([\w.-]+)==\S+ .*· sdist$", lines, re.MULTILINE))
    assert len(builds) < len(wheels) / 10
    assert {line.lower() for line in said["freeze"]} >= {pin.lower() for pin in wheels}
    assert {line for line in said["check"] if line.startswith("The package")} == MISNAMED
    assert said["torch"] == "2.11.0+cu130 13.0 12.0"
    assert set(re.findall(r'^name = "([\w-]+)"', said["recorded"], re.MULTILINE)) == builds
    assert [failure for failure in said["failed"] if not _wants_what_the_clone_lacks(failure, source)] == []
    assert said["passed"].keys() >= {"packages", "isolation", "vevo", "dualcodec", "monotonic-align"}
    assert said["passed"]["monotonic-align"] == "alignment: [[1, 0], [1, 0], [0, 1]]"
    assert said["kept"] == []


def _wants_what_the_clone_lacks(failure: str, source: Path) -> bool:
    """Say whether the one import that failed opens a large file of upstream that is not in the clone here."""
    wanted = re.search(r"models/[\w/.-]+\.(?:onnx|txt)", failure)
    return failure.count("import ") == 1 and wanted is not None and not (source / wanted[0]).exists()
