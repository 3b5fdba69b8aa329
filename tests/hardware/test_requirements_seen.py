"""What is looked for on a machine: fake programs on PATH, trees of files as other machines have them."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import host_trees
import pytest
from packaging.version import Version

from patchlock.core import shared_libraries
from patchlock.hardware import interpreters, resource_detection
from patchlock.hardware.preflight import NOTHING, DetectedResource, Interpreter, NoPython, PythonDownload
from patchlock.hardware.system import python
from patchlock.model.needs import Resource
from patchlock.model.platforms import PLATFORMS


def _resource(kind: str, *names: str, **changes: Any) -> Resource:
    values: dict[str, Any] = {
        "name": "it",
        "kind": kind,
        "title": "it",
        "source": "s",
        "find": {"any": names},
        "writable": False,
        "arguments": (),
        "pattern": "",
        "packages": {},
        "commands": {},
    }
    return Resource(**(values | changes))


def _look(resource: Resource, root: Path = Path("/"), system: str = "linux") -> DetectedResource:
    return resource_detection.detect(resource, system, root=root, ask_version=True)


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder whose programs are the only ones on PATH, but for the shell."""
    folder = tmp_path / "bin ä"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def _program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


ASKED = {"arguments": ("-version",), "pattern": r"it version n?(\d+(?:\.\d+)*)"}


@pytest.mark.parametrize(
    ("script", "version", "trouble"),
    [
        pytest.param("echo it version n7.1-gentoo", "7.1", "", id="stdout"),
        pytest.param("echo it version 5.1.9 >&2", "5.1.9", "", id="stderr"),
        pytest.param("echo hello", "", "", id="says-something-else"),
        pytest.param("echo libx.so: cannot open >&2; exit 127", "", "libx.so: cannot open", id="broken"),
        pytest.param("exit 3", "", "it failed with exit code 3", id="broken-and-silent"),
    ],
)
def test_program_is_asked_for_its_version(bin_folder: Path, script: str, version: str, trouble: str) -> None:
    _program(bin_folder, "it", script)
    expected = DetectedResource(where=str(bin_folder / "it"), version=version, trouble=trouble)
    assert _look(_resource("program", "other", "it", **ASKED)) == expected


def test_program_whose_version_does_not_matter_is_not_started(bin_folder: Path) -> None:
    _program(bin_folder, "it", 'touch "$0.ran"')
    resource = _resource("program", "it", **ASKED)
    assert resource_detection.detect(resource, "linux", ask_version=False).where
    assert not (bin_folder / "it.ran").exists()


def test_program_that_never_answers_is_given_up(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_detection, "_PATIENCE", 0.2)
    _program(bin_folder, "it", "exec /bin/sleep 30")
    assert _look(_resource("program", "it", **ASKED)).trouble == "it did not end within 0.2 seconds"


def test_program_may_be_named_by_its_path_and_variables(
    tmp_path: Path, bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLKIT", "/opt/cuda")
    (tmp_path / "opt/cuda/bin").mkdir(parents=True)
    _program(tmp_path / "opt/cuda/bin", "nvcc", "")
    (tmp_path / "opt/cuda/bin/readme").write_text("")
    found = tmp_path / "opt/cuda/bin/nvcc"
    assert _look(_resource("program", "nvcc", "$TOOLKIT/bin/nv*"), tmp_path).where == str(found)
    assert _look(_resource("program", "nvcc", "/opt/*/bin/readme"), tmp_path) == NOTHING
    assert bin_folder.is_dir()


# --- libraries --------------------------------------------------------------------------------------------------------


def test_loader_s_cache_is_read_as_ldconfig_reads_it() -> None:
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:/usr/bin")
    if ldconfig is None or not Path("/etc/ld.so.cache").is_file():
        pytest.skip("this system has no cache of glibc's loader")
    listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=True).stdout
    mark = {"x86_64": "libc6,x86-64", "aarch64": "libc6,AArch64"}[os.uname().machine]
    rows = re.findall(r"^\t(\S+) \(([^)]*)\) => (\S+)$", listed, re.MULTILINE)
    expected: dict[str, str] = {}
    for name, flags, path in rows:
        if flags.startswith(mark):
            expected.setdefault(name, path)
    assert shared_libraries.loader_cache(Path("/etc/ld.so.cache"), os.uname().machine) == expected
    assert len(expected) > 3


