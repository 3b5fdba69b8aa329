"""Hold what an app takes of memory against what a machine has; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from patchlock.hardware._matching import is_integrated
from patchlock.model.byte_sizes import size_text
from patchlock.model.devices import KnownDevice, UnknownDevice, shown_name
from patchlock.model.hosts import Host
from patchlock.model.needs import Finding, MemoryNeed

NAME = "memory"
"""Of what is found here."""


@dataclass(frozen=True, kw_only=True)
class MemoryVerdict:
    """One kind of memory that something takes, and what the machine has of it."""

    need: MemoryNeed
    place: str
    """Whose memory it is, as a person says it: `Radeon RX 9070 XT`, `this machine`."""
    is_device: bool
    """Whether it is a card's own."""
    takes: int
    """Bytes."""
    has: int
    """Bytes; 0 where nobody knows."""

    @property
    def is_enough(self) -> bool | None:
        """Whether there is as much; None where nobody knows."""
        return self.takes <= self.has if self.has else None

    @property
    def basis(self) -> str:
        """Say that nobody has said that number of such a machine: ` (known only for a graphics card)`; else ""."""
        return self.need.basis if not self.is_device and self.takes > self.need.ram else ""

    @property
    def need_text(self) -> str:
        """Say what is taken, without what the machine has."""
        whose = "of the card's memory" if self.is_device else f"of memory{self.basis}"
        return f"{self.need.what}: {size_text(self.takes)} {whose}"

    def __str__(self) -> str:
        there = f"{self.place} has {size_text(self.has)}" if self.has else f"how much {self.place} has is not known"
        there += ", which is too little" if self.is_enough is False else ""
        return f"{self.need_text}; {there}"


def judge(
    needs: Iterable[MemoryNeed], host: Host | None, device: KnownDevice | UnknownDevice | None, *, on_processor: bool
) -> tuple[MemoryVerdict, ...]:
    """Say of each need what it takes of the machine and of the card.

    Args:
        needs: of the pair.
        host: the machine; None where nobody has looked.
        device: which the profile was chosen for; None where there is none or nobody knows.
        on_processor: the profile computes there, so that what would lie on a card lies in the machine's memory.
    """
    return tuple(verdict for need in needs for verdict in _verdicts(need, host, device, on_processor=on_processor))


def _verdicts(
    need: MemoryNeed, host: Host | None, device: KnownDevice | UnknownDevice | None, *, on_processor: bool
) -> Iterator[MemoryVerdict]:
    has = host.memory if host is not None else 0
    is_shared = on_processor or (device is not None and not device.device.memory and is_integrated(device))
    ram = need.without_card if is_shared else need.ram
    if ram:
        yield MemoryVerdict(need=need, place="this machine", is_device=False, takes=ram, has=has)
    if need.device and not is_shared:
        name = name_of(device) if device is not None else "the card"
        own = device.device.memory if device is not None else 0
        yield MemoryVerdict(need=need, place=name, is_device=True, takes=need.device, has=own)


def findings(verdicts: Iterable[MemoryVerdict]) -> Iterator[Finding]:
    """Warn of what the machine has too little of; it stops nothing, as a smaller job may do."""
    for verdict in verdicts:
        if verdict.is_enough is False:
            user = "the card" if verdict.is_device else "memory"
            remedy = f"close what else uses {user}, or begin with a short text or sound"
            yield Finding(
                name=NAME, what=str(verdict), remedy=remedy, stops=False, source=verdict.need.source, kind="rule"
            )


def name_of(device: KnownDevice | UnknownDevice) -> str:
    """Name a card as a person says it."""
    return shown_name(device) or "the card"
