"""Git's own conflicts that are conflicts for us too: they are left as git left them, and nothing goes back over them."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from test_clone_patches import CHOOSE, FILE, HELPER, PATCHED, USE, WANTED, apply, clone, commit, git, read, upstream
from test_engine import patches
from test_moves_as_git import files_of, refused, state

from patchlock.model.errors import GitFirstError, PatchError, SourceConflictError
from patchlock.model.identities import CommitId
from patchlock.worktree import _journal, clone_patches, move, trees

__all__ = ["clone", "upstream"]

OTHER = PurePosixPath("other.py")
ONE = dataclasses.replace(WANTED, patches=patches(choose=CHOOSE.replace("**/*.py", "app.py")), digest="1" * 64)
"""The same patches, for one file alone."""


def commands_of(error: GitFirstError) -> list[list[str]]:
    """Give the words that a message gives to git, of each command."""
    found = [shlex.split(words) for words in re.findall("`(git -C [^`]+)`", error.remedy)]
    return [words[3:] for words in found]


def abort(clone: Path) -> tuple[PurePosixPath, ...]:
    return clone_patches.abort(trees.open_tree(clone))


def _stash(clone: Path) -> None:
    git(clone, "stash", "-q")
    git(clone, "pull", "-q")
    git(clone, "stash", "pop", "-q", allowed=(1,))


def _autostash(clone: Path) -> None:
    git(clone, "pull", "-q", "--rebase", "--autostash")


def _merge(clone: Path) -> None:
    git(clone, "commit", "-q", "-m", "mine", "other.py")
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))


def _rebase(clone: Path) -> None:
    git(clone, "commit", "-q", "-m", "mine", "other.py")
    git(clone, "pull", "-q", "--rebase", "--autostash", allowed=(1,))


def _cherry_pick(clone: Path) -> None:
    git(clone, "commit", "-q", "-m", "mine", "other.py")
    git(clone, "fetch", "-q")
    git(clone, "cherry-pick", "origin/main", allowed=(1,))


def _revert(clone: Path) -> None:
    for _ in range(2):
        git(clone, "commit", "-q", "-m", "mine", "other.py")
        (clone / "other.py").write_text("x = 'later'\n")
    git(clone, "checkout", "-q", "other.py")
    (clone / "other.py").write_text("x = 'last'\n")
    git(clone, "commit", "-q", "-m", "last", "other.py")
    git(clone, "revert", "--no-edit", "HEAD~1", allowed=(1,))


HOW = [
    pytest.param(_stash, "", id="stash"),
    pytest.param(_autostash, "", id="autostash"),
    pytest.param(_merge, "merge", id="merge"),
    pytest.param(_rebase, "rebase", id="rebase"),
    pytest.param(_cherry_pick, "cherry-pick", id="cherry-pick"),
    pytest.param(_revert, "revert", id="revert"),
]


@pytest.mark.parametrize("gives_up", [False, True], ids=["finished", "given-up"])
@pytest.mark.parametrize(("how", "name"), HOW)
def test_conflict_of_gits_stays_as_it_is_until_it_is_ended(
    clone: Path, upstream: Path, how: Callable[[Path], object], name: str, gives_up: bool
) -> None:
    apply(clone)
    (clone / "other.py").write_text("x = 'mine'\n")
    commit(upstream, other="x = 'theirs'\n", new='n = "cuda"\n')
    how(clone)
    assert "other.py" in git(clone, "ls-files", "--unmerged")
    left = read(clone, "other")
    for is_again in (False, True):
        before = state(clone)
        rows = git(clone, "ls-files", "--unmerged")
        done = apply(clone)
        assert done is not None
        assert (done.moved.left_by_git, done.moved.conflicts) == ((OTHER,), (OTHER,))
        assert (read(clone, "other"), git(clone, "ls-files", "--unmerged")) == (left, rows)
        if name or is_again:
            assert (done.moved.written, state(clone)) == ((), before)
        else:
            assert read(clone, "new") == "n = choose()\n"
    error = refused(clone, abort)
    assert error.what == "git's own conflict stands in other.py, so nothing was changed"
    assert error.where == str(clone)
    assert error.remedy == (
        f"choose between the two sides in each, `git -C {clone} add other.py`, `git -C {clone} {name} --continue`, "
        f"or go back with `git -C {clone} {name} --abort`; then run this again"
        if name
        else f"choose between the two sides in each, `git -C {clone} reset -q -- other.py`; then run this again"
    )
    gives_up &= bool(name)  # a stash stays where it is
    if not gives_up:
        (clone / "other.py").write_text("x = 'both'\n")
    commands = commands_of(error)
    for words in commands[-1:] if gives_up else commands[: len(commands) - bool(name)]:
        git(clone, "-c", "core.editor=true", *words)
    assert abort(clone) == ()
    chosen = read(clone, "other")
    assert (chosen == "x = 'both'\n") != gives_up
    assert "<<<<<<<" not in chosen
    done = apply(clone)
    assert done is None or not done.moved.conflicts
    assert (read(clone), read(clone, "other")) == (PATCHED, chosen)
    assert git(clone, "ls-files", "--unmerged") == ""
    assert git(clone, "ls-files", "other.py") == "other.py"
    if not name:
        assert git(clone, "diff", "--cached", "--name-only") == ""
    if "stash" in how.__name__:
        assert "x = 'mine'" in git(clone, "show", "stash@{0}:other.py")


def test_conflict_of_gits_in_a_patched_file_is_chosen_once(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone).replace("line2 = 2", "line2 = 'mine'"))
    commit(upstream, app=FILE.replace("line2 = 2", "line2 = 'theirs'") + 'end = "cuda"\n')
    _autostash(clone)
    left, rows = read(clone), git(clone, "ls-files", "-s")
    done = apply(clone)
    assert done is not None
    assert done.moved.left_by_git == (PurePosixPath("app.py"),)
    assert (read(clone), git(clone, "ls-files", "-s")) == (left, rows)
    chosen = re.sub("<{7}.*?={7}\n(.*?)>{7}[^\n]*\n", r"\1", left, flags=re.DOTALL)
    (clone / "app.py").write_text(chosen)
    error = move.git_first(trees.open_tree(clone), done.moved.left_by_git)
    assert commands_of(error) == [["reset", "-q", "--", "app.py"]]
    git(clone, *commands_of(error)[0])
    done = apply(clone)
    assert done is not None
    assert done.moved.conflicts == ()
    assert git(clone, "diff", "--cached", "--name-only") == ""
    assert read(clone) == PATCHED.replace("line2 = 2", "line2 = 'mine'") + "end = choose()\n"
    assert git(clone, "ls-files", "app.py") == "app.py"


def test_conflict_of_gits_stops_what_may_leave_no_conflicts(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone).replace("line4 = 4", "line4 = 'mine'"))
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'"))
    _autostash(clone)
    error = refused(clone, lambda folder: clone_patches.undo(trees.open_tree(folder)))
    assert error.what == "git's own conflict stands in app.py, so nothing was changed"
    left = read(clone)
    done = clone_patches.update(trees.open_tree(clone), WANTED, clone.parent / "cache")
    assert done is not None
    assert done.moved.left_by_git == (PurePosixPath("app.py"),)
    assert read(clone) == left


def test_update_does_not_bring_what_a_conflict_of_gits_lacks(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "other.py").write_text("x = 'mine'\n")
    commit(upstream, other="x = 'theirs'\n")
    _autostash(clone)
    commit(upstream, other="x = 'theirs'\ny = 2\n")
    error = refused(clone, lambda folder: clone_patches.update(trees.open_tree(folder), WANTED, clone.parent / "cache"))
    assert error.what == "git's own conflict stands in other.py, so nothing was changed"


def test_patches_can_be_undone_beside_a_conflict_of_gits(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "other.py").write_text("x = 'mine'\n")
    commit(upstream, other="x = 'theirs'\n", new='n = "cuda"\n')
    _autostash(clone)
    left, rows = read(clone, "other"), git(clone, "ls-files", "--unmerged")
    apply(clone)
    clone_patches.undo(trees.open_tree(clone))
    assert (read(clone), read(clone, "new"), read(clone, "other")) == (FILE, 'n = "cuda"\n', left)
    assert git(clone, "ls-files", "--unmerged") == rows


def test_undo_over_an_edit_of_a_patched_line_is_a_conflict_with_a_way_back(clone: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone).replace("choose()", "mine()"))
    before = files_of(clone)
    done = clone_patches.undo(trees.open_tree(clone))
    assert done.conflicts == (PurePosixPath("app.py"),)
    assert git(clone, "status", "--short") == "UU app.py"
    assert abort(clone) == (PurePosixPath("app.py"),)
    assert files_of(clone) == before
    clone_patches.undo(trees.open_tree(clone))
    (clone / "app.py").write_text(FILE.replace('"cuda"', "mine()"))
    clone_patches.undo(trees.open_tree(clone))
    assert git(clone, "rev-parse", "-q", "--verify", "refs/patchlock/applied", allowed=(1,)) == ""
    assert git(clone, "status", "--short") == "M app.py"


def test_edit_of_what_a_move_has_brought_is_not_taken_for_a_choice(clone: Path, upstream: Path) -> None:
    tree = trees.open_tree(clone)
    one = CommitId(git(clone, "rev-parse", "HEAD"))
    move.move(tree, one)
    git(clone, "commit", "-q", "--allow-empty", "-m", "mine")
    two = CommitId(commit(upstream, other="x = 2\n"))
    git(clone, "fetch", "-q")
    move.move(tree, two)
    (clone / "other.py").write_text("x = 3\n")
    before = state(clone)
    with pytest.raises(SourceConflictError, match=r"your edits conflict with ours in other\.py"):
        move.move(tree, one)
    assert state(clone) == before


def test_stash_that_met_a_conflict_leaves_no_patch_staged_beside_an_edit(clone: Path, upstream: Path) -> None:
    apply(clone)
    mine = read(clone) + "# mine\n"
    (clone / "app.py").write_text(mine)
    (clone / OTHER).write_text("x = 'mine'\n")
    (upstream / OTHER).write_text("x = 'theirs'\n")
    commit(upstream)
    _autostash(clone)
    assert "M  app.py" in git(clone, "status", "--short").splitlines()
    apply(clone)
    assert git(clone, "diff", "--cached", "--name-only", "--diff-filter=M") == ""
    assert read(clone) == mine


def test_other_conflicts_have_to_be_ended_before_git_goes_on(clone: Path, upstream: Path) -> None:
    apply(clone)
    mine = read(clone).replace("line1 = 1", "line1 = 'mine'")
    commit(clone, app=mine, other="x = 'mine'\n")
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'), other="x = 'theirs'\n")
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    done = apply(clone)
    assert done is not None
    error = move.git_first(trees.open_tree(clone), done.moved.left_by_git)
    assert commands_of(error) == [["add", "other.py"], ["merge", "--abort"]]
    (clone / "other.py").write_text("x = 'both'\n")
    git(clone, *commands_of(error)[0])
    done = apply(clone)
    assert done is not None
    assert not done.moved.conflicts
    git(clone, "commit", "-q", "--no-edit")
    assert read(clone) == mine.replace("choose()", "pick(choose(), 2)")
    assert (read(clone, "other"), git(clone, "status", "--short")) == ("x = 'both'\n", "")


@pytest.mark.parametrize("how", [_stash, _autostash], ids=["stash", "autostash"])
def test_autostash_that_git_has_kept_is_told_once_its_conflicts_are_ended(
    clone: Path, upstream: Path, how: Callable[[Path], None]
) -> None:
    apply(clone)
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    how(clone)
    done = apply(clone)
    assert done is not None
    assert (done.moved.left_by_git, done.moved.left_stash) == ((), how is _autostash)
    assert read(clone) == PATCHED.replace("choose()", "pick(choose(), 2)")


@pytest.fixture
def both(clone: Path, upstream: Path) -> Path:
    """Give a clone with a conflict of git's that is none for us, and an edit that meets what the next patches do."""
    commit(upstream, other='x = "cuda"\n')
    git(clone, "pull", "-q")
    clone_patches.apply(trees.open_tree(clone), ONE, clone.parent / "cache")
    (clone / "app.py").write_text(read(clone).replace("line1 = 1", "line1 = 'mine'"))
    (clone / "other.py").write_text('x = ("cuda", "mine"\n')
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    _autostash(clone)
    assert git(clone, "diff", "--name-only", "--diff-filter=U") == "app.py"
    return clone


