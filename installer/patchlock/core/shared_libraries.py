"""Find shared libraries where the loader of the system would; loads none."""

from __future__ import annotations

import functools
import os
import platform
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_LIBRARY_FLAGS = {"x86_64": 0x0303, "aarch64": 0x0A03}
"""Processor → flags of its libraries in the loader's cache. Source: glibc, sysdeps/generic/ldconfig.h."""
_LINUX_FOLDERS = ("lib", "usr/lib", "lib64", "usr/lib64", "usr/local/lib", "lib/{m}-linux-gnu", "usr/lib/{m}-linux-gnu")
_MAC_FOLDERS = ("opt/homebrew/lib", "usr/local/lib", "usr/lib")


def find(
    name: str, system: str, root: Path = Path("/"), *, environ: Mapping[str, str] = os.environ, processor: str = ""
) -> str:
    """Find a library as the loader would; "" where it does not.

    Args:
        name: as the loader knows it, or a path.
        system: `linux`, `windows` or `macos`.
        root: of the file system.
        environ: variables; LD_LIBRARY_PATH and its like come first.
        processor: whose libraries count; "" for this machine's.
    """
    if "/" in name:
        at = name if os.name == "nt" else str(root / name.lstrip("/"))
        return at if os.path.exists(at) else ""  # noqa: PTH110 - never fails
    match system:
        case "windows":
            windows = environ.get("SYSTEMROOT", r"C:\Windows")
            folders = [os.path.join(windows, "System32"), *environ.get("PATH", "").split(os.pathsep)]  # noqa: PTH118
        case "macos":
            folders = [*_listed("DYLD_LIBRARY_PATH", environ), *(str(root / folder) for folder in _MAC_FOLDERS)]
        case _:
            machine = processor or platform.machine()
            own = _in(_listed("LD_LIBRARY_PATH", environ), name)
            cached = loader_cache(root / "etc/ld.so.cache", machine).get(name, "")
            return own or cached or _in((str(root / f.format(m=machine)) for f in _LINUX_FOLDERS), name)
    return _in(folders, name)


def _listed(variable: str, environ: Mapping[str, str]) -> list[str]:
    return [folder for folder in environ.get(variable, "").split(os.pathsep) if folder]


def _in(folders: Iterable[str], name: str) -> str:
    paths = (os.path.join(folder, name) for folder in folders)  # noqa: PTH118 - as it is written
    return next((path for path in paths if os.path.isfile(path)), "")  # noqa: PTH113 - never fails


@functools.cache
def loader_cache(path: Path, machine: str) -> Mapping[str, str]:
    """Read which libraries the dynamic loader of glibc knows for a processor: name → path.

    An unreadable cache is an empty one: musl and NixOS have none. Of one that is cut off, what is left counts.

    Source: glibc, sysdeps/generic/dl-cache.h, `struct cache_file_new`.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return {}
    start = data.find(_CACHE_MAGIC)
    found: dict[str, str] = {}
    if start < 0:
        return found
    try:
        (count,) = struct.unpack_from("=I", data, start + len(_CACHE_MAGIC))
        for number in range(count):
            flags, key, value = struct.unpack_from("=iII", data, start + 48 + 24 * number)
            if flags == _LIBRARY_FLAGS.get(machine, flags):
                found.setdefault(_text(data, start + key), _text(data, start + value))
    except (struct.error, ValueError):  # cut off: what stands before that holds
        return found
    return found


def _text(data: bytes, at: int) -> str:
    return os.fsdecode(data[at : data.index(b"\0", at)])