def test_library_of_another_processor_is_none_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    rows = [(0x0003, "liba.so.1", "/lib32/liba.so.1"), (0x0303, "libb.so.1", "/usr/lib/wsl/lib/libb.so.1")]
    host_trees.write(tmp_path, {"etc/ld.so.cache": host_trees.loader_cache(rows)})
    assert _look(_resource("library", "liba.so.1"), tmp_path) == NOTHING
    assert _look(_resource("library", "liba.so.1", "libb.so.1"), tmp_path).where == "/usr/lib/wsl/lib/libb.so.1"


@pytest.mark.parametrize("length", [0, 20, 24, 50, 80, 100])
def test_loader_s_cache_that_is_cut_off_says_what_is_left(tmp_path: Path, length: int) -> None:
    whole = host_trees.loader_cache([(0x0303, "liba.so.1", "/liba.so.1"), (0x0303, "libb.so.1", "/libb.so.1")])
    host_trees.write(tmp_path, {"cut": whole[:length], "whole": whole})
    assert shared_libraries.loader_cache(tmp_path / "cut", "x86_64") == {}
    assert len(shared_libraries.loader_cache(tmp_path / "whole", "x86_64")) == 2


def test_user_s_library_comes_before_the_system_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "usr/lib/liba.so.1").write_bytes(b"")
    assert _look(_resource("library", "liba.so.1"), tmp_path).where == str(tmp_path / "usr/lib/liba.so.1")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/liba.so.1").write_bytes(b"")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere{os.pathsep}{tmp_path / 'own'}")
    assert _look(_resource("library", "liba.so.1"), tmp_path).where == str(tmp_path / "own/liba.so.1")


