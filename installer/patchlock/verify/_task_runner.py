"""Run small programs of ours in children that may hang, crash or eat all memory; each is ended by its own limits.

A child says nothing through a pipe: its answer and what it prints go to files, so that no process that it leaves behind
can make anybody wait. Memory is watched, and not limited by `setrlimit`: drivers reserve more addresses than there is.
On Linux the library that all need is imported once, and each program is run in a fork of that process; elsewhere each
imports it itself. Memory is watched on Linux only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

from patchlock.core import process
from patchlock.core.memory import of_process
from patchlock.model.kernel_results import KernelExit

CAN_FORK = sys.platform == "linux"
"""Forks of a process with frameworks of macOS are not safe, and Windows has none."""
_BREATH = 0.01
"""Seconds between two looks at the children."""
_IMPORT = 300
"""Seconds that the first import of a library may take: gigabytes from a slow disk."""
_GRACE = 10
"""Seconds that a process may take to end after its last task."""
_LAST_WORDS = 5
"""Lines of a log that are kept."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One thing that a program of `_children/` does."""

    name: str
    """For whoever asks what became of it."""
    program: str
    """Without `.py`; its first argument is the file for its answer."""
    arguments: tuple[str, ...]
    """The last one says what to do; the program takes several of these, joined by commas."""
    seconds: float
    memory: int
    """Bytes."""


@dataclass(frozen=True, kw_only=True)
class ProcessContext:
    """What programs run with."""

    python: Path
    options: tuple[str, ...]
    """Of Python."""
    folder: Path
    variables: Mapping[str, str]
    """The whole environment of each child."""


class _Server:
    """A process that has imported a library and forks for each task."""

    def __init__(self, where: ProcessContext, folder: Path, program: Path, module: str) -> None:
        self._told = folder / "server.told"
        arguments = (*where.options, str(program), module, str(self._told))
        self._process = process.start(
            str(where.python),
            *arguments,
            env=where.variables,
            cwd=where.folder,
            log=folder / "server.log",
            with_input=True,
        )
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._asked = 0

    def is_ready(self) -> bool:
        """Wait until the library is imported; False where it is not, which every task then finds out itself."""
        deadline = time.monotonic() + _IMPORT
        while time.monotonic() < deadline and self._process.poll() is None:
            if self._lines("ready"):
                return True
            time.sleep(_BREATH)
        return False

    def begin(self, argv: Iterable[str], log: Path) -> _Child:
        """Ask for a fork that runs a program."""
        program, *arguments = argv
        with contextlib.suppress(BrokenPipeError):  # it ended, which `poll` says
            self._requests.write((json.dumps([program, str(log), *arguments]) + "\n").encode())
            self._requests.flush()
        index = self._asked
        self._asked += 1
        return _Child(number=lambda: self._number(index), poll=lambda: self._code(index))

    def close(self) -> None:
        """End it, with all that it still has."""
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        _end(self._process)

    def _lines(self, kind: str) -> list[list[Any]]:
        text = self._told.read_text(encoding="utf-8") if self._told.exists() else ""
        complete = text[: text.rfind("\n") + 1].splitlines()
        return [values for line in complete if (values := json.loads(line))[0] == kind]

    def _number(self, index: int) -> int | None:
        begun = self._lines("begun")
        return int(begun[index][1]) if index < len(begun) else None

    def _code(self, index: int) -> int | None:
        number = self._number(index)
        found = [int(code) for _, ended, code in self._lines("ended") if ended == number]
        return found[0] if found else self._process.poll()


@dataclass(frozen=True)
class _Child:
    number: Callable[[], int | None]
    poll: Callable[[], int | None]


@dataclasses.dataclass(slots=True)
class _Running:
    """A process that does tasks one after another, and the one that it is at."""

    tasks: tuple[Task, ...]
    child: _Child
    answer: Path
    log: Path
    started: float
    """When the task began that it is at."""
    at: int = 0
    peak: int = 0
    size: int = -1
    """Bytes of the answer when it was read."""
    parts: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """What it has said of each task that it has begun."""


class TaskRunner:
    """Runs tasks, one after another, since what runs beside a kernel spoils its time; made by `open_runner`."""

    def __init__(self, where: ProcessContext, folder: Path, programs: Path, server: _Server | None) -> None:
        self._where, self._folder, self._programs, self._server = where, folder, programs, server
        self._begun = 0

    def run(self, task: Task) -> KernelExit:
        """Run a task to its end, or to one of its limits."""
        (ended,) = self.run_row([task])
        return ended

    def run_row(self, tasks: Iterable[Task]) -> Generator[KernelExit]:
        """Run tasks of one program that differ in their last argument: in one process, as long as each goes well.

        Whoever crashes, hangs or raises is told as that, and the next one begins in a new process. Closing the iterator
        ends what runs.
        """
        left = tuple(tasks)
        while left:
            running = self._begin(left)
            try:
                for ended in _watch(running):
                    left = left[1:]
                    yield ended
            except BaseException:
                _kill(running)
                raise

    def _begin(self, tasks: tuple[Task, ...]) -> _Running:
        self._begun += 1
        answer, log = self._folder / f"{self._begun}.answer", self._folder / f"{self._begun}.log"
        first = tasks[0]
        what = ",".join(task.arguments[-1] for task in tasks)
        argv = (str(self._programs / f"{first.program}.py"), str(answer), *first.arguments[:-1], what)
        if self._server is not None:
            child = self._server.begin(argv, log)
        else:
            own = process.start(
                str(self._where.python),
                *self._where.options,
                *argv,
                env=self._where.variables,
                cwd=self._where.folder,
                log=log,
            )
            child = _Child(number=lambda: own.pid, poll=own.poll)
        return _Running(tasks=tasks, child=child, answer=answer, log=log, started=time.monotonic())


