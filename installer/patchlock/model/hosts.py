"""A machine as observed: frozen values, and the JSON in which machines are recorded and simulated; asks no machine.

`detect --json` prints a recording, `PATCHLOCK_HOST` names one, and `tests/hardware/hosts/` is full of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patchlock.model.errors import UsageError, nearest

FORMAT = 1
"""Of a recording; another number is refused."""
CHOICE = "choice"
"""Key beside a recording in which `detect --json` says what it chose; a reader passes over it."""


@dataclass(frozen=True, kw_only=True)
class Device:
    """A graphics card, or another accelerator, as one or several sources named it."""

    vendor: str
    """PCI vendor, four lower-case hexadecimal digits (`1002`); "" where no source says."""
    device: str = ""
    """PCI device, likewise."""
    revision: str = ""
    """PCI revision, two lower-case hexadecimal digits."""
    name: str = ""
    """As the driver or the system calls it: `AMD Radeon(TM) Graphics`."""
    address: str = ""
    """PCI address as Linux writes it (`0000:03:00.0`), on Windows too; "" where not known."""
    arch: str = ""
    """As the driver says: `gfx1201`, `sm_110`; "" where no driver says. What the table of devices knows is not here."""
    memory: int = 0
    """Bytes of its own; 0 where not known, or where it shares the machine's."""
    driver: str = ""
    """Version of its driver as the system gives it for this card."""
    trouble: str = ""
    """Why the system does not run it (`ConfigManagerErrorCode 43`), a clause."""
    number: str = ""
    """By which its runtime counts it (HIP's or CUDA's index), where that is known; "" where it is not."""
    is_hidden: bool = False
    """Whether a variable such as `HIP_VISIBLE_DEVICES` hides it from programs."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A device node (`/dev/kfd`)."""

    path: str
    is_usable: bool
    """Whether this process may open it for reading and writing."""
    group: str = ""
    """Which group may, where this process may not."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A probe that could not answer."""

    probe: str
    why: str
    """A clause: what was asked, and what happened."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """This machine as observed. What was not seen is empty; why, is among `failures`."""

    os: str
    """`linux`, `windows`, `macos`, or what the platform calls itself."""
    machine: str
    """Lower-case processor name as the platform reports it."""
    libc: str = ""
    """`glibc 2.36`, `musl`, or "" where there is none."""
    release: str = ""
    """Of the kernel (`6.8.12-tegra`), or of Windows (`10.0.26100`)."""
    distribution: str = ""
    """ID and VERSION_ID of Linux (`ubuntu 24.04`); `windows 11 24H2`; "" elsewhere."""
    processor: str = ""
    """The processor's name for people."""
    memory: int = 0
    """Bytes in all."""
    available: int = 0
    """Bytes that programs can have now."""
    disk: int = 0
    """Bytes free where installations lie."""
    container: str = ""
    """`docker`, `podman`, `lxc`, `wine`, …; a hint, as some virtual machines look like containers."""
    is_wsl: bool = False
    tegra: str = ""
    """Release of Jetson Linux, `38.4.0`; "" where this is no Jetson."""
    board: str = ""
    """What the firmware calls the machine: `NVIDIA Jetson AGX Thor Developer Kit`."""
    devices: tuple[Device, ...] = ()
    """In the order of their addresses."""
    nodes: tuple[Node, ...] = ()
    """Those that are there, of the ones that accelerators use."""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What drivers and toolkits say of themselves, by the words of `host_vocabulary`: `nvidia-driver`, `rocm`, …"""
    libraries: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Libraries that are there, of the ones that accelerators use: name → path."""
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Of the system: `smart-app-control` → `on`."""
    groups: tuple[str, ...] = ()
    """Of this user (POSIX), those that open devices or give rights."""
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Of the environment, those that choose devices, libraries and packages; the home folder is written `~`."""
    python: str = ""
    """Version of the Python that runs this."""
    python_maker: str = ""
    """`conda`, `store` (Microsoft's), or "" where it makes no difference."""
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A machine and what is known of an environment on it, as a file of JSON."""

    host: Host
    title: str = ""
    """What a person calls it."""
    source: str = ""
    """Where its facts are from: URLs, a sentence for what was inferred."""
    packages: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Distributions of the environment that is looked at: normalised name → version."""
    says: tuple[str, ...] = ()
    """Lines that programs printed there."""


