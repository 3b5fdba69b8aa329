"""Turn a refusal of the operating system into an error of ours; pure."""

from __future__ import annotations

import errno

from patchlock.errors import DiskFullError, FileAccessError, PatchlockError


def from_os(error: OSError) -> PatchlockError:
    """Turn a refusal of the operating system into a sentence."""
    place = str(error.filename or "")
    if error.errno in {errno.ENOSPC, errno.EDQUOT} or getattr(error, "winerror", None) == 112:
        return DiskFullError(
            "the disk is full while patchlock was writing",
            where=place,
            remedy="free some room and run the same command again",
        )
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return FileAccessError(
        f"a file cannot be read or written: {reason}",
        where=place,
        remedy="correct its permissions or choose other folders with PATCHLOCK_HOME and PATCHLOCK_CACHE_DIR",
    )
