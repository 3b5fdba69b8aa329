"""Clones in which git converts, filters, leaves out or hides files: a move leaves what the user's own git would."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from test_clone_patches import FILE, PATCHED, apply, clone, commit, git, read, upstream
from test_engine import patches
from test_moves_as_git import files_of, update

from patchlock.model.errors import BusyError, GitFirstError, UnsafePathError
from patchlock.worktree import _tree_merge, clone_patches, move, trees

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]

NEW = FILE + 'end = "cuda"\n'


def _filter(clone: Path) -> None:
    """Set a filter as git-lfs does: what git stores is a pointer, what stands in the tree is not."""
    program = clone.parent / "filter"
    program.write_text("#!/bin/sh\ntr A-Za-z N-ZA-Mn-za-m\n")
    program.chmod(0o755)
    for name in ("clean", "smudge"):
        git(clone, "config", f"filter.rot.{name}", str(program))
    git(clone, "config", "filter.rot.required", "true")


def _crlf(clone: Path) -> None:
    git(clone, "config", "core.autocrlf", "true")


def _plain(_: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("attributes", "configure"),
    [
        pytest.param("*.bin filter=rot\n", _filter, id="filter"),
        pytest.param("*.py eol=crlf\n*.bin -text\n", _plain, id="eol"),
        pytest.param("", _crlf, id="autocrlf"),
        pytest.param("wide.txt working-tree-encoding=UTF-16LE text\n", _plain, id="working-tree-encoding"),
        pytest.param("*.py ident\n", _plain, id="ident"),
    ],
)
def test_files_stand_as_a_fresh_clone_has_them(
    upstream: Path, tmp_path: Path, attributes: str, configure: Callable[[Path], None]
) -> None:
    commit(upstream, wide="w = 1\n")
    (upstream / ".gitattributes").write_text(attributes)
    (upstream / "wide.txt").write_bytes("one\n".encode("utf-16-le"))
    (upstream / "model.bin").write_bytes(b"data\n")
    git(upstream, "add", "-A", ".gitattributes", "model.bin")
    git(upstream, "-c", "core.autocrlf=false", "commit", "-q", "-m", "more")
    one, two = tmp_path / "one", tmp_path / "two"

    def make(folder: Path) -> None:
        git(tmp_path, "clone", "-q", "--no-checkout", str(upstream), folder.name)
        configure(folder)
        git(folder, "checkout", "-q", "main")

    make(one)
    apply(one)
    assert git(one, "status", "--short") == "M app.py"
    (one / "mine.txt").write_text("mine\n")
    (upstream / "wide.txt").write_bytes("one\ntwo\n".encode("utf-16-le"))
    (upstream / "model.bin").write_bytes(b"other data\n")
    newest = commit(upstream, app=NEW, fresh='n = "cuda"\n')
    assert update(one) is not None
    make(two)
    apply(two)
    (two / "mine.txt").write_text("mine\n")
    assert git(one, "rev-parse", "HEAD") == newest
    assert files_of(one) == files_of(two)
    assert git(one, "status", "--short") == git(two, "status", "--short")
    assert git(one, "diff", "--cached", "--name-only") == ""
    assert update(one) is None
    clone_patches.undo(trees.open_tree(one))
    assert git(one, "status", "--short") == "?? mine.txt"


def test_edit_of_a_filtered_file_is_kept_and_has_no_markers(upstream: Path, clone: Path) -> None:
    _filter(clone)
    (upstream / ".gitattributes").write_text("app.py filter=rot\n")
    commit(upstream)
    git(clone, "pull", "-q")
    git(clone, "checkout", "-q", "--", ".")
    (clone / "app.py").unlink()
    git(clone, "checkout", "-q", "--", "app.py")
    assert read(clone) != FILE
    commit(upstream, other="x = 2\n")
    update(clone)
    assert git(clone, "diff", "--stat") == "app.py | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)"
    (clone / "app.py").write_text("mine = 1\n" + read(clone))
    update(clone)
    clone_patches.undo(trees.open_tree(clone))
    assert read(clone).startswith("mine = 1\n")
    assert git(clone, "diff", "--stat").endswith("1 insertion(+)")


def test_sparse_checkout_stays_sparse(clone: Path, upstream: Path) -> None:
    for name in ("kept", "left"):
        (upstream / name).mkdir(exist_ok=True)
        (upstream / name / "one.py").write_text('o = "cuda"\n')
    commit(upstream)
    git(clone, "pull", "-q")
    git(clone, "sparse-checkout", "set", "kept")
    apply(clone)
    assert (clone / "kept" / "one.py").read_text() == "o = choose()\n"
    assert not (clone / "left").exists()
    (upstream / "left" / "two.py").write_text('t = "cuda"\n')
    (upstream / "kept" / "two.py").write_text('t = "cuda"\n')
    (upstream / "left" / "one.py").write_text('o = "cuda", 2\n')
    newest = commit(upstream, app=NEW)
    update(clone)
    assert git(clone, "rev-parse", "HEAD") == newest
    assert not (clone / "left").exists()
    assert (clone / "kept" / "two.py").read_text() == "t = choose()\n"
    assert git(clone, "status", "--short").splitlines() == ["M app.py", " M kept/one.py", " M kept/two.py"]
    assert git(clone, "diff", "--cached", "--name-only") == ""


def test_shallow_clone_is_moved(upstream: Path, tmp_path: Path) -> None:
    commit(upstream, other="x = 5\n")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{upstream}", "shallow")
    shallow = tmp_path / "shallow"
    apply(shallow)
    (shallow / "app.py").write_text("first = 0\n" + read(shallow))
    newest = commit(upstream, app=NEW)
    update(shallow)
    assert git(shallow, "rev-parse", "HEAD") == newest
    assert read(shallow) == "first = 0\n" + PATCHED + "end = choose()\n"


def test_detached_head_is_patched_and_keeps_edits(clone: Path) -> None:
    git(clone, "checkout", "-q", "--detach")
    apply(clone)
    (clone / "app.py").write_text("first = 0\n" + read(clone))
    clone_patches.undo(trees.open_tree(clone))
    assert read(clone) == "first = 0\n" + FILE
    assert git(clone, "symbolic-ref", "-q", "HEAD", allowed=(1,)) == ""


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_edit_that_git_does_not_look_at_is_never_written_over(clone: Path, upstream: Path, flag: str) -> None:
    git(clone, "update-index", flag, "other.py")
    (clone / "other.py").write_text("x = 'mine'\n")
    apply(clone)
    commit(upstream, other="x = 'theirs'\n", app=NEW)
    update(clone)
    assert "x = 'mine'\n" in read(clone, "other")
    assert read(clone) == PATCHED + "end = choose()\n"


def test_untracked_file_where_upstream_brings_one_is_joined_or_told(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "new.py").write_text("mine = 1\n")
    commit(upstream, new='n = "cuda"\n')
    done = clone_patches.update(trees.open_tree(clone), _wanted(), clone.parent / "cache")
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("new.py"),)
    assert "mine = 1" in read(clone, "new")
    move.abort(trees.open_tree(clone))
    assert read(clone, "new") == "mine = 1\n"


def _wanted() -> clone_patches.PatchSet:
    from test_clone_patches import WANTED

    return WANTED


def test_folder_of_the_users_where_a_file_belongs_is_refused(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "new.py").mkdir()
    (clone / "new.py" / "model").write_text("mine\n")
    before = files_of(clone)
    commit(upstream, new="n = 1\n")
    with pytest.raises(UnsafePathError, match=r"new\.py is a folder of yours"):
        update(clone)
    assert files_of(clone) == before
    assert git(clone, "status", "--short").splitlines() == ["M app.py", "?? new.py/"]


def test_staged_edits_stay_staged(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "other.py").write_text("x = 1\nstaged = 1\n")
    (clone / "added.py").write_text("a = 1\n")
    git(clone, "add", "other.py", "added.py")
    (clone / "later.py").write_text("l = 1\n")
    git(clone, "add", "-N", "--", "later.py")
    newest = commit(upstream, app=NEW, new="n = 1\n")
    update(clone)
    assert git(clone, "rev-parse", "HEAD") == newest
    assert git(clone, "diff", "--cached", "--name-status").split() == ["A", "added.py", "M", "other.py"]
    assert git(clone, "show", ":other.py") == "x = 1\nstaged = 1"
    assert "A later.py" in git(clone, "status", "--short")


def test_force_push_is_followed_where_the_branch_has_no_commits_of_its_own(clone: Path, upstream: Path) -> None:
    commit(upstream, other="x = 'gone'\n")
    git(clone, "pull", "-q")
    apply(clone)
    (clone / "app.py").write_text("first = 0\n" + read(clone))
    git(upstream, "reset", "-q", "--hard", "HEAD~1")
    newest = commit(upstream, app=NEW)
    update(clone)
    assert git(clone, "rev-parse", "HEAD") == newest
    assert read(clone) == "first = 0\n" + PATCHED + "end = choose()\n"
    assert read(clone, "other") == "x = 1\n"
    assert git(clone, "status", "--short") == "M app.py"


def test_update_over_a_force_push_that_was_taken_back_can_be_done_again(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone).replace("line2 = 2", "line2 = 'mine'"))
    git(upstream, "commit", "-q", "--amend", "-m", "rewritten")
    newest = commit(upstream, app=FILE.replace("line2 = 2", "line2 = 'theirs'"))
    for is_again in (False, True):
        done = update(clone)
        assert done is not None
        assert done.moved.conflicts == (PurePosixPath("app.py"),)
        assert git(clone, "rev-parse", "HEAD") == newest
        if not is_again:
            clone_patches.abort(trees.open_tree(clone))
            assert git(clone, "rev-parse", "HEAD") != newest


def test_old_git_patches_a_tree_without_edits_and_names_the_upgrade(
    clone: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_tree_merge, "_git_version", lambda: (2, 34))
    apply(clone)
    assert read(clone) == PATCHED
    (clone / "other.py").write_text("x = 1\nmine = 1\n")
    commit(upstream, app=NEW)
    update(clone)
    assert read(clone) == PATCHED + "end = choose()\n"
    (clone / "app.py").write_text("first = 0\n" + read(clone))
    before = files_of(clone)
    commit(upstream, app=NEW + "again = 1\n")
    with pytest.raises(GitFirstError, match=r"git before 2\.38") as caught:
        update(clone)
    assert caught.value.remedy.startswith("upgrade git to 2.38 or later")
    assert files_of(clone) == before


def test_hooks_of_the_clone_do_not_run(clone: Path, upstream: Path, tmp_path: Path) -> None:
    husky = clone / ".husky"
    husky.mkdir()
    ran = tmp_path / "ran"
    for name in ("post-checkout", "pre-commit", "post-merge", "reference-transaction", "post-index-change"):
        (husky / name).write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
        (husky / name).chmod(0o755)
    git(clone, "config", "core.hooksPath", ".husky")
    apply(clone)
    commit(upstream, app=NEW)
    update(clone)
    assert not ran.exists()
    assert read(clone) == PATCHED + "end = choose()\n"


def test_repository_is_whole_after_all_of_it(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone).replace("choose()", "mine()"))
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    update(clone)
    move.abort(trees.open_tree(clone))
    done = subprocess.run(["git", "-C", clone, "fsck", "--strict"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    refs = {row.split("/", 2)[2] for row in git(clone, "for-each-ref", "--format=%(refname)", "refs/patchlock").split()}
    assert refs <= {"applied", "made", "before", "aborted"}


def test_edit_on_a_patched_line_is_patched_by_meaning(clone: Path) -> None:
    edited = FILE.replace('device = "cuda"', 'device = "cuda"  # mine').replace("line4 = 4", "line4 = 'mine'")
    (clone / "app.py").write_text(edited)
    done = apply(clone)
    assert done is not None
    assert (done.moved.conflicts, done.moved.merged) == ((), (PurePosixPath("app.py"),))
    assert read(clone) == edited.replace('"cuda"', "choose()")
    assert git(clone, "status", "--short") == "M app.py"
    assert done.warnings == ()
    clone_patches.undo(trees.open_tree(clone))
    assert read(clone) == edited


def test_upstreams_change_beside_an_edit_of_a_patched_line_is_joined_by_meaning(clone: Path, upstream: Path) -> None:
    (clone / "app.py").write_text(FILE.replace('device = "cuda"', 'device = "cuda"  # mine'))
    commit(upstream, app='first = "cuda"\n' + FILE)
    update(clone)
    assert read(clone) == "first = choose()\n" + PATCHED.replace("choose()", "choose()  # mine")


def test_edit_in_which_a_postcondition_does_not_hold_is_a_conflict(clone: Path) -> None:
    (clone / "app.py").write_text(FILE.replace('device = "cuda"', 'device = ("cuda"'))
    done = apply(clone)
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("app.py"),)
    assert git(clone, "status", "--short") == "UU app.py"


def test_every_version_that_was_written_over_is_kept_and_listed(clone: Path, upstream: Path) -> None:
    apply(clone)
    tree = trees.open_tree(clone)
    texts = []
    for number in range(3):
        (clone / "app.py").write_text(f"mine{number} = 0\n" + read(clone))
        texts.append(read(clone))
        commit(upstream, app=FILE + f"end = {number}\n")
        update(clone)
    (before,) = move.backups(tree)
    assert (before.ref, before.count) == ("refs/patchlock/before", 3)
    commits = git(clone, "log", "--author=patchlock", "--grep=^your files", "--format=%H", before.ref).split()
    assert [git(clone, "show", f"{one}:app.py") + "\n" for one in reversed(commits)] == texts


@pytest.mark.parametrize("kind", ["--cone", "--no-cone"])
def test_sparse_checkout_with_a_file_that_a_patch_makes_outside_of_it(clone: Path, upstream: Path, kind: str) -> None:
    made = """
