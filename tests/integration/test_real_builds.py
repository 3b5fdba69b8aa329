"""Real builds: a C extension and a Cython one, with what PyPI has, here and in an emulated aarch64 Debian."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled import needs_compiler
from conftest import ROOT, Said
from miniature import World
from sdists import ask

from patchlock import cli
from patchlock.model.platforms import PLATFORMS

pytestmark = pytest.mark.online

EMULATED = Path(os.environ.get("PATCHLOCK_AARCH64", ""))

PYX = """\
cimport cython
from cython.parallel import prange

cpdef int total(int[::1] values) nogil:
    cdef int i, found = 0
    for i in range(values.shape[0]):
        found += values[i]
    return found
"""
SETUP = """\
from distutils.core import setup, Extension
from Cython.Build import cythonize

setup(name="native", ext_modules=cythonize([Extension(name="native.core", sources=["core.pyx"])]))
"""
RULES = """
[[build]]
names = ["webrtcvad"]
why = "it has no wheel at all"
source = "PyPI: the file list of webrtcvad 2.0.10"

[[metadata]]
name = "webrtcvad"
version = "2.0.10"
requires = []
build = ["setuptools<82"]
why = "it has no metadata that says so"
source = "PyPI: webrtcvad 2.0.10 sdist, setup.py"

[[recipe]]
name = "webrtcvad"
environment = { CFLAGS = "-O1" }
needs = ["cc"]
test = ["python", "-c", "import _webrtcvad as v; d = v.create(); v.init(d); print(v.valid_rate_and_frame_length(16000, 160))"]
why = "x"
source = "tests"

[[in-tree]]
id = "native"
folder = "native"
requires = ["setuptools<82", "cython>=3"]
command = ["python", "setup.py", "build_ext", "--inplace"]
products = ["native/core.*"]
needs = ["cc"]
why = "x"
source = "tests"

[[check]]
id = "sums"
kind = "command"
command = ["python", "-c", "import sys, array; sys.path.insert(0, 'native'); from native.core import total; print('sum', total(array.array('i', [40, 2])))"]
prints = "sum 42"
timeout = 120
"""


def _catalogue(world: World, folder: Path, platform: str = "") -> None:
    """Let the app need a C extension and keep a Cython one in its tree; nothing else, and all from PyPI."""
    (world.upstream / "native").mkdir()
    (world.upstream / "native" / "core.pyx").write_text(PYX)
    (world.upstream / "native" / "setup.py").write_text(SETUP)
    text = world.app.read_text()
    text = re.sub(r'(?s)\[\[patch\]\]\nid = "alpha.*?(?=\[\[patch\]\])', "", text)
    world.app.write_text(re.sub(r'(?s)\[\[check\]\].*?timeout = 60\n|\[\[check\]\]\nid = "imports".*?\n\n', "", text))
    (world.upstream / "app.py").write_text('DEVICE = "cuda"\nprint(DEVICE)\n')
    ask(world, b"webrtcvad==2.0.10\n", folder, RULES, platform)


@needs_compiler
def test_real_extensions_are_built_by_pinned_tools_and_only_what_changed_again(
    world: World, face: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    _catalogue(world, tmp_path)
    assert cli.main(["lock", "mini"]) == 0
    done = face("install", "mini")
    assert done.returncode == 0, done.stderr
    assert "sum 42" in done.stdout
    logs = {log.parent.name for log in (tmp_path / "cache" / "builds").glob("*/log.txt")}
    assert len(logs) == 2
    assert face("install", "mini", "--reinstall").returncode == 0
    assert {log.parent.name for log in (tmp_path / "cache" / "builds").glob("*/log.txt")} == logs
    world.app.write_text(world.app.read_text().replace("-O1", "-O2"))
    assert cli.main(["lock", "mini"]) == 0
    assert face("install", "mini").returncode == 0
    assert len({log.parent.name for log in (tmp_path / "cache" / "builds").glob("*/log.txt")} - logs) == 1


@pytest.mark.aarch64
def test_real_extensions_are_built_on_aarch64(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locked here, for there; patchlock itself runs there."""
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    _catalogue(world, tmp_path, PLATFORMS["linux-aarch64"].name)
    text = world.profile.read_text()
    world.profile.write_text(re.sub(r'python = "[0-9.]+"', 'python = "3.11"', text))
    assert cli.main(["lock", "mini"]) == 0
    inside = EMULATED / "root" / "tmp" / "builds"
    shutil.rmtree(inside, ignore_errors=True)
    shutil.copytree(world.catalogue, inside / "catalogue")
    shutil.copytree(ROOT / "installer" / "patchlock", inside / "installer" / "patchlock")
    names = "click packaging tomlkit requests rich platformdirs ruamel.yaml libcst uv==0.13.8"
    said = _enter(
        f"cd /tmp/builds && uv venv -q -p /usr/bin/python3 own && uv pip install -q -p own/bin/python {names} && "
        "export PYTHONPATH=installer PATCHLOCK_HOME=/tmp/builds/home PATCHLOCK_CACHE_DIR=/tmp/builds/cache && "
        "export PATCHLOCK_CATALOGUE=/tmp/builds/catalogue && own/bin/python -m patchlock install mini",
    )
    assert "sum 42" in said
    found = [path.name for path in (inside / "home").rglob("*.so")]
    assert {name for name in found if "aarch64" in name} >= {"core.cpython-311-aarch64-linux-gnu.so"}


def _enter(command: str) -> str:
    done = subprocess.run([str(EMULATED / "enter"), command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
