"""Write a number of bytes for a person: the one place that chooses a unit; pure."""

from __future__ import annotations

GIB = 1 << 30
MIB = 1 << 20


def size_text(count: int) -> str:
    """Write a number of bytes in GiB, MiB or KiB.

    Windows' Task Manager and the names of graphics cards count in 1024s too, and write GB for it: a card of "16 GB" has
    16.0 GiB. Source: ISO/IEC 80000-13.
    """
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} byte{'' if count == 1 else 's'}"
