"""What a check of the locks found is believed again only while no byte that it read has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from patchlock.cli import _folders, _lock_check
from patchlock.cli._lock_table import Line
from patchlock.core import code_digest
from patchlock.locks import check_cache

FRESH = Line(pair="mini × tiny", file="lockfiles/mini/tiny.txt", state="fresh", detail="")
STALE = Line(pair="mini × tiny", file="lockfiles/mini/tiny.txt", state="stale", detail="it is old")


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder shaped like a catalogue, with a cache of its own."""
    root = tmp_path / "catalogue"
    for file in ("lockfiles/mini/tiny.txt", "patches/mini/app.toml", "patches/mini/upstream/r.txt", "profiles/t.toml"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(f"{file}\n")
    monkeypatch.setenv("PATCHLOCK_CACHE_DIR", str(tmp_path / "cache"))
    return root


class Checks:
    """Counts how often the locks are looked at."""

    def __init__(self, *lines: Line) -> None:
        self.lines = list(lines)
        self.count = 0

    def __call__(self) -> list[Line]:
        """Check."""
        self.count += 1
        return self.lines


def test_locks_that_were_good_are_not_checked_again(catalogue: Path) -> None:
    check = Checks(FRESH)
    found = [_lock_check.run_cached_check(catalogue, ["all"], check) for _ in range(3)]
    assert found == [[FRESH]] * 3
    assert check.count == 1


def test_locks_that_were_stale_are_checked_again(catalogue: Path) -> None:
    check = Checks(FRESH, STALE)
    assert [_lock_check.run_cached_check(catalogue, ["all"], check) for _ in range(2)] == [[FRESH, STALE]] * 2
    assert check.count == 2


def test_another_question_is_checked(catalogue: Path) -> None:
    check = Checks(FRESH)
    for asked in (["mini", "None"], ["miniNone"], ["mini", "None"]):
        _lock_check.run_cached_check(catalogue, asked, check)
    assert check.count == 2


def _same_size_and_time(path: Path) -> None:
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"mini", b"MINI"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _swap(one: Path, other: Path) -> None:
    one.rename(one.with_suffix(".x"))
    other.rename(one)
    one.with_suffix(".x").rename(other)


CHANGES: dict[str, Callable[[Path], object]] = {
    "lock": lambda root: (root / "lockfiles/mini/tiny.txt").write_text("other"),
    "byte-of-the-same-size-and-time": lambda root: _same_size_and_time(root / "patches/mini/app.toml"),
    "upstream-file": lambda root: (root / "patches/mini/upstream/r.txt").write_text("other"),
    "removed-file": lambda root: (root / "profiles/t.toml").unlink(),
    "renamed-file": lambda root: (root / "profiles/t.toml").rename(root / "profiles/u.toml"),
    "new-file": lambda root: (root / "lockfiles/stray.txt").write_text(""),
    "new-folder": lambda root: (root / "lockfiles/other").mkdir(),
    "two-files-swapped": lambda root: _swap(root / "lockfiles/mini/tiny.txt", root / "profiles/t.toml"),
    "moved-byte": lambda root: [
        (root / "profiles/t.toml").write_text("profiles/t.tom"),
        (root / "profiles/u.toml").write_text("l"),
    ],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_is_looked_at(catalogue: Path, change: Callable[[Path], object]) -> None:
    check = Checks(FRESH)
    _lock_check.run_cached_check(catalogue, ["all"], check)
    change(catalogue)
    _lock_check.run_cached_check(catalogue, ["all"], check)
    assert check.count == 2


def test_change_while_the_locks_are_looked_at_is_not_believed(catalogue: Path) -> None:
    lock = catalogue / "lockfiles/mini/tiny.txt"
    first = lock.read_text()

    def check() -> list[Line]:
        lock.write_text("good")
        return [FRESH]

    _lock_check.run_cached_check(catalogue, ["all"], check)
    lock.write_text(first)
    later = Checks(STALE)
    assert _lock_check.run_cached_check(catalogue, ["all"], later) == [STALE]


def test_our_own_code_is_part_of_the_question(catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = tmp_path / "package"
    code.mkdir()
    (code / "rules.py").write_text("strict = True\n")
    monkeypatch.setattr(code_digest, "FOLDER", str(code))
    code_digest.digest.cache_clear()
    before = check_cache.digest(catalogue, [])
    code_digest.digest.cache_clear()
    (code / "rules.py").write_text("strict = False\n")
    assert len({before, check_cache.digest(catalogue, []), None}) == 3
    code_digest.digest.cache_clear()


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_folder_behind_a_link_is_always_checked(catalogue: Path) -> None:
    (catalogue / "patches/linked").symlink_to(catalogue / "patches/mini", target_is_directory=True)
    check = Checks(FRESH)
    for _ in range(2):
        _lock_check.run_cached_check(catalogue, ["all"], check)
    assert check.count == 2


def test_catalogue_without_locks_is_always_checked(tmp_path: Path) -> None:
    assert check_cache.digest(tmp_path, []) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"digest": 1}', '{"digest": "d"}', '{"digest": "e", "found": []}'])
def test_damaged_memory_is_no_memory(tmp_path: Path, text: str) -> None:
    check_cache.remember(tmp_path, ["all"], "d", ["good"])
    assert check_cache.recall(tmp_path, ["all"], "d") == ["good"]
    (file,) = (tmp_path / "checked-locks").iterdir()
    file.write_text(text)
    assert check_cache.recall(tmp_path, ["all"], "d") is None


@pytest.mark.parametrize("found", [7, [7], [{"pair": "mini"}], {"pair": "mini"}])
def test_memory_of_another_shape_is_checked_again(catalogue: Path, found: object) -> None:
    digest = check_cache.digest(catalogue, ["all"])
    assert digest is not None
    check_cache.remember(_folders.cache(), ["all"], digest, found)
    assert _lock_check.run_cached_check(catalogue, ["all"], Checks(FRESH)) == [FRESH]


def test_cache_that_cannot_be_written_does_not_stop_a_check(catalogue: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    check = Checks(FRESH)
    assert [_lock_check.run_cached_check(catalogue, ["all"], check) for _ in range(2)] == [[FRESH]] * 2
    assert check.count == 2
