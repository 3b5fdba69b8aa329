"""Ask uv what a lock is resolved from: what it is asked stands in a folder, and its digest names the question."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from patchlock.core import uv
from patchlock.model.identities import Sha256

ARGUMENTS = "arguments.json"
"""The file of a question that holds uv's arguments, so that they count as a part of it."""
_ANSWER = "pylock.toml"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What uv found."""

    pylock: str
    """Text of the pylock.toml (PEP 751)."""
    log: str
    """What uv said with `-v`."""
    question: Sha256
    """Digest of what it was asked."""


def ask(folder: Path, *more: str) -> Answer:
    """Ask uv the question that stands in a folder, with more arguments.

    Raises:
        PatchlockError: as `uv.run`.
    """
    asked = digest(folder)
    arguments = json.loads((folder / ARGUMENTS).read_text(encoding="utf-8"))
    # `--python` only spares uv the search for one, which takes seconds where PATH is full of shims.
    how = ("--python", sys.executable, "--format", "pylock.toml", "--no-header", "-v", "-o", _ANSWER)
    done = uv.run("pip", "compile", *arguments, *more, *how, cwd=folder, installing=False)
    return Answer(pylock=(folder / _ANSWER).read_text(encoding="utf-8"), log=done.stderr, question=asked)


def digest(folder: Path) -> Sha256:
    """Digest a question, wherever its folder is."""
    made = hashlib.sha256()
    address = folder.as_uri().encode()
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != _ANSWER):
        data = file.read_bytes().replace(b"\0", b"").replace(address, b"")
        made.update(f"{file.relative_to(folder).as_posix()}\0{len(data)}\0".encode() + data)
    return Sha256(made.hexdigest())
