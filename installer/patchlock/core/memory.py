"""How much memory this machine has, and has now; where its container may use less, that."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from patchlock.core.bounded_files import FileReader, number

_UNLIMITED = 1 << 60
"""cgroup v1 writes a number near 2^63 for "no limit"."""


def total(files: FileReader) -> int:
    """Give the bytes of the machine, or the limit of its container; 0 where nothing says."""
    return min([one for one in (_meminfo(files, "MemTotal"), *(limit for limit, _ in _limits(files))) if one] or [0])


def available(files: FileReader) -> int:
    """Give the bytes that programs can have now without swapping; 0 where nothing says."""
    free = [max(limit - used, 0) for limit, used in _limits(files)]
    return min([one for one in (_meminfo(files, "MemAvailable"), *free) if one] or [0])


def _meminfo(files: FileReader, key: str) -> int:
    """Source: https://docs.kernel.org/filesystems/proc.html#meminfo ."""
    for line in files.text("proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == key:
            return (number(rest.removesuffix("kB")) or 0) * 1024
    return 0


def _limits(files: FileReader) -> list[tuple[int, int]]:
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


_PROC = Path("/proc")
_SESSION = 3
"""Field of `stat` after the name and its bracket: state, parent, group, session. Source: proc_pid_stat(5)."""
_OWN = ("RssAnon:", "RssShmem:", "VmSwap:")
_SHARED = ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")


def of_process(number: int | None) -> int:
    """Say how many bytes a process has; 0 where that cannot be seen. Source: proc_pid_status(5)."""
    return 0 if number is None or sys.platform != "linux" else _sum(_PROC / str(number) / "status", _OWN)


def of_session(number: int, limit: int) -> int:
    """Say how many bytes the processes of a session have together.

    What forks share is counted for each of them, until the sum is above the limit: then it is counted once, which takes
    the kernel longer. Source: https://docs.kernel.org/filesystems/proc.html (smaps_rollup)

    Args:
        number: of the process that leads the session.
        limit: bytes.
    """
    if sys.platform != "linux":
        return 0
    folders = list(_members(number))
    rough = sum(_sum(folder / "status", _OWN) for folder in folders)
    if rough <= limit:
        return rough
    return sum(_sum(folder / "smaps_rollup", _SHARED) for folder in folders) or rough


def _members(number: int) -> Iterator[Path]:
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:  # it has ended
                continue
            if len(fields) > _SESSION and int(fields[_SESSION]) == number:
                yield folder


def _sum(file: Path, keys: Iterable[str]) -> int:
    try:
        text = file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    rows = (line.split() for line in text.splitlines() if line.startswith(tuple(keys)))
    return sum(int(row[1]) * 1024 for row in rows)
