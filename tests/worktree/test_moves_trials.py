"""What random edits by random moves have shown: `benchmarks/tree_moves.py` plays them."""

from __future__ import annotations

import errno
import os
from pathlib import Path, PurePosixPath

import pytest
from test_clone_patches import FILE, PATCHED, apply, clone, commit, git, read, upstream
from test_moves_as_git import files_of, state, update

from patchlock.core import atomic_files
from patchlock.model.errors import BusyError, CommandFailedError, SourceConflictError
from patchlock.worktree import _journal, clone_patches, move, trees

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]


def _folder(upstream: Path) -> None:
    (upstream / "folder").mkdir()
    (upstream / "folder" / "one.py").write_text('o = "cuda"\n')


def _to_file(upstream: Path) -> None:
    git(upstream, "rm", "-q", "-r", "folder")
    (upstream / "folder").write_text("a file now\n")


def _abort(clone: Path) -> None:
    clone_patches.abort(trees.open_tree(clone))


def _pull(clone: Path) -> None:
    git(clone, "config", "user.name", "x")
    git(clone, "config", "user.email", "x@localhost")
    git(clone, "pull", "-q", "--rebase", "--autostash")


def test_abort_brings_a_folder_back_that_upstream_made_a_file_of(clone: Path, upstream: Path) -> None:
    _folder(upstream)
    commit(upstream)
    git(clone, "pull", "-q")
    apply(clone)
    (clone / "app.py").write_text(PATCHED.replace("line4 = 4", "line4 = 'mine'"))
    before = files_of(clone), git(clone, "status", "--short")
    _to_file(upstream)
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'"))
    done = update(clone)
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("app.py"),)
    _abort(clone)
    assert (files_of(clone), git(clone, "status", "--short")) == before


def test_pull_that_removes_a_patched_file_leaves_nothing_to_resolve(clone: Path, upstream: Path) -> None:
    commit(upstream, gone='g = "cuda"\n', kept='k = "cuda"\nk = 2\n')
    git(clone, "pull", "-q")
    apply(clone)
    (clone / "kept.py").write_text(read(clone, "kept") + "mine = 1\n")
    git(upstream, "rm", "-q", "gone.py", "kept.py")
    commit(upstream)
    _pull(clone)
    assert "DU gone.py" in git(clone, "status", "--short")
    done = apply(clone)
    assert done is not None
    assert (done.moved.conflicts, done.moved.kept) == ((), (PurePosixPath("kept.py"),))
    assert not (clone / "gone.py").exists()
    assert read(clone, "kept").endswith("mine = 1\n")
    # Git itself stages what it could merge where it has left a conflict elsewhere.
    assert git(clone, "status", "--short").splitlines() == ["M app.py", "?? kept.py"]


def test_pull_that_makes_a_file_of_a_patched_folder_leaves_nothing_to_resolve(clone: Path, upstream: Path) -> None:
    _folder(upstream)
    commit(upstream)
    git(clone, "pull", "-q")
    apply(clone)
    _to_file(upstream)
    commit(upstream)
    _pull(clone)
    assert (clone / "folder~Updated upstream").exists()
    done = apply(clone)
    assert done is not None
    assert done.moved.conflicts == ()
    assert (clone / "folder").read_text() == "a file now\n"
    assert git(clone, "status", "--short") == "M app.py"
    assert apply(clone) is None


def test_staged_version_that_meets_upstreams_is_kept(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "other.py").write_text("x = 'staged'\n")
    git(clone, "add", "other.py")
    (clone / "other.py").write_text("x = 1\n")
    commit(upstream, other="x = 'theirs'\n")
    done = update(clone)
    assert done is not None
    assert done.moved.unstaged == (PurePosixPath("other.py"),)
    assert git(clone, "diff", "--cached", "--name-only") == ""
    assert git(clone, "show", "refs/patchlock/before:other.py") == "x = 'staged'"
    (backup,) = move.backups(trees.open_tree(clone))
    assert backup.count == 1


def test_binary_conflict_is_open_until_the_user_says_so(clone: Path, upstream: Path) -> None:
    (upstream / "model.bin").write_bytes(b"\0one")
    commit(upstream)
    git(clone, "pull", "-q")
    apply(clone)
    (clone / "model.bin").write_bytes(b"\0mine")
    (upstream / "model.bin").write_bytes(b"\0theirs")
    commit(upstream)
    done = update(clone)
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("model.bin"),)
    for _ in range(2):
        with pytest.raises(SourceConflictError) as caught:
            update(clone)
        assert caught.value.what == "your version of model.bin still stands beside upstream's"
        assert caught.value.remedy == (
            f"put the one there that you want, say so with `git -C {clone} add model.bin`, and run `patchlock patch apply "
            f"--continue --source {clone}`; or go back with `patchlock patch apply --abort --source {clone}`"
        )
    git(clone, "add", "model.bin")
    update(clone)
    assert (clone / "model.bin").read_bytes() == b"\0mine"
    assert update(clone) is None


