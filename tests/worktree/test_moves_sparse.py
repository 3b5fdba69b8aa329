"""Sparse checkouts: what git has left in the tree is moved, whatever the patterns say; what it leaves out stays out."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_clone_patches import apply, clone, commit, git, upstream
from test_moves_as_git import update

from patchlock.worktree import clone_patches, trees

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]

ONE = 'first = "cuda"\n' + "".join(f"l{n} = {n}\n" for n in range(9))


@pytest.fixture
def shrunk(clone: Path, upstream: Path) -> Path:
    """Give a clone whose patterns leave out a file that git has left there, as the patches have changed it."""
    for name in ("kept", "left"):
        (upstream / name).mkdir()
        (upstream / name / "one.py").write_text(ONE)
    commit(upstream)
    git(clone, "pull", "-q")
    apply(clone)
    git(clone, "sparse-checkout", "set", "--cone", "kept")
    assert git(clone, "ls-files", "-t", "left") == "H left/one.py"
    return clone


@pytest.mark.parametrize("is_edited", [False, True], ids=["patched", "edited"])
def test_file_that_git_left_despite_the_patterns_is_brought_forward(
    shrunk: Path, upstream: Path, is_edited: bool
) -> None:
    file = shrunk / "left" / "one.py"
    mine = "# mine\n" if is_edited else ""
    file.write_text(file.read_text() + mine)
    (upstream / "left" / "one.py").write_text(ONE.replace("l4 = 4", "l4 = 44"))
    (upstream / "left" / "new.py").write_text('n = "cuda"\n')
    newest = commit(upstream)
    done = update(shrunk)
    assert done is not None
    assert [str(path) for path in done.moved.merged] == (["left/one.py"] if is_edited else [])
    assert git(shrunk, "rev-parse", "HEAD") == newest
    assert file.read_text() == ONE.replace('"cuda"', "choose()").replace("l4 = 4", "l4 = 44") + mine
    assert git(shrunk, "ls-files", "-t", "left").splitlines() == ["S left/new.py", "H left/one.py"]
    assert not (shrunk / "left" / "new.py").exists()
    assert git(shrunk, "diff", "--cached", "--name-only") == ""
    clone_patches.undo(trees.open_tree(shrunk))
    assert file.read_text() == ONE.replace("l4 = 4", "l4 = 44") + mine
    assert git(shrunk, "status", "--short").splitlines() == (["M left/one.py"] if is_edited else [])


def test_file_of_the_users_that_upstream_brings_outside_of_the_patterns_is_joined(shrunk: Path, upstream: Path) -> None:
    (shrunk / "left" / "new.py").write_text('n = "cuda"\nmine = 1\n')
    (upstream / "left" / "new.py").write_text('n = "cuda"\n')
    commit(upstream)
    done = update(shrunk)
    assert done is not None
    assert "mine = 1\n" in (shrunk / "left" / "new.py").read_text()
    assert git(shrunk, "diff", "--name-only", "--diff-filter=D", "HEAD") == ""


def test_first_file_that_the_patterns_leave_out_is_not_written(clone: Path, upstream: Path) -> None:
    (upstream / "kept").mkdir()
    (upstream / "kept" / "one.py").write_text(ONE)
    commit(upstream)
    git(clone, "pull", "-q")
    git(clone, "sparse-checkout", "set", "--cone", "kept")
    assert not [row for row in git(clone, "ls-files", "-t").splitlines() if row.startswith("S")]
    apply(clone)
    (upstream / "left").mkdir()
    (upstream / "left" / "new.py").write_text(ONE)
    commit(upstream)
    update(clone)
    assert git(clone, "ls-files", "-t", "left") == "S left/new.py"
    assert not (clone / "left").exists()