def test_conflict_of_gits_that_a_move_ended_comes_back(both: Path) -> None:
    before = state(both)
    done = apply(both)
    assert done is not None
    assert (done.moved.conflicts, done.moved.left_by_git) == ((OTHER,), ())
    assert git(both, "diff", "--name-only", "--diff-filter=U") == "other.py"
    assert set(abort(both)) == {PurePosixPath("app.py"), OTHER}
    after = state(both)
    for one in (before, after):
        one[2] = [row for row in one[2] if "/aborted" not in row and "/before" not in row]  # type: ignore[attr-defined]
    assert after == before


def test_killed_move_that_was_to_end_a_conflict_of_gits_is_done_again(
    both: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step(name: str) -> None:
        if name == f"put {OTHER}":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_journal, "step", step)
        with pytest.raises(KeyboardInterrupt):
            apply(both)
    with pytest.raises(SourceConflictError):
        apply(both)
    assert git(both, "diff", "--name-only", "--diff-filter=U") == "other.py"
    assert read(both) == PATCHED.replace("line1 = 1", "line1 = 'mine'").replace("choose()", "pick(choose(), 2)")


def _ours(clone: Path, upstream: Path) -> None:
    """Leave a conflict of ours in a file, and resolve it with git alone."""
    clone_patches.apply(trees.open_tree(clone), ONE, clone.parent / "cache")
    (clone / "other.py").write_text('x = ("cuda", "mine"\n')
    done = apply(clone)
    assert done is not None
    assert done.moved.conflicts == (OTHER,)
    (clone / "other.py").write_text("x = 'mine'\n")


