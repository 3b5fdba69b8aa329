"""Check a patched file as a whole."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class FileIs:
    """The file has exactly these bytes."""

    sha256: str

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.sha256):
            raise ValueError(f'"{self.sha256}" must be a sha256 of 64 hexadecimal digits')

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:  # noqa: ARG002  (any kind of file)
        """Say that the bytes are others."""
        found = hashlib.sha256(data).hexdigest()
        return () if found == self.sha256 else (f"its sha256 is {found[:12]}…, not {self.sha256[:12]}…",)
