"""What is known of graphics cards: which PCI ids are which card, and what code it runs; asks no machine.

The table is `profiles/devices/*.toml`. A card that it does not have is an answer, never a guess at a similar one.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from patchlock.model.hosts import Device
from patchlock.model.table_fields import Filled, OneOf

VENDORS: Mapping[str, str] = {"1002": "AMD", "106b": "Apple", "10de": "NVIDIA", "8086": "Intel"}
"""PCI vendor → who that is, of those whose cards are in the table."""
ARCH = re.compile(r"gfx[0-9a-f]{3,5}|sm_[0-9]{2,3}|dg[12]|bmg|(?:mtl|arl|ptl)-h|lnl-m")
"""What compiled code can be for."""
_VENDOR_OF_ARCH = {"gfx": "1002", "sm_": "10de"}
"""How an arch begins → who makes it; Intel names each of its own."""
UNKNOWN = "unknown"
"""The family of cards that are not in the table."""
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
    "kepler": "GeForce GT 710, GTX 600 and 700, Tesla K80",
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
    "apple": "graphics of Apple's M chips",
    "intel-integrated": "graphics of Intel's processors",
    "arc": "Intel Arc",
    "arc-integrated": "Arc graphics of Intel's Core Ultra",
    UNKNOWN: "cards that this catalogue does not know",
}
"""Kinds of cards as profiles speak of them → which those are."""
UNSUPPORTED_FAMILIES = ("polaris", "vega-integrated", "rdna2-integrated", "kepler", "intel-integrated")
"""Kinds that no build of torch has code for, or that are no faster than the processor beside them: where no profile is
for such a card the CPU is the right choice, and nobody is asked.
Source: https://github.com/ROCm/TheRock/blob/main/SUPPORTED_GPUS.md;
https://github.com/pytorch/pytorch/blob/main/.ci/docker/manywheel/build.sh"""


OF_CARDS = ("cuda", "rocm", "zluda", "directml", "mps", "xpu")
"""Of `backends.BACK_ENDS`, those that compute on a card."""


@dataclass(frozen=True, kw_only=True)
class WrongNumbers:
    """That code for a chip installs, runs and computes wrong numbers."""

    back_ends: Annotated[tuple[str, ...], Filled(), OneOf('there is no back end "{}" of a card', OF_CARDS)]
    why: str
    """What follows the card's name, a clause: `computes wrong numbers with …`."""
    source: str


@dataclass(frozen=True, kw_only=True)
class Card:
    """One row of the table."""

    vendor: str
    """PCI vendor, four lower-case hexadecimal digits."""
    devices: tuple[str, ...]
    """PCI devices, likewise."""
    revisions: tuple[str, ...] = ()
    """PCI revisions, two digits each, where they decide; empty: every other one."""
    names: tuple[str, ...] = ()
    """What drivers call it, where that is all that is known (no PCI id reaches WSL); compared by `plain_name`."""
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
    wrong: WrongNumbers | None = None
    """Of its chip, where that is known."""

    def wrong_with(self, back_end: str) -> WrongNumbers | None:
        """Say what is known to be wrong with a back end on this card."""
        return self.wrong if self.wrong is not None and back_end in self.wrong.back_ends else None


@dataclass(frozen=True, kw_only=True)
class KnownDevice:
    """A device that the table has, or whose driver says what it runs."""

    device: Device
    card: Card
    arch: str
    """As the driver says, else as the table has it."""


@dataclass(frozen=True, kw_only=True)
class UnknownDevice:
    """A device that the table does not have."""

    device: Device
    arch: str
    """As its driver says; "" where none does."""


def identify(device: Device, cards: Iterable[Card]) -> KnownDevice | UnknownDevice:
    """Find a device in the table: by its ids and revision, by its ids, then by the name that its driver gives it.

    Where nothing but its arch is known, it is a card without a name, of the family of that arch.
    """
    rows = [card for card in cards if card.vendor == device.vendor]
    same = [card for card in rows if device.device in card.devices]
    by_revision = [card for card in same if device.revision in card.revisions]
    others = [card for card in same if not card.revisions]
    found = next(iter((*by_revision, *others)), None) or (None if device.device else _named(device.name, rows))
    if found is None and not device.device and not device.name:
        found = _of_arch(device.arch, rows)
    if found is None:
        return UnknownDevice(device=device, arch=device.arch)
    return KnownDevice(device=device, card=found, arch=device.arch or found.arch)


def _named(name: str, rows: Iterable[Card]) -> Card | None:
    """Find the card of a name, with all chips that are sold under it: nobody knows which of them it is."""
    plain = plain_name(name)
    same = [card for card in rows if any(plain == plain_name(one) for one in card.names)] if plain else []
    if not same:
        return None
    chips = dict.fromkeys(card.chip for card in same)
    return dataclasses.replace(same[0], chip=" or ".join(chips)) if len(chips) > 1 else same[0]


def _of_arch(arch: str, rows: Iterable[Card]) -> Card | None:
    """Say what all cards of an arch have in common."""
    same = [card for card in rows if card.arch == arch] if arch else []
    if len({(card.family, card.is_integrated) for card in same}) != 1:
        return None
    chip = " or ".join(dict.fromkeys(card.chip for card in same))
    wrong = same[0].wrong if len({card.wrong for card in same}) == 1 else None
    return dataclasses.replace(same[0], devices=(), revisions=(), names=(), name="", chip=chip, wrong=wrong)


def vendor_of(arch: str) -> str:
    """Name the PCI vendor whose cards compute an arch.

    Args:
        arch: as `ARCH` has it.
    """
    return _VENDOR_OF_ARCH.get(arch[:3], "8086")


def plain_name(name: str) -> str:
    """Write a card's name as all drivers would: `AMD Radeon(TM) RX 580 Series` is `radeon rx 580`.

    Source: https://gitlab.freedesktop.org/mesa/libdrm/-/blob/main/data/amdgpu.ids (names with and without "Series")
    """
    words = re.sub(r"\((?:tm|r|c)\)|[\u2122\u00ae]", " ", name.lower()).split()
    return " ".join(words[words[:1] in (["amd"], ["nvidia"], ["intel"]) :]).removesuffix(" series")


def shown_name(one: KnownDevice | UnknownDevice) -> str:
    """Name a device for people; by what its driver says where several models share an id; "" where nothing is known."""
    own = one.device.name
    if isinstance(one, UnknownDevice):
        return own
    is_model = "/" in one.card.name and "/" not in own and re.search(r"\d", own) is not None
    return " ".join(re.sub(r"^(?:AMD|NVIDIA) |\((?:TM|R)\)", "", own).split()) if is_model else one.card.name
