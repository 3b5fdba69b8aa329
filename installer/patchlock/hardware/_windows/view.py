"""From all that was seen of a Windows machine to the observed machine; asks no machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchlock.hardware import _allow_list, _host_variables, _visibility
from patchlock.hardware._windows import cards, facts
from patchlock.hardware._windows.records import DriverCard, Plugged, Registry
from patchlock.model.hosts import Failure, Host


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one look at a Windows machine gave; what was not seen is empty."""

    registry: Registry
    plugged: Sequence[Plugged] | None
    """The display devices that are plugged in; None where nothing says."""
    told: Mapping[str, Sequence[DriverCard]] = dataclasses.field(default_factory=dict)
    """PCI vendor → its cards as its driver says."""
    cuda: str = ""
    """The newest CUDA that NVIDIA's driver runs."""
    init: str = ""
    """What cuInit(0) gave, as a number."""
    adapter_ram: int = 0
    """The largest AdapterRAM of CIM, bytes; 0 where CIM was not asked."""
    machine: str = "amd64"
    version: tuple[int, int, int] = (10, 0, 0)
    """Major, minor and build, as Windows tells programs of today."""
    memory: int = 0
    available: int = 0
    disk: int = 0
    libraries: Mapping[str, str] = dataclasses.field(default_factory=dict)
    toolkits: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """`hip-sdk`, `cuda-toolkit`."""
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """All of the environment."""
    path: str = ""
    """The variable PATH."""
    home: str = ""
    """The user's folder, which is written `~`."""
    user: str = ""
    """The user's name, likewise."""
    shadows: str = ""
    """What the user's site folder has that chooses what computes, comma separated."""
    container: str = ""
    python: str = ""
    python_maker: str = ""
    failures: Sequence[Failure] = ()


def host(seen: Seen) -> Host:
    """Put the observed machine together; it names neither the user nor the machine."""
    devices = cards.devices(seen.registry, seen.plugged)
    versions = {
        **facts.versions(seen.registry, seen.machine),
        **cards.versions(devices, seen.registry, seen.plugged),
        **seen.toolkits,
        **({"cuda-driver": seen.cuda} if seen.cuda else {}),
    }
    for vendor, by_driver in seen.told.items():
        devices = cards.add_driver_data(devices, vendor, by_driver)
    orders = {vendor: [one.address for one in by_driver] for vendor, by_driver in seen.told.items()}
    uuids = {one.address: one.uuid for by_driver in seen.told.values() for one in by_driver if one.uuid}
    devices, unclear = _visibility.hide(devices, seen.variables, orders, uuids=uuids)
    settings = {
        **facts.settings(seen.registry),
        "adapter-ram": str(seen.adapter_ram or ""),
        "cu-init": seen.init,
        "rocm-on-path": _host_variables.rocm_on_path(seen.path, ";"),
        "user-site": seen.shadows,
    }
    observed = Host(
        os="windows",
        machine=seen.machine,
        release=".".join(map(str, seen.version)),
        distribution=facts.distribution(seen.registry, seen.version[2]),
        processor=facts.processor(seen.registry),
        memory=seen.memory,
        available=seen.available,
        disk=seen.disk,
        container=seen.container,
        board=facts.board(seen.registry),
        devices=devices,
        versions=dict(sorted(versions.items())),
        libraries=dict(sorted(seen.libraries.items())),
        settings={name: value for name, value in sorted(settings.items()) if value},
        variables=_host_variables.chosen(seen.variables),
        python=seen.python,
        python_maker=seen.python_maker,
        failures=(*seen.failures, *unclear),
    )
    return _allow_list.told(observed, seen.home, seen.user)
