"""What a person or a program sees: results on stdout, progress and errors on stderr, one JSON envelope with --json."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from patchlock.model.addresses import without_secrets
from patchlock.model.errors import CatalogueError, NotReadyError, PatchlockError, UsageError

if TYPE_CHECKING:
    import click
    from rich.progress import Progress

    from patchlock.hardware.host_overrides import ObservedHost
    from patchlock.model.needs import Finding

_BESIDE = len("⠸ ") + len(" 0:00:00")
"""Columns of a terminal that the spinner and the time take."""
ENVELOPE = 1
"""Version of the JSON envelope; raised when a key changes its meaning."""


def echo(text: str, *, err: bool = False) -> None:
    """Print a text at once, so that a reader who has gone is noticed here."""
    print(text, file=sys.stderr if err else sys.stdout, flush=True)


def warnings(sentences: Iterable[str]) -> str:
    """Write warnings as a block, one a line; "" for none."""
    return "\n".join(f"warning: {sentence}" for sentence in sentences)


def report_overrides(observed: ObservedHost) -> None:
    """Say on stderr that the machine is not this one."""
    if observed.overrides:
        echo(f"pretended machine: {', '.join(observed.overrides)}", err=True)


def succeed(command: str, data: object, error: PatchlockError | None = None) -> int:
    """Print the envelope of a command that did its work, and give its exit code.

    Args:
        command: its name.
        data: what it found or did.
        error: what is wrong, where the work was to find that out; None: all is good.
    """
    import json

    told = _details(error) if error is not None else None
    envelope = {"patchlock": ENVELOPE, "command": command, "ok": error is None, "data": data, "error": told}
    echo(json.dumps(envelope, indent=2))
    return error.exit_code if error is not None else 0


def fail(error: PatchlockError, command: str, as_json: bool) -> int:
    """Print an expected failure, and give its exit code."""
    if as_json:
        import json

        envelope = {"patchlock": ENVELOPE, "command": command, "ok": False, "data": None, "error": _details(error)}
        echo(json.dumps(envelope, indent=2))
    else:
        import click

        from patchlock.cli import _folders, _launcher

        sentence = str(error).replace("`patchlock ", f"`{_launcher.own_command(_folders.home())} ")
        click.echo(
            f"{_styled('error', 'red', sys.stderr)}[{error.code}]: {sentence}", err=True, color=coloured(sys.stderr)
        )
    return error.exit_code


def _details(error: PatchlockError) -> dict[str, object]:
    details: dict[str, object] = {
        "code": error.code,
        "what": error.what,
        "where": error.where,
        "remedy": error.remedy,
        "evidence": list(error.evidence),
    }
    if isinstance(error, CatalogueError):
        details["problems"] = [
            {"file": p.file, "line": p.line, "key": p.key, "what": p.what, "remedy": p.remedy} for p in error.problems
        ]
    if isinstance(error, NotReadyError):
        details["problems"] = [finding_data(finding) for finding in error.findings]
    return details


def finding_data(finding: Finding) -> dict[str, object]:
    """Write what a machine lacks for JSON."""
    return {
        "name": finding.name,
        "what": finding.what,
        "remedy": finding.remedy,
        "stops": finding.stops,
        "packages": list(finding.way.packages) if finding.way else [],
        "source": finding.source,
    }


def fail_usage(error: click.UsageError, command: str, as_json: bool) -> int:
    """Print a mistake on the command line, and give its exit code."""
    path = error.ctx.command_path if error.ctx else "patchlock"
    message = error.format_message().rstrip(".").replace("\n", " ")
    message = message[:1].lower() + message[1:]
    return fail(UsageError(message, remedy=f"see `{path} --help`"), command, as_json)


def _styled(text: str, colour: str, stream: object) -> str:
    if not coloured(stream):
        return text
    import click

    return click.style(text, fg=colour, bold=True)


def coloured(stream: object) -> bool:
    """Say whether colour is welcome: a terminal, no NO_COLOR; FORCE_COLOR wins. Source: no-color.org."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream)


