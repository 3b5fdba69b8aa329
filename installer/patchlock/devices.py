"""What is known of graphics cards: which PCI ids are which card, and what code it runs; asks no machine.

The table is `profiles/devices/*.toml`. A card that it does not have is an answer, never a guess at a similar one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from patchlock.hosts import Device


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """One row of the table."""

    vendor: str
    """PCI vendor, four lower-case hexadecimal digits."""
    devices: tuple[str, ...]
    """PCI devices, likewise."""
    revisions: tuple[str, ...] = ()
    """PCI revisions, two digits each, where they decide; empty: every other one."""
    names: tuple[str, ...] = ()
    """What drivers call it, where that is all that is known (no PCI id reaches WSL); compared without case, whole."""
    name: str
    """For people: `Radeon RX 9070 XT`."""
    chip: str
    """`Navi 48`."""
    arch: str
    """What its code is compiled for: `gfx1201`, `sm_110`; "" where nobody compiles for it ahead of time."""
    family: str
    """What profiles speak of: `rdna4`, `vega-integrated`, `blackwell`."""
    is_integrated: bool
    """Whether it is part of the processor and shares its memory."""
    source: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """A device that the table has, or whose driver says what it runs."""

    device: Device
    card: Card
    arch: str
    """As the driver says, else as the table has it."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """A device that the table does not have."""

    device: Device
    arch: str
    """As its driver says; "" where none does."""


def identify(device: Device, cards: Iterable[Card]) -> Known | Unknown:
    """Find a device in the table: by its ids and revision, by its ids, then by the name that its driver gives it."""
    rows = list(cards)
    same = [card for card in rows if card.vendor == device.vendor and device.device in card.devices]
    by_revision = [card for card in same if device.revision in card.revisions]
    others = [card for card in same if not card.revisions]
    named = [card for card in rows if not device.device and device.name.lower() in map(str.lower, card.names)]
    found = next(iter((*by_revision, *others, *named)), None)
    if found is None:
        return Unknown(device=device, arch=device.arch)
    return Known(device=device, card=found, arch=device.arch or found.arch)
