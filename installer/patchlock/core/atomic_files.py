"""Files and folders of ours as a whole: put in their place in a step that outlasts a power cut, hashed, removed."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sys
import time
from pathlib import Path

from patchlock.model.identities import Sha256

_PATIENCE = 10.0
"""Seconds for children of a killed patchlock to end, which look for their parent now and then."""


def write(path: Path, text: str) -> None:
    """Write a text beside its place as UTF-8, and put it there; killed anywhere, the old file is whole."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def sha256(path: Path) -> Sha256:
    """Hash the bytes of a file."""
    with path.open("rb") as file:
        return Sha256(hashlib.file_digest(file, "sha256").hexdigest())


def remove_tree(folder: Path) -> None:
    """Remove a folder, also where git made files read-only (Windows); what a killed patchlock started may write to it.

    Raises:
        OSError: it cannot be removed, or somebody has been writing to it for seconds.
    """
    until = time.monotonic() + _PATIENCE
    while folder.exists():
        try:
            _remove_tree(folder)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST} or time.monotonic() > until:
                raise
            time.sleep(0.05)


def _remove_tree(folder: Path) -> None:
    def writable(function: object, path: str, _error: BaseException) -> None:
        os.chmod(path, 0o700)  # noqa: PTH101 - shutil hands a string
        if callable(function):
            function(path)

    if sys.version_info >= (3, 12):
        shutil.rmtree(folder, onexc=writable)
    else:
        shutil.rmtree(folder, onerror=lambda f, p, e: writable(f, p, e[1]))
