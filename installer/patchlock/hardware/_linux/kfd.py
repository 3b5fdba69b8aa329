"""Read which AMD GPUs the kernel lets programs compute on, and what code they run; opens no device."""

from __future__ import annotations

from dataclasses import dataclass

from patchlock.core.bounded_files import FileReader, number

_NODES = "sys/class/kfd/kfd/topology/nodes"
_AMD = 0x1002
"""NVIDIA's open driver registers nodes of its own, with 0x10de; processors have 0."""
_BITS = 0xFFFF_FFFF


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A node of the topology that computes."""

    address: str
    """PCI address, `0000:03:00.0`; "" where nothing says."""
    device: str
    """PCI device, four hexadecimal digits."""
    arch: str
    """`gfx1201`; it is the hardware's, whatever HSA_OVERRIDE_GFX_VERSION says."""
    unique_id: str
    """As ROCR_VISIBLE_DEVICES writes it, `GPU-` and sixteen hexadecimal digits; "" where it has none."""


def gpus(files: FileReader) -> list[Gpu]:
    """List the GPUs in the order in which ROCm counts them.

    Source: https://github.com/torvalds/linux/blob/master/drivers/gpu/drm/amd/amdkfd/kfd_topology.c, node_show
    """
    names = sorted((name for name in files.names(_NODES) if name.isdecimal() and len(name) < 10), key=int)
    found = (_gpu(files, f"{_NODES}/{name}/properties") for name in names)
    return [gpu for gpu in found if gpu is not None]


def arch(version: int) -> str:
    """Write a `gfx_target_version` as compilers do: 90012 → gfx90c, 120001 → gfx1201; "" for none."""
    major, minor, step = version // 10_000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{step:x}" if 0 < version < 1_000_000 else ""


def _gpu(files: FileReader, path: str) -> Gpu | None:
    values: dict[str, int] = {}
    for line in files.text(path).splitlines():
        name, _, rest = line.partition(" ")
        value = number(rest)
        if value is not None:
            values[name] = value
    if values.get("vendor_id") != _AMD or not values.get("gfx_target_version"):
        return None
    said = arch(values["gfx_target_version"])
    if not said:
        files.fail(f"/{path} has a gfx_target_version of {values['gfx_target_version']}")
    unique = values.get("unique_id", 0)
    return Gpu(
        address=_address(files, values),
        device=f"{values.get('device_id', 0) & 0xFFFF:04x}",
        arch=said,
        unique_id=f"GPU-{unique:016x}" if unique else "",
    )


def _address(files: FileReader, values: dict[str, int]) -> str:
    minor = values.get("drm_render_minor", 0)
    linked = files.target(f"sys/class/drm/renderD{minor}/device") if 128 <= minor < 4096 else ""
    if linked.count(":") == 2:
        return linked
    place = values.get("location_id", 0) & 0xFFFF
    if not place:
        return ""
    return f"{values.get('domain', 0) & _BITS:04x}:{place >> 8:02x}:{place >> 3 & 31:02x}.{place & 7}"
