"""Answer `detect` without click where it is asked in the plain way: reading click takes longer than the answer does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_FLAG = "--json"
_OPTIONS = ("--why-not", "--catalogue")


def read(arguments: Sequence[str]) -> dict[str, str] | None:
    """Read the plain ways to ask for `detect`: each option with its value, in words of their own.

    Returns:
        Option → its value, None for everything else, which click reads and judges.
    """
    if not arguments or arguments[0] != "detect":
        return None
    read = {"--catalogue": os.environ.get("PATCHLOCK_CATALOGUE", "")}
    words = iter(arguments[1:])
    for word in words:
        value = word if word == _FLAG else next(words, "") if word in _OPTIONS else ""
        if not value or (value.startswith("-") and word != _FLAG):
            return None
        read[word] = value
    return None if read["--catalogue"] and not Path(read["--catalogue"]).is_dir() else read


def answer(read: dict[str, str]) -> int:
    """Answer what was read, and give the exit code."""
    from patchlock.cli import machine_view

    folder = read["--catalogue"]
    return machine_view.show(read.get("--why-not"), Path(folder) if folder else None, as_json=_FLAG in read)
