"""Look for programs, libraries, files, drivers and variables on this machine; runs only what says its version."""

from __future__ import annotations

import functools
import glob
import os
import platform
import re
import shutil
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from patchlock import process
from patchlock.errors import PatchlockError
from patchlock.needs import Resource
from patchlock.preflight import NOTHING, Sighting

_PATIENCE = 10.0
"""Seconds that a program has to say its version."""
_NVIDIA = re.compile(r"Kernel Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)")
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_LIBRARY_FLAGS = {"x86_64": 0x0303, "aarch64": 0x0A03}
"""Processor → flags of its libraries in the loader's cache. Source: glibc, sysdeps/generic/ldconfig.h."""
_LINUX_FOLDERS = ("lib", "usr/lib", "lib64", "usr/lib64", "usr/local/lib", "lib/{m}-linux-gnu", "usr/lib/{m}-linux-gnu")
_MAC_FOLDERS = ("opt/homebrew/lib", "usr/local/lib", "usr/lib")


def look(resource: Resource, system: str, *, root: Path = Path("/"), ask_version: bool) -> Sighting:
    """Look for a resource, as whoever uses it would.

    Args:
        resource: what is looked for.
        system: `linux`, `windows` or `macos`.
        root: of the file system.
        ask_version: whether its version matters.
    """
    names = resource.sought(system)
    match resource.kind:
        case "program":
            found = next(filter(None, (_program(name, root) for name in names)), "")
            return asked(found, resource) if found and ask_version and resource.arguments else Sighting(where=found)
        case "library":
            return Sighting(where=next(filter(None, (_library(name, system, root) for name in names)), ""))
        case "file":
            return next(filter(None, (_file(path, resource, root) for path in _paths(names, root))), NOTHING)
        case "driver":
            return _nvidia(root) if "nvidia" in names else _amdgpu(root)
        case "variable":
            return next((_variable(name) for name in names if os.environ.get(name)), NOTHING)
        case _:
            return NOTHING


def asked(program: str, resource: Resource) -> Sighting:
    """Ask a program for its version; that it fails is its trouble."""
    try:
        done = process.run(program, *resource.arguments, env=process.environment(), timeout=_PATIENCE)
    except PatchlockError as error:
        said = next((line.strip() for line in reversed(error.evidence) if line.strip()), error.what)
        return Sighting(where=program, trouble=said)
    said = f"{done.text}\n{done.stderr}"
    found = re.search(resource.pattern, said)
    return Sighting(where=program, version=found[1] if found else "")


def _program(name: str, root: Path) -> str:
    if "/" not in name:
        return shutil.which(name) or ""
    return next((str(path) for path in _paths([name], root) if os.access(path, os.X_OK)), "")


def _paths(names: Iterable[str], root: Path) -> Iterator[Path]:
    """Find the files of paths and globs; variables such as %ProgramFiles% and ~ are filled in."""
    for name in names:
        expanded = os.path.expandvars(os.path.expanduser(name))  # noqa: PTH111 - variables first, then a glob
        at = expanded if os.name == "nt" else os.path.join(root, expanded.lstrip("/"))  # noqa: PTH118
        yield from (Path(found) for found in sorted(glob.glob(at)))  # noqa: PTH207


def _file(path: Path, resource: Resource, root: Path) -> Sighting:
    mode = os.R_OK | (os.W_OK if resource.writable else 0)
    where = str(path) if root == Path("/") or os.name == "nt" else f"/{path.relative_to(root).as_posix()}"
    if os.access(path, mode):
        return Sighting(where=where)
    verb = "open" if resource.writable else "read"
    return Sighting(where=where, trouble=f"you may not {verb} it", group=_group(path))


def _group(path: Path) -> str:
    """Name the group that may open a file, "" where that is root's or nobody knows."""
    if sys.platform == "win32":
        return ""
    import grp

    status = path.stat()
    try:
        name = grp.getgrgid(status.st_gid).gr_name
    except KeyError:  # a container without the host's groups
        return ""
    return "" if name == "root" or not status.st_mode & 0o040 else name


