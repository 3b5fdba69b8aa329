"""Asking a build backend, which only `--run-hooks` does: what it says is read, and an archive stays in its folder."""

from __future__ import annotations

import io
import shlex
import sys
import tarfile
import venv
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World
from sdists import info, maker, offer, sdist

from patchlock.core import uv
from patchlock.environments.builds import hooks
from patchlock.environments.venv import interpreter
from patchlock.model.errors import ProgramMissingError, SdistError

ASKS = """
import os
def get_requires_for_build_wheel(config_settings=None):
    open({mark!r}, "w").write(str(sorted(os.environ)))
    return ["maker"]
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    place = os.path.join(folder, "delta-1.0.dist-info")
    os.mkdir(place)
    with open(os.path.join(place, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\\nName: delta\\nVersion: 1.0\\n")
    return "delta-1.0.dist-info"
"""


@pytest.fixture
def asking(world: World, tmp_path: Path) -> World:
    """An index with an sdist whose own backend asks for `maker` when it runs."""
    system = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    system += '[project]\nname = "delta"\nversion = "1.0"\ndependencies = ["beta"]\n'
    backend = ASKS.format(mark=str(tmp_path / "RAN"))
    files = {"PKG-INFO": info("delta"), "pyproject.toml": system, "backend.py": backend}
    offer(world, maker(world.wheels), sdist(world.wheels, "delta", "1.0", files))
    return world


def test_table_is_printed_without_running_anything(asking: World, patchlock: Patchlock, tmp_path: Path) -> None:
    done = patchlock("sdist", "Delta", "1.0")
    assert done.stdout.splitlines() == [
        "[[metadata]]",
        'name = "delta"',
        'version = "1.0"',
        'requires = ["beta"]',
        "build = []",
        'why = "there is no wheel"',
        'source = "PyPI: delta 1.0 sdist, pyproject.toml"',
        "# its build backend backend is its own code: `patchlock sdist delta 1.0 --run-hooks` asks it",
    ]
    assert not (tmp_path / "RAN").exists()


def test_backend_is_asked_only_when_that_is_said(asking: World, patchlock: Patchlock, tmp_path: Path) -> None:
    done = patchlock("sdist", "delta", "1.0", "--run-hooks", env={"SECRET_TOKEN": "x"})
    assert 'build = ["maker"]' in done.stdout.splitlines(), done.stderr
    assert "asks it" not in done.stdout
    assert "SECRET_TOKEN" not in (tmp_path / "RAN").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("sdist", "nowhere", "1.0"), "error[download]: the index has no sdist of nowhere 1.0 (the package index); "),
        (("sdist", "delta", "one"), 'error[usage]: "one" is not a version; write `patchlock sdist jieba 0.42.1`'),
    ],
)
def test_sdist_that_is_not_there(asking: World, patchlock: Patchlock, words: tuple[str, ...], sentence: str) -> None:
    done = patchlock(*words, env={"UV_OFFLINE": "0"})
    assert done.returncode in {1, 2}
    assert done.stderr.startswith(sentence)


def test_missing_pip_tools_is_installed_with_the_uv_that_came_with_patchlock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "empty", symlinks=True)
    monkeypatch.setattr(sys, "executable", str(interpreter(tmp_path / "empty")))
    command = shlex.join([str(uv.find()), "pip", "install", "--python", sys.executable, "pip-tools"])
    with pytest.raises(ProgramMissingError) as caught:
        hooks.get_build_requirements(sdist(tmp_path, "delta", "1.0", {"setup.py": ""}))
    assert caught.value.remedy == f"install it: `{command}`"


def test_archive_that_leaves_its_folder_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "x-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("x-1.0/setup.py", "x-1.0/../../escaped"):
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(SdistError) as caught:
        hooks.get_build_requirements(path)
    assert caught.value.what.endswith("leaves the folder")
    assert not list(tmp_path.parent.glob("**/escaped"))


def test_file_that_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "x-1.0.tar.gz").write_bytes(b"no archive")
    with pytest.raises(SdistError, match="is not an sdist that is built: it cannot be read"):
        hooks.get_build_requirements(tmp_path / "x-1.0.tar.gz")
