"""Files that patchlock builds into a user's tree: they come, change and go; his own files stay, at any moment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from patchlock.environments.builds import in_tree_files

CORE = PurePosixPath("modules/core/core.so")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "modules").mkdir(parents=True)
    (folder / "modules" / "core.pyx").write_text("x")
    return folder


def _put(tree: Path, text: str | None) -> tuple[PurePosixPath, ...]:
    built = tree.parent / "built"
    if text is not None:
        built.write_text(text)
    return in_tree_files.sync_files(tree.parent / "products.json", tree, {CORE: built} if text is not None else {})


def test_built_file_comes_changes_and_goes_with_its_folder(tree: Path) -> None:
    for text in ("one", "two", "two"):
        assert _put(tree, text) == ()
        assert (tree / CORE).read_text() == text
    assert _put(tree, None) == ()
    assert [path.name for path in tree.rglob("*")] == ["modules", "core.pyx"]
    assert not (tree.parent / "products.json").exists()


def test_file_of_the_user_is_never_overwritten_or_removed(tree: Path) -> None:
    (tree / CORE).parent.mkdir()
    (tree / CORE).write_text("his")
    assert _put(tree, "ours") == (CORE,)
    assert _put(tree, None) == ()
    assert (tree / CORE).read_text() == "his"


def test_file_that_the_user_made_of_ours_is_his(tree: Path) -> None:
    _put(tree, "one")
    (tree / CORE).write_text("his")
    assert _put(tree, "two") == (CORE,)
    _put(tree, None)
    assert (tree / CORE).read_text() == "his"


def test_file_of_the_user_with_the_very_bytes_stays_his(tree: Path) -> None:
    (tree / CORE).parent.mkdir()
    (tree / CORE).write_text("ours")
    assert _put(tree, "ours") == (CORE,)
    _put(tree, None)
    assert (tree / CORE).exists()


def test_removed_file_comes_back(tree: Path) -> None:
    _put(tree, "one")
    (tree / CORE).unlink()
    assert _put(tree, "one") == ()
    assert (tree / CORE).read_text() == "one"


def test_nothing_is_written_through_a_link_of_the_user(tree: Path) -> None:
    (tree.parent / "elsewhere").mkdir()
    (tree / CORE).parent.symlink_to(tree.parent / "elsewhere")
    assert _put(tree, "one") == (CORE,)
    assert not list((tree.parent / "elsewhere").iterdir())


@pytest.mark.parametrize("written", [False, True], ids=["before the file", "after the file"])
def test_put_that_was_killed_is_finished_by_the_next(tree: Path, written: bool) -> None:
    _put(tree, "one")
    ledger = tree.parent / "products.json"
    _put(tree, "two")
    both = json.loads(ledger.read_text())
    both[str(CORE)].append(in_tree_files._digest(_text(tree.parent / "first", "one")))
    ledger.write_text(json.dumps(both))
    (tree / CORE).write_text("two" if written else "one")
    _put(tree, "two")
    assert (tree / CORE).read_text() == "two"
    _put(tree, None)
    assert not (tree / CORE).exists()


def _text(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_git_does_not_take_it_for_the_users(tree: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    _put(tree, "one")
    _put(tree, "two")
    status = subprocess.run(["git", "-C", str(tree), "status", "--short"], capture_output=True, text=True, check=True)
    assert status.stdout == "?? modules/\n"
    assert (tree / ".git" / "info" / "exclude").read_text().count(str(CORE)) == 1


def test_generation_keeps_what_it_built(tmp_path: Path) -> None:
    generation = tmp_path / "generation"
    generation.mkdir()
    assert in_tree_files.load_files(generation).products == {}
    for text in ("one", "two"):
        in_tree_files.save_files(generation, {CORE: _text(tmp_path / "built", text)}, {})
    [kept] = (generation / "in-tree").iterdir()
    assert kept.read_text() == "two"
    assert list(in_tree_files.load_files(generation).products) == [CORE]
    in_tree_files.save_files(generation, {}, {})
    assert in_tree_files.load_files(generation).products == {}
