"""Remember that locks were found good, by the bytes of everything that was read for it; believes no time stamp."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import packaging

from patchlock import __version__
from patchlock.core import code_digest

_FOLDERS = ("lockfiles", "patches", "profiles")


def digest(catalogue: Path, asked: Iterable[str]) -> str | None:
    """Digest all that an answer depends on: the catalogue's files, patchlock's code, and what was asked.

    Returns:
        64 hexadecimal digits; None where something cannot be read as a plain file, so that only a check can tell.
    """
    code = code_digest.digest()
    if code is None:
        return None
    words = (__version__, sys.version, packaging.__version__, *asked)
    parts = [*(("", word.encode(errors="surrogateescape")) for word in words), ("code", code.encode())]
    try:
        for name in _FOLDERS:
            folder = str(catalogue / name)
            parts += [("", folder.encode(errors="surrogateescape")), *code_digest.contents(folder)]
    except OSError:
        return None
    return code_digest.digest_of(parts)


def recall(cache: Path, asked: Iterable[str], digest: str) -> Any | None:
    """Give what was last found good for a question, if it was of exactly these bytes; None otherwise."""
    try:
        kept = json.loads(_file(cache, asked).read_text(encoding="utf-8"))
        return kept["found"] if kept["digest"] == digest else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(cache: Path, asked: Iterable[str], digest: str, found: object) -> None:
    """Keep what was found; where the cache cannot be written, the next time takes as long as this one.

    Args:
        cache: folder of patchlock's cache.
        asked: the words of the question.
        digest: of all that it depends on.
        found: what JSON can hold.
    """
    from patchlock.core import atomic_files  # `recall` is for those who have no time

    file = _file(cache, asked)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.atomic_write(file, json.dumps({"digest": digest, "found": found}, indent=1) + "\n")


def _file(cache: Path, asked: Iterable[str]) -> Path:
    words = code_digest.digest_of((word, b"") for word in asked)
    return cache / "checked-locks" / f"{words}.json"
