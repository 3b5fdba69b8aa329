"""Where the user's edits and the patches meet: git's conflict, what resolves it, and the one command that goes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from test_clone_patches import FILE, PATCHED, WANTED, apply, clone, commit, git, read, upstream

from patchlock.model.errors import SourceConflictError
from patchlock.worktree import clone_patches, manifest, move, trees

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]


def test_stash_pop_that_conflicts_is_repaired(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone).replace("line1 = 1", "line1 = 'mine'"))
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    git(clone, "stash", "-q")
    git(clone, "pull", "-q")
    git(clone, "stash", "pop", "-q", allowed=(1,))
    assert "<<<<<<<" in read(clone)
    done = apply(clone)
    assert done is not None
    assert read(clone) == PATCHED.replace("line1 = 1", "line1 = 'mine'").replace("choose()", "pick(choose(), 2)")
    assert git(clone, "status", "--short") == "M app.py"


@pytest.mark.parametrize("how", ["stash", "merge"])
def test_program_stays_one_in_the_index_where_a_conflict_is_repaired(how: str, clone: Path, upstream: Path) -> None:
    git(upstream, "update-index", "--chmod=+x", "app.py")
    git(upstream, "commit", "-q", "-m", "a program")
    git(upstream, "checkout", "-q", "app.py")
    git(clone, "pull", "-q")
    apply(clone)
    mine = read(clone).replace("line1 = 1", "line1 = 'mine'")
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    if how == "stash":
        (clone / "app.py").write_text(mine)
        git(clone, "stash", "-q")
        git(clone, "pull", "-q")
        git(clone, "stash", "pop", "-q", allowed=(1,))
    else:
        commit(clone, "all of it", app=mine)
        git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    apply(clone)
    assert git(clone, "ls-files", "--stage", "app.py").startswith("100755 ")


def test_merge_that_conflicts_is_repaired_and_can_be_committed(clone: Path, upstream: Path) -> None:
    apply(clone)
    commit(clone, "all of it", app=read(clone).replace("line1 = 1", "line1 = 'mine'"))
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    assert "<<<<<<<" in read(clone)
    apply(clone)
    assert read(clone) == PATCHED.replace("line1 = 1", "line1 = 'mine'").replace("choose()", "pick(choose(), 2)")
    git(clone, "commit", "-q", "--no-edit")
    assert git(clone, "status", "--short") == ""


@pytest.mark.parametrize("conflicting", [False, True], ids=["clean", "conflicting"])
def test_rebase_is_repaired(clone: Path, upstream: Path, conflicting: bool) -> None:
    apply(clone)
    commit(clone, "all of it", app=read(clone).replace("line1 = 1", "line1 = 'mine'"))
    new = FILE.replace('device = "cuda"', 'device = pick("cuda", 2)') if conflicting else FILE + 'again = "cuda"\n'
    commit(upstream, app=new)
    git(clone, "pull", "-q", "--rebase", allowed=(0, 1))
    apply(clone)
    wanted = PATCHED.replace("line1 = 1", "line1 = 'mine'")
    if conflicting:
        wanted = wanted.replace("choose()", "pick(choose(), 2)")
        git(clone, "-c", "core.editor=true", "rebase", "--continue")
    else:
        wanted += "again = choose()\n"
    assert read(clone) == wanted


def _stash(clone: Path) -> None:
    git(clone, "stash", "-q")
    git(clone, "pull", "-q")
    git(clone, "stash", "pop", "-q", allowed=(1,))


def _stash_and_apply(clone: Path) -> None:
    git(clone, "stash", "-q")
    git(clone, "pull", "-q")
    apply(clone)
    git(clone, "checkout", "-q", "app.py")
    git(clone, "stash", "pop", "-q", allowed=(1,))


def _merge(clone: Path) -> None:
    git(clone, "commit", "-q", "-a", "-m", "mine")
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))


@pytest.mark.parametrize("how", [_stash, _stash_and_apply, _merge])
def test_upstreams_side_of_a_conflict_is_never_dropped(
    clone: Path, upstream: Path, how: Callable[[Path], object]
) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone).replace("line1 = 1", "line1 = 'mine'"))
    commit(upstream, app=FILE.replace("line1 = 1", "line1 = 'theirs'"))
    how(clone)
    done = apply(clone)
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("app.py"),)
    assert all(side in read(clone) for side in ("line1 = 'mine'\n", "line1 = 'theirs'\n"))
    assert git(clone, "status", "--short") == "UU app.py"


def test_conflict_that_the_user_began_to_resolve_is_left_to_him(clone: Path, upstream: Path) -> None:
    apply(clone)
    commit(clone, "all of it", app=read(clone).replace("choose()", "mine()"))
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    begun = read(clone) + "# half done\n"
    (clone / "app.py").write_text(begun)
    done = apply(clone)
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("app.py"),)
    assert read(clone) == begun


def _conflict(clone: Path, upstream: Path) -> clone_patches.Applied:
    apply(clone)
    (clone / "app.py").write_text(read(clone).replace("line4 = 4", "line4 = 'mine'"))
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'"), new="n = 1\n")
    done = clone_patches.update(trees.open_tree(clone), WANTED, clone.parent / "cache")
    assert done is not None
    return done


def test_edits_that_meet_are_left_as_git_leaves_them(clone: Path, upstream: Path) -> None:
    done = _conflict(clone, upstream)
    assert done.moved.conflicts == (PurePosixPath("app.py"),)
    assert "<<<<<<< patchlock/yours\nline4 = 'mine'\n=======\nline4 = 'theirs'\n>>>>>>> patchlock/patched\n" in read(
        clone
    )
    assert git(clone, "status", "--short") == "UU app.py"
    assert git(clone, "show", ":2:app.py") + "\n" == PATCHED.replace("line4 = 4", "line4 = 'mine'")
    assert git(clone, "show", ":3:app.py") + "\n" == PATCHED.replace("line4 = 4", "line4 = 'theirs'")
    with pytest.raises(SourceConflictError, match=r"app\.py:4,8 still has conflict markers") as caught:
        apply(clone)
    assert caught.value.remedy == (
        f"choose between the two sides in each, and run `patchlock patch apply --continue --source {clone}`; "
        f"or go back with `patchlock patch apply --abort --source {clone}`"
    )


def test_one_command_goes_back(clone: Path, upstream: Path) -> None:
    apply(clone)
    head, applied = git(clone, "rev-parse", "HEAD"), git(clone, "rev-parse", "refs/patchlock/applied")
    _conflict(clone, upstream)
    begun = read(clone) + "# begun\n"
    (clone / "app.py").write_text(begun)
    assert set(move.abort(trees.open_tree(clone))) == {PurePosixPath("app.py"), PurePosixPath("new.py")}
    assert read(clone) == PATCHED.replace("line4 = 4", "line4 = 'mine'")
    assert not (clone / "new.py").exists()
    assert git(clone, "rev-parse", "HEAD", "refs/patchlock/applied") == f"{head}\n{applied}"
    assert git(clone, "status", "--short") == "M app.py"
    assert git(clone, "show", "refs/patchlock/aborted:app.py") + "\n" == begun


def test_resolved_conflict_is_the_users_edit_from_then_on(clone: Path, upstream: Path) -> None:
    _conflict(clone, upstream)
    resolved = PATCHED.replace("line4 = 4", "line4 = 'both'")
    (clone / "app.py").write_text(resolved)
    apply(clone)
    assert read(clone) == resolved
    assert git(clone, "status", "--short") == "M app.py"
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'") + "end = 1\n")
    clone_patches.update(trees.open_tree(clone), WANTED, clone.parent / "cache")
    assert read(clone) == resolved + "end = 1\n"


def test_conflict_in_a_merge_stays_a_conflict_for_git(clone: Path, upstream: Path) -> None:
    apply(clone)
    commit(clone, "all of it", app=read(clone).replace("line4 = 4", "line4 = 'mine'"))
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'"))
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    done = apply(clone)
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("app.py"),)
    assert git(clone, "status", "--short") == "UU app.py"
    git(clone, "commit", "-q", "-m", "merged", allowed=(128,))


def test_staged_change_of_a_conflicting_file_comes_back(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone).replace("line4 = 4", "line4 = 'staged'"))
    git(clone, "add", "app.py")
    (clone / "app.py").write_text(read(clone).replace("line4 = 'staged'", "line4 = 'mine'"))
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'"))
    done = clone_patches.update(trees.open_tree(clone), WANTED, clone.parent / "cache")
    assert done is not None
    assert done.moved.conflicts
    move.abort(trees.open_tree(clone))
    assert "line4 = 'staged'" in git(clone, "show", ":app.py")
    assert "line4 = 'mine'" in read(clone)


MINE = FILE.replace('"cuda"', '("cuda", "mine"').replace("line1 = 1", "line1 = 'mine'")


def _whole_file(clone: Path) -> None:
    git(clone, "checkout", "-q", "--theirs", "app.py")


def _lines(clone: Path) -> None:
    (clone / "app.py").write_text(PATCHED.replace("line1 = 1", "line1 = 'mine'"))


def _own_lines(clone: Path) -> None:
    git(clone, "checkout", "-q", "--ours", "app.py")


@pytest.mark.parametrize("choose", [_whole_file, _lines, _own_lines])
@pytest.mark.parametrize("is_updated", [False, True], ids=["undo", "update-and-undo"])
def test_undo_brings_the_users_side_of_a_conflict_back(
    clone: Path, upstream: Path, choose: Callable[[Path], None], is_updated: bool
) -> None:
    (clone / "app.py").write_text(MINE)
    done = apply(clone)
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("app.py"),)
    choose(clone)
    apply(clone)
    if is_updated:
        commit(upstream, app=FILE + "end = 1\n")
        done = clone_patches.update(trees.open_tree(clone), WANTED, clone.parent / "cache")
        assert done is not None
        assert not done.moved.conflicts
    moved = clone_patches.undo(trees.open_tree(clone))
    assert (read(clone), moved.conflicts) == (MINE + ("end = 1\n" if is_updated else ""), ())


def test_undo_leaves_what_the_user_made_of_both_sides_to_him(clone: Path) -> None:
    (clone / "app.py").write_text(MINE)
    apply(clone)
    both = MINE.replace('("cuda", "mine"', '("both")')
    (clone / "app.py").write_text(both)
    apply(clone)
    moved = clone_patches.undo(trees.open_tree(clone))
    assert moved.conflicts == (PurePosixPath("app.py"),)
    assert all(line in read(clone) for line in ('device = ("both")\n', 'device = ("cuda", "mine"\n'))
    assert "<<<<<<< patchlock/yours\n" in read(clone)
    assert ">>>>>>> patchlock/unpatched\n" in read(clone)
    assert manifest.read(trees.open_tree(clone)) is None
    clone_patches.abort(trees.open_tree(clone))
    known = manifest.read(trees.open_tree(clone))
    assert (read(clone), known and known.name) == (both, "test")


def test_undo_waits_while_its_conflict_markers_are_committed(clone: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(PATCHED.replace("choose()", "choose('mine')"))
    assert clone_patches.undo(trees.open_tree(clone)).conflicts
    git(clone, "commit", "-q", "-a", "-m", "committed too early")
    for _ in range(2):
        with pytest.raises(SourceConflictError, match=r"app\.py:5,9 still has conflict markers") as caught:
            clone_patches.undo(trees.open_tree(clone))
        assert "--abort" not in caught.value.remedy, "it would refuse, as the branch has moved"
    assert move.unchosen(trees.open_tree(clone)) == (PurePosixPath("app.py"),)
    (clone / "app.py").write_text(FILE)
    assert clone_patches.undo(trees.open_tree(clone)).conflicts == ()
    assert move.applied(trees.open_tree(clone)) is None


@pytest.mark.parametrize("place", ["the clone", "a fresh clone"])
def test_conflict_markers_that_the_user_has_committed_are_no_success(clone: Path, upstream: Path, place: str) -> None:
    _conflict(clone, upstream)
    git(clone, "commit", "-q", "-a", "-m", "committed too early")
    folder = clone
    if place != "the clone":
        folder = clone.with_name("fresh")
        git(clone, "clone", "-q", str(clone), str(folder))
    again = f"patchlock patch apply --source {clone}" if folder == clone else ""
    tree, cache = trees.open_tree(folder), clone.parent / "cache"
    for _ in range(2):
        with pytest.raises(SourceConflictError, match=r"patchlock's conflict markers stand in app\.py:4,8") as caught:
            apply(folder)
        assert again in caught.value.remedy
    commit_of, _, outcomes = clone_patches.status(tree, WANTED, cache)
    assert {outcome.detail for outcome in outcomes if str(outcome.path) == "app.py"} <= {
        "waits for the conflict in app.py"
    }
    found = clone_patches.unchosen(tree, WANTED, commit_of)
    assert found is not None
    assert found.what == "patchlock's conflict markers stand in app.py:4,8"
    (folder / "app.py").write_text(PATCHED.replace("line4 = 4", "line4 = 'mine'"))
    assert apply(folder) is not None
    assert clone_patches.unchosen(tree, WANTED, commit_of) is None


def test_edits_that_the_user_gives_up_later_do_not_come_back(clone: Path) -> None:
    (clone / "app.py").write_text(MINE)
    apply(clone)
    _lines(clone)
    apply(clone)
    git(clone, "checkout", "-q", "app.py")
    apply(clone)
    clone_patches.undo(trees.open_tree(clone))
    assert read(clone) == FILE


@pytest.mark.parametrize("is_first", [True, False], ids=["before-the-patches", "after-them"])
def test_edit_beside_a_patched_line_is_nowhere_lost(clone: Path, upstream: Path, is_first: bool) -> None:
    def edited(text: str) -> str:
        return text.replace("line4 = 4", "line4 = 'mine'").replace("line6 = 6", "line6 = 'mine'")

    if is_first:
        (clone / "app.py").write_text(edited(FILE))
    apply(clone)
    (clone / "app.py").write_text(edited(read(clone)))
    apply(clone)
    commit(upstream, other="x = 2\n")
    clone_patches.update(trees.open_tree(clone), WANTED, clone.parent / "cache")
    assert (read(clone), read(clone, "other")) == (edited(PATCHED), "x = 2\n")
    done = clone_patches.undo(trees.open_tree(clone))
    if is_first:
        assert (done.conflicts, read(clone)) == ((), edited(FILE))
        return
    assert done.conflicts == (PurePosixPath("app.py"),)
    assert edited("line4 = 4\ndevice = choose()\nline6 = 6\n") in read(clone)
    assert git(clone, "show", "refs/patchlock/before:app.py") == edited(PATCHED).strip()
    (clone / "app.py").write_text(edited(FILE))
    assert clone_patches.undo(trees.open_tree(clone)).conflicts == ()
    assert read(clone) == edited(FILE)