def _variable(name: str) -> Sighting:
    value = os.environ[name]
    if ("/" in value or "\\" in value) and not Path(value).exists():
        return Sighting(where=f"{name}={value}", trouble="what it names does not exist")
    return Sighting(where=f"{name}={value}")


# --- drivers ----------------------------------------------------------------------------------------------------------


def _nvidia(root: Path) -> Sighting:
    proc = root / "proc/driver/nvidia/version"
    if proc.is_file():
        found = _NVIDIA.search(proc.read_text(encoding="utf-8", errors="replace"))
        return Sighting(where=str(proc), version=found[1] if found else "")
    # Windows, and WSL, where the driver is Windows' own.
    program = shutil.which("nvidia-smi") or next(iter(glob.glob("/usr/lib/wsl/lib/nvidia-smi")), "")  # noqa: PTH207
    if not program:
        return NOTHING
    try:
        query = ("--query-gpu=driver_version", "--format=csv,noheader")
        done = process.run(program, *query, env=process.environment(), timeout=_PATIENCE)
    except PatchlockError as error:
        return Sighting(where=program, trouble=error.what)
    lines = done.text.split()
    return Sighting(where=program, version=lines[0]) if lines else Sighting(where=program, trouble="it sees no card")


def _amdgpu(root: Path) -> Sighting:
    module = root / "sys/module/amdgpu"
    if not module.is_dir():
        return NOTHING
    # Only a module that was put in, as by AMD's DKMS package, has a version of its own, which counts otherwise.
    return Sighting(where=str(module), version="" if (module / "version").is_file() else platform.release())


# --- libraries --------------------------------------------------------------------------------------------------------


def _library(name: str, system: str, root: Path) -> str:
    if "/" in name:
        return next(map(str, _paths([name], root)), "")
    match system:
        case "windows":
            windows = os.environ.get("SYSTEMROOT", r"C:\Windows")
            folders = [os.path.join(windows, "System32"), *os.environ.get("PATH", "").split(os.pathsep)]  # noqa: PTH118
        case "macos":
            folders = [*_listed("DYLD_LIBRARY_PATH"), *(str(root / folder) for folder in _MAC_FOLDERS)]
        case _:
            own = _in(_listed("LD_LIBRARY_PATH"), name)
            cached = loader_cache(root / "etc/ld.so.cache", platform.machine()).get(name, "")
            machine = platform.machine()
            return own or cached or _in((str(root / f.format(m=machine)) for f in _LINUX_FOLDERS), name)
    return _in(folders, name)


def _listed(variable: str) -> list[str]:
    return [folder for folder in os.environ.get(variable, "").split(os.pathsep) if folder]


def _in(folders: Iterable[str], name: str) -> str:
    paths = (Path(folder) / name for folder in folders)
    return next((str(path) for path in paths if path.is_file()), "")


@functools.cache
def loader_cache(path: Path, machine: str) -> Mapping[str, str]:
    """Read which libraries the dynamic loader of glibc knows for a processor: name → path.

    An unreadable cache is an empty one: musl and NixOS have none.

    Source: glibc, sysdeps/generic/dl-cache.h, `struct cache_file_new`.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return {}
    start = data.find(_CACHE_MAGIC)
    if start < 0:
        return {}
    (count,) = struct.unpack_from("=I", data, start + len(_CACHE_MAGIC))
    found: dict[str, str] = {}
    for number in range(count):
        flags, key, value = struct.unpack_from("=iII", data, start + 48 + 24 * number)
        if flags == _LIBRARY_FLAGS.get(machine, flags):
            found.setdefault(_text(data, start + key), _text(data, start + value))
    return found


def _text(data: bytes, at: int) -> str:
    return os.fsdecode(data[at : data.index(b"\0", at)])
