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
    used = re.findall(r"uses: (?!\./)(.*)", workflow.read_text(encoding="utf-8"))
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
        str(ROOT / "action.yml"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_linter_sees_what_github_would_refuse(tmp_path: Path) -> None:
    (tmp_path / "bad.yml").write_text("on: push\njobs:\n  one:\n    runs_on: ubuntu-24.04\n    steps: []\n")
    command = [_program("zizmor"), "--offline", "--strict-collection", "--quiet", "--no-progress", str(tmp_path)]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def _steps(workflow: Path) -> list[str]:
    read = YAML(typ="safe").load(workflow.read_text(encoding="utf-8"))
    jobs = read["jobs"] if "jobs" in read else {"action": read["runs"]}
    steps = [step for job in jobs.values() for step in job.get("steps", ()) if "run" in step]
    return [step["run"] for step in steps if step.get("shell", "bash") == "bash"]


@pytest.mark.parametrize("workflow", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda path: path.name)
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
    (tmp_path / "install.sh").write_text(f"#!/bin/sh\necho \"$@\" >>asked\necho '{json.dumps({'include': include})}'\n")
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
    assert (tmp_path / "asked").read_text() == f"{asked}\n{asked} --groups 64\n"
    assert json.loads(out["matrix"]) == json.loads(out["groups"]) == {"include": include}
    tried = [include[0] | {"runner": "ubuntu-24.04"}] if kind == "upgraded" else []
    assert json.loads(out["tried"]) == {"include": tried}
    assert bool(re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00Z", out["as-of"])) == (kind == "upgraded")


@pytest.mark.skipif(os.name == "nt", reason="the workflow runs on Linux")
def test_job_makes_each_of_its_pairs_and_fails_for_the_one_that_failed(tmp_path: Path) -> None:
    if shutil.which("jq") is None:
        pytest.skip("no jq")
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "make-locks", tmp_path / ".ci")
    (tmp_path / "lockfiles").mkdir()
    (tmp_path / "install.sh").write_text(
        '#!/bin/sh\necho "$@" >>asked\n[ "$4" != bad ] && echo lock >"lockfiles/$4.txt" && echo pins >lockfiles/one.build.txt\n'
    )
    (tmp_path / "install.sh").chmod(0o755)
    pairs = [
        {"app": "mini", "profile": name, "platform": "linux-x86_64", "lock": f"lockfiles/{name}.txt"}
        for name in ("one", "bad", "two")
    ]
    env = {**os.environ, "PAIRS": json.dumps(pairs), "AS_OF": "2026-01-01T00:00:00Z"}
    command = ["bash", str(tmp_path / ".ci" / "make-locks"), "made"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "::error::mini × bad × linux-x86_64 could not be locked" in done.stdout
    assert (
        "lock mini --profile two --platform linux-x86_64 --as-of 2026-01-01T00:00:00Z"
        in (tmp_path / "asked").read_text()
    )
    made = sorted(path.relative_to(tmp_path / "made").as_posix() for path in (tmp_path / "made").glob("*/*.txt"))
    assert made == [
        "lock-lockfiles--one.txt/one.build.txt",
        "lock-lockfiles--one.txt/one.txt",
        "lock-lockfiles--two.txt/two.txt",
    ]


def test_a_release_waits_for_every_job_of_ci() -> None:
    read = {
        name: YAML(typ="safe").load((ROOT / ".github" / "workflows" / name).read_text("utf-8"))
        for name in ("ci.yml", "release.yml")
    }
    assert "workflow_call" in read["ci.yml"]["on"]
    jobs = read["release.yml"]["jobs"]
    called = [name for name, job in jobs.items() if job.get("uses") == "./.github/workflows/ci.yml"]
    assert {*called, "build"} == set(jobs["publish"]["needs"])
    assert called


@pytest.mark.skipif(os.name == "nt", reason="the workflow runs on Linux")
@pytest.mark.parametrize(("on_pypi", "code"), [("as built", 0), ("of the tag before it was moved", 1)])
def test_a_release_fails_where_pypi_keeps_another_wheel_of_the_version(on_pypi: str, code: int, tmp_path: Path) -> None:
    read = YAML(typ="safe").load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))
    (shell,) = (step["run"] for step in read["jobs"]["publish"]["steps"] if "pip download" in step.get("run", ""))
    wheel = "patchlock-9.8.7-py3-none-any.whl"
    (tmp_path / "dist").mkdir()
    for name in (wheel, "patchlock-9.8.7.tar.gz", f"{wheel}.publish.attestation"):
        (tmp_path / "dist" / name).write_bytes(b"as built")
    pip = f"#!/bin/sh\necho \"$@\" >asked\nmkdir there\nprintf '{on_pypi}' >there/{wheel}\n"
    (tmp_path / "python3").write_text(pip)
    (tmp_path / "python3").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "GITHUB_REF_NAME": "v9.8.7"}
    done = subprocess.run(
        ["bash", "-e", "-c", shell], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert ("raise the version and tag that" in done.stderr) == bool(code)
    assert (tmp_path / "asked").read_text().endswith(" patchlock==9.8.7\n")
