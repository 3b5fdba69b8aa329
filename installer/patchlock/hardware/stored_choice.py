"""What was chosen for an installation, as a file of it: by whom the profile, and the variables of its device."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = "choice.json"


@dataclass(frozen=True, kw_only=True)
class StoredChoice:
    """A choice."""

    device: Mapping[str, str]
    """Variables that make programs take the chosen one of several devices."""
    profiles: str
    """`digest` of the profiles that patchlock chose from; "" where a person has named one."""
    instead: str = ""
    """Profile that is used in the place of this one, whose proof failed on this machine; "" for none."""


def digest(catalogue: Path) -> str:
    """Digest the profiles of a catalogue: while they are the same, a machine is not asked again which one it gets."""
    made = hashlib.sha256()
    for path in sorted((catalogue / "profiles").glob("*.toml")):
        made.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return made.hexdigest()


def write(installation: Path, kept: StoredChoice) -> None:
    """Keep a choice; there is no file where it says nothing."""
    from patchlock.core import atomic_files

    if kept.device or kept.profiles or kept.instead:
        text = json.dumps({"device": dict(kept.device), "profiles": kept.profiles, "instead": kept.instead}, indent=2)
        atomic_files.atomic_write(installation / FILE, text + "\n")
    else:
        (installation / FILE).unlink(missing_ok=True)


def read(installation: Path) -> StoredChoice:
    """Read the choice; a file that is damaged says nothing."""
    try:
        data = json.loads((installation / FILE).read_text(encoding="utf-8"))
        device = {str(name): str(value) for name, value in data["device"].items()}
        return StoredChoice(device=device, profiles=str(data["profiles"]), instead=str(data.get("instead", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return StoredChoice(device={}, profiles="")


def variables(installation: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Give the variables of the device; none where the user has set one of that kind himself, even to nothing."""
    is_chosen = any(name.endswith("_VISIBLE_DEVICES") or name == "GPU_DEVICE_ORDINAL" for name in environ)
    return {} if is_chosen else dict(read(installation).device)
