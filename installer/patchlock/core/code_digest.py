"""The bytes of patchlock's own code and of whole folders, for memories that must not outlive what they depend on."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

FOLDER = str(Path(__file__).parent.parent)


def contents(folder: str) -> Iterator[tuple[str, bytes]]:
    """Give each file below a folder, sorted, with its bytes; its path from the root of the machine.

    Raises:
        OSError: something cannot be read, or is no plain file.
    """
    with os.scandir(folder) as listed:
        entries = sorted(listed, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if entry.name != "__pycache__":
                yield entry.path, b""
                yield from contents(entry.path)
        elif entry.is_file():
            with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123 - 500 files in the time of an eyelid
                yield entry.path, file.read()
        else:  # a link to a folder may lead in a circle, or out
            raise OSError(f"{entry.path} is not a plain file")


def digest_of(parts: Iterable[tuple[str, bytes]]) -> str:
    """Digest named bytes, each with its length, so that nothing can move between two; 64 hexadecimal digits."""
    made = hashlib.sha256()
    for name, data in parts:
        path = name.encode(errors="surrogateescape")
        made.update(b"%d %d " % (len(path), len(data)) + path)
        made.update(data)
    return made.hexdigest()


@functools.cache
def digest() -> str | None:
    """Digest patchlock's code and the Python that runs it; None where it cannot be read file by file."""
    try:
        return digest_of([("python", sys.version.encode()), *contents(FOLDER)])
    except OSError:
        return None