def test_conflict_of_gits_in_the_place_of_ours_is_no_longer_ours(clone: Path, upstream: Path) -> None:
    commit(upstream, other='x = "cuda"\n')
    git(clone, "pull", "-q")
    _ours(clone, upstream)
    git(clone, "add", "other.py")
    theirs = commit(upstream, other="x = 'theirs'\n")
    git(clone, "fetch", "-q")
    git(clone, "cherry-pick", "--no-commit", theirs, allowed=(1,))
    assert "<<<<<<<" in read(clone, "other")
    error = refused(clone, abort)
    assert error.what == "git's own conflict stands in other.py, so nothing was changed"
    git(clone, *commands_of(error)[0])
    assert OTHER in abort(clone)
    assert read(clone, "other") == 'x = ("cuda", "mine"\n'


def test_merge_in_the_place_of_our_conflict_keeps_what_was_chosen(clone: Path, upstream: Path) -> None:
    commit(upstream, other='x = "cuda"\n')
    git(clone, "pull", "-q")
    _ours(clone, upstream)
    git(clone, "commit", "-q", "-m", "mine", "-a")
    commit(upstream, other="x = 'theirs'\n")
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    (clone / "other.py").write_text("x = 'both'\n")
    apply(clone)
    git(clone, "add", "other.py")
    git(clone, "commit", "-q", "--no-edit")
    assert git(clone, "show", "HEAD:other.py") == "x = 'both'"