@contextlib.contextmanager
def open_runner(where: ProcessContext, module: str) -> Iterator[TaskRunner]:
    """Open a place for tasks that all need one library.

    Args:
        where: what they run with.
        module: the library that is imported once, where this system can fork.
    """
    import importlib.resources

    with (
        importlib.resources.as_file(importlib.resources.files("patchlock.verify._children")) as programs,
        tempfile.TemporaryDirectory(prefix="patchlock-kernels-", ignore_cleanup_errors=True) as name,
    ):
        server = _Server(where, Path(name), programs / "forks.py", module) if CAN_FORK else None
        try:
            yield TaskRunner(where, Path(name), programs, server if server is not None and server.is_ready() else None)
        finally:
            if server is not None:
                server.close()


def _watch(one: _Running) -> Iterator[KernelExit]:
    """Say how each task of a process ended, until one did not go well; it is the last."""
    while one.at < len(one.tasks):
        time.sleep(_BREATH)
        code = one.child.poll()  # before the answer is read, so that nothing is added after that
        _read(one)
        while _is_complete(one):
            yield _ended(one, 0)
            one.at += 1
            one.peak, one.started = 0, time.monotonic()
        if one.at == len(one.tasks):
            break
        if code is not None:
            yield _ended(one, code)
            break
        task, taken = one.tasks[one.at], of_process(one.child.number())
        one.peak = max(one.peak, taken)
        if taken > task.memory:
            yield _ended(one, _kill(one), "memory", task.memory)
            return
        if time.monotonic() - one.started > task.seconds:
            yield _ended(one, _kill(one), "time", task.seconds)
            return
    _let_end(one)


def _is_complete(one: _Running) -> bool:
    return one.at < min(len(one.tasks), len(one.parts)) and one.parts[one.at].get("stage") == "end"


def _let_end(one: _Running) -> None:
    """Let a process end that has nothing left to do, and kill what it left behind."""
    deadline = time.monotonic() + _GRACE
    while one.child.poll() is None and time.monotonic() < deadline:
        time.sleep(_BREATH)
    if one.child.poll() is None:
        _kill(one)
    number = one.child.number()
    if number is not None:
        process.kill_left(number)


def _kill(one: _Running) -> int | None:
    """Kill a task with all that it started; None where it does not die, which is a driver's doing."""
    number = one.child.number()
    if number is None:
        return None
    process.kill(number)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        code = one.child.poll()
        if code is not None:
            return code
        time.sleep(_BREATH)
    return None


def _end(server: subprocess.Popen[bytes]) -> None:
    try:
        server.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill(server.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(timeout=5)


def _ended(one: _Running, code: int | None, killed: Literal["", "time", "memory"] = "", limit: float = 0) -> KernelExit:
    _read(one)
    values = one.parts[one.at] if one.at < len(one.parts) else {}
    until = one.parts[one.at + 1].get("printed") if one.at + 1 < len(one.parts) else None
    return KernelExit(
        name=one.tasks[one.at].name,
        code=code,
        killed=killed,
        limit=limit,
        stage=values.get("stage", ""),
        found=values.get("found"),
        raised=values.get("raised", ""),
        message=values.get("message", ""),
        log=_last_words(one.log, values.get("printed", 0), until),
        peak=one.peak,
    )


def _read(one: _Running) -> None:
    """Read what a process has said: lines, of which one that names a kernel begins it; one that a crash cut is none."""
    size = one.answer.stat().st_size if one.answer.exists() else 0
    if size == one.size:
        return
    one.size, one.parts = size, []
    text = one.answer.read_text(encoding="utf-8", errors="replace") if size else ""
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            values = json.loads(line)
            if isinstance(values, dict) and "kernel" in values:
                one.parts.append(values)
            elif isinstance(values, dict) and one.parts:
                one.parts[-1] |= values


def _last_words(log: Path, begin: int, end: int | None) -> tuple[str, ...]:
    """Give the last lines of a part of a log, in bytes."""
    if not log.exists():
        return ()
    with log.open("rb") as file:
        until = log.stat().st_size if end is None else end
        file.seek(max(begin, until - 8192))
        text = file.read(max(0, until - file.tell())).decode("utf-8", errors="replace")
    return tuple(line.strip() for line in text.splitlines() if line.strip())[-_LAST_WORDS:]
