"""What a person or a program sees: results on stdout, errors on stderr, one JSON envelope with --json.

Every text of a person's command goes through `echo`, which makes control characters visible.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from patchlock.model.errors import CatalogueError, NotReadyError, PatchlockError, UsageError, similar
from patchlock.model.visible_text import visible

if TYPE_CHECKING:
    import click

    from patchlock.hardware.host_overrides import ObservedHost
    from patchlock.model.needs import Finding

_TOLD = "patchlock.simulated"
"""In click's context: which machine a command has named as simulated."""
_NARROW = 30
"""Columns that a text needs at least to be broken between words."""
_FEW = 2
"""Names that are all written where one thing is said of them."""
ENVELOPE = 1
"""Version of the JSON envelope; raised when a key changes its meaning."""


def echo(text: str = "", *, err: bool = False, has_prompt: bool = sys.platform != "win32") -> None:
    """Print a text at once, so that a reader who has gone is noticed here; its control characters are made visible.

    Commands of patchlock can be pasted as they are; on a terminal, a line that is too long is broken between words.

    Args:
        text: lines; a command stands behind "$ ".
        err: to stderr.
        has_prompt: leave the "$ "; PowerShell has no such prompt.
    """
    stream = sys.stderr if err else sys.stdout
    if "patchlock " in text:
        from patchlock.cli import _folders, _launcher

        text = _launcher.to_paste(text, _folders.home(), _repeated())
    text = broken(visible(text), stream)
    if not has_prompt and "$ " in text:
        import re

        text = re.sub(r"(^|  )\$ ", r"\1", text, flags=re.MULTILINE)
    _write(f"{text}\n", stream)


def _repeated() -> list[str]:
    """Repeat what the user gave and a command that is shown cannot work without: the catalogue, upstream's place."""
    import click

    context = click.get_current_context(silent=True)
    return given("catalogue", "source") if context is not None else []


def given(*names: str) -> list[str]:
    """Repeat options as the user gave them, for a command that can be pasted; what was not given is left out."""
    import click

    context = click.get_current_context()
    parameters = {word: one.name or "" for one in context.command.params for word in one.opts}
    words: list[str] = []
    for name in names:
        parameter = parameters.get(f"--{name}", "")
        if context.get_parameter_source(parameter) is click.core.ParameterSource.COMMANDLINE:
            value = context.params[parameter]
            for one in value if isinstance(value, tuple) else (value,):
                words += [f"--{name}"] if one is True else [f"--{name}", str(one)]
    return words


def note(text: str) -> None:
    """Print on stderr what is good to know; not with --quiet."""
    from patchlock.cli import _log

    if not _log.is_quiet():
        echo(text, err=True)


def file_text(text: str) -> None:
    """Print the text of a file, which another program may read: byte for byte, but on a terminal as `echo` does."""
    _write(visible(text) if is_terminal(sys.stdout) else text, sys.stdout)


