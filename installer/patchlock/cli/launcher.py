"""The small launcher that lets a person call patchlock again after `install.sh`, without anything on PATH."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

_NAME = "patchlock.cmd" if os.name == "nt" else "patchlock"


def path(home: Path) -> Path:
    """Name the launcher."""
    return home / "bin" / _NAME


def write(home: Path) -> None:
    """Write the launcher, if the bootstrap started us; it starts the same bootstrap again."""
    bootstrap = os.environ.get("PATCHLOCK_BOOTSTRAP", "")
    if not bootstrap:
        return
    if os.name == "nt":
        script = (
            "@echo off\r\nset PATCHLOCK_MODULE=patchlock\r\n"
            f'powershell -NoProfile -ExecutionPolicy Bypass -File "{bootstrap}" %*\r\n'
        )
    else:
        script = f'#!/bin/sh\nPATCHLOCK_MODULE=patchlock exec {shlex.quote(bootstrap)} "$@"\n'
    target = path(home)
    if not target.is_file() or target.read_bytes() != script.encode():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(script.encode())
        target.chmod(0o755)


def itself(home: Path) -> str:
    """Name patchlock in a form that can be pasted: its name where that is on PATH, else the launcher's path."""
    target = path(home)
    if shutil.which("patchlock") or not os.environ.get("PATCHLOCK_BOOTSTRAP") or not target.is_file():
        return "patchlock"
    return shlex.quote(str(target))
