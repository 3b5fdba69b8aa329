"""Our repositories of upstream: what a killed git leaves is removed, and what an incomplete clone lacks is told."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from patchlock.model.identities import CommitId
from patchlock.worktree import upstream_cache
from patchlock.worktree.upstream_cache import Snapshot

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


def test_a_file_of_an_older_commit_need_not_be_in_an_incomplete_clone(tmp_path: Path) -> None:
    upstream_cache.git("init", "-q", repository=tmp_path)
    blob = upstream_cache.git("hash-object", "-w", "--stdin", stdin=b"old\n", repository=tmp_path).text
    tree = upstream_cache.git("mktree", stdin=f"100644 blob {blob}\tapp.py\n".encode(), repository=tmp_path).text
    who = {f"GIT_{one}_{what}": "x" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    commit = CommitId(upstream_cache.git("commit-tree", tree, "-m", "old", env=who, repository=tmp_path).text)
    newer = CommitId("1" * 40)
    snapshot = Snapshot(repository=tmp_path, commit=newer, tree=newer, date="", directory=PurePosixPath())
    assert upstream_cache.read_known(snapshot, commit, {PurePosixPath("app.py")}) == {PurePosixPath("app.py"): b"old\n"}
    (tmp_path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert upstream_cache.read_known(snapshot, commit, {PurePosixPath("app.py")}) == {}
