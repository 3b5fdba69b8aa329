"""How much memory running processes have of their own; Linux only, 0 elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

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
