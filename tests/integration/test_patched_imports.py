"""What upstream cannot import on a machine without CUDA and DeepSpeed imports after patching, with stand-ins for what is heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from upstream_trees import patched, upstream, write

PAIRS = [
    (app, profile)
    for app in ("advanced-rvc-inference", "xtts-webui")
    for profile in ("cpu", "cuda-linux", "directml-vega", "rocm-linux", "zluda-rdna4")
]


@pytest.mark.upstream
@pytest.mark.parametrize(("name", "profile"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_patched_tree_imports_all_that_a_machine_with_deepspeed_could(tmp_path: Path, name: str, profile: str) -> None:
    write(tmp_path / "before", upstream(name))
    write(tmp_path / "after", patched(name, profile))
    complete = _import_all(tmp_path / "before", deepspeed="present")
    without = _import_all(tmp_path / "before", deepspeed="absent")
    ours = _import_all(tmp_path / "after", deepspeed="absent")
    assert set(ours["failed"]) <= set(complete["failed"]), (
        "what fails is what fails upstream, too, with everything there"
    )
    stopped = {module for module, why in without["failed"].items() if "deepspeed" in why}
    assert stopped == set() or stopped - set(ours["failed"]) >= {"scripts.funcs", "scripts.resemble_enhance.utils"}
    assert bool(stopped) == (name == "xtts-webui")
    if name == "advanced-rvc-inference":  # its page logs a tab that does not import, and opens without it
        assert [module for module in ours["failed"] if module.startswith("arvc.app")] == []
    installs = [command for command in ours["processes"] if {"pip", "venv"} & set(" ".join(command).split())]
    assert installs == []


def _import_all(tree: Path, deepspeed: str) -> dict[str, Any]:
    command = [sys.executable, "-I", "-B", str(ROOT / "tests" / "support" / "importing.py"), str(tree), deepspeed]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))
