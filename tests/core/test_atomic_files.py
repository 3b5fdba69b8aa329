"""Files are written as a whole; folders are removed as a whole, also while a left-over program still writes to them."""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
import time
from pathlib import Path

import pytest

from patchlock.core import atomic_files


def _write(folder: Path, until: float) -> None:
    """Write as Python writes bytecode: each file into folders that are made for it."""
    number = 0
    while time.monotonic() < until:
        number += 1
        try:
            place = folder / "bytecode" / str(number % 50)
            place.mkdir(parents=True, exist_ok=True)
            (place / str(number)).write_text("")
        except OSError:
            continue


def test_folder_goes_while_somebody_writes_to_it_for_a_while(tmp_path: Path) -> None:
    folder = tmp_path / "generation"
    (folder / "bytecode").mkdir(parents=True)
    writers = [threading.Thread(target=_write, args=(folder, time.monotonic() + 1.0)) for _ in range(3)]
    for writer in writers:
        writer.start()
    time.sleep(0.2)
    atomic_files.remove_tree(folder)
    for writer in writers:
        writer.join()
    atomic_files.remove_tree(folder)
    assert not folder.exists()


def test_what_cannot_be_removed_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    asked = []

    def refuse(path: str, *_: object, **__: object) -> None:
        asked.append(path)
        raise PermissionError(13, "no", str(path))

    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(PermissionError):
        atomic_files.remove_tree(tmp_path / "folder")
    assert len(asked) == 1


def test_file_that_cannot_be_put_in_its_place_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "taken").mkdir(parents=True)
    with pytest.raises(OSError, match="taken"):
        atomic_files.atomic_write(folder / "taken", "text")
    atomic_files.atomic_write(folder / "free", "text\n")
    assert sorted(path.name for path in folder.iterdir()) == ["free", "taken"]


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_new_file_follows_the_umask_and_one_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        atomic_files.atomic_write(tmp_path / "text", "text")
        atomic_files.atomic_write(tmp_path / "program", b"code", mode=0o777)
        atomic_files.atomic_copy(tmp_path / "text", tmp_path / "copy", mode=0o777)
    finally:
        os.umask(before)
    assert [_mode(tmp_path / name) for name in ("text", "program", "copy")] == [0o640, 0o750, 0o750]
    (tmp_path / "text").chmod(0o600)
    atomic_files.atomic_write(tmp_path / "text", "other", mode=0o777)
    assert _mode(tmp_path / "text") == 0o600


def test_line_ends_stay_as_they_are(tmp_path: Path) -> None:
    atomic_files.atomic_write(tmp_path / "text", "a\nb\r\nü")
    assert (tmp_path / "text").read_bytes() == "a\nb\r\nü".encode()


@pytest.mark.parametrize(
    ("suffix", "pattern"),
    [("patchlock", r"\.file\.patchlock"), (None, r"\.file\.[0-9a-f]{8}\.new")],
)
def test_name_of_the_file_beside(
    suffix: str | None, pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who clears up after a kill looks for these names."""
    seen: list[str] = []

    def refuse(path: Path, _: Path) -> None:
        seen.append(path.name)
        raise PermissionError(13, "no", str(path))

    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("old")
    monkeypatch.setattr(Path, "replace", refuse)
    for _ in range(2):
        with pytest.raises(PermissionError):
            atomic_files.atomic_write(folder / "file", "new", suffix=suffix)
    assert all(re.fullmatch(pattern, name) for name in seen)
    assert len(set(seen)) == (2 if suffix is None else 1)
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("file", "old")]


def test_what_killed_writers_left_goes_and_what_another_one_writes_stays(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    left, living, users = (folder / name for name in (".choice.json.1234abcd.new", ".run.5678cdef.new", "song.new"))
    for path in (left, living, users):
        path.write_text("")
    for path in (left, users):
        os.utime(path, (time.time() - 7200,) * 2)
    atomic_files.remove_left(folder)
    assert sorted(folder.iterdir()) == sorted((living, users))


def test_folder_that_may_not_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, *_: int) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError) as caught:
        atomic_files.atomic_write(tmp_path / "file", "text")
    assert caught.value.filename == str(tmp_path)