op = "add-file"
paths = ["left/made.py"]
content = "m = 1\\n"
ensure = [{ check = "contains", text = "m = 1" }]
"""
    for name in ("kept", "left"):
        (upstream / name).mkdir(exist_ok=True)
        (upstream / name / "one.txt").write_text("1\n")
    commit(upstream)
    git(clone, "pull", "-q")
    git(clone, "sparse-checkout", "set", kind, *(["kept"] if kind == "--cone" else ["/*", "!/left/"]))
    wanted = dataclasses.replace(_wanted(), patches=(*_wanted().patches, *patches(made=made)))
    tree, cache = trees.open_tree(clone), clone.parent / "cache"
    clone_patches.apply(tree, wanted, cache)
    (upstream / "left" / "one.txt").write_text("2\n")
    newest = commit(upstream, app=NEW, new="n = 1\n")
    assert clone_patches.update(tree, wanted, cache) is not None
    assert git(clone, "rev-parse", "HEAD") == newest
    assert git(clone, "diff", "--cached", "--name-only") == ""
    clone_patches.undo(tree)
    assert git(clone, "status", "--short") == ""


def test_undo_takes_staged_patches_out_of_the_index_too(clone: Path) -> None:
    apply(clone)
    (clone / "other.py").write_text("x = 'mine'\n")
    git(clone, "add", "-A")
    clone_patches.undo(trees.open_tree(clone))
    assert git(clone, "status", "--porcelain").splitlines() == ["M  other.py"]


def test_patches_that_gits_stash_has_staged_are_not_left_staged(clone: Path, upstream: Path) -> None:
    commit(upstream, also='a = "cuda"\n')
    git(clone, "pull", "-q")
    apply(clone)
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    git(clone, "pull", "-q", "--rebase", "--autostash")
    assert git(clone, "diff", "--cached", "--name-only", "--diff-filter=M") == "also.py"
    apply(clone)
    assert git(clone, "diff", "--cached", "--name-only") == ""
    assert read(clone, "also") == "a = choose()\n"


def test_ref_that_a_killed_git_has_locked_is_named(clone: Path, upstream: Path) -> None:
    apply(clone)
    newest = commit(upstream, app=NEW)
    lock = clone / ".git" / "HEAD.lock"
    lock.touch()
    with pytest.raises(BusyError, match="another git moves a ref") as caught:
        update(clone)
    assert str(lock) in caught.value.evidence[0]
    lock.unlink()
    update(clone)
    assert git(clone, "rev-parse", "HEAD") == newest
    assert git(clone, "status", "--short") == "M app.py"
