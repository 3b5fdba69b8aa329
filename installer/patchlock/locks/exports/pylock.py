"""Write a lock as PEP 751 (`pylock.toml`): one file for each distribution, for one platform and one Python; pure."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.model.addresses import without_secrets
from patchlock.model.fits import Platform
from patchlock.model.lockfile import Lock, LockedPackage

if TYPE_CHECKING:
    from packaging.pylock import Package

_SYSTEM = {"linux": "linux", "macos": "darwin", "windows": "win32"}
_MACHINE = {"amd64": "AMD64"}
"""As `platform.machine()` says it, where that is not as we do."""


@dataclass(frozen=True, kw_only=True)
class Located:
    """Where the one file of a locked distribution lies."""

    filename: str
    url: str
    """Absolute, without a password."""
    size: int | None = None
    """Bytes, where the index says so."""
    upload_time: datetime.datetime | None = None
    """Where the index says so."""


def document(lock: Lock, platform: Platform, places: Mapping[NormalizedName, Located]) -> str:
    """Write a lock as the text of a `pylock.toml`.

    Args:
        lock: the lock.
        platform: the one it is for.
        places: where the file of each of its distributions lies.

    Raises:
        packaging.pylock.PylockValidationError: an address and a name do not fit.

    Source: PEP 751, and packaging.python.org/specifications/pylock-toml.
    """
    import tomlkit
    from packaging.pylock import Pylock

    p = lock.provenance
    pylock = Pylock(
        lock_version=Version("1.0"),
        environments=[environment(platform, p.python)],
        requires_python=SpecifierSet(f"=={p.python}.*"),
        created_by="patchlock",
        packages=[_package(package, places[package.name]) for package in lock.packages],
        tool={
            "patchlock": {
                "app": p.app,
                "profile": p.profile,
                "platform": p.platform,
                "commit": p.commit,
                "as-of": p.as_of,
                "uv": p.uv,
                "patches": list(p.patches),
                "resolver-input": p.resolver_input,
                "inputs": {file: str(p.inputs[file]) for file in sorted(p.inputs)},
            }
        },
    )
    pylock.validate()
    return tomlkit.dumps(pylock.to_dict())


def environment(platform: Platform, python: str) -> Marker:
    """Say where a lock may be installed; installers refuse it elsewhere, and build nothing there instead."""
    return Marker(
        f"sys_platform == '{_SYSTEM[platform.os]}'"
        f" and platform_machine == '{_MACHINE.get(platform.machine, platform.machine)}'"
        f" and python_version == '{python}' and implementation_name == 'cpython'"
    )


def _package(package: LockedPackage, place: Located) -> Package:
    from packaging.pylock import Package, PackageSdist, PackageWheel

    kind = PackageWheel if place.filename.endswith(".whl") else PackageSdist
    file = kind(
        name=place.filename,
        url=without_secrets(place.url),
        size=place.size,
        upload_time=place.upload_time,
        hashes={"sha256": str(package.sha256)},
    )
    return Package(
        name=package.name,
        version=package.version,
        wheels=[file] if isinstance(file, PackageWheel) else None,
        sdist=file if isinstance(file, PackageSdist) else None,
        tool={"patchlock": {"why": package.why}} if package.why else None,
    )
