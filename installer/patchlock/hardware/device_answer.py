"""Ask the device of a back end whether it starts, in less than a second, and remember that it did.

The library that an app will load is asked, in a process of its own and with the app's variables, so that hidden devices
count. That it starts is remembered until the driver, the boot, the library or a variable that hides devices changes;
that it does not is not. It computes nothing: `verify` does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchlock.core import atomic_files, shared_libraries
from patchlock.core.bounded_files import FileReader
from patchlock.hardware._linux import nvidia
from patchlock.model.backends import HIDDEN_DEVICES

FILE = "device.json"
"""In a generation: what the device has answered."""
_PATIENCE = 20.0
"""Seconds for a driver that wakes up."""
_LIBRARIES: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "cuda": ("cu_init", (), ("libcuda.so.1", "nvcuda.dll")),
    # What ZLUDA stands on.
    "zluda": ("hip", (), ("amdhip64_6.dll",)),
    "rocm": (
        "hip",
        ("torch/lib/libamdhip64.so*", "_rocm_sdk_core/lib/libamdhip64.so*", "_rocm_sdk_core/bin/amdhip64*.dll"),
        ("libamdhip64.so.7", "libamdhip64.so.6", "amdhip64_7.dll", "amdhip64_6.dll"),
    ),
    "directml": ("d3d12", (), ("d3d12.dll",)),
}
"""Back end → the program that asks, where its library lies in site-packages, else its names for the loader."""
_CUDA = {
    2: "it is out of memory",
    100: "no card is to be seen",
    101: "there is no card of that number",
    802: "the system is not ready, its fabric manager may not run",
    803: "driver and library are of different versions",
    804: "the card does not take a library that is newer than the driver",
    999: "the driver gives no reason",
}
"""Source: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html"""
_HIDES = (*HIDDEN_DEVICES, "CUDA_DEVICE_ORDER", "HSA_OVERRIDE_GFX_VERSION")
_BOOT = (
    *("proc/sys/kernel/random/boot_id", "proc/driver/nvidia/version", "proc/version"),
    *("sys/module/nvidia/srcversion", "sys/module/amdgpu/srcversion"),
)
_NODES = ("nvidia*", "kfd", "dxg", "dri/renderD*")


@dataclass(frozen=True, kw_only=True)
class DeviceAnswer:
    """What a device says."""

    works: bool
    says: str
    """Which cards it has, or why it does not start, a clause."""


def ask(back_end: str, generation: Path, env: Mapping[str, str], *, root: Path = Path("/")) -> DeviceAnswer | None:
    """Ask a device, or tell what it has said; None where the back end has none on this system.

    Args:
        back_end: of the profile.
        generation: whose libraries are asked; what is remembered lies there.
        env: with which the app runs.
        root: of the file system.
    """
    program, inside, known = _LIBRARIES.get(back_end, ("", (), ()))
    names = tuple(name for name in known if name.endswith(".dll") == (sys.platform == "win32"))
    if not names:
        return None
    if back_end == "cuda" and sys.platform == "linux" and not nvidia.has_driver(FileReader(root, "nvidia")):
        return DeviceAnswer(works=False, says="NVIDIA's driver is not loaded")
    library = _library(generation, inside, names, env)
    if library is None:
        return DeviceAnswer(works=False, says=f"there is no {' or '.join(names)}, which the driver brings")
    state = _state(back_end, library, env, root)
    said = _remembered(generation, state)
    if said is not None:
        return DeviceAnswer(works=True, says=said)
    answer = _read(back_end, nvidia.run_child(program, Path(library), env, _PATIENCE))
    if answer.works:
        with contextlib.suppress(OSError):  # it is asked again, then
            atomic_files.atomic_write(generation / FILE, json.dumps({"state": state, "says": answer.says}) + "\n")
    return answer


def _library(generation: Path, inside: tuple[str, ...], names: tuple[str, ...], env: Mapping[str, str]) -> str | None:
    for packages in generation.glob("[Ll]ib/python*/site-packages" if os.name == "posix" else "Lib/site-packages"):
        for pattern in inside:
            if found := sorted(packages.glob(pattern)):
                return str(found[0])
    system = {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")
    return next((path for name in names if (path := shared_libraries.find(name, system, environ=env))), None)


def _state(back_end: str, library: str, env: Mapping[str, str], root: Path) -> str:
    """Digest what an answer holds for."""
    facts: list[object] = [back_end, library, {name: env.get(name) for name in _HIDES}]
    with contextlib.suppress(OSError):
        real = Path(library).resolve()
        facts += [str(real), real.stat().st_mtime_ns, real.stat().st_size]
    facts += _of_windows() if sys.platform == "win32" else _of_files(root)
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _of_files(root: Path) -> Iterator[object]:
    for name in _BOOT:
        with contextlib.suppress(OSError):
            yield (root / name).read_text(encoding="utf-8", errors="replace")
    for pattern in _NODES:
        yield sorted(path.name for path in (root / "dev").glob(pattern))


def _of_windows() -> Iterator[object]:
    from patchlock.hardware._windows import registry

    display = r"HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}\*"
    boots = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters"
    found, _ = registry.read({display: ("DriverVersion", "DriverDate"), boots: ("BootId",)})
    yield sorted((key, name, str(value)) for key, values in found.items() for name, value in values.items())


def _remembered(generation: Path, state: str) -> str | None:
    try:
        data = json.loads((generation / FILE).read_text(encoding="utf-8"))
        return str(data["says"]) if data["state"] == state else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read(back_end: str, answer: dict[str, Any] | str) -> DeviceAnswer:
    if isinstance(answer, str):
        return DeviceAnswer(works=False, says=answer)
    if "failed" in answer:
        return DeviceAnswer(works=False, says=str(answer["failed"]))
    if back_end == "directml":
        code = int(answer.get("code", 0))
        if code in {0, 1}:
            return DeviceAnswer(works=True, says="a card of Direct3D 12")
        return DeviceAnswer(works=False, says=f"Direct3D 12 gives no device: {code:#x}")
    if back_end in {"rocm", "zluda"}:
        names = [str(card.get("name") or card.get("arch") or "a card") for card in answer.get("cards", ())]
        return DeviceAnswer(works=bool(names), says=", ".join(names) or "HIP sees no card")
    code = int(answer.get("init", -1))
    if code != 0 or not answer.get("names"):
        why = _CUDA.get(code, "") if code else "it sees no card"
        return DeviceAnswer(works=False, says=f"cuInit gave {code}{f', {why}' if why else ''}")
    return DeviceAnswer(works=True, says=", ".join(map(str, answer["names"])))
