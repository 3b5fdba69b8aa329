"""Observe a Mac: its system, memory and room; its chip, whose graphics are part of it."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import platform
from pathlib import Path

from patchlock.core import disk_space
from patchlock.hardware import _allow_list, _host_variables
from patchlock.model.hosts import Device, Host


def probe(seen: Host, installations: Path | None) -> Host:
    """Observe a Mac.

    Args:
        seen: what `probes.basic` says.
        installations: where installations lie, or will; None: the home folder.
    """
    host = dataclasses.replace(
        seen,
        release=platform.release(),
        distribution=f"macos {platform.mac_ver()[0]}".strip(),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        disk=disk_space.look(installations or Path.home()).free,
        processor=(chip := _chip()),
        devices=graphics(chip, seen.machine),
        variables=_host_variables.chosen(os.environ),
    )
    return _allow_list.told(host, os.environ.get("HOME", ""), os.environ.get("USER", ""))


def graphics(chip: str, machine: str) -> tuple[Device, ...]:
    """Name the graphics of a Mac: those of Apple's chips have the chip's name; of others nothing is said."""
    return (Device(vendor="106b", name=chip),) if machine == "arm64" and chip else ()


def _chip() -> str:
    """Ask the kernel for the name of the processor, without a process; "" where it gives none."""
    name, size = ctypes.create_string_buffer(128), ctypes.c_size_t(128)
    with contextlib.suppress(OSError, AttributeError):  # every Mac has it
        ask = ctypes.CDLL(None).sysctlbyname
        if ask(b"machdep.cpu.brand_string", name, ctypes.byref(size), None, 0) == 0:
            return name.value.decode("utf-8", errors="replace")
    return ""
