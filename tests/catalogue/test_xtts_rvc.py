"""What xtts-webui's helper says of RVC, run as it is written, without the libraries that it imports for other things."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path

import pytest
from conftest import ROOT

from patchlock.catalogue.reader import Catalogue
from patchlock.patches.ops._diffs import AddFile

APP = Catalogue(root=ROOT).app("xtts-webui")
POWERSHELL = ["powershell", "-NoProfile", "-ExecutionPolicy", "Bypass", "-File"]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Run the helper."""
    for name in ("compute_device", "ctranslate2", "torch", "loguru"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setattr(sys.modules["loguru"], "logger", None, raising=False)
    (op,) = (one.op for one in APP.patches if one.id == "machine-helper" and isinstance(one.op, AddFile))
    module = types.ModuleType("machine")
    exec(compile(op.content, "machine.py", "exec"), module.__dict__)
    return module


def test_rvc_is_there_if_its_launcher_is(
    machine: types.ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (variable,) = APP.launch.companion_apps
    monkeypatch.delenv(variable, raising=False)
    assert not machine.has_rvc()
    monkeypatch.setenv(variable, str(tmp_path / "run"))
    assert not machine.has_rvc()
    (tmp_path / "run").touch()
    assert machine.has_rvc()
    assert f"patchlock install {APP.launch.companion_apps[variable]}" in machine.NO_RVC


@pytest.mark.parametrize(("name", "before"), [("posix", []), ("nt", POWERSHELL)])
def test_files_are_handed_to_rvc_by_whole_paths(
    machine: types.ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, before: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATCHLOCK_RVC", "/home/run")
    monkeypatch.setattr(machine, "os", types.SimpleNamespace(name=name, getenv=os.getenv, path=os.path))
    given = ("--input", "a b.wav", "--pitch", "-2", "--index", "", "--model", "/x/y.pth", "--output", Path("out/z.wav"))
    words = ["--input", f"{tmp_path}/a b.wav", "--pitch", "-2", "--index", "", "--model", "/x/y.pth"]
    assert machine.rvc(*given) == [*before, "/home/run", *words, "--output", f"{tmp_path}/out/z.wav"]
