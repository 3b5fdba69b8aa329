"""A patched file that the user has renamed with git is moved under his name, as git's own merge would."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from test_clone_patches import FILE, PATCHED, WANTED, apply, clone, commit, git, read, upstream
from test_moves_as_git import update

from patchlock.model.patch import OutcomeKind
from patchlock.worktree import clone_patches, trees

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]

NEXT = FILE.replace("line8 = 8", "line8 = 88")
NEXT_PATCHED = PATCHED.replace("line8 = 8", "line8 = 88")


def undo(clone: Path) -> None:
    clone_patches.undo(trees.open_tree(clone))


def renamed(clone: Path) -> Path:
    apply(clone)
    git(clone, "mv", "app.py", "mine.py")
    return clone / "mine.py"


@pytest.mark.parametrize("mine", ["", "# mine\n"], ids=["as-it-was", "edited"])
@pytest.mark.parametrize("is_staged", [False, True], ids=["name-staged", "all-staged"])
def test_update_brings_upstreams_change_to_the_new_name(
    clone: Path, upstream: Path, mine: str, is_staged: bool
) -> None:
    file = renamed(clone)
    file.write_text(file.read_text() + mine)
    if is_staged:
        git(clone, "add", "mine.py")
    newest = commit(upstream, app=NEXT)
    done = update(clone)
    assert done is not None
    assert (done.moved.written, done.moved.removed) == ((PurePosixPath("mine.py"),), ())
    assert [one.kind for one in done.outcomes] == [OutcomeKind.NEEDED]
    assert file.read_text() == NEXT_PATCHED + mine
    assert not (clone / "app.py").exists()
    assert git(clone, "rev-parse", "HEAD") == newest
    assert git(clone, "show", ":mine.py") + "\n" == (NEXT_PATCHED + mine if is_staged else NEXT)
    assert git(clone, "diff", "--cached", "-M", "--name-status").split()[1:] == ["app.py", "mine.py"]
    assert update(clone) is None
    undo(clone)
    assert file.read_text() == NEXT + mine
    assert git(clone, "diff", "HEAD", "-M", "--name-status").split()[1:] == ["app.py", "mine.py"]


def test_undo_takes_the_patch_out_of_the_renamed_file(clone: Path) -> None:
    file = renamed(clone)
    undo(clone)
    assert file.read_text() == FILE
    assert git(clone, "status", "--short") == "R  app.py -> mine.py"


def test_file_that_was_renamed_before_is_patched_under_its_name(clone: Path) -> None:
    git(clone, "mv", "app.py", "mine.py")
    apply(clone)
    assert read(clone, "mine") == PATCHED
    _, _, outcomes = clone_patches.status(trees.open_tree(clone), WANTED, clone.parent / "cache")
    assert [one.kind for one in outcomes] == [OutcomeKind.ALREADY_OURS]
    assert not (clone / "app.py").exists()


def test_rename_that_gits_stash_has_carried_stays_one(clone: Path, upstream: Path) -> None:
    file = renamed(clone)
    commit(upstream, app=NEXT)
    git(clone, "pull", "-q", "--rebase", "--autostash")
    apply(clone)
    assert file.read_text() == NEXT_PATCHED
    assert not (clone / "app.py").exists()
    commit(upstream, app=NEXT + "end = 1\n")
    update(clone)
    assert file.read_text() == NEXT_PATCHED + "end = 1\n"
    assert git(clone, "diff", "--cached", "--name-only", "--diff-filter=M") == ""


def test_file_that_upstream_has_no_more_is_left_alone(clone: Path, upstream: Path) -> None:
    file = renamed(clone)
    (upstream / "app.py").unlink()
    newest = commit(upstream, other='x = "cuda"\n')
    update(clone)
    assert git(clone, "rev-parse", "HEAD") == newest
    assert file.read_text() == PATCHED
    undo(clone)
    assert file.read_text() == PATCHED


def test_edit_that_meets_a_patch_is_a_conflict_under_the_new_name(clone: Path, upstream: Path) -> None:
    file = renamed(clone)
    file.write_text(PATCHED.replace("line8 = 8", "line8 = 'mine'"))
    before = git(clone, "ls-files", "-s")
    commit(upstream, app=NEXT)
    done = update(clone)
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("mine.py"),)
    assert git(clone, "status", "--short").splitlines() == ["D  app.py", "UU mine.py"]
    clone_patches.abort(trees.open_tree(clone))
    assert git(clone, "ls-files", "-s") == before
    assert file.read_text() == PATCHED.replace("line8 = 8", "line8 = 'mine'")


def test_patch_is_applied_by_meaning_under_the_new_name(clone: Path) -> None:
    git(clone, "mv", "app.py", "mine.py")
    (clone / "mine.py").write_text(FILE.replace('device = "cuda"', 'device = "cuda"  # mine'))
    done = apply(clone)
    assert done is not None
    assert done.moved.conflicts == ()
    assert read(clone, "mine") == PATCHED.replace("choose()", "choose()  # mine")
