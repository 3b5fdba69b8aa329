"""Folders of a Windows machine, made on the spot: drivers' libraries, toolkits and the user's site folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchlock.core import disk_space
from patchlock.hardware._windows import system


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HIP_PATH", "CUDA_PATH", "PROGRAMFILES", "PYTHONUSERBASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PROGRAMW6432", str(tmp_path))
    return tmp_path


def _toolkits(programs: Path, *folders: str) -> dict[str, str]:
    for folder in folders:
        (programs / folder).mkdir(parents=True)
    return system.toolkits()


def test_no_toolkit_is_none(programs: Path) -> None:
    assert _toolkits(programs) == {}


def test_newest_toolkits_are_told(programs: Path) -> None:
    cuda = "NVIDIA GPU Computing Toolkit/CUDA"
    found = _toolkits(programs, "AMD/ROCm/5.7", "AMD/ROCm/6.4", f"{cuda}/v12.4", f"{cuda}/v13.0")
    assert found == {"hip-sdk": "6.4", "cuda-toolkit": "13.0"}


def test_toolkit_that_a_variable_names_counts_if_it_is_there(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIP_PATH", str(programs / "AMD" / "ROCm" / "5.7"))
    assert _toolkits(programs, "AMD/ROCm/6.4") == {"hip-sdk": "6.4"}
    assert _toolkits(programs, "AMD/ROCm/5.7") == {"hip-sdk": "5.7"}


@pytest.mark.parametrize(
    ("written", "version"),
    [
        (b'{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}', "12.4.1"),
        (b'{"cuda": {"version": 12}}', "12.4"),
        (b'{"cuda"', "12.4"),
        (b"\xff\xfe\x00", "12.4"),
        (b"[" * 100_000, "12.4"),
        (b"null", "12.4"),
    ],
    ids=["version", "number", "cut", "binary", "deep", "null"],
)
def test_cuda_toolkit_writes_its_version_into_a_file(
    programs: Path, monkeypatch: pytest.MonkeyPatch, written: bytes, version: str
) -> None:
    folder = programs / "CUDA" / "v12.4"
    folder.mkdir(parents=True)
    (folder / "version.json").write_bytes(written)
    monkeypatch.setenv("CUDA_PATH", str(folder))
    assert system.toolkits() == {"cuda-toolkit": version}


def test_what_shadows_an_environment_is_told_of_every_python(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUSERBASE", str(programs))
    for folder in ("Python310/site-packages/torch-2.4.1.dist-info", "Python312/site-packages/numpy-2.1.dist-info"):
        (programs / folder).mkdir(parents=True)
    (programs / "Python312/site-packages/requests-2.0.dist-info").mkdir()
    (programs / "Scripts").mkdir()
    assert system.user_site() == "numpy,torch"


def test_libraries_are_those_of_the_given_folder(tmp_path: Path) -> None:
    (tmp_path / "nvcuda.dll").touch()
    (tmp_path / "other.dll").touch()
    (tmp_path / "nvml.dll").mkdir()
    assert system.libraries(tmp_path) == {"nvcuda.dll": str(tmp_path / "nvcuda.dll")}


def test_room_is_that_of_the_nearest_folder_that_is_there(tmp_path: Path) -> None:
    assert disk_space.free(tmp_path / "not" / "there") > 0
