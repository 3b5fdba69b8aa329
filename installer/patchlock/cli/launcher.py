"""The small launcher that lets a person call patchlock again after `install.sh`, without anything on PATH."""

from __future__ import annotations

import os
import shlex
from pathlib import Path


def write(home: Path) -> None:
    """Write `<home>/bin/patchlock`, if the bootstrap started us; it starts the same bootstrap again."""
    bootstrap = os.environ.get("PATCHLOCK_BOOTSTRAP", "")
    if not bootstrap:
        return
    if os.name == "nt":
        name, script = (
            "patchlock.cmd",
            (
                "@echo off\r\nset PATCHLOCK_MODULE=patchlock\r\n"
                f'powershell -NoProfile -ExecutionPolicy Bypass -File "{bootstrap}" %*\r\n'
            ),
        )
    else:
        name, script = "patchlock", f'#!/bin/sh\nPATCHLOCK_MODULE=patchlock exec {shlex.quote(bootstrap)} "$@"\n'
    path = home / "bin" / name
    if not path.is_file() or path.read_bytes() != script.encode():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(script.encode())
        path.chmod(0o755)
    os.environ["PATCHLOCK_COMMAND"] = str(path)