@pytest.mark.parametrize("how", [_merge, _rebase], ids=["merge", "rebase"])
def test_choice_that_git_was_not_told_of_waits_for_it(clone: Path, upstream: Path, how: Callable[[Path], None]) -> None:
    apply(clone)
    (clone / "other.py").write_text("x = 'mine'\n")
    commit(upstream, other="x = 'theirs'\n", new='n = "cuda"\n')
    how(clone)
    (clone / "other.py").write_text("x = 'both'\n")
    before = state(clone)
    done = apply(clone)
    assert done is not None
    assert (done.moved.left_by_git, state(clone)) == ((OTHER,), before)
    git(clone, "add", "other.py")
    git(clone, "-c", "core.editor=true", how.__name__[1:], "--continue")
    assert git(clone, "show", "HEAD:other.py") == "x = 'both'"


@pytest.mark.parametrize("gives", [_merge, _rebase], ids=["merge", "rebase"])
@pytest.mark.parametrize("line", ["line1 = 1", "line4 = 4"])
def test_commit_of_the_users_that_patches_were_put_on_is_never_given_up(
    clone: Path, upstream: Path, gives: Callable[[Path], None], line: str
) -> None:
    mine = FILE.replace(line, f"{line}  # mine")
    commit(clone, app=mine, added="mine = 1\n")
    apply(clone)
    (clone / "other.py").write_text("x = 'mine'\n")
    commit(upstream, app=FILE.replace(line, f"{line}  # theirs"), other="x = 'theirs'\n")
    git(clone, "stash", "-q", "--", "app.py")
    head = git(clone, "rev-parse", "HEAD")
    gives(clone)
    before = state(clone)
    done = apply(clone)
    assert done is not None
    assert (done.moved.written, state(clone)) == ((), before)
    git(clone, gives.__name__[1:], "--abort")
    assert git(clone, "rev-parse", "HEAD~1") == head
    assert (read(clone, "added"), read(clone)) == ("mine = 1\n", mine)


