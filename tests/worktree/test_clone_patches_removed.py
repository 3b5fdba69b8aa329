"""Files that the user removed with git stay away, whatever brings the patches; a lost file comes back."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from test_clone_patches import FILE, PATCHED, WANTED, apply, clone, commit, git, read, upstream

from patchlock.model.patch import OutcomeKind
from patchlock.worktree import clone_patches, trees

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]

APP = PurePosixPath("app.py")


def update(clone: Path) -> clone_patches.Applied:
    done = clone_patches.update(trees.open_tree(clone), WANTED, clone.parent / "cache")
    assert done is not None
    return done


@pytest.mark.parametrize("patched", [False, True], ids=["before", "after"])
def test_staged_removal_of_a_patched_file_stays(clone: Path, patched: bool) -> None:
    if patched:
        apply(clone)
    git(clone, "rm", "-q", "-f", "app.py")
    before = git(clone, "status", "--short")
    done = apply(clone)
    assert done is not None
    assert done.moved.removed == (APP,)
    assert [(o.path, o.kind, o.detail) for o in done.outcomes] == [
        (APP, OutcomeKind.DRIFTED, "you have removed the file")
    ]
    assert not (clone / "app.py").exists()
    assert git(clone, "status", "--short") == before
    assert apply(clone) is None


@pytest.mark.parametrize("changed", ["app", "other"])
def test_staged_removal_stays_over_an_update(clone: Path, upstream: Path, changed: str) -> None:
    apply(clone)
    git(clone, "rm", "-q", "-f", f"{changed}.py")
    commit(upstream, **{changed: FILE + "more = 1\n"}, new="n = 1\n")
    assert update(clone).moved.removed == (PurePosixPath(f"{changed}.py"),)
    assert not (clone / f"{changed}.py").exists()
    assert f"D  {changed}.py" in git(clone, "status", "--short")
    assert read(clone, "new") == "n = 1\n"


def test_committed_removal_stays(clone: Path, upstream: Path) -> None:
    commit(upstream, two=FILE)
    git(clone, "pull", "-q")
    apply(clone)
    git(clone, "rm", "-q", "-f", "app.py")
    git(clone, "commit", "-q", "-am", "mine, with the patches of the other file")
    apply(clone)
    assert not (clone / "app.py").exists()
    assert read(clone, "two") == PATCHED


def test_undo_leaves_a_removed_file_away(clone: Path) -> None:
    apply(clone)
    git(clone, "rm", "-q", "-f", "app.py")
    assert clone_patches.undo(trees.open_tree(clone)).removed == (APP,)
    assert not (clone / "app.py").exists()


def test_lost_file_comes_back(clone: Path) -> None:
    apply(clone)
    (clone / "app.py").unlink()
    done = apply(clone)
    assert done is not None
    assert done.moved.removed == ()
    assert read(clone) == PATCHED


def test_undo_after_a_pull_keeps_what_was_pulled(clone: Path, upstream: Path) -> None:
    apply(clone)
    commit(upstream, other="x = 2\n")
    git(clone, "pull", "-q")
    clone_patches.undo(trees.open_tree(clone))
    assert (read(clone), read(clone, "other")) == (FILE, "x = 2\n")
    assert git(clone, "status", "--short") == ""
