"""The last errors of commands, kept in the cache for `patchlock report`; nothing of them is ever sent."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

from patchlock.model.errors import PatchlockError, UsageError

_FILE = "last-errors.json"
_KEPT = 10


def remember(cache: Path, error: PatchlockError, command: str) -> None:
    """Keep an error, where there is a cache already; mistakes on the command line are not kept."""
    if isinstance(error, UsageError) or not cache.is_dir():
        return
    from patchlock.core import atomic_files

    row = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": command,
        "code": error.code,
        "text": str(error),
    }
    with contextlib.suppress(OSError):  # the error itself is what a person has to hear
        rows = [*read(cache), row][-_KEPT:]
        atomic_files.atomic_write(cache / _FILE, json.dumps(rows, indent=1) + "\n", sync=False)


def read(cache: Path) -> list[dict[str, Any]]:
    """Read the errors that were kept, the oldest first; a damaged file has none."""
    try:
        rows = json.loads((cache / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return rows if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else []
