"""`patch status` of a clone names what waits there, and the command that goes on; each can be run as it is printed."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import Patchlock
from test_update import clone
from test_users_tree import git

__all__ = ["clone"]


@pytest.fixture
def conflicting(clone: Path, patchlock: Patchlock) -> Path:
    """Give a clone, in a folder with a blank in its name, in which taking the patches out meets an edit."""
    folder = clone.rename(clone.parent / "my clone")
    assert patchlock("patch", "apply", *_options(folder)).returncode == 0
    (folder / "app.py").write_text((folder / "app.py").read_text().replace("choose()", "mine()"))
    done = patchlock("patch", "undo", "--source", str(folder))
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, f"the patches are not taken out of {folder} yet")
    return folder


def _options(folder: Path) -> tuple[str, ...]:
    return "--patches", str(folder.parent / "patches.toml"), "--source", str(folder)


def _command(line: str) -> list[str]:
    return shlex.split(line.split("`")[1])[1:]


def test_conflicts_of_an_undo_go_on_with_it(conflicting: Path, patchlock: Patchlock) -> None:
    said = patchlock("patch", "status", *_options(conflicting)).stdout.splitlines()
    (line,) = (line for line in said if line.startswith("conflicts wait"))
    assert line == f"conflicts wait for you in app.py:4,8: choose, then `patchlock patch undo --source '{conflicting}'`"
    (conflicting / "app.py").write_text("mine = 1\n")
    assert patchlock(*_command(line)).returncode == 0
    assert git(conflicting, "status", "--short").split() == ["M", "app.py"]


def test_half_done_move_is_named(conflicting: Path, patchlock: Patchlock) -> None:
    ours = conflicting / ".git" / "patchlock"
    (ours / "conflicts").rename(ours / "aborting")  # as a killed --abort leaves it
    found = json.loads(patchlock("patch", "status", *_options(conflicting), "--json").stdout)
    assert found["data"]["half_done"] == "apply --abort"
    said = patchlock("patch", "status", *_options(conflicting)).stdout.splitlines()
    (line,) = (line for line in said if line.startswith("a move is"))
    assert line == f"a move is half done: `patchlock patch apply --abort --source '{conflicting}'` finishes it"
    patchlock(*_command(line))
    assert "mine()" in (conflicting / "app.py").read_text()
    assert "half done" not in patchlock("patch", "status", *_options(conflicting)).stdout


def test_merge_whose_conflicts_patches_had_caused_goes_on_with_git(clone: Path, patchlock: Patchlock) -> None:
    public = clone.parent / "public"
    (public / "app.py").write_text((clone / "app.py").read_text().replace('"cuda"', 'str("cuda")'))
    git(public, "commit", "-q", "-a", "-m", "upstream")
    assert patchlock("patch", "apply", *_options(clone)).returncode == 0
    git(clone, "commit", "-q", "-a", "-m", "patched")
    with pytest.raises(subprocess.CalledProcessError):
        git(clone, "pull", "-q", "--no-rebase")
    said = patchlock("patch", "apply", *_options(clone))
    assert said.stdout.splitlines()[-1] == f"now go on with git: `git -C {clone} merge --continue`; then run this again"


def test_undo_with_conflicts_says_of_how_many_files_the_patches_are_taken_out(
    clone: Path, patchlock: Patchlock
) -> None:
    (clone / "b.py").write_text((clone / "app.py").read_text())
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "b")
    assert patchlock("patch", "apply", *_options(clone)).returncode == 0
    (clone / "app.py").write_text((clone / "app.py").read_text().replace("choose()", "mine()"))
    done = patchlock("patch", "undo", "--source", str(clone))
    told = f"the patches are taken out of 1 of 2 files of {clone}, and 1 waits for you"
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, told)
