"""An sdist, as an index or a requirement names it; a value."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.model.identities import Sha256


@dataclass(frozen=True, kw_only=True)
class Sdist:
    """One sdist, as an index or a requirement names it."""

    name: NormalizedName
    version: Version | None
    """None where only the file itself says it: an archive of a commit."""
    url: str
    sha256: Sha256

    def __str__(self) -> str:
        return f"{self.name} {self.version}" if self.version is not None else self.name