def test_library_of_windows_and_of_macos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("windows/System32/amdhip64_7.dll", "opt/homebrew/lib/libespeak-ng.dylib", "path/on.dll"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(b"")
    monkeypatch.setenv("SYSTEMROOT", str(tmp_path / "windows"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    resource = _resource("library", "amdhip64_7.dll")
    assert _look(resource, system="windows").where.endswith("amdhip64_7.dll")
    assert _look(_resource("library", "on.dll"), system="windows").where.endswith("on.dll")
    assert _look(resource, tmp_path, system="macos") == NOTHING
    assert _look(_resource("library", "libespeak-ng.dylib"), tmp_path, system="macos").where


# --- files, variables -------------------------------------------------------------------------------------------------


def test_file_is_found_by_a_glob_and_named_as_on_the_machine(tmp_path: Path) -> None:
    (tmp_path / "dev/dri").mkdir(parents=True)
    (tmp_path / "dev/dri/renderD128").write_bytes(b"")
    assert _look(_resource("file", "/dev/dri/renderD*"), tmp_path) == DetectedResource(where="/dev/dri/renderD128")
    assert _look(_resource("file", "/dev/kfd"), tmp_path) == NOTHING


def test_device_that_this_user_may_not_open_names_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import grp

    (tmp_path / "kfd").write_bytes(b"")
    (tmp_path / "kfd").chmod(0o660)
    monkeypatch.setattr(resource_detection.os, "access", lambda _path, mode: mode == os.R_OK)
    monkeypatch.setattr(grp, "getgrgid", lambda _: grp.struct_group(("render", "x", 992, [])))
    found = _look(_resource("file", "/kfd", writable=True), tmp_path)
    assert found == DetectedResource(where="/kfd", trouble="you may not open it", group="render")
    assert _look(_resource("file", "/kfd"), tmp_path) == DetectedResource(where="/kfd")


def test_variable_must_name_something_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _look(_resource("variable", "HIP_PATH")) == NOTHING
    monkeypatch.setenv("HIP_PATH", str(tmp_path))
    assert _look(_resource("variable", "HIP_PATH")) == DetectedResource(where=f"HIP_PATH={tmp_path}")
    monkeypatch.setenv("HIP_PATH", f"{tmp_path}/6.2")
    assert _look(_resource("variable", "HIP_PATH")).trouble == "what it names does not exist"


# --- python -----------------------------------------------------------------------------------------------------------

PLATFORM = PLATFORMS[f"linux-{os.uname().machine}"]


@pytest.fixture
def no_pythons(tmp_path: Path, bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a PATH without any Python, and no managed ones."""
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "pythons"))
    return bin_folder


OWN = Version(f"{sys.version_info.major}.{sys.version_info.minor}")
OTHER = Version("3.12" if str(OWN) != "3.12" else "3.13")


def test_python_that_runs_us_is_taken_without_a_search(no_pythons: Path) -> None:
    _program(no_pythons, f"python{OWN}", "exit 1")
    found = python(interpreters.request(OWN, PLATFORM))
    assert isinstance(found, Interpreter)
    assert Path(found.path).resolve() == Path(sys.executable).resolve()
    assert Path(found.path).is_relative_to(sys.base_prefix)


def test_python_of_conda_that_runs_us_is_not_taken(
    no_pythons: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conda = tmp_path / "conda"
    (conda / "conda-meta").mkdir(parents=True)
    (conda / "bin").mkdir()
    (conda / "bin" / f"python{OWN}").symlink_to(Path(sys.executable).resolve())
    monkeypatch.setattr(sys, "base_prefix", str(conda))
    assert no_pythons.is_dir()
    assert isinstance(python(interpreters.request(OWN, PLATFORM)), NoPython)


def test_python_is_found_where_its_path_has_spaces_and_other_letters(
    no_pythons: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))  # the one that runs us is not there
    (no_pythons / f"python{OWN}").symlink_to(Path(sys.executable).resolve())
    found = python(interpreters.request(OWN, PLATFORM))
    assert found == Interpreter(path=str(no_pythons / f"python{OWN}"))


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        pytest.param({}, "its download is switched off (UV_PYTHON_DOWNLOADS=never)", id="never"),
        pytest.param({"UV_PYTHON_DOWNLOADS": "automatic"}, "the network is switched off (UV_OFFLINE)", id="offline"),
    ],
)
def test_python_that_may_not_be_fetched_says_why(
    no_pythons: Path, monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str], why: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = python(interpreters.request(OTHER, PLATFORM))
    assert isinstance(found, NoPython)
    assert found.why == why
    assert found.command.endswith(f" python install {OTHER}")
    assert "-u UV_OFFLINE" in found.command
    assert list(no_pythons.iterdir()) == []


def test_python_that_uv_does_not_know_cannot_be_fetched(no_pythons: Path) -> None:
    assert no_pythons.is_dir()
    found = python("cpython-3.99-linux-x86_64-gnu")
    assert isinstance(found, NoPython)
    assert found.why == "uv knows none that it could fetch"


@pytest.mark.parametrize("mirror", ["", "https://mirror.test/pythons"])
def test_python_that_will_be_fetched_is_said_with_version_and_place(
    no_pythons: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mirror: str
) -> None:
    assert no_pythons.is_dir()
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "automatic")
    monkeypatch.delenv("UV_OFFLINE")
    if mirror:
        monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", mirror)
    found = python(interpreters.request(OTHER, PLATFORM))
    assert isinstance(found, PythonDownload)
    assert found.version.startswith(f"{OTHER}.")
    assert found.folder == str(tmp_path / "pythons")
    assert found.host == "mirror.test" if mirror else "." in found.host
    assert not (tmp_path / "pythons").exists()


def test_interpreter_that_cannot_be_asked_is_told_in_its_words(no_pythons: Path) -> None:
    _program(no_pythons, f"python{OTHER}", "echo 'pyenv: python: command not found' >&2; exit 127")
    found = python(interpreters.request(OTHER, PLATFORM))
    assert isinstance(found, NoPython)
    assert "asking for it failed" in found.why
    assert "pyenv: python: command not found" in found.why