def test_conflict_of_a_copied_clone_is_still_open(clone: Path, upstream: Path) -> None:
    (upstream / "model.bin").write_bytes(b"\0one")
    commit(upstream)
    git(clone, "pull", "-q")
    apply(clone)
    (clone / "model.bin").write_bytes(b"\0mine")
    (upstream / "model.bin").write_bytes(b"\0theirs")
    commit(upstream)
    update(clone)
    file = clone / "model.bin"
    atomic_files.atomic_copy(file, clone.parent / "copy")
    found = file.stat()
    (clone.parent / "copy").replace(file)
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
    with pytest.raises(SourceConflictError):
        update(clone)


def test_folder_of_the_users_in_the_way_of_a_killed_move_stays(
    clone: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(clone)
    commit(upstream, new="n = 1\n", app=FILE + "end = 1\n")

    def step(name: str) -> None:
        if name.startswith("put"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_journal, "step", step)
        with pytest.raises(KeyboardInterrupt):
            update(clone)
    (clone / "new.py").mkdir()
    (clone / "new.py" / "mine").write_text("mine\n")
    update(clone)
    assert (clone / "new.py" / "mine").read_text() == "mine\n"
    assert read(clone) == PATCHED + "end = 1\n"
    assert not move.is_unfinished(trees.open_tree(clone))


def test_kill_while_a_journal_is_removed_leaves_none_behind(
    clone: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(clone)
    commit(upstream, new="n = 1\n")
    place = clone / ".git" / "patchlock"

    def remove(folder: Path) -> None:
        if (folder / "journal.json").exists():
            (folder / "journal.json").unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_journal, "remove_tree", remove)
        with pytest.raises(KeyboardInterrupt):
            update(clone)
    assert not (place / "move").exists()
    commit(upstream, new="n = 2\n")
    update(clone)
    assert read(clone, "new") == "n = 2\n"


def test_clone_whose_git_folder_is_on_another_disk(
    clone: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if "patchlock" in self.parts and "patchlock" not in Path(target).parts:
            raise OSError(errno.EXDEV, "cross-device")
        return real(self, target)

    git(clone, "init", "-q", f"--separate-git-dir={clone.parent / 'elsewhere'}")
    monkeypatch.setattr(Path, "replace", replace)
    apply(clone)
    (clone / "app.py").write_text("first = 0\n" + read(clone))
    (upstream / "link").symlink_to("app.py")
    commit(upstream, app=FILE + 'end = "cuda"\n')
    update(clone)
    assert read(clone) == "first = 0\n" + PATCHED + "end = choose()\n"
    assert git(clone, "status", "--short") == "M app.py"
    assert not list(clone.glob(".*.patchlock"))


def test_index_that_another_git_holds_is_told_and_the_move_goes_on(
    clone: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_journal, "_PATIENCE", 0.1)
    apply(clone)
    newest = commit(upstream, app=FILE + "end = 1\n")
    lock = clone / ".git" / "index.lock"
    lock.touch()
    with pytest.raises(BusyError) as caught:
        update(clone)
    assert str(lock) in caught.value.remedy
    lock.unlink()
    update(clone)
    assert (git(clone, "rev-parse", "HEAD"), git(clone, "status", "--short")) == (newest, "M app.py")


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"core.fileMode": "false"}, id="no-modes"),
        pytest.param({"core.splitIndex": "true"}, id="split-index"),
        pytest.param({"core.ignoreCase": "true"}, id="ignored-case"),
        pytest.param({"core.symlinks": "false"}, id="no-links"),
        pytest.param({"merge.conflictStyle": "zdiff3", "merge.renames": "true"}, id="zdiff3"),
        pytest.param({"core.fsmonitor": "true", "feature.manyFiles": "true"}, id="many-files"),
        pytest.param({"diff.external": "false", "merge.tool": "x", "status.short": "true"}, id="tools"),
    ],
)
def test_settings_of_the_clone_change_nothing(clone: Path, upstream: Path, settings: dict[str, str]) -> None:
    (upstream / "old").symlink_to("app.py")
    commit(upstream)
    for key, value in settings.items():
        git(clone, "config", key, value)
    git(clone, "pull", "-q")
    apply(clone)
    (clone / "app.py").write_text("first = 0\n" + read(clone))
    (clone / "other.py").write_text("x = 1\nstaged = 1\n")
    git(clone, "add", "other.py")
    (upstream / "old").unlink()
    (upstream / "link").symlink_to("app.py")
    (upstream / "tool.sh").write_text("#!/bin/sh\n")
    (upstream / "tool.sh").chmod(0o755)
    newest = commit(upstream, app=FILE.replace("line9 = 9", "line9 = 'theirs'"))
    update(clone)
    assert read(clone) == "first = 0\n" + PATCHED.replace("line9 = 9", "line9 = 'theirs'")
    assert git(clone, "rev-parse", "HEAD") == newest
    assert git(clone, "status", "--short").splitlines() == ["M app.py", "M  other.py"]
    assert update(clone) is None
    before = read(clone)
    (clone / "app.py").write_text(before.replace("line4 = 4", "line4 = 'mine'"))
    mine = state(clone)[0]
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'other'"))
    update(clone)
    assert "UU app.py" in git(clone, "status", "--short")
    _abort(clone)
    assert state(clone)[0] == mine


