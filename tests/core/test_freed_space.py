"""How much room removing folders gives back: as `df` and `du` count, hard links and all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patchlock.core import disk_space


def _file(path: Path, size: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(size))
    return path


def _link(path: Path, to: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.hardlink_to(to)


def _du(folder: Path) -> int:
    done = subprocess.run(["du", "-s", "-B1", str(folder)], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make two generations, another environment and a cache that share files in every way."""
    _file(tmp_path / "cache" / "big", 500_000)
    _link(tmp_path / "one" / "lib" / "big", tmp_path / "cache" / "big")
    _link(tmp_path / "one" / "lib" / "again", tmp_path / "cache" / "big")
    _link(tmp_path / "two" / "big", tmp_path / "cache" / "big")
    _file(tmp_path / "one" / "both", 70_000)
    _link(tmp_path / "two" / "both", tmp_path / "one" / "both")
    _file(tmp_path / "two" / "own", 9_000)
    _file(tmp_path / "kept" / "own", 30_000)
    _link(tmp_path / "two" / "kept", tmp_path / "kept" / "own")
    _file(tmp_path / "two" / "empty", 0)
    (tmp_path / "two" / "link").symlink_to(tmp_path / "kept" / "own")
    (tmp_path / "two" / "folder").symlink_to(tmp_path / "kept")
    return tmp_path


@pytest.mark.parametrize(
    "names", [["one"], ["two"], ["one", "two"], ["two", "one"], ["one", "two", "cache"], []], ids=" ".join
)
def test_what_is_promised_is_what_du_shows(tree: Path, names: list[str]) -> None:
    told = disk_space.measure([tree / name for name in names])
    before = _du(tree)
    for name in names:
        subprocess.run(["rm", "-r", str(tree / name)], check=True)
    assert sum(one.freed for one in told) == before - _du(tree)
    assert len(told) == len(names)


def test_what_others_share_is_told_once(tree: Path) -> None:
    one, two = disk_space.measure([tree / "one", tree / "two"])
    assert one.shared >= 500_000
    assert 30_000 <= two.shared < 70_000
    assert two.freed >= 79_000


def test_last_link_frees_the_file(tree: Path) -> None:
    rooms = disk_space.measure([tree / "one", tree / "two", tree / "cache"])
    assert [each.freed >= 500_000 for each in rooms] == [False, False, True]
    assert [each.shared for each in rooms[:1]] == [0]
