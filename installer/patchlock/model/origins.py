"""Where in the catalogue something was written; pure values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where in the catalogue something was written, for messages and for `# via` comments."""

    file: str
    """POSIX path from the catalogue's root."""
    line: int
    """1-based line of the table or key."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"
