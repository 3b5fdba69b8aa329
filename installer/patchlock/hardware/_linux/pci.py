"""List the graphics cards and other accelerators on the PCI buses of Linux; what they can do is asked elsewhere."""

from __future__ import annotations

import re

from patchlock.core.bounded_files import FileReader, number
from patchlock.model.hosts import Device

_FOLDER = "sys/bus/pci/devices"
_DISPLAY, _ACCELERATOR = 0x03, 0x12
"""Base classes. Source: https://github.com/pciutils/pciids/blob/master/pci.ids, "C 03" and "C 12"."""
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_TROUBLES = {
    "": "no driver of the kernel has taken it",
    "nouveau": "nouveau has taken it, with which nothing computes",
    "vfio-pci": "vfio-pci has taken it, for a virtual machine",
    "pci-stub": "pci-stub has taken it, for a virtual machine",
    "xen-pciback": "xen-pciback has taken it, for a virtual machine",
    "simple-framebuffer": "no driver of its own has taken it",
}
"""Driver of the kernel → why nothing computes with it."""
_MAKERS = frozenset({"1002", "10de", "8086", "1022"})
"""AMD, NVIDIA, Intel, and AMD as the maker of processors (NPUs)."""


def devices(files: FileReader) -> list[Device]:
    """List display controllers and accelerators in the order of their addresses.

    Source: https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci
    """
    if not files.has("sys/bus"):
        files.fail("/sys/bus is not there, so that no card can be seen")
    found = [_device(files, name) for name in files.names(_FOLDER) if _ADDRESS.fullmatch(name)]
    return [device for device in found if device is not None]


def _device(files: FileReader, address: str) -> Device | None:
    at = f"{_FOLDER}/{address}"
    kind = number(files.text(f"{at}/class"), 16)
    if kind is None:
        if files.has(at):
            files.fail(f"/{at}/class is not a number")
        return None
    if kind >> 16 not in {_DISPLAY, _ACCELERATOR}:
        return None
    vendor, device = (_digits(files, f"{at}/{key}", 4) for key in ("vendor", "device"))
    driver = files.target(f"{at}/driver")
    memory = number(files.text(f"{at}/mem_info_vram_total")) if driver == "amdgpu" else None
    return Device(
        vendor=vendor,
        device=device,
        revision=_digits(files, f"{at}/revision", 2),
        address=address,
        # amdgpu says how much is its own; a processor's graphics have what the firmware gave them.
        # Source: https://docs.kernel.org/gpu/amdgpu/driver-misc.html#mem-info-vram-total
        memory=memory or 0,
        trouble=_TROUBLES.get(driver, "") if vendor in _MAKERS else "",
    )


def _digits(files: FileReader, path: str, width: int) -> str:
    value = number(files.text(path), 16)
    if value is None or value >= 16**width:
        files.fail(f"/{path} is not a number of {width} hexadecimal digits")
        return ""
    return f"{value:0{width}x}"
