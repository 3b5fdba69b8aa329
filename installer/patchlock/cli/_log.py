"""What -v, -q and --log-file ask for: a record of what is done, on stderr or in a file, by Python's own logging."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from patchlock.cli._paths import UserPath
from patchlock.model.addresses import without_secrets
from patchlock.model.visible_text import visible

if TYPE_CHECKING:
    import logging

F = TypeVar("F", bound=Callable[..., Any])
_QUIET, _VERBOSE = "patchlock.quiet", "patchlock.verbose"
"""Keys of click's `meta`, which lives as long as the command."""
NAME = "patchlock"
_SHOWN = "is_shown"
"""An attribute of a record."""


def options(function: F) -> F:
    """Add -v, -q and --log-file."""
    function = click.option(
        "--log-file",
        type=UserPath(dir_okay=False),
        expose_value=False,
        callback=_to_file,
        help="Append everything that is done, including each command, to this file.",
    )(function)
    function = click.option(
        "-q", "--quiet", is_flag=True, expose_value=False, callback=_be_quiet, help="No progress and no notes."
    )(function)
    return click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=_be_verbose,
        help="Show each command that is run.",
    )(function)


def _be_quiet(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        context.meta[_QUIET] = True
        _require_one(context)


def _be_verbose(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value and not context.meta.get(_VERBOSE):
        import logging

        context.meta[_VERBOSE] = True
        _require_one(context)
        handler = logging.StreamHandler()
        handler.addFilter(lambda record: not getattr(record, _SHOWN, False))
        _attach(handler, "%(message)s")


def _require_one(context: click.Context) -> None:
    """Refuse to be told both to say more and to say less.

    Raises:
        UsageError: both are given.
    """
    from patchlock.model.errors import UsageError

    if context.meta.get(_QUIET) and context.meta.get(_VERBOSE):
        raise UsageError("-v and -q contradict each other", remedy="leave one out")


def _to_file(_context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    import logging

    from patchlock import __version__
    from patchlock.model.errors import from_os

    try:
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
        _attach(logging.FileHandler(path, encoding="utf-8", errors="replace"), "%(asctime)s %(message)s")
    except OSError as error:
        raise from_os(error) from error
    note(f"patchlock {__version__}, Python {sys.version.split()[0]} on {sys.platform}: {' '.join(sys.argv[1:])}")


def _attach(handler: logging.Handler, shape: str) -> None:
    import logging

    handler.setFormatter(logging.Formatter(shape))
    handler.addFilter(_make_safe)
    logger = logging.getLogger(NAME)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(handler)


def _make_safe(record: logging.LogRecord) -> bool:
    record.msg, record.args = visible(without_secrets(record.getMessage())), ()
    return True


def close() -> None:
    """Write out the record, when the command has ended."""
    import logging

    logger = logging.getLogger(NAME)
    for handler in tuple(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


def is_quiet() -> bool:
    """Say whether nobody wants to hear of what goes on."""
    return _is_set(_QUIET)


def is_verbose() -> bool:
    """Say whether the record goes to the terminal, where nothing may be drawn over then."""
    return _is_set(_VERBOSE)


def _is_set(key: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(key))


def note(text: str, *, is_shown: bool = False) -> None:
    """Write a line into the record, if there is one.

    Args:
        text: the line.
        is_shown: stderr has it anyway, so that -v does not repeat it.
    """
    if (logging := sys.modules.get("logging")) is not None:
        logging.getLogger(NAME).debug("%s", text, extra={_SHOWN: is_shown})
