"""From Windows' registry to facts about the system: its version, toolkits, settings and board; asks no machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from patchlock.hardware._windows.records import Registry, Value, number, text

_VERSION = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion"
_PROCESSOR = r"HKLM\HARDWARE\DESCRIPTION\System\CentralProcessor\0"
_BOARD = r"HKLM\HARDWARE\DESCRIPTION\System\BIOS"
_FILES = r"HKLM\SYSTEM\CurrentControlSet\Control\FileSystem"
_INTEGRITY = r"HKLM\SYSTEM\CurrentControlSet\Control\CI\Policy"
_DEFENDER = r"HKLM\SOFTWARE\Microsoft\Windows Defender"
_DEFENDER_POLICY = r"HKLM\SOFTWARE\Policies\Microsoft\Windows Defender"
_DEFENDER_SERVICE = r"HKLM\SYSTEM\CurrentControlSet\Services\WinDefend"
_RUNTIMES = r"HKLM\SOFTWARE\Microsoft\VisualStudio\14.0\VC\Runtimes"
_GIT = (r"HKLM\SOFTWARE\GitForWindows", r"HKCU\SOFTWARE\GitForWindows")
_DOCKER = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Uninstall\Docker Desktop"

WANTED: Mapping[str, tuple[str, ...]] = {
    _VERSION: ("CurrentBuildNumber", "DisplayVersion", "ReleaseId", "InstallationType", "ProductName"),
    _PROCESSOR: ("ProcessorNameString",),
    _BOARD: ("SystemManufacturer", "SystemProductName"),
    _FILES: ("LongPathsEnabled",),
    _INTEGRITY: ("VerifiedAndReputablePolicyState",),
    _DEFENDER: ("DisableAntiSpyware", "DisableAntiVirus", "PassiveMode"),
    rf"{_DEFENDER}\Real-Time Protection": ("DisableRealtimeMonitoring",),
    _DEFENDER_POLICY: ("DisableAntiSpyware", "DisableAntiVirus"),
    rf"{_DEFENDER_POLICY}\Real-Time Protection": ("DisableRealtimeMonitoring",),
    _DEFENDER_SERVICE: ("Start",),
    rf"{_RUNTIMES}\X64": ("Installed", "Version"),
    rf"{_RUNTIMES}\ARM64": ("Installed", "Version"),
    r"HKLM\SOFTWARE\AMD\CN": ("RadeonSoftwareVersion",),
    **dict.fromkeys(_GIT, ("CurrentVersion",)),
    _DOCKER: ("DisplayVersion",),
}
"""Key → the values of it that say something. Nothing in them names a person or a machine."""

CARD_VALUES = (
    *("DriverDesc", "MatchingDeviceId", "DriverVersion", "ProviderName", "RadeonSoftwareVersion"),
    *("HardwareInformation.qwMemorySize", "HardwareInformation.MemorySize"),
)
"""What is read of each key below `DISPLAY_KEY`."""

_WINDOWS_11 = 22000
"""First build. Source: https://learn.microsoft.com/windows/release-health/windows11-release-information"""
_AUTOMATIC = 2
"""Start of a service. Source: https://learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-query_service_configw"""
_DOTTED = re.compile(r"^v?(\d+(?:\.\d+)+)")
_SERVER = re.compile(r"Server (\d{4})")
_BOARD_FILLERS = frozenset({"system manufacturer", "system product name", "to be filled by o.e.m.", "default string"})


def distribution(registry: Registry, build: int) -> str:
    """Name this Windows: `windows 11 24H2`, `windows server 2022`.

    The registry's ProductName says "Windows 10" on Windows 11, too; the build decides.

    Args:
        registry: as `hardware._windows.registry.read` gives it.
        build: as Windows tells a program of today: 26100.
    """
    key = registry.get(_VERSION, {})
    if text(key, "InstallationType").lower().startswith("server"):
        year = _SERVER.search(text(key, "ProductName"))
        return f"windows server {year[1]}" if year else "windows server"
    is_same = text(key, "CurrentBuildNumber") in {"", str(build)}
    release = (text(key, "DisplayVersion") or text(key, "ReleaseId")) if is_same else ""
    return f"windows {11 if build >= _WINDOWS_11 else 10} {release}".strip()


