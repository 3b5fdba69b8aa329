"""In the middle of a merge, rebase, cherry-pick, revert or am of the user's nothing is written, and both ways stay open."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from test_clone_patches import CHOOSE, FILE, PATCHED, WANTED, apply, clone, commit, git, read, upstream
from test_engine import patches
from test_moves_as_git import refused, update

from patchlock.model.identities import Sha256
from patchlock.worktree import clone_patches, trees

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]

EDITOR = ("-c", "core.editor=true")
NEW = FILE.replace("line8 = 8", 'line8 = "cuda"')


def _merge(clone: Path) -> None:
    git(clone, "merge", "-q", "--no-ff", "--no-commit", "origin/main")


def _cherry_pick(clone: Path) -> None:
    git(clone, "cherry-pick", "origin/main~1", "origin/main", allowed=(1,))
    (clone / "own.py").write_text("o = 'chosen'\n")
    git(clone, "add", "own.py")


def _sequencer(clone: Path) -> None:
    _cherry_pick(clone)
    git(clone, "commit", "-q", "--no-edit")


def _revert(clone: Path) -> None:
    git(clone, "revert", "--no-commit", "HEAD")


def _rebase(clone: Path) -> None:
    git(clone, "-c", "sequence.editor=sed -i 1ibreak", "rebase", "-q", "-i", "origin/main")


def _am(clone: Path) -> None:
    (clone.parent / "mails").write_text(git(clone, "format-patch", "-1", "--stdout"))  # it is there already
    git(clone, "am", "-q", str(clone.parent / "mails"), allowed=(128,))


HOW = [
    pytest.param(_merge, "merge", id="merge"),
    pytest.param(_cherry_pick, "cherry-pick", id="cherry-pick"),
    pytest.param(_sequencer, "cherry-pick", id="between-picks"),
    pytest.param(_revert, "revert", id="revert"),
    pytest.param(_rebase, "rebase", id="rebase"),
    pytest.param(_am, "am", id="am"),
]


@pytest.mark.parametrize("gives_up", [False, True], ids=["finished", "given-up"])
@pytest.mark.parametrize(("how", "name"), HOW)
def test_nothing_is_written_until_git_is_done(
    clone: Path, upstream: Path, how: Callable[[Path], object], name: str, gives_up: bool
) -> None:
    commit(upstream, own="o = 1\n")
    git(clone, "pull", "-q")
    commit(clone, own="o = 1\n", mine="m = 'cuda'\n")
    commit(clone, mine='m = ["cuda"]\n', own="o = 'mine'\n")
    commit(upstream, own="o = 'theirs'\n") if "pick" in name or name == "am" else commit(upstream, more="m = 1\n")
    commit(upstream, app=NEW)
    git(clone, "fetch", "-q")
    how(clone)
    for act in (apply, update):
        error = refused(clone, act)
        assert error.what == f"a `git {name}` of yours is not done, so nothing was changed"
        finish, give_up = re.findall("`git -C [^`]+? (" + name + " --[^`]+)`", error.remedy)
        assert (finish, give_up) == (f"{name} --continue", f"{name} --abort")
    if name == "am" and not gives_up:
        (clone / "own.py").write_text("o = 'others'\n")
        git(clone, "add", "own.py")
    git(clone, *EDITOR, *shlex.split(give_up if gives_up else finish))
    apply(clone)
    assert "choose()" in read(clone)
    assert '"cuda"' not in read(clone)


def test_undo_waits_too(clone: Path, upstream: Path) -> None:
    apply(clone)
    commit(upstream, more="m = 1\n")
    git(clone, "fetch", "-q")
    git(clone, "merge", "-q", "--no-ff", "--no-commit", "origin/main")
    error = refused(clone, lambda folder: clone_patches.undo(trees.open_tree(folder)))
    assert error.what == "a `git merge` of yours is not done, so nothing was changed"
    assert read(clone) == PATCHED
    git(clone, "merge", "--abort")
    clone_patches.undo(trees.open_tree(clone))
    assert read(clone) == FILE


@pytest.mark.parametrize(
    ("words", "name"),
    [
        pytest.param(["pull", "-q", "--no-rebase", "--no-edit"], "merge", id="merge"),
        pytest.param(["pull", "-q", "--rebase"], "rebase", id="rebase"),
        pytest.param(["cherry-pick", "origin/main"], "cherry-pick", id="cherry-pick"),
    ],
)
def test_undo_waits_while_only_the_patches_conflict(clone: Path, upstream: Path, words: list[str], name: str) -> None:
    apply(clone)
    commit(clone)
    commit(clone, other="x = 'mine'\n")
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'"))
    git(clone, "fetch", "-q")
    git(clone, *words, allowed=(1,))
    error = refused(clone, lambda folder: clone_patches.undo(trees.open_tree(folder)))
    assert error.what == "git's own conflict stands in app.py, so nothing was changed"
    assert f"`git -C {clone} {name} --abort`" in error.remedy
    git(clone, name, "--abort")
    assert read(clone) == PATCHED
    clone_patches.undo(trees.open_tree(clone))
    assert read(clone) == FILE


def _abort(clone: Path) -> None:
    clone_patches.abort(trees.open_tree(clone))


def test_abort_waits_for_a_merge_that_began_since(clone: Path, upstream: Path) -> None:
    apply(clone)
    mine = read(clone).replace("line4 = 4", "line4 = 'mine'")
    (clone / "app.py").write_text(mine)
    start = git(clone, "rev-parse", "HEAD")
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'"))
    update(clone)
    git(clone, "reset", "-q")
    commit(upstream, more="m = 1\n")
    git(clone, "fetch", "-q")
    git(clone, "merge", "-q", "--no-ff", "--no-commit", "origin/main")
    assert refused(clone, _abort).what == "a `git merge` of yours is not done, so nothing was changed"
    assert git(clone, "status", "--short") == "M app.py\nA  more.py"
    git(clone, "merge", "--abort")
    _abort(clone)
    assert (read(clone), git(clone, "rev-parse", "HEAD")) == (mine, start)


def test_edit_that_meets_newer_patches_waits_for_the_end_of_a_merge(clone: Path, upstream: Path) -> None:
    first = dataclasses.replace(WANTED, digest=Sha256("1" * 64), patches=patches(c=CHOOSE.replace("**/*.py", "app.py")))
    commit(upstream, other='x = "cuda"\n')
    git(clone, "pull", "-q")
    clone_patches.apply(trees.open_tree(clone), first, clone.parent / "cache")
    commit(clone)
    edited = 'x = ("cuda", "mine"\n'
    (clone / "other.py").write_text(edited)
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    done = apply(clone)
    assert done is not None
    assert (done.moved.conflicts, done.moved.left_by_git) == ((), ())
    assert (read(clone, "other"), git(clone, "status", "--short")) == (edited, "M  app.py\n M other.py")
    git(clone, *EDITOR, "merge", "--continue")
