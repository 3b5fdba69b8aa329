"""What no patch can hold is told, whether the edited folder is a clone or beside the one that it was made from."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from test_clone_patches import git

from patchlock.model.errors import GitFirstError
from patchlock.worktree import edited_tree

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has neither modes nor links that git would keep")


def _link(folder: Path) -> None:
    (folder / "new").symlink_to("start.sh")
    (folder / "broken").symlink_to("nowhere")
    (folder / "folder").symlink_to("sub")


def _change_link(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("sub")


@pytest.mark.parametrize(
    ("change", "notes"),
    [
        pytest.param(lambda _: None, (), id="nothing"),
        pytest.param(
            lambda folder: (folder / "start.sh").chmod(0o755),
            ("start.sh has another mode: no patch changes the mode of a file",),
            id="mode-alone",
        ),
        pytest.param(
            _link,
            tuple(f"{name} is or was a link: no patch makes, changes or removes one" for name in ("broken", "folder", "new")),
            id="new-links",
        ),
        pytest.param(
            lambda folder: (folder / "link").unlink(),
            ("link is or was a link: no patch makes, changes or removes one",),
            id="removed-link",
        ),
        pytest.param(
            _change_link, ("link is or was a link: no patch makes, changes or removes one",), id="link-to-elsewhere"
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["clone", "folder"])
def test_what_no_patch_holds_is_told(
    tmp_path: Path, kind: str, change: Callable[[Path], None], notes: tuple[str, ...]
) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "start.sh").write_text("echo\n")
    (source / "sub" / "a.py").write_text("x = 1\n")
    (source / "link").symlink_to("start.sh")
    if kind == "clone":
        git(source, "init", "-q")
        git(source, "add", "-A")
        git(source, "commit", "-q", "-m", "one")
    base = tmp_path / "base"
    shutil.copytree(source, base, symlinks=True)
    change(source)
    found = edited_tree.read(source, base=None, base_folder=base if kind == "folder" else None)
    assert (dict(found.before), dict(found.after)) == ({}, {})
    assert found.notes == notes


def test_what_git_ignores_is_named_by_its_topmost_folder(tmp_path: Path) -> None:
    for name in (
        "app/version.py",
        "app/__pycache__/a.pyc",
        "app/weights/a.bin",
        "app/weights/b.bin",
        "other/version.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("version.py\nweights/\n*.pyc\n")
    (tmp_path / "app" / "old.py").touch()
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".gitignore", "app")
    git(tmp_path, "commit", "-q", "-m", "one")
    (tmp_path / "app" / "new.py").write_text("x = 1\n")

    found = edited_tree.read(tmp_path / "app", base=None, base_folder=None)

    assert [str(path) for path in found.ignored] == ["version.py", "weights"]
    assert [str(path) for path in found.after] == ["new.py"]


def test_what_only_the_named_branch_has_is_no_edit(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "-q", "-b", "main")
    (source / "a.py").write_text("x = 1\n")
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "one")
    start = git(source, "rev-parse", "HEAD")
    git(source, "checkout", "-q", "-b", "theirs")
    for text in ("y = 1\n", "y = 2\n"):
        (source / "b.py").write_text(text)
        git(source, "add", "-A")
        git(source, "commit", "-q", "-m", "upstream's")
    git(source, "checkout", "-q", "main")
    (source / "a.py").write_text("x = 2\n")
    git(source, "commit", "-q", "-a", "-m", "mine")

    found = edited_tree.read(source, base="theirs", base_folder=None)

    assert [str(path) for path in {**found.before, **found.after}] == ["a.py"]
    assert (found.commit, found.is_committed) == (start, True)
    squashed = "if you have squashed these into yours, name a checkout of theirs with --base-dir instead"
    parted = f"theirs is 2 commits ahead of your branch: compared with commit {start[:12]}, where they part"
    assert found.notes == (f"{parted}; {squashed}",)
    (source / "a.py").write_text("x = 3\n")
    assert not edited_tree.read(source, base=None, base_folder=None).is_committed


@pytest.mark.parametrize("command", ["merge", "cherry-pick", "rebase", "stash"])
def test_markers_of_a_conflict_are_no_edits(tmp_path: Path, command: str) -> None:
    source = tmp_path / "source"
    (source / "app").mkdir(parents=True)
    git(source, "init", "-q", "-b", "main")

    def write(text: str) -> None:
        for name in ("a.py", "app/b.py"):
            (source / name).write_text(text)
        git(source, "add", "-A")

    write("x = 1\n")
    git(source, "commit", "-q", "-m", "one")
    git(source, "checkout", "-q", "-b", "theirs")
    write("x = 2\n")
    if command == "stash":
        git(source, "stash", "-q")
    else:
        git(source, "commit", "-q", "-m", "theirs")
    git(source, "checkout", "-q", "main")
    write("x = 3\n")
    git(source, "commit", "-q", "-m", "mine")
    git(source, command, *(["pop"] if command == "stash" else ["theirs"]), allowed=(0, 1))
    with pytest.raises(GitFirstError) as refused:
        edited_tree.read(source / "app", base=None, base_folder=None)
    clone = f"git -C {source}"
    go_on = f", or go back with `{clone} {command} --abort`" if command != "stash" else ""
    word = "reset -q --" if command == "stash" else "add"
    assert str(refused.value.what) == "git's own conflict stands in app/b.py, so nothing was changed"
    assert refused.value.remedy == (
        f"choose between the two sides in each, `{clone} {word} app/b.py`{go_on}; then run this again"
    )
    (source / "app" / "b.py").write_text("x = 4\n")
    git(source, *word.split(), "app/b.py")
    assert [str(path) for path in edited_tree.read(source / "app", base=None, base_folder=None).after] == ["b.py"]
