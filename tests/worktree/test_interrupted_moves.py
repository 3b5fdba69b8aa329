"""A move of the working tree that was cut off: whichever way it then goes, the user's edits stay and nothing else does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from patchlock.model.errors import SourceDamagedError
from patchlock.model.identities import CommitId
from patchlock.worktree import _journal, clone, move, trees
from patchlock.worktree.trees import Tree

pytestmark = pytest.mark.slow

ONE = b"first\n\n\n\nedition 1\n\n\n\nlast\n"
TWO = ONE.replace(b"edition 1", b"edition 2")
FILES = [PurePosixPath(name) for name in ("a.txt", "b.txt")]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A clone on a first commit, both of whose files the user has edited, and that knows a second commit."""
    subprocess.run(["git", "init", "-q", str(tmp_path / "source")], check=True)
    return Tree(root=tmp_path / "source", repository=tmp_path / "source")


def _commit(tree: Tree, data: bytes, name: str) -> CommitId:
    files = dict.fromkeys(FILES, data)
    return trees.commit_files(tree.repository, files, parent=None, message=name, ref=f"refs/{name}")


@pytest.fixture
def one(tree: Tree) -> CommitId:
    commit = _commit(tree, ONE, "one")
    move.move(tree, commit)
    for file in FILES:
        (tree.root / file).write_bytes(ONE + b"mine\n")
    return commit


def _cut(tree: Tree, target: CommitId, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Move, and be stopped before the next file after so many."""
    put = []

    def step(name: str) -> None:
        put.extend([name] if name.startswith("put") else [])
        if len(put) > after:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_journal, "step", step)
        with pytest.raises(KeyboardInterrupt):
            move.move(tree, target)


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("on", [True, False], ids=["goes-on", "turns-back"])
def test_cut_move_keeps_edits_either_way(
    tree: Tree, one: CommitId, monkeypatch: pytest.MonkeyPatch, after: int, on: bool
) -> None:
    two = _commit(tree, TWO, "two")
    _cut(tree, two, after, monkeypatch)
    move.move(tree, two if on else one)
    for file in FILES:
        assert (tree.root / file).read_bytes() == (TWO if on else ONE) + b"mine\n"
    assert {path.name for path in tree.root.iterdir()} == {".git", "a.txt", "b.txt"}


def test_cut_move_back_that_is_cut_again(tree: Tree, one: CommitId, monkeypatch: pytest.MonkeyPatch) -> None:
    two = _commit(tree, TWO, "two")
    _cut(tree, two, 1, monkeypatch)
    _cut(tree, one, 0, monkeypatch)
    move.move(tree, one)
    assert {(tree.root / file).read_bytes() for file in FILES} == {ONE + b"mine\n"}


@pytest.mark.parametrize("umask", [0o077, 0o022, 0o000])
def test_new_files_have_the_rights_of_the_umask(tree: Tree, umask: int) -> None:
    files = {PurePosixPath(name): b"x" for name in ("data", "tool")}
    commit = trees.commit_files(
        tree.repository, files, parent=None, message="m", ref="refs/m", executable=[PurePosixPath("tool")]
    )
    before = os.umask(umask)
    try:
        move.move(tree, commit)
    finally:
        os.umask(before)
    modes = [(tree.root / name).stat().st_mode & 0o777 for name in ("data", "tool")]
    assert modes == [0o666 & ~umask, 0o777 & ~umask]


def _break(file: str, data: bytes | None) -> object:
    def do(folder: Path) -> None:
        path = folder / ".git" / file
        path.unlink()
        if data is not None:
            path.write_bytes(data)

    return do


def _empty_objects(folder: Path) -> None:
    for file in (folder / ".git" / "objects").glob("??/*"):
        file.chmod(0o600)
        file.write_bytes(b"")


@pytest.mark.parametrize(
    "damage",
    [_break("HEAD", None), _break("HEAD", b"\0"), _break("index", b"\0"), _break("config", b"["), _empty_objects],
    ids=["no-head", "head", "index", "config", "objects"],
)
def test_damaged_clone_is_told_and_the_repository_around_it_is_not_taken(
    tree: Tree, one: CommitId, tmp_path: Path, damage: object
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "add", "a.txt"], cwd=tree.root, check=True)
    clone.require_whole(tree.root, "mini")
    damage(tree.root)  # type: ignore[operator]
    with pytest.raises(SourceDamagedError) as caught:
        clone.require_whole(tree.root, "mini")
    assert caught.value.what == "git cannot work in the source of mini, so nothing was changed"
    assert caught.value.remedy.endswith("then `patchlock install mini`, and copy your files back")


def test_ref_of_ours_that_a_power_cut_emptied_is_dropped(tree: Tree, one: CommitId) -> None:
    ref = tree.root / ".git" / "refs" / "patchlock" / "applied"
    ref.write_bytes(b"")
    clone.require_whole(tree.root, "mini")
    assert not ref.exists()
    move.move(tree, one)
    assert {(tree.root / file).read_bytes() for file in FILES} == {ONE + b"mine\n"}


def test_commits_of_generations_whose_removal_was_killed_are_let_go(tree: Tree, one: CommitId) -> None:
    for name in ("a", "b", "c"):
        clone.protect_generation(tree.root, name, one)
    clone.unprotect_others(tree.root, ["b"])
    kept = tree.root / ".git" / "refs" / "patchlock" / "generations"
    assert [ref.name for ref in kept.iterdir()] == ["b"]
