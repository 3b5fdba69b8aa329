"""Say how far downloads are, over all files together: bytes, speed, time left; asks no clock and no file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from patchlock.lazily import dataclass

_MB = 1_000_000
_NAMED = 2
"""Running files that are named; there may be more."""
WINDOW = 10.0
"""Seconds over which the speed is taken."""
_SOON = 1.0
"""Seconds before which a speed says nothing."""


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """One file on its way."""

    name: str
    size: int | None
    """Bytes of the whole file; None where nobody says."""
    done: int
    """Bytes that are here, those of an earlier run included."""
    is_running: bool


@dataclass(frozen=True, kw_only=True)
class Moment:
    """How much had come at some time."""

    seconds: float
    """Of a clock that only goes forward."""
    done: int
    """Bytes of all files together."""


def progress(transfers: Sequence[Transfer], speed: float | None) -> str:
    """Say how far all files are: `312 of 2,947 MB, 24.1 MB/s, 1 min 50 s left (torch, nvidia-cudnn-cu12)`.

    Args:
        transfers: all files that had to be fetched, those that are here already included.
        speed: bytes in a second; None where it is not known yet.
    """
    done = sum(transfer.done for transfer in transfers)
    sizes = [transfer.size for transfer in transfers]
    total = sum(max(size or 0, transfer.done) for size, transfer in zip(sizes, transfers, strict=True))
    is_known = None not in sizes
    parts = [f"{_amount(done, total)} of {'' if is_known else 'at least '}{_amount(total, total)} MB"]
    if speed is not None:
        parts.append(f"{speed / _MB:.1f} MB/s")
        if is_known and speed > 0:
            parts.append(f"{duration((total - done) / speed)} left")
    running = sorted((t for t in transfers if t.is_running), key=lambda t: -(t.size or 0))
    names = [transfer.name for transfer in running[:_NAMED]]
    return ", ".join(parts) + (f" ({', '.join(names)})" if names else "")


def speed(moments: Sequence[Moment]) -> float | None:
    """Give the bytes in a second over the moments, which are in their order; None where they are too near together."""
    if not moments or moments[-1].seconds - moments[0].seconds < _SOON:
        return None
    return max(0.0, (moments[-1].done - moments[0].done) / (moments[-1].seconds - moments[0].seconds))


def recent(moments: Iterable[Moment], now: float) -> tuple[Moment, ...]:
    """Leave out what is longer ago than the window."""
    return tuple(moment for moment in moments if now - moment.seconds <= WINDOW)


def duration(seconds: float) -> str:
    """Write a time for a person: `50 s`, `1 min 50 s`, `1 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _amount(count: int, total: int) -> str:
    return f"{count / _MB:,.0f}" if total >= 10 * _MB else f"{count / _MB:.1f}"
