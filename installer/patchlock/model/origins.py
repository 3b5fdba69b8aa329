"""Where in the catalogue, or in upstream's files, something was written; pure values."""

from __future__ import annotations

from dataclasses import dataclass

UPSTREAM = "upstream:"
"""What the name of a file of upstream's begins with, where the catalogue's are meant, too."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where something was written, for messages and for `# via` comments."""

    file: str
    """POSIX path from the catalogue's root; behind `UPSTREAM`, from the app's folder."""
    line: int
    """1-based line of the table or key."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def is_upstreams(self) -> bool:
        """Whether it is none of ours."""
        return self.file.startswith(UPSTREAM)
