"""What is known of graphics cards: which PCI ids are which card, and what code it runs; asks no machine.

The table is `profiles/devices/*.toml`. A card that it does not have is an answer, never a guess at a similar one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from patchlock.hosts import Device

VENDORS: Mapping[str, str] = {"1002": "AMD", "10de": "NVIDIA", "8086": "Intel"}
"""PCI vendor → who that is, of those whose cards are in the table."""
FAMILIES: Mapping[str, str] = {
    "polaris": "Radeon RX 400 and 500",
    "vega": "Radeon RX Vega, VII, Instinct MI25 to MI60",
    "vega-integrated": "Radeon Vega and Radeon Graphics in Ryzen 2000G to 5000",
    "rdna1": "Radeon RX 5000",
    "rdna2": "Radeon RX 6000",
    "rdna2-integrated": "Radeon 610M to 680M, Steam Deck",
    "rdna3": "Radeon RX 7000",
    "rdna3-integrated": "Radeon 740M to 780M",
    "rdna3.5": "Radeon 820M to 890M, 8050S, 8060S",
    "rdna4": "Radeon RX 9000",
    "cdna": "Instinct MI100",
    "cdna2": "Instinct MI200",
    "cdna3": "Instinct MI300",
    "cdna4": "Instinct MI350",
    "maxwell": "GeForce GTX 750, 900",
    "pascal": "GeForce GTX 10",
    "volta": "TITAN V, V100",
    "turing": "GeForce GTX 16, RTX 20, T4",
    "ampere": "GeForce RTX 30, A100",
    "ada": "GeForce RTX 40, L4, L40S",
    "hopper": "H100, H200",
    "blackwell": "GeForce RTX 50, B200",
    "xavier": "Jetson Xavier",
    "orin": "Jetson Orin",
    "thor": "Jetson Thor",
    "gb10": "DGX Spark",
    "intel-integrated": "graphics of Intel's processors",
    "arc": "Intel Arc",
}
"""Kinds of cards as profiles speak of them → which those are."""


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
