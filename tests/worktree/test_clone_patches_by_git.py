"""What upstream changes and only git brings, which is links, submodules and modes of files: moves refuse it whole."""

from __future__ import annotations

import functools
import re
import shlex
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
    return clone_patches.update(clone_patches.open_tree(clone), WANTED, clone.parent / "cache")


def refused(clone: Path, act: Callable[[Path], object]) -> GitFirstError:
    before = state(clone)
    with pytest.raises(GitFirstError) as caught:
        act(clone)
    assert state(clone) == before
    return caught.value


def follow(clone: Path, remedy: str) -> None:
    """Do what a message says, word by word."""
    for command in re.findall("`([^`]+)`", remedy):
        words = shlex.split(command)
        if words[:3] == ["patchlock", "patch", "undo"]:
            assert words[3:] == ["--source", str(clone)]
            clone_patches.undo(clone_patches.open_tree(clone))
        elif words[:3] == ["patchlock", "patch", "apply"]:
            assert words[3:] == ["--patches", "FILE", "--source", str(clone)]
            apply(clone)
        else:
            assert words[:3] == ["git", "-C", str(clone)]
            git(clone, *words[3:])


def _link(folder: Path, name: str, to: str = "app.py") -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(to)


def _file(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).write_text("a file\n")


def _bump(folder: Path) -> None:
    commit(folder.parent / "module", inner="2\n")
    git(folder / "module", *LOCAL, "pull", "-q")


CHANGES = [
    pytest.param(lambda u: _link(u, "new"), "symbolic link added: new", id="link"),
    pytest.param(lambda u: _link(u, "link", "other.py"), "symbolic link changed: link", id="link-elsewhere"),
    pytest.param(lambda u: (u / "old").unlink(), "symbolic link removed: old", id="no-link"),
    pytest.param(lambda u: _link(u, "other.py"), "symbolic link added: other.py", id="file-to-link"),
    pytest.param(lambda u: _file(u, "link"), "symbolic link removed: link", id="link-to-file"),
    pytest.param(_bump, "submodule changed: module", id="submodule"),
    pytest.param(lambda u: git(u, "rm", "-q", "module"), "submodule removed: module", id="no-submodule"),
    pytest.param(lambda u: (u / "other.py").chmod(0o755), "mode changed to 100755: other.py", id="program"),
    pytest.param(lambda u: (u / "app.py").chmod(0o755), "mode changed to 100755: app.py", id="patched-program"),
    pytest.param(lambda u: (u / "tool.sh").chmod(0o644), "mode changed to 100644: tool.sh", id="no-program"),
]


@pytest.mark.parametrize(("change", "told"), CHANGES)
def test_update_refuses_and_what_it_says_works(
    clone: Path, upstream: Path, change: Callable[[Path], object], told: str
) -> None:
    apply(clone)
    (clone / "app.py").write_text("first = 0\n" + read(clone))
    (clone / "mine.txt").write_text("model\n")
    change(upstream)
    newest = commit(upstream, app=FILE + 'end = "cuda"\n', new='n = "cuda"\n')
    error = refused(clone, update)
    assert error.what == (
        "upstream changes symbolic links, submodules or modes of files, which only git brings, so nothing was changed"
    )
    assert (error.where, error.evidence) == (str(clone), (told,))
    assert error.remedy == (
        f"`patchlock patch undo --source {clone}`, `git -C {clone} pull --autostash`, "
        f"then `patchlock patch apply --patches FILE --source {clone}`"
    )
    follow(clone, error.remedy)
    assert git(clone, "rev-parse", "HEAD") == newest
    assert git(clone, "stash", "list") == ""
    assert git(clone, "diff", "--cached", "--name-status") == ""
    assert git(clone, "status", "--short") == "M app.py\n M new.py\n?? mine.txt"
    assert read(clone) == "first = 0\n" + PATCHED + "end = choose()\n"
    assert read(clone, "new") == "n = choose()\n"
    assert update(clone) is None