def file_bytes(data: bytes) -> None:
    """Write the bytes of a file, which another program reads."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _write(text: str, stream: TextIO) -> None:
    stream.write(text)
    stream.flush()


def diff(text: str) -> None:
    """Print a diff: in colour and in a pager on a terminal, else byte for byte, for `git apply`."""
    if not is_terminal(sys.stdout):
        file_text(text)
        return
    import click

    os.environ.setdefault("LESS", "-FRX")  # as git does: no pager for one screen, and the text stays on it
    # Only for `color=None` does click 8.5 look whether `less` passes colours on.
    color = None if coloured(sys.stdout) else False
    lines = visible(text).splitlines(keepends=True)
    click.echo_via_pager((_diff_line(line) for line in lines) if color is None else lines, color=color)


def _diff_line(line: str) -> str:
    import click

    for start, colour in (("+++", None), ("---", None), ("+", "green"), ("-", "red"), ("@@", "cyan")):
        if line.startswith(start):
            text = line.rstrip("\n")
            return click.style(text, fg=colour, bold=colour is None) + line[len(text) :]
    return line


def size(count: int) -> str:
    """Write a number of bytes for a person."""
    from patchlock.model.byte_sizes import size_text

    return size_text(count)


def confirm(question: str, *, yes: bool, as_json: bool = False) -> bool:
    """Ask a person before something is lost.

    Args:
        question: ends with a question mark.
        yes: whether he has said so on the command line.
        as_json: a program reads the answer, so that nobody can be asked.

    Raises:
        UsageError: nobody can be asked.
    """
    if yes:
        return True
    if as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError(
            f'cannot ask "{question}" without a terminal', remedy="add --yes to agree, or --dry-run to look first"
        )
    return agreed(question)


def agreed(question: str, *, default: bool = False, err: bool = True, can_leave: bool = False) -> bool:
    """Ask a person until he says yes or no.

    Args:
        question: ends with a question mark.
        default: what Enter means.
        err: whether he is asked on stderr.
        can_leave: whether q leaves the command; else it is a no.

    Raises:
        click.Abort: the answer is Ctrl-C, or the end of the input (Ctrl-D).
        click.exceptions.Exit: the answer is q.
    """
    import click

    answers = {"y": True, "yes": True, "n": False, "no": False, "": default} | ({} if can_leave else {"q": False})
    asked = f"{question} {'[Y/n]' if default else '[y/N]'}"
    while True:
        word = click.prompt(asked, default="", show_default=False, err=err).strip()
        if word.lower() in answers:
            return answers[word.lower()]
        if can_leave and word.lower() == "q":
            raise click.exceptions.Exit
        echo(f'answer y or n{", or q to leave" if can_leave else ""}, not "{word}"', err=err)


def leave(text: str) -> NoReturn:
    """End a command that a person does not want to go on; his answer is no error.

    Raises:
        click.exceptions.Exit: always, with 0.
    """
    import click

    echo(text, err=True)
    raise click.exceptions.Exit


def place(root: Path, file: str) -> str:
    """Name a file below a folder so that it is found from here: in full where the folder is not the current one."""
    return file if root == Path.cwd() else str(root / file)


def warnings(sentences: Iterable[str]) -> str:
    """Write warnings as a block, one a line; "" for none."""
    return "\n".join(f"warning: {sentence}" for sentence in sentences)


def report_overrides(observed: ObservedHost) -> None:
    """Say on stderr, once in a command, that the machine is not this one."""
    import click

    context = click.get_current_context(silent=True)
    told = context.meta if context is not None else {}
    if observed.overrides and told.get(_TOLD) != observed.overrides:
        echo(f"simulated machine: {', '.join(observed.overrides)}", err=True)
        told[_TOLD] = observed.overrides


def succeed(command: str, data: object, error: PatchlockError | None = None) -> int:
    """Print the envelope of a command that did its work, and give its exit code.

    Args:
        command: its name.
        data: what it found or did; all keys are words joined by "_", see `docs/schemas/commands/`.
        error: what is wrong, where the work was to find that out; None: all is good.
    """
    _print_envelope(command, data, error)
    return error.exit_code if error is not None else 0


def fail(error: PatchlockError, command: str, as_json: bool, arguments: Sequence[str] = ()) -> int:
    """Print an expected failure, and give its exit code.

    Args:
        error: what failed.
        command: its name.
        as_json: one envelope, no text.
        arguments: those of the line that failed; the commands in the text repeat its --catalogue and --source.
    """
    if as_json:
        _print_envelope(command, None, error)
    else:
        from patchlock.cli import _folders, _launcher, _log

        sentence = _launcher.to_paste(str(error), _folders.home(), arguments)
        text = f"error[{error.code}]: {sentence}"
        _log.note(text, is_shown=True)
        first, *others = visible(broken(text, sys.stderr)).split("\n")
        head = _head(sys.stderr)
        _write("\n".join([head + first.removeprefix("error"), *others, ""]), sys.stderr)
    return error.exit_code


def broken(text: str, stream: object) -> str:
    """Break long lines between words where a terminal would break them anywhere; a command to be pasted stays whole."""
    if not _has_width(stream):
        return text
    import re
    import shutil

    room = shutil.get_terminal_size().columns
    lines: list[str] = []
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        is_one_word = " " not in line.strip()  # an address keeps its place
        if _is_command(line.lstrip()):
            lines.append(_beside(line.lstrip(), indent, room))
            continue
        if len(line) <= room or is_one_word or re.search(rf"  {_command()}", line):
            lines.append(line)
            continue
        first, *others = _filled(line, max(room, 40), " " * (indent + 2))
        lines += [first, *(_beside(part.strip(), indent + 2, room) for part in others)]
    return "\n".join(lines)


def _filled(line: str, width: int, indent: str = "") -> list[str]:
    """Break a line between words, but not inside backquotes, a folder of ours, or a command with which it ends.

    Args:
        line: the text.
        width: columns.
        indent: of all lines but the first.
    """
    import re
    import textwrap

    from patchlock.cli import _folders

    folders = "|".join(re.escape(str(folder)) for folder in (_folders.home(), _folders.cache()))
    glued = re.sub(rf"`[^`]*`|(?<=: ){_command()}.*|{folders}", lambda found: found[0].replace(" ", "\u00a0"), line)
    wrapper = textwrap.TextWrapper(width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [part.replace("\u00a0", " ") for part in wrapper.wrap(glued)] or [""]


@functools.cache
def _command() -> str:
    """Give the expression for what a command begins with that goes on to the end of its line."""
    from patchlock.cli import COMMANDS

    name, names = r"patchlock(?:\.cmd)?", "|".join(COMMANDS)
    quoted = rf"'[^']*{name}'|\"[^\"]*{name}\""  # a folder's name has spaces
    variables = r"(?:PATCHLOCK_\w+=(?:'[^']*'|\S+) |\$env:PATCHLOCK_\w+ = '[^']*'; )*"
    return rf"(?:\$ |{variables}(?:& )?(?:(?:[^\s`]*[/\\])?{name}|{quoted}) (?:{names})\b)"


def _print_envelope(command: str, data: object, error: PatchlockError | None) -> None:
    import json

    _write(visible(json.dumps(envelope(command, data, error), indent=2)) + "\n", sys.stdout)


def envelope(command: str, data: object, error: PatchlockError | None) -> dict[str, object]:
    """Join what `--json` prints of a command, see `docs/schemas/commands/`."""
    told = _details(error) if error is not None else None
    return {"patchlock": ENVELOPE, "command": command, "ok": error is None, "data": data, "error": told}


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
        "what": finding.clause,
        "remedy": finding.remedy,
        "stops": finding.stops,
        "packages": list(finding.way.packages) if finding.way else [],
        "source": finding.source,
    }


def fail_usage(error: click.UsageError, command: str, as_json: bool) -> int:
    """Print a mistake on the command line, and give its exit code."""
    import click

    if isinstance(error, click.MissingParameter) and command == "install":
        from patchlock.cli import _folders, _launcher

        with contextlib.suppress(OSError):  # whether a home can be written is said by `install`
            _launcher.write(_folders.home())  # the commands that are shown begin with it
        remedy = "`patchlock install demo` installs the smallest; `patchlock list` shows all"
        unnamed = UsageError("no app is named", remedy=remedy)
        return fail(unnamed, command, as_json)
    path = error.ctx.command_path if error.ctx else f"patchlock {command}".rstrip()
    message = " ".join(error.format_message().split()).rstrip(".")
    message, hint = message[:1].lower() + message[1:], ""
    if isinstance(error, click.NoSuchOption | click.NoSuchCommand) and error.ctx is not None:
        message, hint = _unknown_word(error, error.ctx)
    return fail(UsageError(message, remedy=f"{hint}see `{path} --help`"), command, as_json)


def _unknown_word(error: click.NoSuchOption | click.NoSuchCommand, context: click.Context) -> tuple[str, str]:
    """Say which option or command there is not, and the one that was probably meant."""
    import re

    import click

    if isinstance(error, click.NoSuchOption):
        word, what = error.option_name, "option"
        known = [name for one in context.command.get_params(context) for name in one.opts if name.startswith("--")]
    else:
        word, what = error.command_name, "command"
        known = context.command.list_commands(context) if isinstance(context.command, click.Group) else []
    hint = similar(word.removeprefix("--"), [name.removeprefix("--") for name in known])
    if what == "option" and not hint and isinstance(context.command, click.Group):
        hint = "write options after the command;"
    if what == "option":
        hint = re.sub(r'"(\S+)"', r'"--\1"', hint)
    return f'there is no {what} "{word}"', f"{hint} " if hint else ""


def _head(stream: object) -> str:
    if not coloured(stream):
        return "error"
    import click

    return click.style("error", fg="red", bold=True)


def coloured(stream: object) -> bool:
    """Say whether colour is welcome: a terminal, no NO_COLOR; FORCE_COLOR wins. Source: no-color.org."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream)


