"""`patch diff` into a file is what git applies: new files, CRLF, a byte order mark, UTF-16, no newline at the end."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from test_clone_patches import git

from patchlock.model.patch import FileChange
from patchlock.worktree.git_diff import git_diff

CHANGES = {
    "bom and crlf.txt": ("\ufeffgradio\r\ntorch\r\n".encode(), "\ufeffgradio\r\ntorch==2\r\n".encode()),
    "lines/none.py": (b"a = 1", b"a = 2"),
    "new.sh": (None, b"#!/bin/sh\n"),
    "wide.txt": ("torch\n".encode("utf-16"), "torch==2\n".encode("utf-16")),
}


def test_diff_is_applied_by_git(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "core.autocrlf", "false")
    app = tmp_path / "app"
    changes = [
        FileChange(path=PurePosixPath(name), before=old, after=new, is_executable=name == "new.sh")
        for name, (old, new) in CHANGES.items()
    ]
    for change in changes:
        if change.before is not None:
            (app / change.path).parent.mkdir(parents=True, exist_ok=True)
            (app / change.path).write_bytes(change.before)
    (tmp_path / "p.diff").write_bytes(git_diff(changes, PurePosixPath("app")))
    assert b"\ndiff --git a/app/new.sh b/app/new.sh\n" in (tmp_path / "p.diff").read_bytes()
    git(tmp_path, "apply", "p.diff")
    assert {name: (app / name).read_bytes() for name in CHANGES} == {name: new for name, (_, new) in CHANGES.items()}
    assert (app / "new.sh").stat().st_mode & 0o111
