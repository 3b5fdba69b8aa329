"""Folders as `/` of other machines, written from small tables of facts; each table says where its facts are from."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from patchlock.hardware._linux import host
from patchlock.model.hosts import Device, Host

Tree = Mapping[str, str | bytes]
"""Path → what the file has; a text that begins with `-> ` is where a link points."""

PCI = "sys/bus/pci/devices"
KFD = "sys/class/kfd/kfd/topology/nodes"


def pci(address: str, ids: str, *, kind: str = "0x030000", driver: str = "", vram: int = 0) -> dict[str, str]:
    """Write a device as sysfs has it; ids are `1002:7550:c0`.

    Source: https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci
    """
    vendor, device, revision = ids.split(":")
    at = f"{PCI}/{address}"
    files = {
        f"{at}/class": f"{kind}\n",
        f"{at}/vendor": f"0x{vendor}\n",
        f"{at}/device": f"0x{device}\n",
        f"{at}/revision": f"0x{revision}\n",
    }
    if driver:
        files[f"{at}/driver"] = f"-> ../../../../bus/pci/drivers/{driver}"
    if vram:
        files[f"{at}/mem_info_vram_total"] = f"{vram}\n"
    return files


def kfd(node: int, **values: int) -> dict[str, str]:
    """Write a node of the topology.

    Source: https://github.com/torvalds/linux/blob/master/drivers/gpu/drm/amd/amdkfd/kfd_topology.c
    """
    return {f"{KFD}/{node}/properties": "".join(f"{name} {value}\n" for name, value in values.items())}


CPU_NODE = kfd(0, cpu_cores_count=16, simd_count=0, gfx_target_version=0, vendor_id=0, device_id=0, location_id=0)
SYSTEM = {
    "etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n',
    "etc/group": "root:x:0:\nvideo:x:44:\nrender:x:992:\n",
    "proc/sys/kernel/osrelease": "6.14.0-33-generic\n",
    "proc/version": "Linux version 6.14.0-33-generic (buildd@lcy02) #33~24.04.1-Ubuntu SMP PREEMPT_DYNAMIC\n",
    "proc/meminfo": "MemTotal:       65760000 kB\nMemFree:         1000000 kB\nMemAvailable:   50000000 kB\n",
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD Ryzen 7 9700X 8-Core Processor\n",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=x ro quiet\n",
}
CARD, PROCESSOR = "0000:03:00.0", "0000:0e:00.0"
RX_9070_XT = pci(CARD, "1002:7550:c0", driver="amdgpu", vram=17_095_983_104)
RAPHAEL = pci(PROCESSOR, "1002:164e:c1", driver="amdgpu", vram=536_870_912)
# Source: ids from libdrm's amdgpu.ids and hardware of https://github.com/ROCm/ROCm/issues/6323; properties as node_show
# of kfd_topology.c writes them, gfx_target_version from kfd_device.c.
KFD_9070 = kfd(
    1,
    cpu_cores_count=0,
    simd_count=128,
    gfx_target_version=120001,
    vendor_id=0x1002,
    device_id=0x7550,
    location_id=0x0300,
    domain=0,
    drm_render_minor=128,
    unique_id=0x1234567890ABCDEF,
)
KFD_RAPHAEL = kfd(
    2,
    cpu_cores_count=0,
    simd_count=4,
    gfx_target_version=100306,
    vendor_id=0x1002,
    device_id=0x164E,
    location_id=0x0E00,
    domain=0,
    drm_render_minor=129,
    unique_id=0,
)
AMD_NODES = {"dev/kfd": "", "dev/dri/renderD128": "", "dev/dri/renderD129": "", "dev/dri/card0": ""}
ROCM = {
    "opt/rocm/.info/version": "6.4.1-83\n",
    "usr/lib/libhsa-runtime64.so.1": "",
    "sys/module/amdgpu/version": "6.12.12\n",
}
DESKTOP = {**SYSTEM, **RX_9070_XT, **RAPHAEL, **CPU_NODE, **KFD_9070, **KFD_RAPHAEL, **AMD_NODES, **ROCM}

# Source: https://download.nvidia.com/XFree86/Linux-x86_64/580.65.06/README/procinterface.html, an H100's in
# https://topofmind.dev/notes/sysadmin/gpu
NVIDIA_VERSION = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)\n"
    "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n"
)


def information(model: str, uuid: str) -> str:
    return f"Model: \t\t {model}\nIRQ:   \t\t 10\nGPU UUID: \t {uuid}\nBus Type: \t PCIe\nDevice Minor: \t 0\n"


UUID = "GPU-9221d5d1-b60b-a624-bf14-0a1819cfda3b"
NVIDIA_NODES = {"dev/nvidiactl": "", "dev/nvidia0": "", "dev/nvidia-uvm": "", "dev/nvidia-modeset": ""}
ORDINARY = {
    **SYSTEM,
    **pci("0000:01:00.0", "10de:2684:a1", driver="nvidia"),
    **pci("0000:00:02.0", "8086:a780:04", driver="i915"),
    **pci("0000:01:00.1", "10de:22ba:a1", kind="0x040300", driver="snd_hda_intel"),
    "proc/driver/nvidia/version": NVIDIA_VERSION,
    "proc/driver/nvidia/gpus/0000:01:00.0/information": information("NVIDIA GeForce RTX 4090", UUID),
    **NVIDIA_NODES,
    "usr/local/cuda/version.json": '{"cuda": {"name": "CUDA SDK", "version": "12.4.20240521"}}',
}
# Source: https://github.com/rbonghi/jetson_stats/issues/711 (release, device tree, kernel).
THOR = {
    **SYSTEM,
    "etc/nv_tegra_release": (
        "# R38 (release), REVISION: 2.0, GCID: 41844464, BOARD: generic, EABI: aarch64, DATE: Fri Aug 22 2025\n"
    ),
    "proc/sys/kernel/osrelease": "6.8.12-tegra\n",
    "proc/device-tree/model": "NVIDIA Jetson AGX Thor Developer Kit\0",
    "proc/device-tree/compatible": "nvidia,p4071-0000+p3834-0008\0nvidia,p3834-0008\0nvidia,tegra264\0",
    "sys/class/devfreq/gpu-gpc-0/cur_freq": "0\n",
    "sys/class/dmi/id/product_name": "NVIDIA Jetson AGX Thor Developer Kit\n",
    "proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 2000.00\nCPU part\t: 0xd83\n",
    "dev/nvmap": "",
}
# Source: https://github.com/NVIDIA/jetson-gpio/issues/125 (compatible).
ORIN = {
    **SYSTEM,
    "etc/nv_tegra_release": "# R39 (release), REVISION: 1.0, GCID: 1, BOARD: generic, EABI: aarch64, DATE: 2026\n",
    "proc/sys/kernel/osrelease": "6.8.12-tegra\n",
    "proc/device-tree/model": "NVIDIA Jetson AGX Orin Developer Kit\0",
    "proc/device-tree/compatible": "nvidia,p3737-0000+p3701-0005\0nvidia,p3701-0005\0nvidia,tegra234\0nvidia,tegra23x\0",
    "dev/nvmap": "",
    "dev/nvhost-gpu": "",
}
# Source: https://github.com/canonical/inference-snaps/issues/143 (GB10's buses), 10de:2e12 at 000f:01:00.0 of pci.ids.
GB10 = {
    **SYSTEM,
    **pci("000f:01:00.0", "10de:2e12:a1", kind="0x030200", driver="nvidia"),
    "proc/driver/nvidia/version": NVIDIA_VERSION.replace("x86_64", "aarch64"),
    "proc/driver/nvidia/gpus/000f:01:00.0/information": information("NVIDIA GB10", UUID),
    "sys/class/dmi/id/sys_vendor": "NVIDIA\n",
    "sys/class/dmi/id/product_name": "NVIDIA_DGX_Spark\n",
    **NVIDIA_NODES,
}
# Source: https://learn.microsoft.com/en-us/windows/wsl/ and https://github.com/microsoft/WSL/issues/40464
WSL = {
    **SYSTEM,
    "proc/version": "Linux version 6.6.87.2-microsoft-standard-WSL2 (root@build) (gcc 11.2.0) #1 SMP\n",
    "proc/sys/kernel/osrelease": "6.6.87.2-microsoft-standard-WSL2\n",
    "proc/sys/fs/binfmt_misc/WSLInterop": "enabled\ninterpreter /init\nflags: PF\noffset 0\nmagic 4d5a\n",
    "dev/dxg": "",
}
ON_HOSTS_SYSFS = {
    **{path: text for path, text in DESKTOP.items() if not path.startswith(("dev/", "opt/", "usr/"))},
    ".dockerenv": "",
}
"""A container without --device: the host's cards are seen, and no node of theirs is there."""

