"""Which wheel an installer prefers on a platform, and what markers see there; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.markers import default_environment
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from patchlock.model.fits import Platform
from patchlock.model.platforms import wheel_rank
from patchlock.model.profile import Profile


def best_wheel(filenames: Iterable[str], platform: Platform, profile: Profile) -> str | None:
    """Choose the wheel that an installer prefers on a platform under the profile's Python; None where none runs.

    Source: PEP 425, PEP 427 (a higher build number wins).
    """
    ranks = wheel_rank(platform, profile.python)
    ranked = []
    for filename in sorted(filenames):
        _, _, build, tags = parse_wheel_filename(filename)
        fitting = [ranks[tag] for tag in tags if tag in ranks]
        if fitting:
            ranked.append((-min(fitting), build, filename))  # no build number is the empty tuple, which sorts first
    return max(ranked, key=lambda found: found[:2])[2] if ranked else None


def newer_glibc(filenames: Iterable[str], platform: Platform) -> str:
    """Give the glibc that every wheel for a machine needs, where its locks allow an older one; else ""."""
    allowed = [int(found[1]) for tag in platform.tags if (found := _MANYLINUX.fullmatch(tag))]
    needed: list[int] = []
    for filename in filenames:
        systems = filename.removesuffix(".whl").rpartition("-")[2].split(".") if filename.endswith(".whl") else ()
        if not {"any", *platform.tags}.isdisjoint(systems):
            return ""
        named = filter(None, map(_MANYLINUX.fullmatch, systems))
        needed += [int(one[1]) for one in named if one[2] == platform.machine]
    return f"2.{min(needed)}" if needed and allowed and min(needed) > max(allowed) else ""


_MANYLINUX = re.compile(r"manylinux_2_(\d+)_(\w+)")


def marker_environment(platform: Platform, python: Version) -> dict[str, str]:
    """Give the environment of a machine, as markers see it.

    Args:
        platform: of the machine.
        python: major and minor version.
    """
    system = {"linux": "Linux", "windows": "Windows", "macos": "Darwin"}[platform.os]
    sys_platform = {"linux": "linux", "windows": "win32", "macos": "darwin"}[platform.os]
    machine = {"amd64": "AMD64"}.get(platform.machine, platform.machine)
    return default_environment() | {  # type: ignore[return-value]
        "os_name": "nt" if platform.os == "windows" else "posix",
        "sys_platform": sys_platform,
        "platform_system": system,
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "python_version": str(python),
        "python_full_version": f"{python}.0",
        "implementation_version": f"{python}.0",
    }
