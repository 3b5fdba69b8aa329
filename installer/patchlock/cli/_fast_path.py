"""Begin without click where a command is given in the plain way.

Reading click takes longer than the answer of `detect` does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_FLAG = "--json"
_DETECT = ("--why-not", "--catalogue")


def parse_detect(arguments: Sequence[str]) -> dict[str, str] | None:
    """Read the plain ways to ask for `detect`: each option with its value.

    Returns:
        Option → its value, None for everything else, which click reads and judges.
    """
    plain = _plain(arguments, "detect", _DETECT)
    if plain is None or plain[0]:
        return None
    read = {"--catalogue": os.environ.get("PATCHLOCK_CATALOGUE", "")} | plain[1]
    return None if read["--catalogue"] and not Path(read["--catalogue"]).is_dir() else read


def _plain(
    arguments: Sequence[str], command: str, options: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, str]] | None:
    """Read a command line that begins with the command and has each option and its value in words of their own.

    Returns:
        The words that are no options, and option → its last value; None for a command line of another kind.
    """
    if list(arguments[:1]) != [command]:
        return None
    free: list[str] = []
    read: dict[str, str] = {}
    words = iter(arguments[1:])
    for word in words:
        if not word.startswith("-"):
            free.append(word)
            continue
        value = word if word == _FLAG else next(words, "") if word in options else ""
        if not value or (value.startswith("-") and word != _FLAG):
            return None
        read[word] = value
    return tuple(free), read


def run_detect(read: dict[str, str]) -> int:
    """Answer what was read, and give the exit code."""
    from patchlock.cli import _host_report

    folder = read["--catalogue"]
    return _host_report.show(read.get("--why-not"), Path(folder) if folder else None, as_json=_FLAG in read)
