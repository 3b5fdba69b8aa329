"""What Windows says of itself, as values: keys of its registry and devices that are plugged in; asks no machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

Value = str | int | bytes | tuple[str, ...]
"""One value of the registry: REG_SZ, REG_DWORD and REG_QWORD, REG_BINARY, REG_MULTI_SZ."""
Registry = Mapping[str, Mapping[str, Value]]
"""Key (`HKLM\\SOFTWARE\\…`) → name of a value → the value. A key or value that is not there is not in it."""

DISPLAY_CLASS = "{4d36e968-e325-11ce-bfc1-08002be10318}"
"""Source: https://learn.microsoft.com/windows-hardware/drivers/install/system-defined-device-setup-classes"""
DISPLAY_KEY = rf"HKLM\SYSTEM\CurrentControlSet\Control\Class\{DISPLAY_CLASS}"
"""Below it is a key of four digits for each display device that this Windows has ever had."""

_PCI = re.compile(
    r"^PCI\\VEN_(?P<vendor>[0-9A-F]{4})(?:&DEV_(?P<device>[0-9A-F]{4}))?(?:&SUBSYS_[0-9A-F]{8})?(?:&REV_(?P<revision>[0-9A-F]{2}))?",
    re.IGNORECASE,
)
_DRIVER_KEY = re.compile(rf"^{re.escape(DISPLAY_CLASS)}\\(\d{{4}})$", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class PciId:
    """What a card is, in lower-case hexadecimal digits; "" where it does not say."""

    vendor: str
    device: str
    revision: str


@dataclass(frozen=True, kw_only=True)
class Plugged:
    """A display device that is plugged in, as Windows' configuration manager or its CIM describes it."""

    id: str
    r"""Instance: `PCI\VEN_1002&DEV_7550&SUBSYS_88111EAE&REV_C0\6&2B36B191&0&00000009`."""
    name: str = ""
    driver: str = ""
    r"""Its key below `Control\Class`: `{4d36e968-…}\0001`; "" where it has no driver, or where nothing says."""
    problem: int = 0
    """What the device manager says of it (43); 0: nothing."""
    address: str = ""
    """PCI address as Linux writes it; "" where not known."""
    version: str = ""
    """Of its driver, where no key says it."""
    is_basic: bool = False
    """Whether only Windows' own basic driver runs it, where no key says it."""

    @property
    def number(self) -> str:
        """Four digits: its key below `DISPLAY_KEY`; "" where it has none."""
        found = _DRIVER_KEY.match(self.driver)
        return found[1] if found else ""


@dataclass(frozen=True, kw_only=True)
class DriverCard:
    """One card, by its driver."""

    name: str
    arch: str
    """`gfx1201`, `sm_89`; "" where it does not say."""
    address: str
    """PCI address as Linux writes it; "" where it does not say."""
    memory: int
    """Bytes; 0 where it does not say."""
    uuid: str = ""
    """`GPU-…`, by which variables may name it."""


def pci_id(text: str) -> PciId | None:
    r"""Read the ids in a device's instance, hardware id or matching id (`pci\ven_1002&dev_15d8&rev_c2`).

    Source: https://learn.microsoft.com/windows-hardware/drivers/install/identifiers-for-pci-devices
    """
    found = _PCI.match(text)
    if found is None:
        return None
    return PciId(**{key: (value or "").lower() for key, value in found.groupdict().items()})


def pci_address(bus: int, address: int) -> str:
    """Write a PCI address as Linux does.

    Args:
        bus: number of the bus.
        address: device in the high word, function in the low one.

    Source: https://learn.microsoft.com/windows-hardware/drivers/ddi/wdm/ns-wdm-_device_capabilities
    """
    device, function = address >> 16, address & 0xFFFF
    if not (0 <= bus <= 0xFF and 0 <= device <= 0x1F and 0 <= function <= 7):
        return ""
    return f"0000:{bus:02x}:{device:02x}.{function}"


def text(key: Mapping[str, Value], name: str) -> str:
    """Give a value as text, also where a driver wrote it as UTF-16 bytes; "" where there is none."""
    value = key.get(name, "")
    if isinstance(value, bytes):
        return value.decode("utf-16-le", errors="replace").partition("\0")[0].strip()
    return value.partition("\0")[0].strip() if isinstance(value, str) else ""


def number(key: Mapping[str, Value], name: str) -> int | None:
    """Give a value as a number, also where a driver wrote it as four or eight bytes; None where there is none."""
    value = key.get(name)
    if isinstance(value, bytes):
        return int.from_bytes(value, "little") if len(value) in {4, 8} else None
    return value if isinstance(value, int) else None