def test_commit_under_committed_patches_is_an_edit_that_stays(clone: Path, upstream: Path) -> None:
    commit(clone, app=FILE.replace("line1 = 1", "line1 = 'mine'"), other="x = 'mine'\n")
    apply(clone)
    commit(clone)
    commit(upstream, new='n = "cuda"\n', other="x = 1\ny = 1\n")
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(0, 1))
    (clone / "other.py").write_text("x = 'mine'\ny = 1\n")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "--no-edit", allowed=(0, 1))
    head = git(clone, "rev-parse", "HEAD")
    assert apply(clone) is not None
    assert git(clone, "rev-parse", "HEAD") == head
    assert read(clone) == PATCHED.replace("line1 = 1", "line1 = 'mine'")
    assert (read(clone, "other"), read(clone, "new")) == ("x = 'mine'\ny = 1\n", "n = choose()\n")


def _fork(clone: Path, upstream: Path, **committed: str) -> Path:
    """Give another clone of a fork that has committed the patches, after upstream has gone on in the same lines."""
    commit(upstream, gone='g = "cuda"\n')
    git(clone, "pull", "-q")
    apply(clone)
    commit(clone, **{"app": read(clone).replace("line1 = 1", "line1 = 'mine'"), **committed})
    (upstream / "gone.py").unlink()
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    git(clone.parent, "clone", "-q", str(clone), "fork")
    git(clone.parent / "fork", "remote", "add", "upstream", str(upstream))
    git(clone.parent / "fork", "fetch", "-q", "upstream")
    return clone.parent / "fork"


JOINS = [
    pytest.param(("merge", "upstream/main"), "--theirs", id="merge"),
    pytest.param(("rebase", "upstream/main"), "--ours", id="rebase"),
    pytest.param(("cherry-pick", "origin/main"), "--ours", id="cherry-pick"),
]


@pytest.mark.parametrize(("words", "_side"), JOINS)
def test_conflict_of_patches_that_another_clone_has_committed_is_resolved(
    clone: Path, upstream: Path, words: tuple[str, ...], _side: str
) -> None:
    fork = _fork(clone, upstream)
    if words[0] == "cherry-pick":
        git(fork, "checkout", "-q", "upstream/main")
    git(fork, *words, allowed=(1,))
    assert len(git(fork, "diff", "--name-only", "--diff-filter=U").split()) == 2
    done = apply(fork)
    assert done is not None
    assert done.moved.conflicts == ()
    assert move.going_on(trees.open_tree(fork)) == f"git -C {fork} {words[0]} --continue"
    git(fork, "-c", "core.editor=true", words[0], "--continue")
    assert git(fork, "status", "--short") == ""
    assert read(fork) == PATCHED.replace("line1 = 1", "line1 = 'mine'").replace("choose()", "pick(choose(), 2)")
    assert not (fork / "gone.py").exists()


@pytest.mark.parametrize(("words", "_side"), JOINS[:2])
def test_later_edit_of_a_file_that_a_patch_has_made_is_kept_after_a_conflict(
    clone: Path, upstream: Path, words: tuple[str, ...], _side: str
) -> None:
    made = patches(helper=HELPER, use=USE)
    (clone / "patches.toml").write_text("as `patch new` has written it")
    wanted = dataclasses.replace(WANTED, patches=made, origin=str(clone.resolve() / "patches.toml"))
    clone_patches.apply(trees.open_tree(clone), wanted, clone.parent / "cache")
    commit(clone)
    commit(clone, helper=(mine := read(clone, "helper") + "mine = 1\n"))
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    git(clone.parent, "clone", "-q", str(clone), "fork")
    fork = clone.parent / "fork"
    git(fork, "remote", "add", "upstream", str(upstream))
    git(fork, "fetch", "-q", "upstream")
    git(fork, *words, allowed=(1,))
    wanted = dataclasses.replace(wanted, origin=str(fork.resolve() / "patches.toml"))
    for goes_on in (True, False):
        done = clone_patches.apply(trees.open_tree(fork), wanted, clone.parent / "cache")
        assert done is not None
        assert (done.moved.conflicts, done.moved.left_by_git) == ((), ())
        if goes_on:
            git(fork, "-c", "core.editor=true", words[0], "--continue")
    assert (read(fork, "helper"), git(fork, "status", "--short")) == (mine, "")


