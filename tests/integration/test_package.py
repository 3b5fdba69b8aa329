"""The wheel carries the catalogue, so that patchlock works outside a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import uv
from conftest import ROOT


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """Build the wheel from the checkout."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next((tmp_path / "dist").glob("*.whl"))


def test_wheel_has_every_file_of_the_catalogue_byte_for_byte(built: Path) -> None:
    with zipfile.ZipFile(built) as archive:
        names = set(archive.namelist())
        for folder in ("profiles", "patches", "lockfiles"):
            for path in (p for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts):
                name = f"patchlock/_catalogue/{path.relative_to(ROOT).as_posix()}"
                assert archive.read(name) == path.read_bytes()
                names.discard(name)
    assert not [name for name in names if name.startswith("patchlock/_catalogue/")]
    assert "patchlock/verify/_children/onnx_session.py" in names


@pytest.mark.online
def test_installed_from_the_wheel_it_plans_the_demo_anywhere(built: Path, tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    venv = tmp_path / "venv"
    run = lambda *words: subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)  # noqa: E731
    assert run(uv.find_uv_bin(), "venv", "-q", "--python", sys.executable, str(venv)).returncode == 0
    lock = str(ROOT / "lockfiles" / "patchlock.txt")
    python = str(next(venv.glob("[bS]*/python*")))
    done = run(uv.find_uv_bin(), "pip", "sync", "-q", "--require-hashes", "--python", python, lock)
    assert done.returncode == 0, done.stderr
    done = run(uv.find_uv_bin(), "pip", "install", "-q", "--no-deps", "--offline", "--python", python, str(built))
    assert done.returncode == 0, done.stderr
    done = run(str(Path(python).parent / "patchlock"), "plan", "demo", "--profile", "cpu")
    assert done.returncode == 0, done.stderr
    assert "-onnxruntime-gpu==1.16.3" in done.stdout