def processor(registry: Registry) -> str:
    """Name the processor for people."""
    return " ".join(text(registry.get(_PROCESSOR, {}), "ProcessorNameString").split())


def board(registry: Registry) -> str:
    """Say what the firmware calls the machine; "" where its maker left the form empty."""
    key = registry.get(_BOARD, {})
    words = [text(key, name) for name in ("SystemManufacturer", "SystemProductName")]
    return " ".join(word for word in words if word.lower() not in _BOARD_FILLERS).strip()


def settings(registry: Registry) -> dict[str, str]:
    """Give the settings of the system that the registry tells; what it does not tell is left out."""
    long_paths = number(registry.get(_FILES, {}), "LongPathsEnabled")
    state = number(registry.get(_INTEGRITY, {}), "VerifiedAndReputablePolicyState")
    said = {
        "long-paths": "on" if long_paths else "off",
        # Microsoft names the three states (Smart App Control's overview); their numbers are from use.
        "smart-app-control": {0: "off", 1: "on", 2: "evaluation"}.get(-1 if state is None else state, ""),
        "defender-realtime": _defender(registry),
    }
    return {name: value for name, value in said.items() if value}


def _defender(registry: Registry) -> str:
    """Say whether Defender looks at files: not where it is switched off, or where another program took its place."""
    keys = [_DEFENDER, _DEFENDER_POLICY]
    realtime = [rf"{key}\Real-Time Protection" for key in keys]
    off = [number(registry.get(key, {}), name) for key in keys for name in ("DisableAntiSpyware", "DisableAntiVirus")]
    off += [number(registry.get(key, {}), "DisableRealtimeMonitoring") for key in realtime]
    if any(off):
        return "off"
    start = number(registry.get(_DEFENDER_SERVICE, {}), "Start")
    is_passive = bool(number(registry.get(_DEFENDER, {}), "PassiveMode"))
    return "on" if start == _AUTOMATIC and not is_passive and realtime[0] in registry else ""


def versions(registry: Registry, machine: str) -> dict[str, str]:
    """Give the versions that the registry tells: `msvc-runtime`, `git`, `docker-desktop`.

    Args:
        registry: as `hardware._windows.registry.read` gives it.
        machine: `amd64` or `arm64`.

    Source: https://learn.microsoft.com/cpp/windows/redistributing-visual-cpp-files
    """
    runtime = registry.get(rf"{_RUNTIMES}\{'ARM64' if machine == 'arm64' else 'X64'}", {})
    said = {
        "msvc-runtime": _dotted(runtime, "Version").removesuffix(".00") if number(runtime, "Installed") else "",
        "git": next(filter(None, (_dotted(registry.get(key, {}), "CurrentVersion") for key in _GIT)), ""),
        "docker-desktop": _dotted(registry.get(_DOCKER, {}), "DisplayVersion"),
    }
    return {name: version for name, version in said.items() if version}


def _dotted(key: Mapping[str, Value], name: str) -> str:
    found = _DOTTED.match(text(key, name))
    return found[1] if found else ""


def toolkit(folders: Iterable[str], chosen: str) -> str:
    r"""Say which of several toolkits programs use, by the names of their folders (`6.4`, `v12.4`); "" where none is.

    Args:
        folders: names of the folders in which versions of it are installed.
        chosen: the path that a variable such as HIP_PATH names, if that is there: `C:\Program Files\AMD\ROCm\6.4\`.
    """
    last = re.split(r"[\\/]", chosen.rstrip("\\/"))[-1]
    found = [match[1] for match in map(_DOTTED.fullmatch, (last, *folders)) if match]
    if _DOTTED.fullmatch(last):
        return found[0]
    return max(found, key=lambda version: [int(part) for part in version.split(".")], default="")
