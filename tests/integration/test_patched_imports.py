"""What upstream cannot import on a machine without CUDA and DeepSpeed imports after patching, with stand-ins for what is heavy."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from conftest import ROOT

from patchlock import patching, targets
from patchlock.catalogue import Catalogue
from patchlock.model import GitUpstream

CLONES = os.environ.get("PATCHLOCK_UPSTREAMS", "")
"""Read here: the guards of each test take the variable away."""
KINDS = {".css", ".json", ".py", ".sh", ".toml", ".txt", ".bat"}
CATALOGUE = Catalogue(root=ROOT)
PAIRS = [
    (app, profile)
    for app in ("advanced-rvc-inference", "xtts-webui")
    for profile in ("cpu", "cuda-linux", "directml-vega", "rocm-linux", "zluda-rdna4")
]


@pytest.mark.upstream
@pytest.mark.parametrize(("name", "profile"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_patched_tree_imports_all_that_a_machine_with_deepspeed_could(tmp_path: Path, name: str, profile: str) -> None:
    app = CATALOGUE.app(name)
    contents = _upstream(name)
    patches = patching.for_profile(app.patches, profile)
    patched = patching.apply(patches, {path: contents[path] for path in targets.candidates(patches, contents)})
    patching.require_complete(patched, name)
    _write(tmp_path / "before", contents)
    _write(tmp_path / "after", {**contents, **{change.path: change.after for change in patched.changes}})
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


@functools.cache
def _upstream(name: str) -> dict[PurePosixPath, bytes]:
    from histories.repository import Repository, find

    upstream = CATALOGUE.app(name).upstream
    assert isinstance(upstream, GitUpstream)
    clone = find(Path(CLONES), upstream.url.removeprefix("https://github.com/").removesuffix(".git"))
    if clone is None:
        pytest.skip(f"no clone of {upstream.url}")
    with Repository(clone) as repository:
        tree = repository.run("rev-parse", f"{upstream.commit}^{{tree}}").strip()
        files = repository.files(tree, lambda path, _: path.suffix in KINDS)
        read = {path: repository.read(id_) for path, id_ in files.items()}
    return {path: data for path, data in read.items() if data is not None}


def _write(folder: Path, contents: dict[PurePosixPath, bytes]) -> None:
    for path, data in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def _import_all(tree: Path, deepspeed: str) -> dict[str, Any]:
    command = [sys.executable, "-I", "-B", str(ROOT / "tests" / "importing.py"), str(tree), deepspeed]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))
