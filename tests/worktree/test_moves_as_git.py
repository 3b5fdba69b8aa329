"""Links, submodules, modes, folders and odd names: a move brings what git would, and leaves the index as git would."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from test_clone_patches import FILE, PATCHED, WANTED, apply, clone, commit, git, read, upstream

from patchlock.model.errors import GitFirstError
from patchlock.model.identities import CommitId
from patchlock.worktree import clone_patches, move, trees

pytestmark = pytest.mark.slow

__all__ = ["clone"]

LOCAL = ("-c", "protocol.file.allow=always")
"""Settings of git's, without which it fetches no submodule from a folder."""
bare_upstream = upstream


@pytest.fixture
def upstream(bare_upstream: Path, tmp_path: Path) -> Path:
    """Give an upstream that has links, a submodule and a program already."""
    module = tmp_path / "module"
    module.mkdir()
    git(module, "init", "-q", "-b", "main")
    commit(module, inner="1\n")
    git(bare_upstream, *LOCAL, "submodule", "-q", "add", str(module), "module")
    (bare_upstream / "link").symlink_to("app.py")
    (bare_upstream / "old").symlink_to("app.py")
    (bare_upstream / "tool.sh").write_text("#!/bin/sh\n")
    (bare_upstream / "tool.sh").chmod(0o755)
    (bare_upstream / "folder").mkdir()
    (bare_upstream / "folder" / "one.txt").write_text("1\n")
    commit(bare_upstream)
    return bare_upstream


def state(clone: Path) -> list[object]:
    """Give all that a refusal must leave as it is: the files, git's index, HEAD and refs, and what is kept of ours."""
    files: dict[str, object] = {}
    for path in sorted(clone.rglob("*")):
        if path.is_symlink():
            files[str(path)] = path.readlink()
        elif path.is_file() and ".git" not in path.relative_to(clone).parts:
            files[str(path)] = (path.read_bytes(), path.stat().st_mode)
    ours = clone / ".git" / "patchlock"
    kept = {path.name: path.read_bytes() for path in ours.glob("*.json")} if ours.is_dir() else {}
    words = (["ls-files", "-s"], ["status", "--porcelain"], ["rev-parse", "HEAD"], ["stash", "list"])
    refs = git(clone, "for-each-ref").splitlines()
    refs = [row for row in refs if not row.endswith("/made")]  # what was patched last, whether or not it was used
    return [
        files,
        kept,
        refs,
        git(clone, "symbolic-ref", "HEAD", allowed=(0, 1, 128)),
        *(git(clone, *w) for w in words),
    ]


def update(clone: Path) -> clone_patches.Applied | None:
    return clone_patches.update(trees.open_tree(clone), WANTED, clone.parent / "cache")


def refused(clone: Path, act: Callable[[Path], object]) -> GitFirstError:
    before = state(clone)
    with pytest.raises(GitFirstError) as caught:
        act(clone)
    assert state(clone) == before
    return caught.value


def _link(folder: Path, name: str, to: str = "app.py") -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(to)


def _file(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).write_text("a file\n")


def _remove(folder: Path, name: str) -> None:
    git(folder, "rm", "-q", "-r", name)


