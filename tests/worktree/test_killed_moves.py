"""A move that is killed at any of its steps, or beside any git program: the next one goes on, and no edit is lost."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_clone_patches import FILE, WANTED, apply, clone, commit, git, read, upstream
from test_moves_as_git import files_of

from patchlock.model.errors import SourceConflictError
from patchlock.worktree import _journal, clone_patches, move, trees

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]

LATE = "late = 1\n"
"""What the user writes after the kill."""


def update(folder: Path) -> object:
    return clone_patches.update(trees.open_tree(folder), WANTED, folder.parent / "cache")


def undo(folder: Path) -> object:
    return clone_patches.undo(trees.open_tree(folder))


def abort(folder: Path) -> object:
    return move.abort(trees.open_tree(folder))


def _edit(clone: Path) -> None:
    (clone / "app.py").write_text("first = 0\n" + read(clone))
    (clone / "other.py").write_text(read(clone, "other") + "mine = 1\n")
    git(clone, "add", "other.py")
    (clone / "untracked.txt").write_text("model\n")


def _apply(clone: Path, upstream: Path) -> None:
    _edit(clone)


def _update(clone: Path, upstream: Path) -> None:
    apply(clone)
    _edit(clone)
    (upstream / "link").symlink_to("app.py")
    (upstream / "tool.sh").write_text("#!/bin/sh\n")
    (upstream / "tool.sh").chmod(0o755)
    commit(upstream, app=FILE + 'end = "cuda"\n', new='n = "cuda"\n')


def _undo(clone: Path, upstream: Path) -> None:
    apply(clone)
    _edit(clone)


def _conflict(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone).replace("line4 = 4", "line4 = 'mine'"))
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'"), new='n = "cuda"\n')


def _left(clone: Path, upstream: Path) -> None:
    _conflict(clone, upstream)
    update(clone)


@dataclass(frozen=True)
class Case:
    prepare: Callable[[Path, Path], None]
    act: Callable[[Path], object]


CASES = {
    "apply": Case(_apply, apply),
    "update": Case(_update, update),
    "undo": Case(_undo, undo),
    "conflict": Case(_conflict, update),
    "abort": Case(_left, abort),
}


def _in_child(act: Callable[[], object]) -> int:
    """Do something in a process of its own, and give how it ended: a signal as a negative number."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:  # noqa: BLE001 - whatever it is, pytest goes on in the parent alone
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _killed_at(number: int, act: Callable[[Path], object], folder: Path) -> int:
    """Act in a process that is killed at its step of that number; 0 where it has fewer."""
    seen = []

    def step(name: str) -> None:
        seen.append(name)
        if len(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def run() -> None:
        _journal.step = step
        act(folder)

    return _in_child(run)


def _steps(tmp_path: Path, case: Case) -> int:
    """Count the steps of a case, in a copy."""
    names = tmp_path / "steps"

    def run() -> None:
        seen: list[str] = []
        _journal.step = seen.append
        case.act(tmp_path / "clone")
        names.write_text(str(len(seen)))

    shutil.copytree(tmp_path / "clone", tmp_path / "kept", symlinks=True)
    assert _in_child(run) == 0
    shutil.rmtree(tmp_path / "clone")
    (tmp_path / "kept").rename(tmp_path / "clone")
    return int(names.read_text())


def _state(clone: Path) -> list[object]:
    words = (["ls-files", "-s"], ["status", "--porcelain"], ["rev-parse", "HEAD"], ["symbolic-ref", "HEAD"])
    applied = git(clone, "rev-parse", "-q", "--verify", "refs/patchlock/applied", allowed=(0, 1))
    return [files_of(clone), applied, *(git(clone, *one) for one in words)]


def _leave(folder: Path) -> None:
    """What the user does after the kill: he goes on with his work."""
    (folder / "app.py").write_text(_with_late(read(folder)))
    (folder / "other.py").write_text(read(folder, "other") + LATE)


def _with_late(text: str) -> str:
    return text.replace("line2 = 2\n", "line2 = 2\n" + LATE)


@pytest.mark.parametrize("name", CASES)
def test_kill_at_each_step(clone: Path, upstream: Path, tmp_path: Path, name: str) -> None:
    """After every other kill the user edits his files, and finds these edits in the end."""
    case = CASES[name]
    case.prepare(clone, upstream)
    steps = _steps(tmp_path, case)
    assert steps > 5
    shutil.copytree(clone, tmp_path / "before", symlinks=True)
    case.act(clone)
    wanted = _state(clone)
    wanted_text = {one: read(clone, one) for one in ("app", "other")}
    for number in range(1, steps + 1):
        shutil.rmtree(clone)
        shutil.copytree(tmp_path / "before", clone, symlinks=True)
        assert _killed_at(number, case.act, clone) == -signal.SIGKILL
        is_edited = number % 2 == 0
        if is_edited:
            _leave(clone)
        with contextlib.suppress(*([SourceConflictError] if name == "conflict" else [])):
            case.act(clone)
        if not is_edited:
            assert _state(clone) == wanted, f"step {number}"
            continue
        kept = "".join(
            git(clone, "show", f"{ref}:{one}.py", allowed=(0, 128))
            for ref in ("refs/patchlock/aborted", "refs/patchlock/before")
            for one in wanted_text
        )
        for one, text in wanted_text.items():
            assert read(clone, one).count(LATE) == 1 or (name == "abort" and LATE.strip() in kept), (
                f"{one}, step {number}"
            )
            if name not in {"abort", "conflict"}:
                late = _with_late(text) if one == "app" else text + LATE
                assert read(clone, one) == late, f"{one}, step {number}"
        assert git(clone, "fsck", "--no-dangling", "--connectivity-only") == ""


WRAPPER = """#!/bin/sh
count=$(($(cat {kept}/count) + 1))
echo $count > {kept}/count
cp -a {clone} {kept}/$count-1-before
{git} "$@"
ended=$?
cp -a {clone} {kept}/$count-2-after
exit $ended
"""
"""Keeps what a kill beside a program of git leaves: the folder as it stands, as no process has anything else to write."""


@pytest.mark.parametrize("name", CASES)
def test_kill_beside_each_git_program(
    clone: Path, upstream: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    case.prepare(clone, upstream)
    bin_, kept = tmp_path / "bin", tmp_path / "kept"
    bin_.mkdir()
    kept.mkdir()
    (kept / "count").write_text("0")
    (bin_ / "git").write_text(WRAPPER.format(clone=clone, kept=kept, git=shutil.which("git")))
    (bin_ / "git").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{bin_}{os.pathsep}{os.environ['PATH']}")
        assert _in_child(lambda: case.act(clone)) == 0
    wanted = _state(clone)
    assert int((kept / "count").read_text()) > 10
    different = {_bytes(one): one.name for one in sorted(kept.glob("*-*"), key=_number)}
    assert len(different) > 3
    for left in different.values():
        shutil.rmtree(clone)
        shutil.copytree(kept / left, clone, symlinks=True)
        with contextlib.suppress(*([SourceConflictError] if name == "conflict" else [])):
            case.act(clone)
        assert _state(clone) == wanted, left


def _number(folder: Path) -> tuple[int, str]:
    count, _, when = folder.name.partition("-")
    return int(count), when


def _bytes(folder: Path) -> frozenset[tuple[str, bytes]]:
    """Read every file, and where links point."""
    return frozenset(
        (str(one.relative_to(folder)), bytes(one.readlink()) if one.is_symlink() else one.read_bytes())
        for one in folder.rglob("*")
        if one.is_symlink() or one.is_file()
    )