@pytest.mark.parametrize(("change", "told"), CHANGES)
def test_pull_by_git_needs_no_more_than_before(
    clone: Path, upstream: Path, change: Callable[[Path], object], told: str
) -> None:
    apply(clone)
    change(upstream)
    newest = commit(upstream, new='n = "cuda"\n')
    git(clone, "pull", "-q", "--autostash")
    assert apply(clone) is not None
    assert (read(clone), read(clone, "new")) == (PATCHED, "n = choose()\n"), told
    assert git(clone, "diff", "--cached", "--name-status") in {"", "M\tapp.py"}  # an autostash stages, where it merges
    assert git(clone, "diff", "--name-only", newest) == "app.py\nnew.py"
    assert update(clone) is None


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda u: (_file(u, "run.sh"), (u / "run.sh").chmod(0o755)), id="new-program"),
        pytest.param(lambda u: (u / "tool.sh").write_text("#!/bin/sh\necho\n"), id="changed-program"),
        pytest.param(lambda u: (u / "tool.sh").unlink(), id="removed-program"),
    ],
)
def test_programs_that_keep_their_mode_are_brought(
    clone: Path, upstream: Path, change: Callable[[Path], object]
) -> None:
    apply(clone)
    change(upstream)
    newest = commit(upstream)
    assert update(clone) is not None
    assert git(clone, "rev-parse", "HEAD") == newest
    assert git(clone, "status", "--short") == "M app.py"


def test_first_update_of_a_clone_without_patches_is_refused_too(clone: Path, upstream: Path) -> None:
    _link(upstream, "new")
    newest = commit(upstream)
    error = refused(clone, update)
    assert error.remedy.startswith(f"`git -C {clone} pull --autostash`, then ")
    follow(clone, error.remedy)
    assert (git(clone, "rev-parse", "HEAD"), git(clone, "status", "--short")) == (newest, "M app.py")


def test_submodule_that_the_user_does_not_want_to_see_counts(clone: Path, upstream: Path) -> None:
    git(clone, "config", "submodule.module.ignore", "all")
    apply(clone)
    _bump(upstream)
    commit(upstream)
    assert refused(clone, update).evidence == ("submodule changed: module",)


def test_some_paths_are_named_and_the_rest_counted(clone: Path, upstream: Path) -> None:
    apply(clone)
    for name in ["a\nb", "\x1b[31m", "ü", "ä ö", "ß", "éa", "éb"]:
        _link(upstream, name)
    commit(upstream)
    assert refused(clone, update).evidence == (
        'symbolic link added: "\\033[31m"',
        'symbolic link added: "a\\nb"',
        "symbolic link added: ß",
        "symbolic link added: ä ö",
        "symbolic link added: éa",
        "and 2 more",
    )


def test_only_what_git_has_not_brought_yet_counts(clone: Path, upstream: Path) -> None:
    apply(clone)
    _link(upstream, "new")
    commit(upstream)
    git(clone, "pull", "-q")
    commit(upstream, new="n = 1\n")
    assert update(clone) is not None
    assert read(clone, "new") == "n = 1\n"
    assert git(clone, "diff", "--cached", "--name-status") == ""