def to_json(recording: Recording) -> dict[str, Any]:
    """Write a recording as JSON's values, without what is empty."""
    written = _written(recording)
    return {"patchlock_host": FORMAT, **written}


def _written(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {field.name: _written(one) for field, one in pairs if one or _is_required(field)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_written(one) for one in value]
    return value


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def from_json(data: object, where: str) -> Recording:
    """Read a recording, or the answer of `detect --json` that holds one.

    Raises:
        UsageError: it is something else; every mistake is named with its key.
    """
    if isinstance(data, dict) and isinstance(data.get("data"), dict):
        data = data["data"]
    if not isinstance(data, dict) or data.get("patchlock_host") != FORMAT:
        raise UsageError(
            f'this is not a recorded machine: its "patchlock_host" must be {FORMAT}',
            where=where,
            remedy="make one with `patchlock detect --json`",
        )
    mistakes: list[str] = []
    values = {key: value for key, value in data.items() if key not in {"patchlock_host", CHOICE}}
    recording: Recording | None = _read(Recording, values, "", mistakes)
    if mistakes or recording is None:
        raise UsageError(
            f"this recorded machine has {len(mistakes)} {'mistake' if len(mistakes) == 1 else 'mistakes'}",
            where=where,
            remedy="correct what follows, or make it again with `patchlock detect --json`",
            evidence=mistakes,
        )
    return recording


_NESTED: Mapping[str, type[Any]] = {"host": Host, "devices": Device, "nodes": Node, "failures": Failure}


def _read(kind: type[Any], data: object, at: str, mistakes: list[str]) -> Any:
    if not isinstance(data, dict):
        mistakes.append(f"{at or 'the file'} must be a table")
        return None
    fields = {field.name: field for field in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    before = len(mistakes)
    for key, value in data.items():
        place = f"{at}.{key}" if at else str(key)
        if key not in fields:
            mistakes.append(f"{place} is not known; {nearest(str(key), fields)}")
            continue
        values[key] = _value(key, str(fields[key].type), value, place, mistakes)
    missing = [
        name
        for name, field in fields.items()
        if name not in data and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    mistakes += [f"{at}.{name} is missing" if at else f"{name} is missing" for name in missing]
    return kind(**values) if len(mistakes) == before else None


def _value(key: str, kind: str, value: object, at: str, mistakes: list[str]) -> Any:
    if kind == "Host":
        return _read(Host, value, at, mistakes)
    if kind.startswith("tuple["):
        if not isinstance(value, list):
            mistakes.append(f"{at} must be a list")
            return ()
        if key in _NESTED:
            return tuple(_read(_NESTED[key], one, f"{at}[{i}]", mistakes) for i, one in enumerate(value))
        return _texts(value, at, mistakes)
    if kind.startswith("Mapping["):
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            mistakes.append(f"{at} must be a table of texts")
            return {}
        return value
    expected = {"str": str, "int": int, "bool": bool}[kind]
    if type(value) is not expected:
        mistakes.append(f"{at} must be {_CALLED[kind]}")
        return None
    return value.lower().removeprefix("0x") if key in _IDS and isinstance(value, str) else value


_IDS = frozenset({"vendor", "device", "revision"})
"""Which Windows' Device Manager shows in capitals."""
_CALLED = {"str": "a text", "int": "a whole number", "bool": "true or false"}


def _texts(value: list[Any], at: str, mistakes: list[str]) -> tuple[str, ...]:
    if not all(isinstance(one, str) for one in value):
        mistakes.append(f"{at} must be a list of texts")
        return ()
    return tuple(value)
