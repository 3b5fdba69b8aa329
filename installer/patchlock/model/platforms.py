"""The platforms that locks are made for, and which wheels run on each; a closed table, no I/O."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from patchlock.model.fits import Platform
from patchlock.model.hosts import Host
from patchlock.model.table_fields import OneOf

if TYPE_CHECKING:
    from packaging.tags import Tag
    from packaging.version import Version

GLIBC_FLOOR = (2, 28)
"""Debian 10, Ubuntu 18.10, RHEL 8. Source: PEP 600; the tag most wheels of 2025 and later carry."""
_LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
"""Source: PEP 600, "Legacy manylinux tags"."""


def _linux(machine: str) -> tuple[str, ...]:
    found: list[str] = []
    oldest = 5 if machine == "x86_64" else 17
    for minor in range(GLIBC_FLOOR[1], oldest - 1, -1):
        found.append(f"manylinux_2_{minor}_{machine}")
        if (2, minor) in _LEGACY:
            found.append(f"{_LEGACY[2, minor]}_{machine}")
    return (*found, f"linux_{machine}")


def _mac_arm64(newest: int) -> tuple[str, ...]:
    """As `packaging.tags.mac_platforms` has them, which takes longer to import than `detect` has."""
    own = (f"macosx_{major}_0_{kind}" for major in range(newest, 10, -1) for kind in ("arm64", "universal2"))
    return (*own, *(f"macosx_10_{minor}_universal2" for minor in range(16, 3, -1)))


PLATFORMS: Mapping[str, Platform] = {
    platform.name: platform
    for platform in (
        Platform(name="linux-x86_64", os="linux", machine="x86_64", uv="x86_64-manylinux_2_28", tags=_linux("x86_64")),
        Platform(
            name="linux-aarch64", os="linux", machine="aarch64", uv="aarch64-manylinux_2_28", tags=_linux("aarch64")
        ),
        Platform(name="windows-amd64", os="windows", machine="amd64", uv="x86_64-pc-windows-msvc", tags=("win_amd64",)),
        Platform(
            # uv resolves for macOS 13 on Apple silicon. Source: uv's `--python-platform` documentation.
            name="macos-arm64",
            os="macos",
            machine="arm64",
            uv="aarch64-apple-darwin",
            tags=_mac_arm64(13),
        ),
    )
}
"""By name, as in lockfile names."""
PlatformNames = Annotated[tuple[str, ...], OneOf('there is no platform "{}"', tuple(PLATFORMS))]

_SPELLINGS = {"x64": "x86_64", "amd64": "x86_64", "arm64": "aarch64"}


def platform_of(host: Host) -> Platform | None:
    """Find the platform of a machine, or None where no lock can be for it."""
    machine = _SPELLINGS.get(host.machine, host.machine)
    for platform in PLATFORMS.values():
        if platform.os == host.os and _SPELLINGS.get(platform.machine, platform.machine) == machine:
            return platform
    return None


@functools.cache
def wheel_rank(platform: Platform, python: Version) -> Mapping[Tag, int]:
    """Order the wheel tags that run on a platform under one Python: 0 is the best.

    Source: PEP 425; `packaging.tags`.
    """
    from packaging import tags as wheel_tags

    version = (python.major, python.minor)
    ordered = [
        *wheel_tags.cpython_tags(version, platforms=platform.tags),
        *wheel_tags.compatible_tags(version, interpreter=f"cp{version[0]}{version[1]}", platforms=platform.tags),
    ]
    return {tag: rank for rank, tag in reversed(list(enumerate(ordered)))}