def test_linked_worktree_is_refused_and_the_clone_left_alone(clone: Path, upstream: Path, tmp_path: Path) -> None:
    git(clone, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked", "--track", "origin/main")
    apply(clone)
    apply(tmp_path / "linked")
    _link(upstream, "new")
    commit(upstream)
    before = state(clone)
    refused(tmp_path / "linked", update)
    assert state(clone) == before


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
    move.move(clone_patches.open_tree(clone), one)
    return one, two


def _move(target: CommitId, clone: Path) -> None:
    move.move(clone_patches.open_tree(clone), target)


@pytest.mark.parametrize("commits", [False, True], ids=["untouched", "own-commits"])
def test_installed_clone_goes_forward_and_back_by_git(
    clone: Path, two: tuple[CommitId, CommitId], commits: bool
) -> None:
    tree = clone_patches.open_tree(clone)
    if commits:
        (clone / "mine.py").write_text("m = 1\n")
        git(clone, "add", "mine.py")
        git(clone, "commit", "-q", "-m", "mine")
    for target, end in ((two[1], "end = 1\n"), (two[0], "")):
        new = trees.upstream_of(clone, target)
        error = refused(clone, functools.partial(_move, target))
        words = f"checkout {new[:12]}" if target == two[0] else f"merge --autostash {new[:12]}"
        assert error.remedy == f"`patchlock patch undo --source {clone}`, `git -C {clone} {words}`, then run this again"
        follow(clone, error.remedy)
        move.move(tree, target)
        assert read(clone) == PATCHED + end
        assert (clone / "new").is_symlink() == bool(end)
        assert git(clone, "diff", "--cached", "--name-status") == ""
        assert (clone / "mine.py").exists() == (commits and target == two[1])


def test_upstream_with_another_history_is_checked_out(clone: Path, two: tuple[CommitId, CommitId]) -> None:
    git(clone, "checkout", "-q", "--orphan", "other")
    _link(clone, "newest")
    new = commit(clone)
    git(clone, "checkout", "-q", "main", "--")
    other = _patched(clone, "other")
    error = refused(clone, functools.partial(_move, other))
    assert error.remedy.endswith(f", `git -C {clone} checkout {new[:12]}`, then run this again")


def test_way_back_is_never_refused_and_never_stages_what_git_brought(
    clone: Path, two: tuple[CommitId, CommitId]
) -> None:
    tree = clone_patches.open_tree(clone)
    git(clone, "pull", "-q", "--autostash")
    move.move(tree, two[1])
    head = git(clone, "rev-parse", "HEAD")
    move.move(tree, two[0], is_way_back=True)
    assert read(clone) == PATCHED
    assert git(clone, "rev-parse", "HEAD") == head
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
    move.abort(clone_patches.open_tree(clone))


def test_abort_does_not_take_back_what_the_user_has_pulled_since(clone: Path, upstream: Path) -> None:
    old, mine = _conflict(clone, upstream)
    git(clone, "checkout", "-q", "HEAD", "--", "app.py")
    _link(upstream, "new")
    commit(upstream)
    git(clone, "pull", "-q")
    error = refused(clone, _abort)
    assert error.what == "your branch has moved since your edits and the patches met, so nothing was changed"
    assert error.remedy == (
        "choose between the two sides in each file and leave --abort out, "
        f"or `git -C {clone} checkout {old[:12]}`, then run this again"
    )
    follow(clone, error.remedy)
    _abort(clone)
    assert (read(clone), git(clone, "status", "--short")) == (mine, "M app.py")


def test_abort_does_not_drop_what_the_user_has_committed_since(clone: Path, upstream: Path) -> None:
    _conflict(clone, upstream)
    resolved = PATCHED.replace("line4 = 4", "line4 = 'both'")
    new = commit(clone, app=resolved)
    assert "leave --abort out" in refused(clone, _abort).remedy
    apply(clone)
    assert (git(clone, "rev-parse", "HEAD"), git(clone, "status", "--short"), read(clone)) == (new, "", resolved)


def test_cut_move_is_not_taken_back_over_what_the_user_has_committed_since(
    clone: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    apply(clone)
    with monkeypatch.context() as patch:
        patch.setattr(trees, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            _conflict(clone, upstream)
    old, mine = git(clone, "rev-parse", "HEAD"), read(clone)
    commit(clone, other="x = 'mine'\n")
    error = refused(clone, apply)
    assert error.remedy == f"`git -C {clone} checkout {old[:12]}`, then run this again"
    follow(clone, error.remedy)
    apply(clone)
    assert read(clone) == mine
