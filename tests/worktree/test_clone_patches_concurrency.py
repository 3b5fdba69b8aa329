"""Several at once on one folder: two runs of patchlock, several worktrees of a clone, a repository around it."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from pathlib import Path

import pytest
from test_clone_patches import FILE, PATCHED, WANTED, apply, clone, commit, git, read, upstream

from patchlock.model.errors import BusyError, NotPatchedError
from patchlock.model.launchers import Starter
from patchlock.worktree import clone_patches, hooks, trees

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    (folder / "app.py").write_text(FILE)
    return folder


@pytest.mark.parametrize("kind", ["clone", "archive"])
def test_one_run_waits_for_the_other(kind: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(kind)
    tree = trees.open_tree(folder)
    told = threading.Event()
    second = threading.Thread(
        target=lambda: clone_patches.apply(tree, WANTED, folder.parent / "cache", waiting=told.set)
    )
    with trees.hold(tree):
        second.start()
        assert told.wait(30)
        assert read(folder) == FILE
    second.join()
    assert read(folder) == PATCHED


def test_run_that_waits_in_vain_says_where(clone: Path) -> None:
    tree = trees.open_tree(clone)
    with trees.hold(tree), pytest.raises(BusyError) as caught, trees.hold(tree, wait=0):
        pass
    assert re.fullmatch(
        rf"another patchlock works on the same folder, process {os.getpid()} since [\d:]{{8}} "
        rf"\({re.escape(str(clone))}\); wait for it to end and run the same command again",
        str(caught.value),
    )


@pytest.mark.parametrize("name", ["undo", "abort", "update"])
def test_everything_that_writes_waits(clone: Path, name: str, tmp_path: Path) -> None:
    apply(clone)
    tree = trees.open_tree(clone)
    told = threading.Event()
    run = {
        "undo": lambda: clone_patches.undo(tree, waiting=told.set),
        "abort": lambda: clone_patches.abort(tree, waiting=told.set),
        "update": lambda: clone_patches.update(tree, WANTED, tmp_path / "cache", waiting=told.set),
    }[name]
    second = threading.Thread(target=run)
    with trees.hold(tree):
        second.start()
        assert told.wait(30)
    second.join()


def test_worktrees_of_a_clone_are_patched_each_for_itself(clone: Path, upstream: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(clone, "worktree", "add", "-q", str(other), "-b", "second")
    apply(clone)
    with pytest.raises(NotPatchedError):
        clone_patches.undo(trees.open_tree(other))
    commit(upstream, app=FILE + "more = 1\n")
    apply(other)
    (other / "app.py").write_text(PATCHED + "mine = 1\n")
    clone_patches.update(trees.open_tree(clone), WANTED, tmp_path / "cache")
    assert read(clone) == PATCHED + "more = 1\n"
    clone_patches.undo(trees.open_tree(other))
    assert read(other) == FILE + "mine = 1\n"
    assert read(clone) == PATCHED + "more = 1\n"
    clone_patches.undo(trees.open_tree(clone))
    assert read(clone) == FILE + "more = 1\n"


def test_clean_up_in_one_worktree_keeps_what_another_needs(clone: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(clone, "worktree", "add", "-q", str(other), "-b", "second")
    apply(other)
    git(clone, "gc", "-q", "--prune=now")
    clone_patches.undo(trees.open_tree(other))
    assert read(other) == FILE


def test_hooks_of_one_worktree_leave_the_others_alone(clone: Path, tmp_path: Path) -> None:
    apply(clone)
    ran = tmp_path / "ran"
    starter = Starter(program="touch", arguments=(), variables={}, anchor=str(clone))
    hooks.install(trees.open_tree(clone), starter, [str(ran)], "touch")
    other = tmp_path / "other"
    environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1"}
    for folder, words in (
        (clone, ["worktree", "add", "-q", str(other), "-b", "second"]),
        (other, ["checkout", "-q", "-B", "x"]),
    ):
        subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True)
    assert not ran.exists()
    subprocess.run(["git", "checkout", "-q", "-b", "third"], cwd=clone, env=environment, check=True)
    assert ran.exists()


def test_repository_that_is_made_around_a_patched_folder_does_not_see_ours(archive: Path) -> None:
    apply(archive)
    git(archive, "init", "-q")
    git(archive, "add", "-A")
    assert git(archive, "ls-files") == "app.py"
