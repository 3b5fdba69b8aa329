"""The workflows: a linter takes them, their actions are pinned, and their shell is sound and does what it says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from ruamel.yaml import YAML

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(workflow: Path) -> None:
    used = re.findall(r"uses: (.*)", workflow.read_text(encoding="utf-8"))
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[0-9.]+", one)] == []


def _program(name: str) -> str:
    program = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip(f"no {name}: PyPI has none for this machine")
    return program


def test_linter_of_workflows_is_content() -> None:
    command = [
        _program("zizmor"),
        "--offline",
        "--strict-collection",
        "--quiet",
        "--no-progress",
        str(WORKFLOWS[0].parent),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_linter_sees_what_github_would_refuse(tmp_path: Path) -> None:
    (tmp_path / "bad.yml").write_text("on: push\njobs:\n  one:\n    runs_on: ubuntu-24.04\n    steps: []\n")
    command = [_program("zizmor"), "--offline", "--strict-collection", "--quiet", "--no-progress", str(tmp_path)]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def _steps(workflow: Path) -> list[str]:
    jobs = YAML(typ="safe").load(workflow.read_text(encoding="utf-8"))["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"] if "run" in step]
    return [step["run"] for step in steps if step.get("shell", "bash") == "bash"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_shell_of_a_workflow_passes_shellcheck(workflow: Path, tmp_path: Path) -> None:
    program = _program("shellcheck")
    for number, step in enumerate(_steps(workflow)):
        assert "${{" not in step, "what others wrote reaches a shell through the environment only"
        (tmp_path / f"{number}.sh").write_text(f"#!/bin/bash\n{step}", encoding="utf-8")
    done = subprocess.run([program, *tmp_path.glob("*.sh")], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_kinds_of_scheduled_runs_are_told_apart_by_a_schedule_that_there_is() -> None:
    workflow = YAML(typ="safe").load((ROOT / ".github" / "workflows" / "locks.yml").read_text(encoding="utf-8"))
    crons = [one["cron"] for one in workflow["on"]["schedule"]]
    named = re.findall(r"github.event.schedule == '([^']+)'", workflow["env"]["KIND"])
    assert len(crons) == 2
    assert named == crons[:1]


@pytest.mark.skipif(os.name == "nt", reason="the workflow runs on Linux")
@pytest.mark.parametrize("kind", ["changed", "reproduced", "upgraded"])
def test_pairs_of_a_run(kind: str, tmp_path: Path) -> None:
    steps = YAML(typ="safe").load((ROOT / ".github" / "workflows" / "locks.yml").read_text("utf-8"))["jobs"]["pairs"][
        "steps"
    ]
    shell = next(step["run"] for step in steps if step.get("id") == "list")
    rows = [("cpu", "linux-x86_64"), ("cpu", "windows-amd64"), ("rocm-linux", "linux-x86_64")]
    include = [{"app": "a", "profile": profile, "platform": platform, "lock": "l"} for profile, platform in rows]
    (tmp_path / "install.sh").write_text(f"#!/bin/sh\necho \"$@\" >asked\necho '{json.dumps({'include': include})}'\n")
    (tmp_path / "install.sh").chmod(0o755)
    for words in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b.test", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    if shutil.which("jq") is None:
        pytest.skip("no jq")
    env = {**os.environ, "KIND": kind, "BEFORE": "0" * 40, "GITHUB_OUTPUT": str(tmp_path / "out")}
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", shell], cwd=tmp_path, env=env, check=True, stderr=subprocess.DEVNULL
    )
    out = dict(line.split("=", 1) for line in (tmp_path / "out").read_text().splitlines())
    asked = "matrix --changed-since HEAD" if kind == "changed" else "matrix"
    assert (tmp_path / "asked").read_text() == f"{asked}\n"
    assert json.loads(out["matrix"]) == {"include": include}
    tried = [include[0] | {"runner": "ubuntu-24.04"}] if kind == "upgraded" else []
    assert json.loads(out["tried"]) == {"include": tried}
    assert bool(re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00Z", out["as-of"])) == (kind == "upgraded")


@pytest.mark.skipif(os.name == "nt", reason="the workflow runs on Linux")
def test_artifact_of_a_job_has_the_file_that_pins_the_builds_too(tmp_path: Path) -> None:
    jobs = YAML(typ="safe").load((ROOT / ".github" / "workflows" / "locks.yml").read_text(encoding="utf-8"))["jobs"]
    steps = jobs["lock"]["steps"]
    naming = next(step for step in steps if step.get("id") == "name")
    env = {**os.environ, "LOCK": "lockfiles/mini/tiny.linux-x86_64.txt", "GITHUB_OUTPUT": str(tmp_path / "out")}
    subprocess.run(["bash", "-euc", naming["run"]], env=env, check=True)
    assert dict(line.split("=") for line in (tmp_path / "out").read_text().splitlines()) == {
        "name": "lock-lockfiles--mini--tiny.linux-x86_64.txt",
        "build": "lockfiles/mini/tiny.linux-x86_64.build.txt",
    }
    upload = next(step for step in steps if "upload-artifact" in step.get("uses", ""))
    assert upload["with"]["path"].splitlines() == ["${{ matrix.lock }}", "${{ steps.name.outputs.build }}"]
