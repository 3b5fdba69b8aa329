"""What is said of a failed write or filter, a half done move and a missing file names the user's file and a way on."""

from __future__ import annotations

import errno
from pathlib import Path, PurePosixPath

import pytest
from test_clone_patches import FILE, PATCHED, WANTED, apply, clone, commit, git, read, upstream
from test_moves_as_git import files_of, update

from patchlock.model.errors import CommandFailedError, DiskFullError, FileAccessError, UpstreamError
from patchlock.model.patch import OutcomeKind
from patchlock.worktree import _journal, clone_patches, move, trees

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]

POINTERS = "install git-lfs, and run this again; or leave its files as pointers: set `GIT_LFS_SKIP_SMUDGE=1` for the same command"
FAILURES = [
    pytest.param(errno.ENOSPC, DiskFullError, "no space left on device", "free some room", id="full"),
    pytest.param(errno.EACCES, FileAccessError, "permission denied", "let yourself write there", id="read-only"),
]


@pytest.mark.parametrize(("number", "kind", "reason", "cure"), FAILURES)
@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["same-disk", "other-disk"])
def test_failed_write_names_the_users_file_and_is_finished_later(
    clone: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[DiskFullError | FileAccessError],
    reason: str,
    cure: str,
    is_elsewhere: bool,
) -> None:
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if Path(target).name != "app.py":
            return real(self, target)
        is_first = is_elsewhere and not self.name.endswith(".patchlock")
        raise OSError(errno.EXDEV if is_first else number, reason.capitalize(), str(self))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(kind) as caught:
            apply(clone)
    assert caught.value.what == f"app.py cannot be written: {reason}; the move is half done"
    assert caught.value.where == str(clone / "app.py")
    assert caught.value.remedy == f"{cure}, and run the same command again: it goes on"
    assert not [*clone.glob("*.patchlock"), *clone.glob(".*.patchlock")]
    tree = trees.open_tree(clone)
    assert move.finishing_words(tree) == "apply"
    apply(clone)
    assert (read(clone), move.finishing_words(tree)) == (PATCHED, "")


@pytest.mark.parametrize("words", ["undo", "apply --abort"])
def test_command_that_finishes_a_half_done_move_is_named(
    clone: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    tree = trees.open_tree(clone)
    if words == "undo":
        apply(clone)
    else:
        (clone / "app.py").write_text(FILE.replace('"cuda"', '("cuda", "mine"'))
        apply(clone)

    def step(name: str) -> None:
        if name in {"put app.py", "take back app.py"}:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_journal, "step", step)
        with pytest.raises(KeyboardInterrupt):
            clone_patches.undo(tree) if words == "undo" else clone_patches.abort(tree)
    assert move.finishing_words(tree) == words
    clone_patches.undo(tree) if words == "undo" else clone_patches.abort(tree)
    assert move.finishing_words(tree) == ""


@pytest.mark.parametrize(
    ("name", "kind", "remedy"),
    [
        ("lfs", "clean", "install git-lfs, and run this again"),
        (
            "lfs",
            "smudge",
            POINTERS,
        ),
        (
            "own",
            "smudge",
            "`git -C {} config --get filter.own.smudge` says what it runs; correct that, and run this again",
        ),
    ],
)
def test_failing_filter_is_named(clone: Path, upstream: Path, name: str, kind: str, remedy: str) -> None:
    (upstream / ".gitattributes").write_text(f"*.bin filter={name}\n")
    (upstream / "model.bin").write_text("pointer\n")
    commit(upstream)
    git(clone, "pull", "-q")
    apply(clone)
    git(clone, "config", f"filter.{name}.{kind}", "false")
    git(clone, "config", f"filter.{name}.required", "true")
    git(clone, "config", f"filter.{name}.{'clean' if kind == 'smudge' else 'smudge'}", "cat")
    if kind == "clean":
        (clone / "model.bin").write_text("mine\n")
    (upstream / "model.bin").write_text("other\n")
    commit(upstream)
    before = files_of(clone), git(clone, "rev-parse", "HEAD")
    with pytest.raises(CommandFailedError) as caught:
        update(clone)
    assert caught.value.what == f"the {kind} filter {name} fails for model.bin, so nothing was changed"
    assert caught.value.remedy == remedy.format(clone)
    assert (files_of(clone), git(clone, "rev-parse", "HEAD")) == before


def test_file_that_a_sparse_checkout_leaves_out_was_not_removed(clone: Path, upstream: Path) -> None:
    for name in ("kept", "left"):
        (upstream / name).mkdir()
        (upstream / name / "one.py").write_text(FILE)
    commit(upstream)
    git(clone, "pull", "-q")
    git(clone, "sparse-checkout", "set", "--cone", "kept")
    apply(clone)
    (clone / "app.py").unlink()
    _, _, outcomes = clone_patches.status(trees.open_tree(clone), WANTED, clone.parent / "cache")
    assert {str(one.path): (one.kind, one.detail) for one in outcomes} == {
        "app.py": (OutcomeKind.DRIFTED, "you have removed the file"),
        "kept/one.py": (OutcomeKind.ALREADY_OURS, ""),
        "left/one.py": (OutcomeKind.DRIFTED, "your sparse checkout leaves the file out"),
    }


@pytest.mark.parametrize("is_known", [True, False], ids=["remote-head", "followed-branch"])
def test_branch_that_is_named_is_upstreams(upstream: Path, tmp_path: Path, is_known: bool) -> None:
    git(upstream, "branch", "-q", "-m", "main", "trunk")
    git(tmp_path, "clone", "-q", str(upstream), "with space")
    clone = tmp_path / "with space"
    if not is_known:
        git(clone, "remote", "set-head", "origin", "--delete")
    git(clone, "checkout", "-q", "--detach")
    with pytest.raises(UpstreamError) as caught:
        update(clone)
    assert caught.value.remedy == f"check out upstream's branch: `git -C '{clone}' switch trunk`"


def test_branch_that_another_worktree_has_is_followed_by_a_new_one(clone: Path, upstream: Path) -> None:
    git(clone, "branch", "-q", "main-2")
    work = clone.parent / "work"
    git(clone, "worktree", "add", "-q", "-b", "feature", str(work))
    apply(work)
    with pytest.raises(UpstreamError) as caught:
        update(work)
    command = caught.value.remedy.partition("`")[2].rstrip("`").split()
    assert command == ["git", "-C", str(work), "switch", "--create", "main-3", "--track", "origin/main"]
    git(work, *command[3:])
    commit(upstream, other='x = "cuda"\n')
    assert update(work) is not None


def test_line_that_the_user_chose_has_no_patch_to_take_out(clone: Path) -> None:
    mine = FILE.replace('device = "cuda"', 'device = ("cuda", "mine"  # odd')
    (clone / "app.py").write_text(mine)
    done = apply(clone)
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("app.py"),)
    git(clone, "checkout", "-q", "--ours", "app.py")
    apply(clone)
    assert read(clone) == mine
    moved = clone_patches.undo(trees.open_tree(clone))
    assert (moved.conflicts, read(clone)) == ((), mine)
