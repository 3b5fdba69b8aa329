"""Folders of ours are removed as a whole, also while something that was left over still writes to them."""

from __future__ import annotations

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
        atomic_files.write(folder / "taken", "text")
    atomic_files.write(folder / "free", "text\n")
    assert sorted(path.name for path in folder.iterdir()) == ["free", "taken"]
