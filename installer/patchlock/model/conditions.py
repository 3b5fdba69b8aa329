"""What no wheel brings and whose version matters: drivers, kernels, systems; how each is read from an observed machine.

One table for all who ask: the choice of a profile, `plan`, `install` and `doctor`. Reads no machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from patchlock.model import version_bounds
from patchlock.model.hosts import Device, Host
from patchlock.model.table_fields import OneOf, Parsed
from patchlock.model.version_bounds import Bounds

_FIRST_BUILD_OF_11 = (10, 0, 22000)
"""Source: https://learn.microsoft.com/windows/release-health/windows11-release-information"""


@dataclass(frozen=True, kw_only=True)
class Versioned:
    """One thing that has a version."""

    called: str
    """In a sentence: `the kernel`."""
    unit: str
    """What stands before its number: `Windows `; "" for nothing."""
    os: str
    """On which it is asked."""
    read: Callable[[Host, Device | None], str]
    """Gives its version on a machine, for a device; "" where that is not known."""


def _nvidia(host: Host, device: Device | None) -> str:
    own = device.driver if device is not None and host.os == "linux" else ""
    return host.versions.get("nvidia-driver", "") or own


def _kernel(host: Host, _: Device | None) -> str:
    """Leave out the kernel of a machine whose amdgpu module is newer than it: AMD's DKMS package has put that in."""
    return "" if "amdgpu" in host.versions else host.release


def _windows(host: Host, _: Device | None) -> str:
    build = version_bounds.leading(host.release)
    if build is not None and len(build) > 2:
        return "11" if build >= _FIRST_BUILD_OF_11 else "10"
    found = re.match(r"windows (\d+)", host.distribution)
    return found[1] if found else ""


def _macos(host: Host, _: Device | None) -> str:
    """Read the version of macOS; its kernel, which counts otherwise, is `release`."""
    found = re.match(r"macos (\d+(?:\.\d+)*)", host.distribution)
    return found[1] if found else ""


VERSIONED: Mapping[str, Versioned] = {
    "nvidia-driver": Versioned(called="the driver", unit="", os="", read=_nvidia),
    "adrenalin": Versioned(
        called="AMD's driver",
        unit="Adrenalin ",
        os="windows",
        read=lambda host, _: host.versions.get("adrenalin", ""),
    ),
    "kernel": Versioned(called="the kernel", unit="", os="linux", read=_kernel),
    "windows": Versioned(called="the system", unit="Windows ", os="windows", read=_windows),
    "jetson-linux": Versioned(called="the system", unit="Jetson Linux ", os="linux", read=lambda host, _: host.tegra),
    "macos": Versioned(called="the system", unit="macOS ", os="macos", read=_macos),
}
"""Name → what it is; `profiles/needs/<name>.toml` says how a person gets a newer one."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What a version has to be."""

    name: Annotated[str, OneOf('there is no version "{}"', VERSIONED)]
    versions: Annotated[Bounds, Parsed(Bounds, Bounds())]
    source: str

    @property
    def words(self) -> str:
        """Write what it has to be for people: `Windows 11 or later`."""
        return f"{VERSIONED[self.name].unit}{self.versions.words}"

    def found(self, host: Host, device: Device | None = None) -> str:
        """Give the version on a machine, as people write it; "" where it is not known, or not asked there."""
        of = VERSIONED[self.name]
        version = of.read(host, device) if of.os in {"", host.os} else ""
        return f"{of.unit}{version}" if version else ""

    def is_known(self, host: Host, device: Device | None = None) -> bool:
        """Say whether the version is known, or does not matter: AMD's DKMS package makes an old kernel do."""
        return bool(self.found(host, device)) or (self.name == "kernel" and "amdgpu" in host.versions)

    def is_met(self, host: Host, device: Device | None = None) -> bool:
        """Say whether the version is right, or not known."""
        return self.versions.hold(self.found(host, device).removeprefix(VERSIONED[self.name].unit))

    def is_too_new(self, host: Host, device: Device | None = None) -> bool:
        """Say whether an older version is wanted."""
        return self.versions.is_too_new(self.found(host, device).removeprefix(VERSIONED[self.name].unit))

    def reason(self, host: Host, device: Device | None = None) -> str:
        """Say what is wrong with the version, a clause; "" where nothing is."""
        if self.is_met(host, device):
            return ""
        return f"{VERSIONED[self.name].called} is {self.found(host, device)}, and must be {self.words}"
