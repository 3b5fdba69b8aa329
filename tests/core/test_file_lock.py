"""The lock of an installation: two processes exclude each other, and nothing that dies leaves it stuck."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

from patchlock.core import file_lock
from patchlock.model.errors import BusyError

HOLDER = """
import sys, time
from pathlib import Path
from patchlock.core import file_lock, process
with file_lock.hold(Path(sys.argv[1]), wait=0) as descriptor:
    print("held", flush=True)
    if sys.argv[2:] == ["with-child"]:
        code = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(60)"
        import subprocess
        subprocess.Popen([sys.executable, "-c", code], pass_fds=[descriptor])
    sys.stdin.read()
"""


@contextlib.contextmanager
def _holder(path: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), *words],
        env={**os.environ, "PYTHONPATH": str(ROOT / "installer")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        yield holder
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()


def _is_free(path: Path) -> bool:
    try:
        with file_lock.hold(path, wait=0):
            return True
    except BusyError:
        return False


def test_two_processes_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lock"
    with _holder(path) as other, pytest.raises(BusyError) as caught, file_lock.hold(path, wait=0.1):
        pytest.fail("both hold it")
    since = file_lock.holder(path).rpartition(" ")[2]
    sentence = (
        f"another patchlock works on the same installation, process {other.pid} since {since} ({path.parent}); "
        "wait for it to end and run the same command again"
    )
    assert str(caught.value) == sentence


@pytest.mark.skipif(os.name != "posix", reason="Windows has no umask")
@pytest.mark.parametrize(("umask", "mode"), [(0o002, 0o664), (0o077, 0o600)])
def test_who_else_may_lock_is_said_by_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        with file_lock.hold(tmp_path / "lock", wait=0):
            assert (tmp_path / "lock").stat().st_mode & 0o777 == mode
    finally:
        os.umask(before)


def test_holder_says_since_when(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    before = time.strftime("%H:%M:%S", time.localtime(int(time.time())))
    with file_lock.hold(path, wait=0):
        told = file_lock.holder(path)
    after = time.strftime("%H:%M:%S", time.localtime(int(time.time())))
    assert f", process {os.getpid()} since {before}" <= told <= f", process {os.getpid()} since {after}"


@pytest.mark.parametrize(
    "data", [None, b"", b"?  12 yesterday\n", b"? \xff\xfe"], ids=["none", "old", "words", "bytes"]
)
def test_lock_that_nobody_has_signed_names_nobody(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "lock"
    if data is not None:
        path.write_bytes(data)
    assert file_lock.holder(path) == ""


def test_same_process_excludes_itself(tmp_path: Path) -> None:
    with file_lock.hold(tmp_path / "lock", wait=0):
        assert not _is_free(tmp_path / "lock")
    assert _is_free(tmp_path / "lock")


def test_other_folders_are_free(tmp_path: Path) -> None:
    with file_lock.hold(tmp_path / "a" / "lock", wait=0):
        assert _is_free(tmp_path / "b" / "lock")


def test_lock_is_given_back_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), file_lock.hold(tmp_path / "lock", wait=0):
        raise KeyError
    assert _is_free(tmp_path / "lock")


def test_waiting_is_told_once_and_ends_with_the_holder(tmp_path: Path) -> None:
    events: list[str] = []
    with _holder(tmp_path / "lock") as holder:

        def waiting() -> None:
            events.append("told")
            assert holder.stdin is not None
            holder.stdin.close()

        with file_lock.hold(tmp_path / "lock", wait=20, waiting=waiting):
            events.append("held")
            assert holder.wait(timeout=20) == 0
    assert events == ["told", "held"]


def test_waiting_is_told_once_however_long_it_takes(tmp_path: Path) -> None:
    told: list[str] = []
    with file_lock.hold(tmp_path / "lock", wait=0), pytest.raises(BusyError):  # noqa: SIM117 - the inner one fails
        with file_lock.hold(tmp_path / "lock", wait=0.3, waiting=lambda: told.append("once")):
            pytest.fail("both hold it")
    assert told == ["once"]


@pytest.mark.skipif(os.name != "posix", reason="Windows removes no folder in use")
def test_folder_that_its_holder_removed_is_locked_again(tmp_path: Path) -> None:
    path = tmp_path / "app" / "lock"
    with _holder(path) as holder:

        def waiting() -> None:
            shutil.rmtree(path.parent)
            holder.kill()

        with file_lock.hold(path, wait=20, waiting=waiting) as descriptor:
            assert os.path.samestat(os.fstat(descriptor), path.stat())
            assert not _is_free(path)


def test_nobody_is_told_to_wait_for_a_free_lock(tmp_path: Path) -> None:
    with file_lock.hold(tmp_path / "lock", wait=0, waiting=lambda: pytest.fail("it is free")):
        pass


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGKILL")
def test_killed_holder_frees_it(tmp_path: Path) -> None:
    with _holder(tmp_path / "lock") as holder:
        assert not _is_free(tmp_path / "lock")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert _is_free(tmp_path / "lock")


@pytest.mark.skipif(os.name != "posix", reason="Windows passes no descriptors to children")
def test_child_that_inherited_the_descriptor_keeps_it(tmp_path: Path) -> None:
    with _holder(tmp_path / "lock", "with-child") as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        try:
            holder.send_signal(signal.SIGKILL)
            holder.wait()
            assert not _is_free(tmp_path / "lock")
        finally:
            os.kill(child, signal.SIGKILL)
        with file_lock.hold(tmp_path / "lock", wait=20):
            pass


def test_file_of_the_lock_stays(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("mine")
    with file_lock.hold(tmp_path / "lock", wait=0) as descriptor:
        assert os.fstat(descriptor).st_ino == (tmp_path / "lock").stat().st_ino
        assert not os.get_inheritable(descriptor)
    assert (tmp_path / "lock").read_text().startswith("m ")  # who holds it is written behind the first byte
