"""From Windows' records to graphics cards: which are there, whether they run, and what drives them; asks no machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from patchlock.hardware._windows.records import (
    DISPLAY_CLASS,
    DISPLAY_KEY,
    DriverCard,
    PciId,
    Plugged,
    Registry,
    Value,
    number,
    pci_id,
    text,
)
from patchlock.model.hosts import Device

_PROBLEMS = {
    1: "NOT_CONFIGURED",
    3: "OUT_OF_MEMORY",
    9: "INVALID_DATA",
    10: "FAILED_START",
    12: "NORMAL_CONFLICT",
    14: "NEED_RESTART",
    18: "REINSTALL",
    19: "REGISTRY",
    21: "WILL_BE_REMOVED",
    22: "DISABLED",
    24: "DEVICE_NOT_THERE",
    28: "FAILED_INSTALL",
    29: "HARDWARE_DISABLED",
    31: "FAILED_ADD",
    32: "DISABLED_SERVICE",
    37: "FAILED_DRIVER_ENTRY",
    38: "DRIVER_FAILED_PRIOR_UNLOAD",
    39: "DRIVER_FAILED_LOAD",
    40: "DRIVER_SERVICE_KEY_INVALID",
    42: "DUPLICATE_DEVICE",
    43: "FAILED_POST_START",
    44: "HALTED",
    45: "PHANTOM",
    46: "SYSTEM_SHUTDOWN",
    47: "HELD_FOR_EJECT",
    48: "DRIVER_BLOCKED",
    49: "REGISTRY_TOO_LARGE",
    50: "SETPROPERTIES_FAILED",
    51: "WAITING_ON_DEPENDENCY",
    52: "UNSIGNED_DRIVER",
    54: "DEVICE_RESET",
}
"""After `CM_PROB_`, the same in every language.

Source: https://learn.microsoft.com/windows-hardware/drivers/install/device-manager-error-messages
"""
_GONE = frozenset({24, 45})
"""Problems of what is not plugged in any more."""
_BASIC = r"pci\cc_03"
"""What Windows' own display.inf matches: any card, by its class alone."""
_BASIC_TROUBLE = "Microsoft's basic display driver runs it, which computes nothing: the maker's driver is missing"
_CAPPED = 0xFFF00000
"""Where the 32 bits of `HardwareInformation.MemorySize` and of AdapterRAM end."""
_SANE = 1 << 44
"""Bytes: no card has 16 TB."""
_NO_VENDOR = frozenset({"0000", "ffff"})
_NVIDIA = "10de"
_NVIDIA_DIGITS = 5


def devices(registry: Registry, plugged: Sequence[Plugged] | None) -> tuple[Device, ...]:
    """Say which cards this machine has, in the order of their addresses.

    What is neither on PCI nor in the firmware (remote displays, virtual ones, docks on USB) is no card.

    Args:
        registry: as `hardware._windows.registry.read` gives it.
        plugged: the display devices that are plugged in; None where nothing says: then each card that Windows
            remembers counts, also one that is long gone.
    """
    if plugged is None:
        remembered = (_remembered(key) for name, key in sorted(registry.items()) if _is_entry(name))
        return tuple(device for device in remembered if device is not None)
    found = (_device(one, registry.get(rf"{DISPLAY_KEY}\{one.number}", {})) for one in plugged)
    return tuple(sorted((device for device in found if device is not None), key=lambda device: device.address))


def _is_entry(name: str) -> bool:
    return name.startswith(f"{DISPLAY_KEY}\\")


def _remembered(key: Mapping[str, Value]) -> Device | None:
    """Make a card of a key alone."""
    return _device(Plugged(id=text(key, "MatchingDeviceId")), key)


def _device(one: Plugged, key: Mapping[str, Value]) -> Device | None:
    ids = pci_id(one.id)
    is_in_firmware = one.id.upper().startswith("ACPI\\")
    if one.problem in _GONE or not (ids or is_in_firmware) or (ids and ids.vendor in _NO_VENDOR):
        return None
    return Device(
        vendor=ids.vendor if ids else "",
        device=ids.device if ids else "",
        revision=ids.revision if ids else "",
        name=text(key, "DriverDesc") or one.name,
        address=one.address,
        memory=_memory(key),
        driver=text(key, "DriverVersion") or one.version,
        trouble=_trouble(one, key),
    )


