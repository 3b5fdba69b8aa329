"""Judge interpreters by their paths and by what uv says of them; asks nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `detect` asks who made its Python before anything else is needed
    from packaging.version import Version

    from patchlock.model.fits import Platform


def request(version: Version, platform: Platform) -> str:
    """Name the Python of an environment so that uv takes no PyPy, no 32-bit and no debug build, and none for musl.

    Source: https://docs.astral.sh/uv/concepts/python-versions/#requesting-a-version
    """
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine, platform.machine)
    return f"cpython-{version}-{platform.os}-{machine}-{'gnu' if platform.os == 'linux' else 'none'}"


def maker_of(path: PurePath, *, has_conda_meta: bool) -> str:
    """Say who made an interpreter, where that makes a difference: `conda`, `store` or ""."""
    parts = {part.lower() for part in path.parts}
    if "windowsapps" in parts or any(part.startswith("pythonsoftwarefoundation.python") for part in parts):
        return "store"
    return "conda" if has_conda_meta else ""


def unfit(listed: Iterable[Mapping[str, object]], request: str) -> tuple[str, ...]:
    """Say of interpreters that uv lists why they cannot serve a request, each path once.

    Args:
        listed: as `uv python list --output-format json` gives them.
        request: as `cpython-3.11-linux-x86_64-gnu`.
    """
    implementation, version, os, arch, libc = request.split("-")
    told: dict[str, str] = {}
    for one in listed:
        reasons = [
            f"is {name} and not {wanted}"
            for key, name, wanted in (
                ("implementation", _NAMES.get(str(one["implementation"]), str(one["implementation"])), "CPython"),
                ("arch", f"for {one['arch']}", f"for {arch}"),
                ("libc", f"for {one['libc']}", f"for {libc}"),
            )
            if str(one[key]) != {"implementation": implementation, "arch": arch, "libc": libc}[key]
        ]
        if one["variant"] != "default":
            reasons.append(f"is a {one['variant']} build")
        if reasons and one["path"] and one["os"] == os and str(one["version"]).startswith(f"{version}."):
            told.setdefault(str(one["path"]), f"{one['path']}, which {' and '.join(reasons)}")
    return tuple(told.values())


_NAMES = {"pypy": "PyPy", "graalpy": "GraalPy", "cpython": "CPython"}
