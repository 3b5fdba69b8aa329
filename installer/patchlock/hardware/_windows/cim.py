"""What is asked of Windows' CIM through PowerShell, and what its answer means; starts nothing.

Windows itself answers by `hardware._windows.devices`, in a millisecond and in every language; this is for where that
is out of
reach: WSL, and systems that imitate Windows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from patchlock.hardware._windows.records import DISPLAY_CLASS, Plugged

_PROPERTIES = "Name,PNPDeviceID,DriverVersion,ConfigManagerErrorCode,AdapterRAM,InfFilename"
_SCRIPT = (
    "$ProgressPreference='SilentlyContinue';"
    "[Console]::OutputEncoding=New-Object Text.UTF8Encoding $false;"
    f"$v=@(Get-CimInstance Win32_VideoController -Property {_PROPERTIES}|Select-Object {_PROPERTIES});"
    "$p=@(Get-CimInstance Win32_PnPEntity -Property Name,PNPDeviceID,ConfigManagerErrorCode "
    f"-Filter 'ClassGuid=''{DISPLAY_CLASS}'''|Select-Object Name,PNPDeviceID,ConfigManagerErrorCode);"
    "ConvertTo-Json -Compress -Depth 3 -InputObject @{video=$v;entities=$p}"
)
ARGUMENTS = ("-NoLogo", "-NoProfile", "-NonInteractive", "-Command", _SCRIPT)
"""Of powershell.exe, in every version since 3.0. Its output is UTF-8 whatever code page the system has. No argument has
a double quotation mark in it, which WSL and Windows hand on in different ways.

Source: https://learn.microsoft.com/windows/win32/cimwin32prov/win32-videocontroller and …/win32-pnpentity
"""
PATIENCE = 5.0
"""Seconds; PowerShell alone takes about half of one to start."""
_BASIC_INF = "display.inf"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The display devices that are plugged in, by CIM."""

    plugged: tuple[Plugged, ...]
    adapter_ram: int = 0
    """The largest AdapterRAM, bytes; it has 32 bits and ends at 4 GB."""


@dataclass(frozen=True, kw_only=True)
class Garbage:
    """Output that is no answer."""

    why: str
    """A clause."""


def read(output: bytes) -> Answer | Garbage:
    """Read what PowerShell printed; whatever it is, this does not fail."""
    said = output.decode("utf-8-sig", errors="replace").strip()
    if not said:
        return Garbage(why="PowerShell printed nothing")
    start = said.find("{")  # a profile or a policy may have said something before
    try:
        data = json.loads(said[max(start, 0) :])
    except (ValueError, RecursionError):
        return Garbage(why=f"PowerShell printed no JSON: {said[:60]!a}")
    if not isinstance(data, dict) or not {"video", "entities"} & data.keys():
        return Garbage(why=f"PowerShell printed other JSON: {said[:60]!a}")
    found = {one.id.upper(): one for one in map(_plugged, _rows(data.get("entities"))) if one.id}
    video = _rows(data.get("video"))
    found |= {one.id.upper(): one for one in map(_plugged, video) if one.id}
    return Answer(
        plugged=tuple(one for _, one in sorted(found.items())),
        adapter_ram=max((_whole(row.get("AdapterRAM")) for row in video), default=0),
    )


def _rows(value: object) -> list[dict[str, object]]:
    """Give the objects of a list, or the one object that old versions of ConvertTo-Json make of a list of one."""
    listed = value if isinstance(value, list) else [value]
    return [row for row in listed if isinstance(row, dict)]


def _plugged(row: dict[str, object]) -> Plugged:
    return Plugged(
        id=_text(row.get("PNPDeviceID")),
        name=_text(row.get("Name")),
        problem=_whole(row.get("ConfigManagerErrorCode")),
        version=_text(row.get("DriverVersion")),
        is_basic=_text(row.get("InfFilename")).lower() == _BASIC_INF,
    )


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
