"""What a killed git, and a killed move, leave in a repository is removed; what was there before is not."""

from __future__ import annotations

import os
from pathlib import Path

from patchlock.worktree import upstream_cache

LEFT = (
    "index.lock",
    "refs/heads/main.lock",
    "objects/tmp_obj_x",
    "objects/ab/tmp_obj_y",
    "patchlock/index.12",
    "patchlock/dropped/index.new",
    "patchlock/dropped/old/app.py",
)
KEPT = ("index", "refs/heads/main", "objects/ab/cdef", "patchlock/move/journal.json", "patchlock/move.tmp/index.new")


def test_what_was_left_is_removed(tmp_path: Path) -> None:
    for name in (*LEFT, *KEPT):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    upstream_cache.clear(tmp_path)
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert files == sorted(KEPT)
    assert not (tmp_path / "patchlock" / "dropped").exists()


def test_what_is_older_than_asked_for_stays(tmp_path: Path) -> None:
    old = tmp_path / "index.lock"
    old.write_text("x")
    os.utime(old, (1000, 1000))
    upstream_cache.clear(tmp_path, since=2000)
    assert old.exists()
