"""Files of ours as a whole: put in their place in one step that outlasts a power cut, and known by their sha256."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from patchlock.identities import Sha256


def write(path: Path, text: str) -> None:
    """Write a text beside its place as UTF-8, and put it there; killed anywhere, the old file is whole."""
    beside = path.with_name(f".{path.name}.new")
    with beside.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def sha256(path: Path) -> Sha256:
    """Hash the bytes of a file."""
    with path.open("rb") as file:
        return Sha256(hashlib.file_digest(file, "sha256").hexdigest())
