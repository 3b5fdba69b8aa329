"""Ask this machine what an install depends on: its system, git, Python and the folders; read only, judges nothing."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

from patchlock.core import command_lines, uv
from patchlock.core.bounded_files import FileReader
from patchlock.hardware import interpreters
from patchlock.hardware._linux.system import os_release
from patchlock.hardware.preflight import Folder, Interpreter, NoPython, Python, PythonDownload
from patchlock.model.errors import CommandFailedError
from patchlock.model.package_managers import System

_OS = {"linux": "linux", "win32": "windows", "darwin": "macos"}
_HELPERS = ("sudo", "doas", "winget", "choco", "brew")
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "afpfs", "9p2000"})
_OF_WINDOWS = frozenset({"9p", "drvfs"})
_DRIVE_REMOTE = 4
"""Source: https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getdrivetypew"""


def system(root: Path = Path("/")) -> System:
    """Say what operating system this is, and with what things are installed on it."""
    name = _OS.get(sys.platform, sys.platform)
    return System(
        os=name,
        release=os_release(FileReader(root, "system")) if name == "linux" else {},
        is_jetson=(root / "etc/nv_tegra_release").is_file(),
        is_root=name != "windows" and os.geteuid() == 0,
        has=frozenset(helper for helper in _HELPERS if shutil.which(helper)),
    )


# --- python -----------------------------------------------------------------------------------------------------------


def python(request: str) -> Python:
    """Find the Python that an environment is made from, or say what would be fetched, and whether it may be.

    It is the one that runs us, if that will do, else the one that uv finds, for which it starts every Python on PATH.

    Args:
        request: as `interpreters.request` gives it.
    """
    try:
        found = _uv("python", "find", "--system", str(_own(request) or request))
    except CommandFailedError as error:
        if not any("No interpreter found" in line for line in error.evidence):
            return NoPython(why=f"asking for it failed: {' '.join(error.evidence)}", command=_install(request))
        return _fetched(request)
    path = Path(found)
    prefix = path.resolve().parent if os.name == "nt" else path.resolve().parent.parent
    return Interpreter(path=found, maker=interpreters.maker_of(path, has_conda_meta=(prefix / "conda-meta").is_dir()))


def _own(request: str) -> Path | None:
    """Give the Python that runs us, outside its virtual environment; None where it is not what is asked for."""
    names = {"linux": "linux", "darwin": "macos", "win32": "windows"}
    libc = "gnu" if sys.platform == "linux" and _is_glibc() else "none"
    machine = {"AMD64": "x86_64", "arm64": "aarch64", "ARM64": "aarch64"}.get(platform.machine(), platform.machine())
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    is_plain = sys.version_info.releaselevel == "final" and sys.maxsize > 2**32 and not getattr(sys, "abiflags", "")
    here = f"{sys.implementation.name}-{version}-{names.get(sys.platform)}-{machine}-{libc}"
    base = Path(sys.base_prefix)
    path = base / "python.exe" if os.name == "nt" else base / "bin" / f"python{version}"
    maker = interpreters.maker_of(path, has_conda_meta=(base / "conda-meta").is_dir())
    return path if here == request and is_plain and not maker and path.is_file() else None


def _is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):  # musl knows no such name
        return False


def _fetched(request: str) -> Python:
    """Say what uv would fetch, and why it may not where it may not."""
    here = interpreters.unfit(_listed(request.split("-")[1], "--only-installed"), request)
    offered = _listed(request, "--only-downloads")
    mirror = os.environ.get("UV_PYTHON_INSTALL_MIRROR", "")
    choice = os.environ.get("UV_PYTHON_DOWNLOADS", "")
    why = ""
    if not offered:
        why = "uv knows none that it could fetch"
    elif choice in {"never", "manual"}:
        why = f"its download is switched off (UV_PYTHON_DOWNLOADS={choice})"
    elif not uv.is_online() and not mirror.startswith("file:"):
        why = "the network is switched off (UV_OFFLINE)"
    if why:
        return NoPython(why=why, command=_install(request), unfit=here)
    host = urlsplit(mirror or offered[0]["url"])
    return PythonDownload(version=offered[0]["version"], host=host.hostname or mirror, folder=_uv("python", "dir"))


def _listed(request: str, option: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(_uv("python", "list", request, option, "--output-format", "json") or "[]")
    return listed


def _uv(*words: str) -> str:
    return uv.run(*words, "--no-config", cwd=Path(sys.prefix), installing=True, timeout=60).text


def _install(request: str) -> str:
    """Write the command that fetches a Python: with the user's uv, or with ours by its path."""
    program = "uv" if shutil.which("uv") else command_lines.program(str(uv.find()))
    off = [name for name in ("UV_OFFLINE", "UV_PYTHON_DOWNLOADS") if os.environ.get(name)]
    unset = f"env {' '.join(f'-u {name}' for name in off)} " if off and os.name == "posix" else ""
    return f"{unset}{program} python install {request.split('-')[1]}"


# --- folders ----------------------------------------------------------------------------------------------------------


def folder(path: Path, variable: str) -> Folder:
    """Say what kind of drive a folder lies on, or will."""
    return Folder(path=str(path), variable=variable, drive=_drive(path))


def _drive(path: Path) -> str:
    if sys.platform == "win32":
        import ctypes

        clouds = [
            os.environ[name] for name in ("OneDrive", "OneDriveConsumer", "OneDriveCommercial") if name in os.environ
        ]
        if in_any(path, clouds):
            return "OneDrive"
        remote = str(path).startswith("\\\\") or ctypes.windll.kernel32.GetDriveTypeW(path.anchor) == _DRIVE_REMOTE
        return "network" if remote else ""
    if sys.platform != "linux":
        return ""
    kind = filesystem(path, Path("/proc/mounts"))
    return "network" if kind in _NETWORK else "Windows" if kind in _OF_WINDOWS else ""


def in_any(path: PurePath, folders: Iterable[str]) -> bool:
    """Say whether a Windows path lies in one of these folders."""
    return any(PureWindowsPath(path).is_relative_to(PureWindowsPath(one)) for one in folders)


def filesystem(path: Path, mounts: Path) -> str:
    """Name the kind of file system that a path lies on, by the longest mount point above it; "" where none is known."""
    best, kind = -1, ""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        words = line.split()
        if len(words) > 2:
            point = words[1].replace("\\040", " ")
            if len(point) > best and path.is_relative_to(point):
                best, kind = len(point), words[2]
    return kind


def has_long_paths() -> bool:
    """Say whether Windows lets programs use paths of more than 259 characters; True elsewhere.

    Source: https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation
    """
    if sys.platform != "win32":
        return True
    import winreg

    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"SYSTEM\CurrentControlSet\Control\FileSystem") as key:
            return bool(winreg.QueryValueEx(key, "LongPathsEnabled")[0])
    except FileNotFoundError:
        return False


def is_of_another(path: Path) -> bool:
    """Say whether a folder that is there belongs to another user; Windows is left to git."""
    try:
        return os.name == "posix" and path.stat().st_uid != os.geteuid()
    except FileNotFoundError:
        return False


def user() -> str:
    """Name the user who works here; "" for root and where nobody can say."""
    if os.name != "posix" or os.geteuid() == 0:
        return ""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container with a number for a user
        return ""
