"""The workflow that regenerates locks: its actions are pinned, its shell is sound, and its proposal says the difference."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from miniature import World
from ruamel.yaml import YAML

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(workflow: Path) -> None:
    used = re.findall(r"uses: (.*)", workflow.read_text(encoding="utf-8"))
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[0-9.]+", one)] == []


def _steps() -> list[str]:
    jobs = YAML(typ="safe").load((ROOT / ".github" / "workflows" / "locks.yml").read_text(encoding="utf-8"))["jobs"]
    return [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]


def test_shell_of_the_workflow_passes_shellcheck(tmp_path: Path) -> None:
    program = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("no shellcheck: PyPI has none for this machine")
    for number, step in enumerate(_steps()):
        assert "${{" not in step, "what others wrote reaches a shell through the environment only"
        (tmp_path / f"{number}.sh").write_text(f"#!/bin/bash\n{step}", encoding="utf-8")
    done = subprocess.run([program, *tmp_path.glob("*.sh")], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.mark.skipif(os.name == "nt", reason="the workflow runs on Linux")
def test_proposal_takes_the_locks_in_and_says_what_is_different(locked: World, tmp_path: Path) -> None:
    root = locked.catalogue
    (root / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "propose-locks", root / ".ci")
    (root / "install.sh").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m patchlock "$@"\n')
    (root / "install.sh").chmod(0o755)
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b.test"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    lock = Path("lockfiles/mini/tiny.linux-x86_64.txt")
    made = tmp_path / "made" / f"lock-{'--'.join(lock.parts)}" / lock.name
    made.parent.mkdir(parents=True)
    beside = root / lock.with_suffix(".build.txt")
    env = {**os.environ, "PROPOSE_ONLY_SAY": "1", "PYTHONPATH": str(ROOT / "installer")}
    for version, says in (("1.5", "no lock is different\n"), ("2.0", "| beta | 1.5 → 2.0 | requirements.txt:3 |")):
        made.write_text((root / lock).read_text().replace("beta==1.5", f"beta=={version}"))
        command = [str(root / ".ci" / "propose-locks"), str(tmp_path / "made")]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert says in done.stdout
    assert "beta==2.0" in (root / lock).read_text()
    made.with_name(beside.name).write_text("what builds the sdists\n")
    subprocess.run(command, env=env, check=True, capture_output=True)
    assert beside.read_text() == "what builds the sdists\n"
    made.with_name(beside.name).unlink()
    subprocess.run(command, env=env, check=True, capture_output=True)
    assert not beside.exists()


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
