"""NVIDIA's cards as its driver names them: texts of /proc, answers of NVML and nvidia-smi as values; asks nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

COLUMNS = ("name", "uuid", "pci.bus_id", "pci.device_id", "compute_cap", "driver_version", "memory.total")
"""What nvidia-smi is asked for. Source: `nvidia-smi --help-query-gpu`."""
_KERNEL_MODULE = re.compile(r"Kernel Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)")
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")
_ARCH = re.compile(r"sm_\d{2,3}")
_ADDRESS = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])")


@dataclass(frozen=True, kw_only=True)
class NvidiaCard:
    """One card; what its driver does not say is empty."""

    address: str = ""
    """PCI address as Linux writes it, `0000:01:00.0`."""
    device: str = ""
    """PCI device, four hexadecimal digits."""
    name: str = ""
    uuid: str = ""
    """`GPU-9221d5d1-b60b-a624-bf14-0a1819cfda3b`."""
    arch: str = ""
    """`sm_110`."""
    memory: int = 0
    """Bytes; a Jetson has none of its own."""


@dataclass(frozen=True, kw_only=True)
class NvidiaAnswer:
    """What NVML, or nvidia-smi, says."""

    cards: tuple[NvidiaCard, ...] = ()
    driver: str = ""
    cuda: str = ""
    """The newest CUDA that the driver runs, `13.0`."""


def driver_version(text: str) -> str:
    """Read the version in /proc/driver/nvidia/version; "" where it has none.

    Source: https://download.nvidia.com/XFree86/Linux-x86_64/580.65.06/README/procinterface.html
    """
    found = _KERNEL_MODULE.search(text)
    return found[1] if found else ""


def from_information(address: str, text: str) -> NvidiaCard:
    """Read /proc/driver/nvidia/gpus/<address>/information; question marks stand where the driver does not know yet."""
    pairs = (line.partition(":") for line in text.splitlines())
    values = {key.strip(): _known(value) for key, _, value in pairs}
    return NvidiaCard(address=normal(address), name=values.get("Model", ""), uuid=values.get("GPU UUID", ""))


def from_nvml(answer: Mapping[str, Any]) -> NvidiaAnswer:
    """Read the answer of `hardware/_children/nvml.py`."""
    return NvidiaAnswer(
        cards=tuple(_card(one) for one in answer.get("cards", [])),
        driver=_version(answer.get("driver", "")),
        cuda=cuda_version(answer.get("cuda", 0)),
    )


def _card(one: Mapping[str, Any]) -> NvidiaCard:
    arch = str(one.get("arch", ""))
    return NvidiaCard(
        address=normal(str(one.get("address", ""))),
        device=f"{int(one['pci']) >> 16 & 0xFFFF:04x}" if one.get("pci") else "",
        name=str(one.get("name", "")),
        uuid=str(one.get("uuid", "")),
        arch=arch if _ARCH.fullmatch(arch) else "",
        memory=int(one.get("memory", 0)),
    )


def from_smi(text: str) -> NvidiaAnswer:
    """Read the rows of `nvidia-smi --query-gpu=<COLUMNS> --format=csv,noheader,nounits`; other lines are no cards."""
    rows = [[_known(cell) for cell in line.split(",")] for line in text.splitlines()]
    named = [dict(zip(COLUMNS, row, strict=True)) for row in rows if len(row) == len(COLUMNS)]
    cards = [
        row for row in named if row["uuid"].startswith(("GPU-", "MIG-")) or _VERSION.fullmatch(row["driver_version"])
    ]
    return NvidiaAnswer(
        cards=tuple(_row(row) for row in cards),
        driver=next((version for row in cards if (version := _version(row["driver_version"]))), ""),
    )


def _row(row: Mapping[str, str]) -> NvidiaCard:
    device = re.fullmatch(r"0x([0-9a-fA-F]{4})10[dD][eE]", row["pci.device_id"])
    arch = re.fullmatch(r"(\d{1,2})\.(\d)", row["compute_cap"])
    memory = re.fullmatch(r"(\d{1,9})(?: MiB)?", row["memory.total"])
    return NvidiaCard(
        address=normal(row["pci.bus_id"]),
        device=device[1].lower() if device else "",
        name=row["name"],
        uuid=row["uuid"] if row["uuid"].startswith("GPU-") else "",
        arch=f"sm_{arch[1]}{arch[2]}" if arch else "",
        memory=int(memory[1]) * 1024 * 1024 if memory else 0,
    )


def cuda_version(number: int) -> str:
    """Write CUDA's number for its version: 13000 → 13.0; "" for none."""
    return f"{number // 1000}.{number % 1000 // 10}" if number > 0 else ""


def normal(address: str) -> str:
    """Write a PCI address as Linux does: `00000000:01:00.0` → `0000:01:00.0`; "" for what is none."""
    found = _ADDRESS.fullmatch(address.strip())
    return f"{int(found[1], 16):04x}:{found[2]}:{found[3]}.{found[4]}".lower() if found else ""


def _known(cell: str) -> str:
    """Leave out what says that there is nothing: `[N/A]`, `[Not Supported]`, `????`."""
    text = cell.strip()
    return "" if text.strip("[]").lower() in {"n/a", "not supported", "unknown error"} or "?" in text else text


def _version(text: object) -> str:
    return str(text) if _VERSION.fullmatch(str(text)) else ""
