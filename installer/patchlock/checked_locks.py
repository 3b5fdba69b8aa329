"""Remember that a check found all locks good, by the bytes of everything that it reads; believes no time stamp."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import packaging

from patchlock import __version__, own_code

_FOLDERS = ("lockfiles", "patches", "profiles")
_FILE = "checked-locks.json"


def digest(catalogue: Path, asked: Iterable[str]) -> str | None:
    """Digest all that the answer of a check depends on: the catalogue's files, patchlock's code, and what was asked.

    Args:
        catalogue: its root.
        asked: the words of the question.

    Returns:
        64 hexadecimal digits; None where something cannot be read as a plain file, so that only a check can tell.
    """
    words = (__version__, sys.version, packaging.__version__, *asked)
    try:
        parts: list[tuple[str, bytes]] = [("", word.encode(errors="surrogateescape")) for word in words]
        for folder in (own_code.FOLDER, *(str(catalogue / name) for name in _FOLDERS)):
            parts += [("", folder.encode(errors="surrogateescape")), *own_code.contents(folder)]
    except OSError:
        return None
    return own_code.digest_of(parts)


def recall(cache: Path, digest: str) -> Sequence[tuple[str, ...]] | None:
    """Give what the last good check found, if it was of exactly these bytes; None otherwise."""
    try:
        kept = json.loads((cache / _FILE).read_text(encoding="utf-8"))
        rows = [tuple(map(str, row)) for row in kept["rows"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return rows if kept["digest"] == digest else None


def remember(cache: Path, digest: str, rows: Sequence[tuple[str, ...]]) -> None:
    """Keep what a check found; where the cache cannot be written, the next check takes as long as this one."""
    from patchlock import whole_files  # `recall` is for those who have no time

    with contextlib.suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True)
        whole_files.write(cache / _FILE, json.dumps({"digest": digest, "rows": list(rows)}, indent=1) + "\n")