TREES: Mapping[str, Mapping[str, str]] = {
    "desktop": DESKTOP,
    "nvidia": ORDINARY,
    "thor": THOR,
    "orin": ORIN,
    "gb10": GB10,
    "wsl": WSL,
    "container": ON_HOSTS_SYSFS,
}


def write(root: Path, tree: Tree) -> Path:
    """Write a tree, of a system whose kernel tells of its buses; give its root."""
    (root / "sys" / "bus").mkdir(parents=True, exist_ok=True)
    for path, content in tree.items():
        at = root / path
        at.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str) and content.startswith("-> "):
            at.symlink_to(content.removeprefix("-> "))
        else:
            at.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def look(root: Path, machine: str = "x86_64", *, patience: float = 5.0, **variables: str) -> Host:
    """Observe a tree with an environment of these variables alone."""
    seen = Host(os="linux", machine=machine, libc="glibc 2.39")
    return host.probe(seen, root=root, environ={"PATH": "", **variables}, patience=patience)


def device(**values: Any) -> Device:
    return Device(**{"vendor": "1002", **values})


def loader_cache(entries: list[tuple[int, str, str]]) -> bytes:
    """Write a cache as glibc's ldconfig does: flags, name, path."""
    strings, rows = b"", b""
    start = 48 + 24 * len(entries)
    for flags, name, path in entries:
        key = start + len(strings)
        strings += name.encode() + b"\0"
        rows += struct.pack("=iIIIQ", flags, key, start + len(strings), 0, 0)
        strings += path.encode() + b"\0"
    return b"glibc-ld.so.cache1.1" + struct.pack("=II", len(entries), len(strings)) + bytes(20) + rows + strings