def is_terminal(stream: object) -> bool:
    """Say whether a person is looking at this stream."""
    return bool(getattr(stream, "isatty", lambda: False)()) and os.environ.get("TERM") != "dumb"


class Silent:
    """Tells nothing, for --json."""

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:  # noqa: ARG002 - the interface
        """Run a stage."""
        yield

    def say(self, text: str) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""


class Plain:
    """Tells each stage in one line when it ends; for pipes, logs and plain terminals."""

    def __init__(self) -> None:
        self._said = ""

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run a stage, then write its line."""
        self._said = ""
        started = time.monotonic()
        yield
        echo(f"{name:<12} {self._said} ({time.monotonic() - started:.1f} s)", err=True)

    def say(self, text: str) -> None:
        """Remember the last words of the stage."""
        self._said = without_secrets(text)

    def note(self, text: str) -> None:
        """Write a line."""
        echo(without_secrets(text), err=True)


class Live:
    """Tells the running stage with a spinner and its time, and each ended one in one line; for terminals."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._said = ""
        self._name = ""
        self._running: Progress | None = None

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run a stage under a spinner, then write its line."""
        from rich.markup import escape
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._said, self._name = "", name
        started = time.monotonic()
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=self._console, transient=True) as self._running:
            self._running.add_task(f"{name:<12}")
            yield
        self._running = None
        took = f"{time.monotonic() - started:.1f} s"
        self._console.print(f"[green]✓[/] {name:<12} {escape(self._said)} [dim]({took})[/]", soft_wrap=True)

    def say(self, text: str) -> None:
        """Show what the stage is at."""
        from rich.markup import escape

        self._said = without_secrets(text)
        if self._running is not None:
            line = f"{self._name:<12} {self._said}"
            room = max(self._console.width - _BESIDE, 20)
            shown = line if len(line) <= room else f"{line[: room - 1]}…"  # one line, also in a narrow terminal
            self._running.update(self._running.task_ids[0], description=escape(shown))

    def note(self, text: str) -> None:
        """Write a line."""
        self._console.print(without_secrets(text), markup=False)


def progress(as_json: bool) -> Silent | Plain | Live:
    """Choose how to tell what goes on."""
    if as_json:
        return Silent()
    return Live() if is_terminal(sys.stderr) and coloured(sys.stderr) else Plain()


def rows(pairs: Mapping[str, str] | list[tuple[str, str]], indent: int = 2) -> str:
    """Lay out names and values in two columns; a value of several lines, or long on a terminal, stays in its column."""
    pairs = list(pairs.items()) if isinstance(pairs, Mapping) else pairs
    width = max((len(name) for name, _ in pairs), default=0)
    lines = []
    for name, value in pairs:
        first, *others = [part for line in value.split("\n") for part in _wrapped(line, indent + width + 2)]
        lines.append(f"{' ' * indent}{name:<{width}}  {first}".rstrip())
        lines += [f"{' ' * (indent + width)}  {other}".rstrip() for other in others]
    return "\n".join(lines)


def sentences(lines: Iterable[str], indent: int = 2) -> str:
    """Lay out sentences, each in lines of its own; on a terminal those after its first stand further in."""
    each = (f"\n{' ' * (indent + 2)}".join(_wrapped(line, indent + 2)) for line in lines)
    return "\n".join(f"{' ' * indent}{text}" for text in each)


def _wrapped(line: str, beside: int) -> list[str]:
    """Break a line between words, where a terminal would break it anywhere; a command to be pasted stays whole."""
    if line.startswith("$ ") or not is_terminal(sys.stdout):
        return [line]
    import shutil
    import textwrap

    room = shutil.get_terminal_size().columns - beside
    narrow = 30
    if room < narrow:
        return [line]
    return textwrap.wrap(line, room, break_long_words=False, break_on_hyphens=False) or [""]
