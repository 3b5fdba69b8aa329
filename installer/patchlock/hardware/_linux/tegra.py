"""Read whether this is a Jetson, which one, and its GPU, which is on no PCI bus before Thor."""

from __future__ import annotations

import re

from patchlock.core.bounded_files import FileReader
from patchlock.model.hosts import Device

_RELEASE = re.compile(r"#\s*R(\d+)\s*\(release\),\s*REVISION:\s*([\d.]+\d)")
_NAMES = {"tegra264": "NVIDIA Thor", "tegra234": "Orin (nvgpu)", "tegra194": "Xavier"}
"""Chip → its GPU as NVIDIA's driver calls it, for where no driver answers.

Source: https://github.com/rbonghi/jetson_stats/issues/711, https://github.com/anduril/jetpack-nixos/pull/371
"""
_OWN = frozenset({*_NAMES.values(), "Orin", "Thor"})


def release(files: FileReader) -> str:
    """Read the release of Jetson Linux, `38.4.0`; "" where this is no Jetson, or its system is not NVIDIA's."""
    found = _RELEASE.search(files.text("etc/nv_tegra_release"))
    return f"{found[1]}.{found[2]}" if found else ""


def board(files: FileReader) -> str:
    """Read what the firmware calls the machine: the device tree first (Jetson), then DMI."""
    model = files.text("proc/device-tree/model") or files.text("sys/firmware/devicetree/base/model")
    if model:
        return _line(model)
    vendor, product = (_line(files.text(f"sys/class/dmi/id/{key}")) for key in ("sys_vendor", "product_name"))
    return product if product.lower().startswith(vendor.lower()) else f"{vendor} {product}".strip()


def gpu(files: FileReader) -> Device | None:
    """Give the GPU of a Jetson by its chip; None where the firmware names none of them.

    R39 runs on Orin as well as on Thor: the release does not tell the chip, `compatible` does.
    """
    text = files.text("proc/device-tree/compatible") or files.text("sys/firmware/devicetree/base/compatible")
    chips = {part.rpartition(",")[2] for part in re.split(r"[\0\s]+", text)}
    found = next((name for chip, name in _NAMES.items() if chip in chips), "")
    if not found and files.has("sys/class/devfreq/gpu-gpc-0") and "Thor" in board(files):
        found = _NAMES["tegra264"]
    return Device(vendor="10de", name=found) if found else None


def is_own(name: str) -> bool:
    """Say whether NVIDIA's driver calls the GPU of a Jetson so."""
    return name in _OWN


def _line(text: str) -> str:
    return "".join(char for char in text if char.isprintable()).strip()
