"""Begin without click where a command is given in the plain way.

Reading click takes longer than the answer of `detect` does; and while it is read, uv can work already for `lock`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patchlock.cli._repeated_lock import RepeatedLock

_FLAG = "--json"
_DETECT = ("--why-not", "--catalogue")
_LOCK = ("--profile", "--platform", "--source", "--catalogue", "--explain", "--accept-changed")
"""Options that change nothing of what is asked for the pairs."""


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


@contextlib.contextmanager
def resolve_ahead(arguments: Sequence[str]) -> Iterator[RepeatedLock | None]:
    """Let uv work at what `lock` asked it last time for the same pairs; None for everything but a plain `lock`."""
    plain = _plain(arguments, "lock", _LOCK)
    if plain is None:
        yield None
        return
    from patchlock.cli import _folders
    from patchlock.locks import resolver_cache

    apps, given = plain
    ahead = resolver_cache.ResolverPrefetch(_folders.cache())
    with ahead.asked_again(apps, given.get("--profile"), given.get("--platform")):
        from patchlock.cli._repeated_lock import RepeatedLock  # uv is at work meanwhile

        catalogue = given.get("--catalogue") or os.environ.get("PATCHLOCK_CATALOGUE")
        words = tuple(word for word in arguments if word != _FLAG)
        yield RepeatedLock(words, Path(catalogue) if catalogue else None, ahead, as_json=_FLAG in given)


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