def can_ask() -> bool:
    """Say whether somebody sits there who can answer."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def is_terminal(stream: object) -> bool:
    """Say whether a person is looking at this stream, on a terminal that can do more than write lines."""
    return _has_width(stream) and os.environ.get("TERM") != "dumb"


def _has_width(stream: object) -> bool:
    """Say whether lines end at the edge of a terminal, which may be dumb."""
    return bool(getattr(stream, "isatty", lambda: False)())


def rows(pairs: Mapping[str, str] | list[tuple[str, str]], indent: int = 2) -> str:
    """Lay out names and values in two columns; a value of several lines, or long on a terminal, stays in its column.

    Where the names leave a value too little room on a terminal, it stands below its name.
    """
    pairs = list(pairs.items()) if isinstance(pairs, Mapping) else pairs
    width = max((len(name) for name, _ in pairs), default=0)
    if any(_is_cut(line, indent + width + 2) for _, value in pairs for line in value.split("\n")):
        return "\n".join(_below(name, value, indent) for name, value in pairs)
    lines, beside, columns = [], indent + width + 2, _room(0)
    for name, value in pairs:
        first, *others = [part for line in value.split("\n") for part in _wrapped(line, beside)]
        is_too_long = columns is not None and len(first) > columns and _is_command(first)
        place = first if is_too_long else _beside(first, beside, columns)
        if place == _beside(first, beside, None):
            lines.append(f"{' ' * indent}{name:<{width}}  {first}".rstrip())
        else:  # a word that has more room below, or a command that can be selected as a line there
            lines += [f"{' ' * indent}{name}".rstrip(), place]
        lines += [_beside(other, beside, columns) for other in others]
    return "\n".join(lines)


def _beside(part: str, indent: int, columns: int | None) -> str:
    """Indent a line; a path that the edge of a terminal would then break, less, as far as that helps."""
    if columns is not None and len(part) > columns - indent and (len(part) <= columns or " " not in part):
        indent = max(columns - len(part), 0)
    return f"{' ' * indent}{part}".rstrip()


def _below(name: str, value: str, indent: int) -> str:
    lines = [sentences(value.split("\n"), indent + 2)] if value else []
    return "\n".join([f"{' ' * indent}{name}".rstrip(), *lines])


def fits(text: str) -> bool:
    """Say whether every line fits into the terminal, or nobody looks at one."""
    room = _room(0)
    return room is None or all(len(line) <= room for line in text.split("\n"))


def sentences(lines: Iterable[str], indent: int = 2) -> str:
    """Lay out sentences, each in lines of its own; on a terminal those after its first stand further in."""
    columns, parts = _room(0), []
    for line in lines:
        first, *others = _wrapped(line, indent + 2)
        parts += [_beside(first, indent, columns), *(_beside(other, indent + 2, columns) for other in others)]
    return "\n".join(parts)


def hanging(head: str, text: str, columns: int) -> str:
    """Write a text beside its head, broken between words as `rows` does, in that many columns."""
    first, *others = _filled(text, max(columns - len(head), 20))
    return "\n".join([f"{head}{first}", *(_beside(other, len(head), columns) for other in others)])


def first_of(names: Sequence[str], whole: str = "") -> str:
    """Name those of which one thing is said: a few by name, else the first, and where the others are named.

    Args:
        names: of one at least.
        whole: what they are all together, such as "pairs"; "" where there are others.
    """
    if whole and len(names) > 1:
        return f"all {len(names)} {whole}"
    if len(names) <= _FEW:
        return ", ".join(names)
    return f"{names[0]} and {len(names) - 1} more (--json names them)"


def cut(line: str) -> str:
    """Cut a line at the edge of a terminal, with a sign that it goes on."""
    room = _room(0)
    return line if room is None or len(line) <= room else f"{line[: room - 1].rstrip()}…"


def _is_cut(line: str, beside: int) -> bool:
    """Say whether a line has no room for its words beside what stands before it, or less than that takes."""
    room = _room(beside)
    if room is None or _is_command(line):
        return False
    return room < min(_NARROW, len(line)) or (room < beside and any(len(word) > room for word in line.split()))


def _is_command(line: str) -> bool:
    import re

    return re.match(_command(), line) is not None


def _room(beside: int) -> int | None:
    """Give the columns that a terminal has left; None where none looks."""
    import shutil

    return shutil.get_terminal_size().columns - beside if _has_width(sys.stdout) else None


def _wrapped(line: str, beside: int) -> list[str]:
    """Break a line between words, where a terminal would break it anywhere; a command to be pasted stays whole.

    What follows a name and several blanks stays in its column, where there is room.
    """
    import re

    room = _room(beside)
    if room is None or room < _NARROW or _is_command(line):
        return [line]
    column = len(found[0]) if (found := re.match(r"\S+ {2,}", line)) else 0
    return _filled(line, room, " " * (column if room - column >= _NARROW else 2))
