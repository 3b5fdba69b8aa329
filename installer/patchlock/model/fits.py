"""What a choice of a profile looks at: platforms, what a profile demands, what becomes of it on a machine; values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from patchlock.model.conditions import Condition
from patchlock.model.devices import ARCH, FAMILIES, VENDORS
from patchlock.model.table_fields import Matches, OneOf

Os = Literal["linux", "windows", "macos"]


@dataclass(frozen=True, kw_only=True)
class Platform:
    """One kind of operating system and processor that wheels are made for."""

    name: str
    """As in lockfile names: `linux-x86_64`."""
    os: Os
    machine: str
    """As the platform names its processor: `x86_64`, `aarch64`, `amd64`, `arm64`."""
    uv: str
    """What `uv pip compile --python-platform` calls it."""
    tags: tuple[str, ...]
    """Platform tags of wheels that run here, best first (PEP 425)."""


_NODE = re.compile("/dev/.*", re.DOTALL)
SELECTORS = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


@dataclass(frozen=True, kw_only=True)
class Fit:
    """One way in which a machine can be of a profile's kind, one is enough; what is empty demands nothing."""

    vendor: Annotated[str, OneOf('there is no vendor "{}"', VENDORS)]
    """PCI vendor of a device that is there, works and is not hidden: four lower-case hexadecimal digits."""
    archs: Annotated[tuple[str, ...], Matches('"{}" is not an arch such as "gfx1201" or "sm_89"', ARCH)] = ()
    """One of which the device computes: `gfx1201`, `sm_89`."""
    families: Annotated[tuple[str, ...], OneOf('there is no family "{}"', FAMILIES)] = ()
    """Of one of which it is; enough without an arch, as an arch is without a family."""
    wsl: bool | None = None
    """Whether Linux must, or must not, run inside Windows (WSL2)."""
    tegra: bool | None = None
    """Whether it must, or must not, be a Jetson."""
    requires: tuple[Condition, ...] = ()
    """How new drivers and the system have to be, where that is known."""
    nodes: Annotated[tuple[str, ...], Matches('"{}" is not a device node such as "/dev/kfd"', _NODE)] = ()
    """Device nodes that this process may open (`/dev/kfd`)."""
    libraries: tuple[str, ...] = ()
    """Libraries that are there (`librocdxg.so`)."""
    selects: Annotated[str, OneOf('there is no such variable as "{}"', SELECTORS)] = ""
    """Variable by which programs are told which of several devices to take: one of `SELECTORS`, or ""."""
    why: str
    """What follows "this machine has …," for people: `for which DirectML is what there is`."""
    source: str


@dataclass(frozen=True, kw_only=True)
class Successor:
    """A profile that is better on the same machines, whether it is there already or still to come."""

    name: str
    why: str
    """A clause."""
    source: str


@dataclass(frozen=True, kw_only=True)
class ProfileSummary:
    """A profile without its locks' rules, which takes long to read and which no choice looks at."""

    name: str
    title: str
    platforms: tuple[Platform, ...]
    specificity: int
    fits: tuple[Fit, ...] = ()
    """Empty: every machine of its platforms."""
    trials: tuple[Fit, ...] = ()
    """Machines that it may run on, though nobody has tried: never chosen for them, but offered by name."""
    successor: Successor | None = None
    python: str = ""
    """Of the environment; two numbers."""
    back_end: str = "cpu"
    """What torch computes on; `cpu`, too, where only ONNX Runtime comes to the card."""
