"""What an install really laid down, where that is not what RECORD says: written once, learnt from by deep verifies."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patchlock.core import atomic_files
from patchlock.model.identities import Sha256

FILE = "ledger.json"
"""In a generation."""
_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class InstalledFile:
    """A file of which RECORD says something else."""

    size: int | None
    """Bytes as laid down; None where RECORD names a file that the install did not lay down."""
    sha256: Sha256 | None = None
    """As the wheel itself has it, or as it was laid down where RECORD has no hash; None where nobody has read it."""


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """What is known of a generation since it was filled."""

    laid: float
    """When all files were there, in seconds since the epoch; what was written later was written by somebody else."""
    records: Mapping[str, Sha256]
    """Name of each `.dist-info` folder → sha256 of its RECORD."""
    files: Mapping[str, InstalledFile]
    """Path from site-packages → what was laid down; only where RECORD says something else."""
    unlisted: tuple[str, ...] = ()
    """Paths from site-packages that no RECORD names, although a wheel laid them down; sorted."""


def read(environment: Path) -> Ledger | None:
    """Read the ledger of a generation; None where it was made by a patchlock without one, or cannot be read."""
    try:
        values = json.loads((environment / FILE).read_text(encoding="utf-8"))
        if values["format"] != _FORMAT:
            return None
        files = {path: InstalledFile(size=row["size"], sha256=row["sha256"]) for path, row in values["files"].items()}
        unlisted = tuple(values["unlisted"])
        return Ledger(laid=float(values["laid"]), records=values["records"], files=files, unlisted=unlisted)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write(environment: Path, ledger: Ledger) -> None:
    """Write the ledger of a generation, in one step."""
    values = {"format": _FORMAT, **dataclasses.asdict(ledger)}
    atomic_files.atomic_write(environment / FILE, json.dumps(values, indent=1, sort_keys=True) + "\n")


def now() -> float:
    """Give the moment at which all files are there."""
    return time.time()