def _trouble(one: Plugged, key: Mapping[str, Value]) -> str:
    if one.problem:
        name = _PROBLEMS.get(one.problem)
        return f"ConfigManagerErrorCode {one.problem}" + (f" (CM_PROB_{name})" if name else "")
    is_basic = one.is_basic or text(key, "MatchingDeviceId").lower().startswith(_BASIC)
    return _BASIC_TROUBLE if is_basic else ""


def _memory(key: Mapping[str, Value]) -> int:
    wide = number(key, "HardwareInformation.qwMemorySize")
    if wide and wide < _SANE:
        return wide
    narrow = number(key, "HardwareInformation.MemorySize") or 0
    return narrow if narrow < _CAPPED else 0  # at the end of 32 bits it says nothing but "much"


def nvidia_version(version: str) -> str:
    """Turn Windows' version of an NVIDIA driver (`32.0.15.7283`) into NVIDIA's own (`572.83`); "" where it is none.

    Source: https://crrev.com/1241aea53e75dab24b82f20e705fd290c5d445ea (Chromium reads it so, too).
    """
    digits = "".join(version.split(".")[-2:])
    if version.count(".") != 3 or not digits.isdigit() or len(digits) < _NVIDIA_DIGITS:
        return ""
    return f"{digits[-5:-2]}.{digits[-2:]}"


def versions(found: Iterable[Device], registry: Registry, plugged: Sequence[Plugged] | None) -> dict[str, str]:
    """Give the versions that belong to cards: `nvidia-driver`, `adrenalin`.

    AMD's installer writes its version beside each card, and for older releases only below `SOFTWARE\\AMD\\CN`.
    """
    drivers = [nvidia_version(device.driver) for device in found if device.vendor == _NVIDIA]
    keys = [registry.get(rf"{DISPLAY_KEY}\{one.number}", {}) for one in plugged or () if pci_id(one.id)]
    if plugged is None:
        keys = [key for name, key in sorted(registry.items()) if _is_entry(name)]
    amd = [text(key, "RadeonSoftwareVersion") for key in keys]
    amd.append(text(registry.get(r"HKLM\SOFTWARE\AMD\CN", {}), "RadeonSoftwareVersion"))
    said = {"nvidia-driver": next(filter(None, drivers), ""), "adrenalin": next(filter(None, amd), "")}
    return {name: version for name, version in said.items() if version}


def with_key(one: Plugged, registry: Registry) -> Plugged:
    """Find the key of a device that CIM named, which does not say it: by its ids and its name, if only one fits."""
    ids = pci_id(one.id)
    keys = [
        name.rpartition("\\")[2]
        for name, key in registry.items()
        if _is_entry(name) and ids and _is_of(key, ids) and text(key, "DriverDesc") in {"", one.name}
    ]
    return dataclasses.replace(one, driver=rf"{DISPLAY_CLASS}\{keys[0]}") if len(keys) == 1 else one


def _is_of(key: Mapping[str, Value], ids: PciId) -> bool:
    other = pci_id(text(key, "MatchingDeviceId"))
    return other is not None and (other.vendor, other.device) == (ids.vendor, ids.device)


def add_driver_data(devices: Sequence[Device], vendor: str, by_driver: Sequence[DriverCard]) -> tuple[Device, ...]:
    """Add what a vendor's driver says of its cards: to the one at the same address, or to the only one of that name.

    Args:
        devices: of the machine.
        vendor: four digits, whose driver it is.
        by_driver: its cards.
    """
    return tuple(_told(device, by_driver) if device.vendor == vendor else device for device in devices)


def _told(device: Device, by_driver: Sequence[DriverCard]) -> Device:
    at = [one for one in by_driver if one.address and one.address == device.address]
    named = [one for one in by_driver if one.name == device.name and not (one.address and device.address)]
    found = at or named
    archs = {one.arch for one in found}
    if len(archs) != 1:
        return device
    return dataclasses.replace(device, arch=found[0].arch, memory=device.memory or found[0].memory)