def _folder(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()
    (folder / name / "inner.py").write_text('i = "cuda"\n')


def files_of(clone: Path) -> dict[str, object]:
    """Give the files of a working tree, with their modes, and its links."""
    found: dict[str, object] = {}
    for path in sorted(clone.rglob("*")):
        name = str(path.relative_to(clone))
        if path.is_symlink():
            found[name] = path.readlink()
        elif path.is_file() and name.split("/", maxsplit=1)[0] != ".git":
            found[name] = (path.read_bytes(), path.stat().st_mode)
    return found


def _bump(folder: Path) -> None:
    commit(folder.parent / "module", inner="2\n")
    git(folder / "module", *LOCAL, "pull", "-q")


CHANGES = [
    pytest.param(lambda u: _link(u, "new"), id="link"),
    pytest.param(lambda u: _link(u, "link", "other.py"), id="link-elsewhere"),
    pytest.param(lambda u: (u / "old").unlink(), id="no-link"),
    pytest.param(lambda u: _link(u, "other.py"), id="file-to-link"),
    pytest.param(lambda u: _file(u, "link"), id="link-to-file"),
    pytest.param(_bump, id="submodule"),
    pytest.param(lambda u: git(u, "rm", "-q", "module"), id="no-submodule"),
    pytest.param(lambda u: (u / "other.py").chmod(0o755), id="program"),
    pytest.param(lambda u: (u / "app.py").chmod(0o755), id="patched-program"),
    pytest.param(lambda u: (u / "tool.sh").chmod(0o644), id="no-program"),
    pytest.param(lambda u: (_file(u, "run.sh"), (u / "run.sh").chmod(0o755)), id="new-program"),
    pytest.param(lambda u: (u / "tool.sh").write_text("#!/bin/sh\necho\n"), id="changed-program"),
    pytest.param(lambda u: (u / "tool.sh").unlink(), id="removed-program"),
    pytest.param(lambda u: _folder(u, "old"), id="link-to-folder"),
    pytest.param(lambda u: _folder(u, "other.py"), id="file-to-folder"),
    pytest.param(lambda u: (_remove(u, "folder"), _file(u, "folder")), id="folder-to-file"),
    pytest.param(lambda u: (u / os.fsdecode(b"caf\xe9.py")).write_text('c = "cuda"\n'), id="name-not-in-utf-8"),
    pytest.param(lambda u: (u / "two\nlines.py").write_text('c = "cuda"\n'), id="name-in-two-lines"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_update_brings_what_git_would(
    clone: Path, upstream: Path, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    apply(clone)
    (clone / "app.py").write_text("first = 0\n" + read(clone))
    (clone / "mine.txt").write_text("model\n")
    git(clone, "stash", "list")
    change(upstream)
    newest = commit(upstream, app=FILE + 'end = "cuda"\n', new='n = "cuda"\n')
    assert update(clone) is not None
    git(tmp_path, "clone", "-q", str(upstream), "fresh")
    fresh = tmp_path / "fresh"
    apply(fresh)
    (fresh / "app.py").write_text("first = 0\n" + read(fresh))
    (fresh / "mine.txt").write_text("model\n")
    assert git(clone, "rev-parse", "HEAD") == newest
    assert git(clone, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert git(clone, "diff", "--cached", "--name-status") == ""
    for words in (["ls-files", "-s"], ["status", "--porcelain"], ["diff", "HEAD"]):
        assert git(clone, *words) == git(fresh, *words)
    assert files_of(clone) == files_of(fresh)
    assert update(clone) is None
    assert git(clone, "fsck", "--no-dangling", "--connectivity-only") == ""


@pytest.mark.parametrize("change", CHANGES)
def test_pull_by_git_needs_no_more_than_before(clone: Path, upstream: Path, change: Callable[[Path], object]) -> None:
    apply(clone)
    change(upstream)
    newest = commit(upstream, new='n = "cuda"\n')
    git(clone, "pull", "-q", "--autostash")
    assert apply(clone) is not None
    assert (read(clone), read(clone, "new")) == (PATCHED, "n = choose()\n")
    assert git(clone, "diff", "--cached", "--name-status") in {"", "M\tapp.py"}  # an autostash stages, where it merges
    assert {"app.py", "new.py"} <= {*git(clone, "diff", "--name-only", newest).splitlines()}
    assert update(clone) is None


def test_first_update_of_a_clone_without_patches(clone: Path, upstream: Path) -> None:
    _link(upstream, "new")
    newest = commit(upstream)
    assert update(clone) is not None
    assert (git(clone, "rev-parse", "HEAD"), git(clone, "status", "--short")) == (newest, "M app.py")
    assert (clone / "new").is_symlink()


def test_submodule_that_the_user_does_not_want_to_see_is_brought(clone: Path, upstream: Path) -> None:
    git(clone, "config", "submodule.module.ignore", "all")
    apply(clone)
    _bump(upstream)
    newest = commit(upstream)
    update(clone)
    assert git(clone, "ls-files", "-s", "module") == git(clone, "ls-tree", newest, "module").replace(
        " commit ", " "
    ).replace("\t", " 0\t")


def test_links_of_the_user_stay(clone: Path, upstream: Path) -> None:
    apply(clone)
    _link(clone, "link", "mine.py")
    (clone / "mine").symlink_to("app.py")
    commit(upstream, new="n = 1\n")
    update(clone)
    assert ((clone / "link").readlink(), (clone / "mine").readlink()) == (Path("mine.py"), Path("app.py"))
    assert git(clone, "status", "--short").split("\n") == ["M app.py", " M link", "?? mine"]


def test_linked_worktree_is_moved_and_the_clone_left_alone(clone: Path, upstream: Path, tmp_path: Path) -> None:
    git(clone, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked", "--track", "origin/main")
    apply(clone)
    apply(tmp_path / "linked")
    _link(upstream, "new")
    newest = commit(upstream)
    before = state(clone)
    update(tmp_path / "linked")
    after = state(clone)
    for one in (before, after):
        one[2] = [row for row in one[2] if "refs/patchlock/applied" in row or "heads/main" in row]  # type: ignore[attr-defined]
    assert after == before
    assert git(tmp_path / "linked", "rev-parse", "HEAD") == newest
    assert (tmp_path / "linked" / "new").is_symlink()


def _patched(clone: Path, ref: str) -> CommitId:
    """Commit what patching a commit gives, as an install does in its cache, and bring it into a clone."""
    parent = CommitId(git(clone, "rev-parse", ref))
    data = git(clone, "show", f"{parent}:app.py").replace('"cuda"', "choose()") + "\n"
    files = {PurePosixPath("app.py"): data.encode()}
    return trees.commit_files(clone, files, parent=parent, message="patched\n", ref="refs/patchlock/incoming")


@pytest.fixture
def two(clone: Path, upstream: Path) -> tuple[CommitId, CommitId]:
    """Give two patched commits of upstream, between which it added a link, and a clone that is at the first."""
    _link(upstream, "new")
    commit(upstream, app=FILE + "end = 1\n")
    git(clone, "fetch", "-q")
    one, two = _patched(clone, "HEAD"), _patched(clone, "origin/main")
    move.move(trees.open_tree(clone), one)
    return one, two


@pytest.mark.parametrize("commits", [False, True], ids=["untouched", "own-commits"])
def test_installed_clone_goes_forward_and_back(clone: Path, two: tuple[CommitId, CommitId], commits: bool) -> None:
    tree = trees.open_tree(clone)
    if commits:
        (clone / "mine.py").write_text("m = 1\n")
        git(clone, "add", "mine.py")
        git(clone, "commit", "-q", "-m", "mine")
    head = git(clone, "rev-parse", "HEAD")
    for target, end in ((two[1], "end = 1\n"), (two[0], "")):
        move.move(tree, target)
        assert read(clone) == PATCHED + end
        assert (clone / "new").is_symlink() == bool(end)
        assert git(clone, "diff", "--cached", "--name-status") == ""
        assert git(clone, "rev-parse", "HEAD") == (head if commits else trees.upstream_of(clone, target))
        assert (clone / "mine.py").exists() == commits


def test_way_back_never_stages_what_git_brought(clone: Path, two: tuple[CommitId, CommitId]) -> None:
    tree = trees.open_tree(clone)
    git(clone, "pull", "-q", "--autostash")
    move.move(tree, two[1])
    move.move(tree, two[0])
    assert read(clone) == PATCHED
    assert git(clone, "diff", "--cached", "--name-only", "--", "new") == ""
    move.move(tree, two[1])
    assert (read(clone), (clone / "new").is_symlink()) == (PATCHED + "end = 1\n", True)


def _conflict(clone: Path, upstream: Path) -> tuple[str, str]:
    """Leave a conflict of ours; gives where the branch stood, and the user's file as it was."""
    apply(clone)
    old = git(clone, "rev-parse", "HEAD")
    mine = read(clone).replace("line4 = 4", "line4 = 'mine'")
    (clone / "app.py").write_text(mine)
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'"))
    done = update(clone)
    assert done is not None
    assert done.moved.conflicts
    return old, mine


def _abort(clone: Path) -> None:
    move.abort(trees.open_tree(clone))


def test_abort_does_not_take_back_what_the_user_has_pulled_since(clone: Path, upstream: Path) -> None:
    old, mine = _conflict(clone, upstream)
    git(clone, "checkout", "-q", "HEAD", "--", "app.py")
    _link(upstream, "new")
    commit(upstream)
    git(clone, "pull", "-q")
    error = refused(clone, _abort)
    assert error.what == "your branch has moved since your edits and the patches met, so nothing was changed"
    assert error.remedy == (
        "choose between the two sides in each file and leave --abort out, or go to the commit of then, on no branch, "
        f"with `git -C {clone} checkout {old[:12]}`, then run this again"
    )
    git(clone, "checkout", "-q", old)
    _abort(clone)
    assert (read(clone), git(clone, "status", "--short")) == (mine, "M app.py")


def test_abort_does_not_drop_what_the_user_has_committed_since(clone: Path, upstream: Path) -> None:
    _conflict(clone, upstream)
    resolved = PATCHED.replace("line4 = 4", "line4 = 'both'")
    new = commit(clone, app=resolved)
    assert "leave --abort out" in refused(clone, _abort).remedy
    apply(clone)
    assert (git(clone, "rev-parse", "HEAD"), git(clone, "status", "--short"), read(clone)) == (new, "", resolved)
