"""Conflicts that no marker shows, in a submodule, and those of a repository in git's sha256 format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from test_clone_patches import FILE, PATCHED, apply, clone, commit, git, read
from test_moves_as_git import LOCAL, bare_upstream, update, upstream

from patchlock.model.errors import SourceConflictError, UpstreamError
from patchlock.worktree import clone_patches, move, trees

pytestmark = pytest.mark.slow

__all__ = ["bare_upstream", "clone", "upstream"]


def _next(folder: Path, name: str) -> None:
    """Bring a submodule to a commit of its own."""
    git(folder / "module", "checkout", "-q", "--detach")
    commit(folder / "module", **{name: "1\n"})
    git(folder / "module", "push", "-q", "origin", f"HEAD:refs/heads/{name}")
    git(folder, "add", "module")


def test_conflict_in_a_submodule_is_open_until_the_user_says_so(clone: Path, upstream: Path) -> None:
    git(clone, *LOCAL, "submodule", "-q", "update", "--init")
    apply(clone)
    _next(clone, "mine")
    mine = git(clone, "ls-files", "-s", "module")
    _next(upstream, "theirs")
    commit(upstream)
    done = update(clone)
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("module"),)
    tree = trees.open_tree(clone)
    assert move.without_markers(tree, done.moved.conflicts) == done.moved.conflicts
    rows = git(clone, "ls-files", "-s", "module")
    assert len(rows.splitlines()) == 3
    for act in (apply, update):
        with pytest.raises(SourceConflictError) as caught:
            act(clone)
        assert caught.value.what == "your version of module still stands beside upstream's"
        assert move.conflicted(tree) == (PurePosixPath("module"),)
        assert git(clone, "ls-files", "-s", "module") == rows
    git(clone, "add", "module")
    assert move.conflicted(tree) == ()
    apply(clone)
    assert git(clone, "ls-files", "-s", "module") == mine


@pytest.fixture
def digested(tmp_path: Path) -> Path:
    """Give a clone of a repository that names its objects by sha256."""
    folder = tmp_path / "digested"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main", "--object-format=sha256")
    commit(folder, app=FILE)
    git(tmp_path, "clone", "-q", str(folder), "clone256")
    return tmp_path / "clone256"


def _choose(clone: Path) -> None:
    (clone / "app.py").write_text(PATCHED)


def _take_back(clone: Path) -> None:
    clone_patches.abort(trees.open_tree(clone))
    git(clone, "checkout", "-q", "app.py")


@pytest.mark.parametrize("end", [_choose, _take_back])
def test_conflict_in_a_sha256_repository_is_ended(digested: Path, end: Callable[[Path], None]) -> None:
    mine = FILE.replace('"cuda"', '("cuda", "mine"')
    (digested / "app.py").write_text(mine)
    done = apply(digested)
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("app.py"),)
    assert git(digested, "status", "--short") == "UU app.py"
    end(digested)
    apply(digested)
    assert read(digested) == PATCHED
    assert git(digested, "status", "--short") == "M app.py"
    clone_patches.undo(trees.open_tree(digested))
    after = (mine, "M app.py") if end is _choose else (FILE, "")
    assert (read(digested), git(digested, "status", "--short")) == after


def test_update_of_a_sha256_repository_names_the_way(digested: Path) -> None:
    apply(digested)
    newest = commit(digested.parent / "digested", app=FILE + 'end = "cuda"\n')
    with pytest.raises(UpstreamError) as caught:
        update(digested)
    assert (
        caught.value.what
        == "the clone names its objects by sha256, and patchlock's cache by sha1, so nothing was fetched"
    )
    assert caught.value.remedy == (
        f"fetch with `git -C {digested} pull --rebase --autostash`, then renew the patches with "
        f"`patchlock patch apply --source {digested}`"
    )
    git(digested, "pull", "-q", "--rebase", "--autostash")
    apply(digested)
    assert git(digested, "rev-parse", "HEAD") == newest
    assert read(digested) == PATCHED + "end = choose()\n"