REWRITTEN = ("1,,2,p,3,,4,p,cuda,,6,p,7,r,8,,9,r", "0,r,20,p,40,,pick,,3,,2,p,12,p,9,r,7,r")
"""A file and what upstream has made of it, in which git's merges and `git merge-file` find other lines changed."""


def _lines(short: str) -> str:
    long = {"": "", "p": "pass", "r": "f(x)", "cuda": 'device = "cuda"', "pick": 'device = pick("cuda", 2)'}
    return "".join(f"{long.get(word, f'line{word} = {word}')}\n" for word in short.split(","))


@pytest.mark.parametrize(("words", "_side"), JOINS[:2])
def test_conflict_of_patches_in_a_file_that_upstream_has_rewritten_is_resolved(
    clone: Path, upstream: Path, words: tuple[str, ...], _side: str
) -> None:
    before, after = map(_lines, REWRITTEN)
    commit(upstream, app=before)
    git(clone, "pull", "-q")
    apply(clone)
    commit(clone)
    commit(upstream, app=after)
    git(clone.parent, "clone", "-q", str(clone), "fork")
    fork = clone.parent / "fork"
    git(fork, "remote", "add", "upstream", str(upstream))
    git(fork, "fetch", "-q", "upstream")
    git(fork, *words, allowed=(1,))
    done = apply(fork)
    assert done is not None
    assert done.moved.left_by_git == ()
    git(fork, "-c", "core.editor=true", words[0], "--continue")
    apply(fork)
    assert git(fork, "status", "--short") == ""
    assert read(fork) == after.replace('"cuda"', "choose()")


def test_merge_beside_the_branch_of_a_fork_is_never_taken_back(clone: Path, upstream: Path) -> None:
    apply(clone)
    commit(clone)
    git(clone.parent, "clone", "-q", "--bare", str(clone), "fork.git")
    git(clone, "remote", "rename", "origin", "upstream")
    git(clone, "remote", "add", "origin", str(clone.parent / "fork.git"))
    git(clone, "fetch", "-q", "origin")
    commit(upstream, app="first = 1\n" + FILE, other="x = 'later'\n", new='n = "cuda"\n')
    git(clone, "fetch", "-q", "upstream")
    git(clone, "merge", "-q", "--no-edit", "upstream/main")
    apply(clone)
    assert git(clone, "status", "--short") == "M new.py"
    assert (read(clone), read(clone, "new")) == ("first = 1\n" + PATCHED, "n = choose()\n")


@pytest.mark.parametrize(("words", "side"), JOINS)
def test_upstreams_side_of_a_line_that_other_patches_have_made_is_named(
    clone: Path, upstream: Path, words: tuple[str, ...], side: str
) -> None:
    fork = _fork(clone, upstream, app=PATCHED.replace("choose()", "choose(0)"))
    if words[0] == "cherry-pick":
        git(fork, "checkout", "-q", "upstream/main")
    git(fork, *words, allowed=(1,))
    done = apply(fork)
    assert done is not None
    error = move.git_first(trees.open_tree(fork), done.moved.left_by_git, patched=done.applied)
    assert commands_of(error)[-1] == ["checkout", side, "app.py"]
    git(fork, *commands_of(error)[-1])
    git(fork, "add", "-A")
    git(fork, "-c", "core.editor=true", words[0], "--continue", allowed=(0, 1))
    apply(fork)
    assert read(fork) == PATCHED.replace("choose()", "pick(choose(), 2)")


def test_patch_that_fails_in_a_merge_tells_of_the_merge(clone: Path, upstream: Path) -> None:
    (clone / "other.py").write_text("x = 'mine'\n")
    commit(upstream, app='device = "cuda" (\n', other="x = 'theirs'\n")
    _merge(clone)
    with pytest.raises(PatchError) as caught:
        clone_patches.apply(trees.open_tree(clone), ONE, clone.parent / "cache")
    assert caught.value.remedy == (
        "your `git merge` is not done, and its conflicts stand in other.py: correct the patch and run "
        f"this again, end the merge first, or go back with `git -C {clone} merge --abort`"
    )
