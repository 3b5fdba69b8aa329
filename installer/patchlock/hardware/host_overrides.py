"""The machine that commands ask for: this one, or what PATCHLOCK_HOST and a few variables simulate; changes nothing."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from patchlock.model import hosts
from patchlock.model.devices import ARCH, Card, vendor_of
from patchlock.model.errors import UsageError, nearest
from patchlock.model.hosts import Device, Host, Node, Recording

VARIABLE = "PATCHLOCK_HOST"
OVERRIDES: Mapping[str, str] = {
    "PATCHLOCK_OVERRIDE_ARCH": "the only device computes this arch, such as gfx1201, sm_89 or bmg; empty: none",
    "PATCHLOCK_OVERRIDE_DRIVER": "NVIDIA's driver has this version, such as 580.65",
    "PATCHLOCK_OVERRIDE_KERNEL": "the kernel has this version, such as 6.14",
    "PATCHLOCK_OVERRIDE_TEGRA": "this is a Jetson with this release of Jetson Linux, such as 38.4; empty: none",
    "PATCHLOCK_OVERRIDE_WSL": "1: Linux runs inside Windows (WSL2); 0 or empty: it does not",
}
"""Variable → what is simulated. In the spirit of conda's CONDA_OVERRIDE_CUDA.

Source: https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-virtual.html"""
_PREFIX = "PATCHLOCK_OVERRIDE_"
_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})*([-+~_.][0-9A-Za-z-+~_.]*)?")
_VALUES = {
    "ARCH": (ARCH, "not an arch such as gfx1201 or sm_89"),
    "DRIVER": (_VERSION, "not a version such as 580.65"),
    "KERNEL": (_VERSION, "not a version such as 6.14"),
    "TEGRA": (_VERSION, "not a release such as 38.4"),
    "WSL": (re.compile("[01]"), "neither 1 nor 0"),
}
"""What follows the prefix → how a value looks that is not empty, and what another one is not."""
_LARGEST = 4 << 20
"""Bytes of a recording; a thousand devices are half a megabyte."""
_NODES = {"1002": ("/dev/kfd", "/dev/dri/renderD128"), "10de": ("/dev/nvidiactl",), "8086": ("/dev/dri/renderD128",)}
"""PCI vendor → what Linux has where such a card works."""


@dataclass(frozen=True, kw_only=True)
class ObservedHost:
    """A machine, and by what it is simulated."""

    recording: Recording
    overrides: tuple[str, ...] = ()
    """Variables with their values; empty: it is this one."""

    @property
    def host(self) -> Host:
        """The machine."""
        return self.recording.host

    @property
    def is_recorded(self) -> bool:
        """Say whether it is a whole other machine, and not this one of which a person corrects a fact."""
        return any(one.startswith(f"{VARIABLE}=") for one in self.overrides)


def observe(probe: Callable[[], Host], environ: Mapping[str, str] = os.environ) -> ObservedHost:
    """Say which machine commands are for.

    Args:
        probe: asks this machine; not called where a whole one is simulated.
        environ: variables of the environment.

    Raises:
        UsageError: what is simulated cannot be read, or is not what its variable takes.
    """
    _demand_known(environ)
    named = environ.get(VARIABLE, "")
    recording = _read(Path(named).expanduser()) if named else Recording(host=probe())
    told = [f"{VARIABLE}={named}"] if named else []
    host = recording.host
    for variable in OVERRIDES:
        if (value := environ.get(variable)) is not None:
            host = _override(host, variable, value)
            told.append(f"{variable}={value}")
    return ObservedHost(recording=dataclasses.replace(recording, host=host), overrides=tuple(told))


def require_known_arch(observed: ObservedHost, cards: Iterable[Card]) -> None:
    """Refuse a simulated arch that no card of a table has; a table without cards knows none.

    Raises:
        UsageError: there is no such card.
    """
    variable = f"{_PREFIX}ARCH"
    known = {card.arch: card.vendor for card in cards if card.arch}
    for device in observed.host.devices if known else ():
        if f"{variable}={device.arch}" in observed.overrides and device.arch not in known:
            alike = [arch for arch, vendor in known.items() if vendor == device.vendor]
            raise UsageError(
                f'{variable}: this patchlock knows no card with the arch "{device.arch}"',
                remedy=f"it knows {', '.join(sorted(alike, key=lambda arch: (len(arch), arch)))}",
            )


def _read(path: Path) -> Recording:
    remedy = f"name a file of `patchlock detect --json` in {VARIABLE}, or unset it"
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError("a recorded machine is smaller than 4 MB", where=str(path), remedy=remedy)
        data = json.loads(path.read_bytes())  # which also reads UTF-16, as `>` of Windows PowerShell 5.1 writes it
    except OSError as error:
        why = f"{VARIABLE} names a file that cannot be read: {(error.strerror or str(error)).lower()}"
        raise UsageError(why, where=str(path), remedy=remedy) from error
    except (ValueError, RecursionError) as error:  # also UnicodeDecodeError
        raise UsageError(f"{VARIABLE} names a file that is not JSON", where=str(path), remedy=remedy) from error
    return hosts.from_json(data, str(path))


def _demand_known(environ: Mapping[str, str]) -> None:
    """A misspelt variable would simulate nothing, and a wrong value would leave rules without what they judge."""
    for variable in sorted(name for name in environ if name.startswith(_PREFIX)):
        if variable not in OVERRIDES:
            raise UsageError(f"no variable {variable} is known", remedy=nearest(variable, OVERRIDES))
        pattern, mistake = _VALUES[variable.removeprefix(_PREFIX)]
        value = environ[variable]
        if value and not pattern.fullmatch(value):
            raise UsageError(f'{variable} is {mistake}: "{value}"', remedy=f"unset {variable}")


def _override(host: Host, variable: str, value: str) -> Host:
    match variable.removeprefix(_PREFIX):
        case "ARCH":
            return _with_arch(host, value)
        case "DRIVER":
            versions = {key: text for key, text in host.versions.items() if key != "nvidia-driver"}
            return dataclasses.replace(host, versions=versions | ({"nvidia-driver": value} if value else {}))
        case "KERNEL":
            return dataclasses.replace(host, release=value)
        case "TEGRA":
            return dataclasses.replace(host, tegra=value)
        case _:
            nodes = tuple(node for node in host.nodes if node.path != "/dev/dxg")
            is_wsl = value == "1"
            there = (Node(path="/dev/dxg", is_usable=True),) if is_wsl else ()
            return dataclasses.replace(host, is_wsl=is_wsl, nodes=(*nodes, *there))


def _with_arch(host: Host, arch: str) -> Host:
    if not arch:
        return dataclasses.replace(host, devices=())
    simulated = Device(vendor=vendor_of(arch), arch=arch)
    wanted = _NODES[simulated.vendor] if host.os == "linux" else ()
    nodes = tuple(node for node in host.nodes if node.path not in wanted)
    there = tuple(Node(path=path, is_usable=True) for path in wanted)
    return dataclasses.replace(host, devices=(simulated,), nodes=(*nodes, *there))
