"""Recorded Windows machines: `tests/hardware/windows/*.json`, what the registry and the configuration manager gave there.

Bytes are written `{"hex": "0000f0ff"}`. Each file has a `source` that says what was recorded and what was inferred.
"""

from __future__ import annotations

import json
from typing import Any

from conftest import ROOT

from patchlock.hardware._windows.records import Plugged, Registry, Value

FOLDER = ROOT / "tests" / "hardware" / "windows"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> tuple[Registry, tuple[Plugged, ...]]:
    """Give a recorded machine's registry and the display devices that are plugged in."""
    data = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert data["source"], f"{name} has no source"
    registry = {key: {name: _value(one) for name, one in values.items()} for key, values in data["registry"].items()}
    return registry, tuple(Plugged(**one) for one in data["plugged"])


def _value(written: Any) -> Value:
    if isinstance(written, dict):
        return bytes.fromhex(written["hex"])
    return tuple(written) if isinstance(written, list) else written
