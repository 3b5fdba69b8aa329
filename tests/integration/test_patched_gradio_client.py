"""The real gradio-client 1.3.0, locked and installed as we patch it, beside a plain one from the same cache of uv."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import miniature
import pytest
import uv
from conftest import ROOT, Patchlock

EXCLUDED = ("fsspec", "httpx", "huggingface-hub", "packaging", "typing-extensions", "websockets")
WANTED = """
[[distribution]]
name = "gradio-client"
why = "boolean schemas"
source = "tests"
""" + "".join(f'\n[[exclude]]\nname = "{name}"\nwhy = "small"\nsource = "tests"\n' for name in EXCLUDED)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> miniature.World:
    """Make an app that asks for gradio-client 1.3.0 and nothing else."""
    made = miniature.build(tmp_path / "world")
    shutil.copytree(ROOT / "patches" / "distributions", made.catalogue / "patches" / "distributions")
    (made.upstream / "requirements.txt").write_bytes(b"gradio-client==1.3.0\n")
    (made.upstream / "app.py").write_bytes(b'print("computed on cpu")\n')
    text = made.app.read_text()
    text = text[: text.index("[[patch]]")] + text[text.index('[[check]]\nid = "says-where"') :]
    made.app.write_text(text + WANTED)
    made.name_commit(tmp_path)
    monkeypatch.setenv("PATCHLOCK_CATALOGUE", str(made.catalogue))
    monkeypatch.setenv("UV_LINK_MODE", "hardlink")
    return made


def _hashes(folder: Path) -> dict[str, str]:
    (packages,) = folder.glob("lib/python*/site-packages/gradio_client")
    return {
        str(path.relative_to(packages)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in packages.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def _plain(folder: Path) -> dict[str, str]:
    subprocess.run([uv.find_uv_bin(), "venv", "-q", str(folder)], check=True)
    install = [uv.find_uv_bin(), "pip", "install", "-q", "--no-deps", "--python", str(folder), "gradio-client==1.3.0"]
    subprocess.run(install, check=True)
    return _hashes(folder)


@pytest.mark.online
def test_patched_and_plain_gradio_client_do_not_see_each_other(
    world: miniature.World, patchlock: Patchlock, tmp_path: Path
) -> None:
    before = _plain(tmp_path / "before")
    assert patchlock("lock", "mini", "--as-of", "none", "--platform", miniature.this_platform().name).returncode == 0
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    (generation,) = (tmp_path / "installed" / "mini@tiny" / "environments").iterdir()
    patched = _hashes(generation)
    assert {name for name in before if patched[name] != before[name]} == {"utils.py"}
    assert patched.keys() == before.keys()
    assert _plain(tmp_path / "after") == _hashes(tmp_path / "before") == before
