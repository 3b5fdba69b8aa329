"""Ask Windows for memory, disk, version and processor, and folders for libraries and toolkits; starts nothing."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys
from pathlib import Path

from patchlock.hardware._linux import settings
from patchlock.hardware._windows import facts

_LIBRARIES = (
    *("nvcuda.dll", "nvml.dll", "amdhip64.dll", "amdhip64_6.dll", "amdhip64_7.dll"),
    *("msvcp140.dll", "vcruntime140_1.dll", "DirectML.dll", "d3d12.dll", "dxcore.dll"),
)
_MOST_BYTES = 1_000_000


def system32() -> Path:
    """Name the folder of Windows' and the drivers' libraries."""
    return Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32")


def libraries(folder: Path) -> dict[str, str]:
    """Find libraries in the folder where drivers put them: name → path.

    What lies elsewhere on PATH may be ZLUDA's, or an app's.
    """
    return {name: str(folder / name) for name in _LIBRARIES if (folder / name).is_file()}


def machine() -> str:
    """Name the processor in lower case, without `platform`, which asks CIM from Python 3.12 on."""
    names = ("PROCESSOR_ARCHITEW6432", "PROCESSOR_ARCHITECTURE")
    return (next(filter(None, map(os.environ.get, names)), "") or platform.machine()).lower()


class _Version(ctypes.Structure):
    """RTL_OSVERSIONINFOW."""

    _fields_ = (
        *((name, ctypes.c_ulong) for name in ("length", "major", "minor", "build", "platform")),
        ("pack", ctypes.c_wchar * 128),
    )


def version() -> tuple[int, int, int]:
    """Give major, minor and build of Windows; zeros where it does not say.

    `sys.getwindowsversion` depends on the manifest of this Python, and its `platform_version` on kernel32.dll, which
    says 19041 in Windows 10 22H2, whose build is 19045.

    Source: https://learn.microsoft.com/windows-hardware/drivers/ddi/wdm/nf-wdm-rtlgetversion
    """
    said = _Version(length=ctypes.sizeof(_Version))
    if sys.platform == "win32" and ctypes.windll.ntdll.RtlGetVersion(ctypes.byref(said)) == 0:
        return said.major, said.minor, said.build
    return 0, 0, 0


def is_wine() -> bool:
    """Say whether this is Wine.

    Source: https://gitlab.winehq.org/wine/wine/-/wikis/Developer-FAQ
    """
    return sys.platform == "win32" and hasattr(ctypes.windll.ntdll, "wine_get_version")


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX.

    Source: https://learn.microsoft.com/windows/win32/api/sysinfoapi/ns-sysinfoapi-memorystatusex
    """

    _fields_ = (
        ("length", ctypes.c_ulong),
        ("load", ctypes.c_ulong),
        ("total", ctypes.c_ulonglong),
        ("available", ctypes.c_ulonglong),
        ("others", ctypes.c_ulonglong * 5),
    )


def memory() -> tuple[int, int]:
    """Give the bytes in all, and those that programs can have now; zeros where Windows does not say."""
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    if sys.platform == "win32" and ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return status.total, status.available
    return 0, 0


def home() -> str:
    """Name the user's folder; "" where nothing says."""
    try:
        return str(Path.home())
    except RuntimeError:
        return ""


def user_site() -> str:
    r"""Name the distributions in the user's site folders that choose what computes, comma separated.

    Of every Python, as an environment's need not be the one that runs this.

    Source: https://docs.python.org/3/library/site.html#site.USER_BASE
    """
    base = os.environ.get("PYTHONUSERBASE") or os.path.expandvars(r"%APPDATA%\Python")
    folders = [Path(base, name, "site-packages") for name in _folders(Path(base)) if name.startswith("Python3")]
    return settings.shadowing(name for folder in folders for name in _folders(folder))


def toolkits() -> dict[str, str]:
    """Give the versions of `hip-sdk` and `cuda-toolkit` that programs use, where they are installed."""
    programs = os.environ.get("PROGRAMW6432") or os.environ.get("PROGRAMFILES") or r"C:\Program Files"
    hip, cuda = _chosen("HIP_PATH"), _chosen("CUDA_PATH")
    said = {
        "hip-sdk": facts.toolkit(_folders(Path(programs, "AMD", "ROCm")), hip),
        "cuda-toolkit": _cuda_version(cuda)
        or facts.toolkit(_folders(Path(programs, "NVIDIA GPU Computing Toolkit", "CUDA")), cuda),
    }
    return {name: version for name, version in said.items() if version}


def _chosen(variable: str) -> str:
    """Give the folder that a variable names, if it is there."""
    path = os.environ.get(variable, "")
    return path if path and os.path.isdir(path) else ""  # noqa: PTH112 - whatever stands in it, this does not fail


def _folders(above: Path) -> list[str]:
    try:
        return sorted(one.name for one in os.scandir(above) if one.is_dir())
    except OSError:
        return []


def _cuda_version(folder: str) -> str:
    """Read the version that a CUDA toolkit writes into its folder; "" where it does not."""
    if not folder:
        return ""
    try:
        with Path(folder, "version.json").open("rb") as file:
            said = json.loads(file.read(_MOST_BYTES))["cuda"]["version"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""
    return said if isinstance(said, str) else ""