@pytest.mark.parametrize("name", ["union", "driver"])
def test_merge_drivers_of_the_clone_are_used(clone: Path, upstream: Path, name: str) -> None:
    (upstream / ".gitattributes").write_text(f"app.py merge={'union' if name == 'union' else 'mine'}\n")
    commit(upstream)
    git(clone, "pull", "-q")
    git(clone, "config", "merge.mine.driver", "cat %A %B > merged; mv merged %A")
    apply(clone)
    (clone / "app.py").write_text(PATCHED.replace("line4 = 4", "line4 = 'mine'"))
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'"))
    done = update(clone)
    assert done is not None
    assert done.moved.conflicts == ()
    assert "line4 = 'mine'\n" in read(clone)
    assert "line4 = 'theirs'\n" in read(clone)


def test_filter_that_is_required_and_missing_is_a_refusal(clone: Path, upstream: Path) -> None:
    (upstream / ".gitattributes").write_text("*.bin filter=lfs\n")
    (upstream / "model.bin").write_text("pointer\n")
    commit(upstream)
    git(clone, "pull", "-q")
    apply(clone)
    git(clone, "config", "filter.lfs.smudge", "no-such-git-lfs")
    git(clone, "config", "filter.lfs.clean", "no-such-git-lfs")
    git(clone, "config", "filter.lfs.required", "true")
    (upstream / "model.bin").write_text("other\n")
    commit(upstream)
    before = files_of(clone), git(clone, "rev-parse", "HEAD")
    with pytest.raises(CommandFailedError) as caught:
        update(clone)
    assert "no-such-git-lfs" in "\n".join(caught.value.evidence)
    assert (files_of(clone), git(clone, "rev-parse", "HEAD")) == before
    assert not move.is_unfinished(trees.open_tree(clone))


def test_partial_clone_is_moved_without_the_network(upstream: Path, tmp_path: Path) -> None:
    git(upstream, "config", "uploadpack.allowFilter", "true")
    commit(upstream, app=FILE + "old = 1\n")
    commit(upstream, app=FILE)
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{upstream}", "partial")
    partial = tmp_path / "partial"
    apply(partial)
    (partial / "app.py").write_text("first = 0\n" + read(partial))
    newest = commit(upstream, app=FILE + 'end = "cuda"\n')
    update(partial)
    assert read(partial) == "first = 0\n" + PATCHED + "end = choose()\n"
    assert git(partial, "rev-parse", "HEAD") == newest
    clone_patches.undo(trees.open_tree(partial))
    assert read(partial) == "first = 0\n" + FILE + 'end = "cuda"\n'


def test_clone_that_is_a_submodule_is_moved(upstream: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "-q", "add", "-b", "main", str(upstream), "app")
    inner = outer / "app"
    apply(inner)
    (inner / "app.py").write_text("first = 0\n" + read(inner))
    newest = commit(upstream, app=FILE + 'end = "cuda"\n')
    update(inner)
    assert read(inner) == "first = 0\n" + PATCHED + "end = choose()\n"
    assert (git(inner, "rev-parse", "HEAD"), git(inner, "status", "--short")) == (newest, "M app.py")


def test_staged_version_that_makes_room_for_a_conflict_is_kept(clone: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(PATCHED.replace("choose()", "choose('staged')"))
    git(clone, "add", "app.py")
    (clone / "app.py").write_text(PATCHED.replace("choose()", "choose('edited again')"))
    moved = clone_patches.undo(trees.open_tree(clone))
    assert (moved.conflicts, moved.unstaged) == ((PurePosixPath("app.py"),), (PurePosixPath("app.py"),))
    assert "choose('staged')" in git(clone, "show", f"{moved.staged_in}:app.py")
    (clone / "app.py").write_text(FILE)
    git(clone, "add", "app.py")
    clone_patches.undo(trees.open_tree(clone))
    assert "choose('staged')" in git(clone, "log", "-p", "refs/patchlock/before")
    assert git(clone, "status", "--short") == ""
