"""The demo from the real package index: impossible without our patches, and a verified app with them."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import wave
from pathlib import Path

import pytest
from conftest import ROOT, Patchlock
from miniature import this_platform

pytestmark = pytest.mark.online

UPSTREAM = ROOT / "patches" / "demo" / "upstream"


def _without(patch: str, folder: Path) -> Path:
    """Copy the catalogue, with one patch of the demo taken out."""
    for name in ("profiles", "patches", "lockfiles"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "patchlock.txt"))
    file = folder / "patches" / "demo" / "app.toml"
    text = file.read_text()
    start = text.index(f'[[patch]]\nid = "{patch}"')
    end = min(at for word in ("\n[[patch]]\n", "\n# --- ") if (at := text.find(word, start)) != -1)
    file.write_text(text[:start] + text[end:])
    return folder


@pytest.mark.parametrize(
    ("patch", "clause"),
    [
        ("av-with-wheels", "av==11.0.0"),
        ("huggingface-hub-that-resolves", "huggingface-hub==0.16.4"),
        ("onnxruntime-for-cpu", "onnxruntime-gpu"),
    ],
)
def test_it_cannot_be_locked_without(patch: str, clause: str, patchlock: Patchlock, tmp_path: Path) -> None:
    catalogue = _without(patch, tmp_path / "catalogue")
    done = patchlock("lock", "demo", "--platform", "macos-arm64", "--catalogue", str(catalogue), "--json")
    pairs = {pair["pair"]: pair for pair in json.loads(done.stdout)["data"]["pairs"]}
    pair = pairs["demo × cpu × macos-arm64"]  # onnxruntime-gpu has wheels for other systems, which then compute nothing
    assert (pair["state"], pair["code"]) == ("failed", "unsatisfiable")
    assert clause in pair["detail"]


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ("deepspeed-optional", "ModuleNotFoundError: No module named 'deepspeed'"),
        ("device-of-the-command-line", "no CUDA device: asked for CUDAExecutionProvider"),
        ("cpu-by-default", "no CUDA device: asked for CUDAExecutionProvider"),
    ],
)
def test_it_cannot_be_started_without(patch: str, message: str, patchlock: Patchlock, tmp_path: Path) -> None:
    catalogue = _without(patch, tmp_path / "catalogue")
    done = patchlock("install", "demo", "--profile", "cpu", "--catalogue", str(catalogue))
    assert done.returncode == 1
    assert "error[verify]: " in done.stderr
    place = tmp_path / "installed" / "demo@cpu"
    assert not (place / "current").exists()
    python = next((place / "environments").glob("*/bin/python"))
    done = subprocess.run([python, "app.py"], cwd=place / "source", capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert message in done.stderr


def test_without_the_pip_patch_the_gate_holds(patchlock: Patchlock, tmp_path: Path) -> None:
    catalogue = _without("no-pip-at-start", tmp_path / "catalogue")
    done = patchlock("install", "demo", "--profile", "cpu", "--catalogue", str(catalogue))
    assert done.returncode == 0, done.stderr
    place = tmp_path / "installed" / "demo@cpu"
    python = next((place / "environments").glob("*/bin/python"))
    bare = subprocess.run([python, "app.py"], cwd=place / "source", capture_output=True, text=True, check=False)
    assert "No module named pip" in bare.stderr


def test_it_cannot_be_started_with_a_newer_pydantic(patchlock: Patchlock, tmp_path: Path) -> None:
    catalogue = _without("gradio-client-boolean-schema", tmp_path / "catalogue")
    assert patchlock("lock", "demo", "--platform", this_platform().name, "--catalogue", str(catalogue)).returncode == 0
    done = patchlock("install", "demo", "--profile", "cpu", "--catalogue", str(catalogue))
    assert done.returncode == 1
    assert "TypeError: argument of type 'bool' is not " in done.stderr


def test_installed_demo(patchlock: Patchlock) -> None:
    """One installation for all that is looked at in it."""
    done = patchlock("install", "demo", "--profile", "cpu", "--json")
    assert done.returncode == 0, done.stdout
    installed = Path(json.loads(done.stdout)["data"]["folder"]) / "source"
    _requirements_keep_bom_line_endings_and_comments(installed)
    _works_with_the_python_of_the_lock_only(installed)
    _runs_and_says_where_it_computed(installed, patchlock)
    _training_says_what_is_missing(patchlock)
    _leaves_no_telemetry(Path(os.environ["HOME"]))


def _runs_and_says_where_it_computed(installed: Path, patchlock: Patchlock) -> None:
    done = patchlock("run", "demo", "--", "--text", "hello")
    assert done.returncode == 0, done.stderr
    assert "computed on: CPUExecutionProvider (" in done.stdout
    with wave.open(str(installed / "outputs" / "tonewheel.wav")) as file:
        count = file.getnframes()
        samples = struct.unpack(f"<{count}h", file.readframes(count))
    assert max(map(abs, samples)) > 3000
    picture = (installed / "outputs" / "tonewheel.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n")
    width, height = struct.unpack(">II", picture[16:24])
    assert width >= 600
    assert height >= 300


def _leaves_no_telemetry(home: Path) -> None:
    """ONNX Runtime keeps a device id and events there, and sends them."""
    assert not [str(path) for path in home.rglob("*") if "onnxruntime" in path.name or path.name == "Microsoft"]


def _requirements_keep_bom_line_endings_and_comments(installed: Path) -> None:
    before = (UPSTREAM / "requirements.txt").read_bytes()
    after = (installed / "requirements.txt").read_bytes()
    assert after.startswith(b"\xef\xbb\xbf")
    assert after.count(b"\r\n") == before.count(b"\r\n") == after.count(b"\n")
    assert not after.endswith(b"\n")
    changed = [(old, new) for old, new in zip(before.split(b"\r\n"), after.split(b"\r\n"), strict=True) if old != new]
    assert [new for _, new in changed] == [
        b"onnxruntime<2,>=1.16.3",
        b"av!=14.4.0,<19,>=12  # the same as faster-whisper 1.0",
        b"huggingface-hub<1,>=0.19.3",
        b"pydantic<2.11,>=2",
    ]


def _training_says_what_is_missing(patchlock: Patchlock) -> None:
    done = patchlock("run", "demo", "--", "--train", "config.json")
    assert done.returncode != 0
    assert "ImportError: deepspeed is not installed here" in done.stderr or "No module named 'torch'" in done.stderr


def _works_with_the_python_of_the_lock_only(installed: Path) -> None:
    config = next((installed.parent / "environments").glob("*/pyvenv.cfg")).read_text()
    assert "version_info = 3.11." in config
    assert sys.platform == "win32" or "include-system-site-packages = false" in config


def test_committed_locks_are_what_lock_gives(patchlock: Patchlock, tmp_path: Path) -> None:
    for name in ("profiles", "patches"):
        shutil.copytree(ROOT / name, tmp_path / "catalogue" / name, ignore=shutil.ignore_patterns("__pycache__"))
    committed = sorted((ROOT / "lockfiles" / "demo").iterdir())
    (as_of,) = {re.findall(r'^# as-of = "(.+)"$', path.read_text(), re.MULTILINE)[0] for path in committed}
    done = patchlock("lock", "demo", "--as-of", as_of, "--catalogue", str(tmp_path / "catalogue"))
    assert done.returncode == 0, done.stdout
    for path in committed:
        assert (tmp_path / "catalogue" / "lockfiles" / "demo" / path.name).read_bytes() == path.read_bytes()
