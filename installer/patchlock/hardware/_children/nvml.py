"""Ask NVIDIA's management library for its cards, as JSON on standard output: `nvml.py LIBRARY`.

It runs in a process of its own, because a broken driver can crash or hang it. The answer has `driver`, `cuda` (as the
library counts: 13000) and `cards`, each with what it has of `address`, `pci`, `name`, `uuid`, `arch`, `memory`; or
`failed`, the name of the call and its number.

Source: https://docs.nvidia.com/deploy/nvml-api/nvml-api-reference.html
"""

import ctypes
import json
import os
import sys
from typing import Any


class _Pci(ctypes.Structure):
    """nvmlPciInfo_t of version 3."""

    _fields_ = [
        ("legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("id", ctypes.c_uint),
        ("subsystem", ctypes.c_uint),
        ("address", ctypes.c_char * 32),
    ]


class _Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class _FailedError(Exception):
    """A call that the library refused."""


def main() -> None:
    """Ask, and print."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the library prints is no answer
    answer: dict[str, Any] = {"cards": []}
    try:
        _ask(ctypes.CDLL(sys.argv[1]), answer)
    except (OSError, AttributeError, _FailedError) as error:
        answer["failed"] = str(error)
    answers.write(json.dumps(answer))
    answers.flush()


def _ask(nvml: ctypes.CDLL, answer: dict[str, Any]) -> None:
    _call(nvml, "nvmlInit_v2")
    answer["driver"] = _text(nvml, "nvmlSystemGetDriverVersion")
    cuda = ctypes.c_int(0)
    if nvml.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(cuda)) == 0:
        answer["cuda"] = cuda.value
    count = ctypes.c_uint(0)
    _call(nvml, "nvmlDeviceGetCount_v2", ctypes.byref(count))
    for index in range(min(count.value, 1024)):
        card = ctypes.c_void_p()
        # A card that has fallen off the bus has a place in the count, and no handle.
        if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(card)) == 0:
            answer["cards"].append(_card(nvml, card))


def _card(nvml: ctypes.CDLL, card: ctypes.c_void_p) -> dict[str, Any]:
    """Ask for what a card has; a Jetson's has neither memory nor, before Thor, a place on a bus."""
    found: dict[str, Any] = {}
    for key, name in (("name", "nvmlDeviceGetName"), ("uuid", "nvmlDeviceGetUUID")):
        text = _text(nvml, name, card)
        if text:
            found[key] = text
    pci = _Pci()
    if nvml.nvmlDeviceGetPciInfo_v3(card, ctypes.byref(pci)) == 0:
        found |= {"address": pci.address.decode("ascii", "replace"), "pci": pci.id}
    major, minor = ctypes.c_int(0), ctypes.c_int(0)
    if nvml.nvmlDeviceGetCudaComputeCapability(card, ctypes.byref(major), ctypes.byref(minor)) == 0:
        found["arch"] = f"sm_{major.value}{minor.value}"
    memory = _Memory()
    if nvml.nvmlDeviceGetMemoryInfo(card, ctypes.byref(memory)) == 0:
        found["memory"] = memory.total
    return found


def _text(nvml: ctypes.CDLL, name: str, *arguments: ctypes.c_void_p) -> str:
    buffer = ctypes.create_string_buffer(96)
    code = nvml[name](*arguments, buffer, ctypes.c_uint(96))
    return buffer.value.decode("utf-8", "replace") if code == 0 else ""


def _call(nvml: ctypes.CDLL, name: str, *arguments: Any) -> None:
    code = nvml[name](*arguments)
    if code != 0:
        raise _FailedError(f"{name} gave {code}")


if __name__ == "__main__":
    main()
