"""Join what several sources of Linux say of the same cards into one list of devices; asks nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from patchlock.hardware._linux import tegra
from patchlock.hardware._linux.kfd import Gpu
from patchlock.hardware._nvidia_cards import NvidiaAnswer, NvidiaCard
from patchlock.model.hosts import Device

_AMD, _NVIDIA = "1002", "10de"
_THOR = "2b00"


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What was seen, each source by itself."""

    pci: Sequence[Device] = ()
    kfd: Sequence[Gpu] = ()
    nvidia: NvidiaAnswer
    has_asked_nvidia: bool = False
    """Whether NVML or nvidia-smi has answered, and not only files."""
    jetson: Device | None = None
    windows: Sequence[Device] = ()
    """Cards of Windows, in WSL."""
    amdgpu: str = ""
    """Version of an amdgpu module that was put in."""


def join(sources: Sources) -> tuple[Device, ...]:
    """Give each card once, in the order of addresses; those without one come last."""
    found: list[Device] = [*sources.pci, *sources.windows]
    for gpu in sources.kfd:
        _merge(found, _of_amd(gpu), _place_of_amd(found, gpu))
    for card in sources.nvidia.cards:
        _merge(found, _of_nvidia(card, sources.nvidia.driver), _place_of_nvidia(found, card))
    if sources.jetson and not any(one.device == _THOR or tegra.is_own(one.name) for one in found):
        found.append(sources.jetson)
    named = {card.address for card in sources.nvidia.cards}
    finished = [_finished(one, sources, named) for one in found]
    return tuple(sorted(finished, key=lambda one: (not one.address, len(one.address), one.address)))


def _merge(found: list[Device], said: Device, place: int | None) -> None:
    """Put what a driver says on top of what is known of the card, or beside it where the card is new."""
    if place is None:
        found.append(said)
        return
    values = {field.name: getattr(said, field.name) for field in fields(Device) if getattr(said, field.name)}
    found[place] = dataclasses.replace(found[place], **values)


def _of_amd(gpu: Gpu) -> Device:
    return Device(vendor=_AMD, device=gpu.device if gpu.device != "0000" else "", address=gpu.address, arch=gpu.arch)


def _place_of_amd(found: Sequence[Device], gpu: Gpu) -> int | None:
    by_address = [i for i, one in enumerate(found) if gpu.address and one.address == gpu.address]
    # A kernel before 5.5 gives no domain, and an APU of old has no place at all.
    by_id = [i for i, one in enumerate(found) if one.vendor == _AMD and one.device == gpu.device and not one.arch]
    return next(iter((*by_address, *(by_id if len(by_id) == 1 else ()))), None)


def _of_nvidia(card: NvidiaCard, driver: str) -> Device:
    return Device(
        vendor=_NVIDIA,
        device=card.device,
        name=card.name,
        address=card.address,
        arch=card.arch,
        memory=0 if tegra.is_own(card.name) else card.memory,
        driver=driver,
    )


def _place_of_nvidia(found: Sequence[Device], card: NvidiaCard) -> int | None:
    for place, one in enumerate(found):
        if card.address and one.address == card.address:
            return place
    for place, one in enumerate(found):  # Windows gives its cards no address
        if one.vendor == _NVIDIA and not one.address and not one.arch and card.device in {"", one.device}:
            return place
    return None


def _finished(one: Device, sources: Sources, named: Iterable[str]) -> Device:
    """Add what is known of all cards of a vendor together."""
    if one.vendor == _AMD and sources.amdgpu and not one.driver and one.address and not one.trouble:
        return dataclasses.replace(one, driver=sources.amdgpu)
    is_missed = one.vendor == _NVIDIA and one.address and one.address not in named and not one.trouble
    if is_missed and sources.has_asked_nvidia:
        return dataclasses.replace(one, trouble="NVIDIA's driver does not name it here")
    return one


def orders(devices: Sequence[Device], kfd: Sequence[Gpu]) -> dict[str, Sequence[str]]:
    """Give the addresses of each vendor's cards as its runtime numbers them, PCI's order for NVIDIA."""
    nvidia = [one.address for one in devices if one.vendor == _NVIDIA]
    return {_AMD: [gpu.address for gpu in kfd], _NVIDIA: nvidia}


def uuids(nvidia: NvidiaAnswer, kfd: Sequence[Gpu]) -> Mapping[str, str]:
    """Give the names by which variables may choose a card: address → uuid."""
    return {one.address: one.uuid for one in nvidia.cards} | {gpu.address: gpu.unique_id for gpu in kfd}
