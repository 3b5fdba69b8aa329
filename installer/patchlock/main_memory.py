"""How much memory this machine has, and has now; where its container may use less, that."""

from __future__ import annotations

from patchlock.machine_files import Files, number

_UNLIMITED = 1 << 60
"""cgroup v1 writes a number near 2^63 for "no limit"."""


def total(files: Files) -> int:
    """Give the bytes of the machine, or the limit of its container; 0 where nothing says."""
    return min([one for one in (_meminfo(files, "MemTotal"), *(limit for limit, _ in _limits(files))) if one] or [0])


def available(files: Files) -> int:
    """Give the bytes that programs can have now without swapping; 0 where nothing says."""
    free = [max(limit - used, 0) for limit, used in _limits(files)]
    return min([one for one in (_meminfo(files, "MemAvailable"), *free) if one] or [0])


def _meminfo(files: Files, key: str) -> int:
    """Source: https://docs.kernel.org/filesystems/proc.html#meminfo ."""
    for line in files.text("proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == key:
            return (number(rest.removesuffix("kB")) or 0) * 1024
    return 0


def _limits(files: Files) -> list[tuple[int, int]]:
    """Give limit and use of each group that has a limit.

    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html and .../cgroup-v1/memory.html
    """
    folders = [("sys/fs/cgroup/memory", True), ("sys/fs/cgroup", False)]
    for line in files.text("proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, below = rest.partition(":")
        is_first = "memory" in controllers.split(",")
        if "\0" not in below and ".." not in below.split("/"):
            base = "sys/fs/cgroup/memory" if is_first else "sys/fs/cgroup"
            folders.append((f"{base}/{below.strip('/')}", is_first))
    found = []
    for folder, is_first in dict.fromkeys(folders):
        limit = number(files.text(f"{folder}/{'memory.limit_in_bytes' if is_first else 'memory.max'}"))
        if limit and limit < _UNLIMITED:
            used = number(files.text(f"{folder}/{'memory.usage_in_bytes' if is_first else 'memory.current'}"))
            found.append((limit, used or 0))
    return found
