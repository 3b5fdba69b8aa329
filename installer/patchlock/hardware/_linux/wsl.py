"""Whether Linux runs inside Windows (WSL), and which graphics cards Windows lets it use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from patchlock.core.bounded_files import FileReader
from patchlock.hardware._linux import nvidia
from patchlock.model.hosts import Device, Failure

_BINFMT = "proc/sys/fs/binfmt_misc"


def is_wsl(files: FileReader) -> bool:
    """Say whether this is a kernel of WSL; containers in it see the same."""
    return "microsoft" in files.text("proc/version").lower() or files.has("dev/dxg")


def interop(files: FileReader) -> str:
    """Say whether programs of Windows start: `on`, `off`, or "" where that cannot be seen.

    Source: https://learn.microsoft.com/en-us/windows/wsl/wsl-config#interop-settings
    """
    if not files.has(_BINFMT):
        return ""
    entries = [files.text(f"{_BINFMT}/{name}") for name in files.names(_BINFMT) if name.startswith("WSLInterop")]
    return "on" if any(entry.startswith("enabled") for entry in entries) else "off"


def cards(library: Path, env: Mapping[str, str], timeout: float) -> tuple[list[Device], Failure | None]:
    """Ask Windows, by the library that WSL has for that, for its graphics cards.

    Returns:
        The cards, without a PCI address; why there is no answer.
    """
    said = nvidia.run_child("dxcore", library, env, timeout)
    if isinstance(said, str) or "failed" in said:
        why = said if isinstance(said, str) else str(said["failed"])
        return [], Failure(probe="dxcore", why=f"{library.name}: {why}")
    try:
        return [_device(one) for one in said.get("cards", []) if one.get("hardware", True)], None
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        return [], Failure(probe="dxcore", why=f"{library.name}: its answer cannot be read: {error}")


def _device(one: Mapping[str, Any]) -> Device:
    vendor, device = int(one.get("vendor", 0)), int(one.get("device", 0))
    return Device(
        vendor=f"{vendor & 0xFFFF:04x}" if vendor else "",
        device=f"{device & 0xFFFF:04x}" if vendor else "",
        revision=f"{int(one.get('revision', 0)) & 0xFF:02x}" if vendor else "",
        name=str(one.get("name", "")),
        memory=int(one.get("memory", 0)),
        driver=str(one.get("driver", "")),
    )
