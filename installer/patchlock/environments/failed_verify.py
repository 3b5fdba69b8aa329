"""What the last `verify` of a generation found wrong, kept in its folder until one passes; goes with the generation."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from patchlock.core import atomic_files

_FILE = "verify-failed.json"
_DEPTHS = ("quick", "plain", "deep")


@dataclass(frozen=True, kw_only=True)
class FailedVerify:
    """A `verify` that did not pass."""

    made: str
    """RFC 3339, UTC."""
    depth: str
    """`quick`, `plain` or `deep`."""
    failed: Mapping[str, str]
    """Id of a check → what was wrong, a clause."""


def read(generation: Path) -> FailedVerify | None:
    """Read what the last `verify` of a generation found; None where it passed, or where there was none."""
    try:
        return FailedVerify(**json.loads((generation / _FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # none, damaged, or of another patchlock's format
        return None


def keep(generation: Path, found: FailedVerify) -> None:
    """Keep what a `verify` found; where it passed, forget a failed one that looked no deeper."""
    before = read(generation)
    if found.failed:
        atomic_files.atomic_write(generation / _FILE, json.dumps(asdict(found), indent=1) + "\n")
    elif before is None or before.depth not in _DEPTHS or _DEPTHS.index(before.depth) <= _DEPTHS.index(found.depth):
        (generation / _FILE).unlink(missing_ok=True)


def forget(generation: Path, passed: Collection[str]) -> None:
    """Forget a failed `verify` of which every check that failed has passed since, as an install checks, too."""
    before = read(generation)
    if before is not None and before.failed.keys() <= set(passed):
        (generation / _FILE).unlink(missing_ok=True)
