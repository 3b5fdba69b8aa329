"""Run programs of an app that may hang, crash or eat all memory: each is ended by its limits, with all that it started.

It is the frame that `verify._task_runner` gives to kernels, for commands that are not ours: what they print goes to
files, memory is watched, not limited (a limit on addresses ends every CUDA program), and the kernel's memory killer
takes them first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from patchlock.core import process
from patchlock.core.bounded_files import FileReader
from patchlock.core.memory import of_session, total
from patchlock.model.kernel_results import KernelExit

_SHARE = 0.8
"""Of the machine's memory, or of its container's: what is above that is not left for the system."""
_BREATH = 0.1
"""Seconds between two looks at the memory."""
_GOODBYE = 5
"""Seconds that a service has to end by itself."""
_LAST_WORDS = 5
"""Lines that are kept."""


def memory_limit(wanted: int = 0) -> int:
    """Give the bytes that a program may have.

    Args:
        wanted: gigabytes (10^9 bytes) that its check names; 0: a share of the machine's memory.

    Returns:
        0 where nothing says how much this machine has; nothing is watched there.
    """
    return wanted * 1_000_000_000 or int(total(FileReader(Path("/"), "memory")) * _SHARE)


class SupervisedProgram:
    """A program that is watched; made by `start_program`."""

    def __init__(self, name: str, child: subprocess.Popen[bytes], folder: Path, memory: int) -> None:
        self._name, self._child, self._folder, self._memory = name, child, folder, memory
        self._peak = 0
        self._is_too_big = False
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        if memory:
            with contextlib.suppress(OSError):  # not Linux
                Path(f"/proc/{child.pid}/oom_score_adj").write_text("1000", encoding="ascii")
            self._watcher.start()

    def has_ended(self) -> bool:
        """Say whether it has ended, by itself or because of its memory."""
        return self._child.poll() is not None

    def wait(self, seconds: float) -> KernelExit:
        """Let it run to its end, or to one of its limits."""
        try:
            self._child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill(self._child.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in a driver
                self._child.wait(timeout=_GOODBYE)
            return self.ended(seconds)
        return self.ended()

    def ended(self, late: float = 0) -> KernelExit:
        """Say how it ended.

        Args:
            late: seconds after which it was killed; 0: it was not.
        """
        self._stop.set()
        if self._memory:
            self._watcher.join()
        return KernelExit(
            name=self._name,
            code=self._child.poll(),
            killed="memory" if self._is_too_big else "time" if late else "",
            limit=self._memory if self._is_too_big else late,
            log=_last(self.errors) or _last(self.output),
            peak=self._peak,
        )

    @property
    def output(self) -> str:
        """What it has written to its standard output."""
        return (self._folder / "output").read_text(encoding="utf-8", errors="replace")

    @property
    def errors(self) -> str:
        """What it has written to its standard error."""
        return (self._folder / "errors").read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        """End it politely if it still runs, then all that it has left."""
        self._stop.set()
        if not self.has_ended():
            if os.name == "posix":
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._child.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(timeout=_GOODBYE if os.name == "posix" else 0)
        if self.has_ended():
            process.kill_left(self._child.pid)
            return
        process.kill(self._child.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(timeout=_GOODBYE)

    def _watch(self) -> None:
        while not self._stop.wait(_BREATH) and self._child.poll() is None:
            taken = of_session(self._child.pid, self._memory)
            self._peak = max(self._peak, taken)
            if taken > self._memory:
                self._is_too_big = True
                process.kill(self._child.pid)
                return


@contextlib.contextmanager
def start_program(*command: str, env: Mapping[str, str], cwd: Path, memory: int) -> Iterator[SupervisedProgram]:
    """Start a program; whatever happens, nothing of it runs afterwards.

    Args:
        command: the program and its arguments.
        env: the whole environment of the child.
        cwd: its working folder.
        memory: bytes that it may have with all that it starts, see `memory_limit`; 0: any number.

    Raises:
        ProgramMissingError: the program is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="patchlock-check-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        child = process.start(*command, env=env, cwd=cwd, log=folder / "output", errors=folder / "errors")
        running = SupervisedProgram(Path(command[0]).name, child, folder, memory)
        try:
            yield running
        finally:
            running.close()


def _last(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())[-_LAST_WORDS:]
