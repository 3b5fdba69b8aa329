"""Wheels on this machine, by sha256: what was fetched, patched or built here, ready for uv; asks no network."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.model import Sha256


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LocalWheel:
    """A wheel that lies on this machine."""

    name: NormalizedName
    version: Version
    path: Path
    """The file, under its own name, alone in its folder."""
    sha256: Sha256


LocalWheels = Mapping[NormalizedName, LocalWheel]


def place(cache: Path, sha256: Sha256, filename: str) -> Path:
    """Name the place of a file in the cache, whether it is there or not; no two files share a folder."""
    return cache / "wheels" / sha256[:16] / filename


def find(cache: Path, sha256: Sha256) -> Path | None:
    """Find a wheel or an sdist by its sha256; its bytes are not read, as uv reads them when it installs."""
    folder = cache / "wheels" / sha256[:16]
    if not folder.is_dir():
        return None
    return next((path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz", ".zip"))), None)


def listing(wheels: LocalWheels) -> str:
    """Write wheels as requirements for an installer that may look at no index: each by its hash, and where it lies."""
    ordered = [wheels[name] for name in sorted(wheels)]
    places = [f"--find-links {wheel.path.parent.absolute().as_uri()}" for wheel in ordered]
    pins = [f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}" for wheel in ordered]
    return "\n".join(["--no-index", *places, *pins]) + "\n"
