"""How a person hears what goes on: a live line on a terminal; in a pipe a line for each stage, and meanwhile."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from patchlock.cli import _log, _output
from patchlock.model.addresses import without_secrets
from patchlock.model.visible_text import visible

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, Task, TaskID

_BESIDE = len("⠸ ") + len(" 0:00:00")
"""Columns of a terminal that the spinner and the time take."""
_NARROW = 30
_HEARTBEAT = 10.0
"""Seconds after which a pipe, or the log of a CI job, hears that something still goes on."""


class Silent:
    """Tells nothing, for --json and --quiet."""

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run a stage."""
        yield
        _log.note(name)

    def say(self, text: str) -> None:
        """Ignore it."""

    def transfer(self, done: int, total: int) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""


class Plain:
    """Tells each stage in one line when it ends, and every ten seconds before; for pipes, logs, plain terminals."""

    def __init__(self, every: float = _HEARTBEAT) -> None:
        self._every = every
        self._said = ""
        self._transfer: Transfer | None = None

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run a stage, then write its line."""
        self._said, self._transfer = "", None
        started = time.monotonic()

        def going_on() -> None:
            transfer = self._transfer.told() if self._transfer is not None else ""
            words = " ".join(filter(None, [self._said, transfer]))
            _output.echo(f"{name:<12} {words} (still running, {time.monotonic() - started:.0f} s)", err=True)

        with _every(self._every, going_on):
            yield
        line = f"{name:<12} {self._said} ({time.monotonic() - started:.1f} s)"
        _output.echo(line, err=True)
        _log.note(line, is_shown=True)

    def say(self, text: str) -> None:
        """Remember the last words of the stage."""
        self._said = without_secrets(text)

    def transfer(self, done: int, total: int) -> None:
        """Remember how far a download is."""
        self._transfer = self._transfer or Transfer()
        self._transfer.update(done, total)

    def note(self, text: str) -> None:
        """Write a line."""
        _output.echo(without_secrets(text), err=True)
        _log.note(text, is_shown=True)


class Live:
    """Tells the running stage with a spinner and its time, downloads with a bar; each ended stage in one line."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.theme import Theme

        # rich's own yellow and cyan cannot be read on a white terminal.
        plain = Theme(dict.fromkeys(("progress.elapsed", "progress.remaining", "progress.data.speed"), "none"))
        colours: Literal["auto"] | None = (
            "auto" if _output.coloured(sys.stderr) else None
        )  # None: not bold or dim either
        self._console = Console(stderr=True, highlight=False, theme=plain, color_system=colours)
        self._said = ""
        self._name = ""
        self._running: Progress | None = None
        self._transfer: Transfer | None = None

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run a stage under a spinner, then write its line."""
        from rich.console import Group
        from rich.live import Live as Display
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.text import Text

        self._said, self._name = "", name
        started = time.monotonic()
        self._running = Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._running.add_task(f"{name:<12}")
        self._transfer = Transfer(bar=self._console.width > _NARROW * 2)
        shown = Group(self._running, self._transfer.progress)
        try:
            with Display(shown, console=self._console, transient=True, refresh_per_second=10):
                yield
        finally:
            self._running = self._transfer = None
        took = f"{time.monotonic() - started:.1f} s"
        end = f"({took})".replace(" ", "\u00a0")
        line = Text(_output.hanging(f"✓ {name:<12} ", f"{visible(self._said)} {end}".lstrip(), self._console.width))
        line.stylize("green", 0, 1)
        line.stylize("dim", len(line) - len(end))
        self._console.print(line, soft_wrap=True)
        _log.note(f"{name:<12} {self._said} ({took})")

    def say(self, text: str) -> None:
        """Show what the stage is at."""
        from rich.markup import escape

        self._said = without_secrets(text)
        if self._running is not None:
            line = f"{self._name:<12} {visible(self._said)}"
            room = max(self._console.width - _BESIDE, 20)
            shown = line if len(line) <= room else f"{line[: room - 1]}…"  # one line, also in a narrow terminal
            self._running.update(self._running.task_ids[0], description=escape(shown))

    def transfer(self, done: int, total: int) -> None:
        """Show how far a download is."""
        if self._transfer is not None:
            self._transfer.update(done, total)

    def note(self, text: str) -> None:
        """Write a line."""
        told = _output.broken(visible(without_secrets(text)), sys.stderr)
        self._console.print(told, markup=False, soft_wrap=True)
        _log.note(text, is_shown=True)


class Transfer:
    """Bytes, rate and time left of what comes, by rich's columns; nothing is shown before something comes."""

    def __init__(self, *, bar: bool = False) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

        self._columns: tuple[ProgressColumn, ...] = (
            DownloadColumn(binary_units=True),
            _speed_column(),
            TimeRemainingColumn(compact=True),
        )
        self.progress = Progress(*([BarColumn(20)] if bar else []), *self._columns, auto_refresh=False)
        self._task: TaskID | None = None

    def update(self, done: int, total: int) -> None:
        """Take what is known now; less than before is a new file.

        Args:
            done: bytes that are here.
            total: bytes; 0 where nobody knows.
        """
        if self._task is None:
            self._task = self.progress.add_task("", total=None)
        task = self.progress.tasks[0]
        if done < task.completed:
            self.progress.reset(self._task)
        self.progress.update(self._task, completed=done, total=total or None)

    def told(self) -> str:
        """Write the same as one line; "" before anything has come, and once all has."""
        if self._task is None or (task := self.progress.tasks[0]).finished:
            return ""
        size, rate, left = (str(column(task)).strip() for column in self._columns)
        known = [size, *([rate] if rate != "?" else []), *([f"{left} left"] if left.strip("-:") else [])]
        return ", ".join(known)


def _speed_column() -> ProgressColumn:
    """Show the rate in the units of all other sizes; rich's own column knows powers of 1000 alone."""
    from rich.progress import ProgressColumn
    from rich.text import Text

    class Speed(ProgressColumn):
        """Bytes a second."""

        def render(self, task: Task) -> Text:
            """Write the rate of a download."""
            speed = task.finished_speed or task.speed
            return Text(f"{_output.size(int(speed))}/s" if speed else "?", style="progress.data.speed")

    return Speed()


@contextlib.contextmanager
def _every(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    """Do something again and again beside what runs."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(seconds):
            with contextlib.suppress(OSError):  # the reader has gone; the stage's own line will say so
                act()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def progress(as_json: bool) -> Silent | Plain | Live:
    """Choose how to tell what goes on."""
    if as_json or _log.is_quiet():
        return Silent()
    return Live() if _output.is_terminal(sys.stderr) and not _log.is_verbose() else Plain()
