"""What is wrong with an installed file, and what has probably done it: evidence in, a sentence out; pure."""

from __future__ import annotations

import datetime

from packaging.utils import NormalizedName

from patchlock.lazily import dataclass

_BINARY = (".dll", ".exe", ".pyd", ".so", ".dylib", ".sys")
"""Endings of what virus scanners look at; a `.so` may have a version behind it."""
_DEFENDER = (
    "look in Windows Security > Protection history (or `Get-MpThreatDetection` in PowerShell), and exclude the folder"
)
_SCANNER = "look in the log of the scanner, for example `journalctl -u clamav-daemon`"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What can be seen of one file that is not as its RECORD says."""

    path: str
    wanted: int | None
    """Bytes; None where RECORD says no size."""
    size: int | None
    """Bytes; None where the file is missing."""
    modified: float = 0.0
    """When its bytes were last written, in seconds since the epoch."""
    laid: float
    """When the install had laid down all files; the same clock."""
    links: int = 1
    """Names of the file on its disk; more than one where uv's cache or another environment has it too."""
    is_text: bool = False
    ends_in_zeros: bool = False

    @property
    def is_binary(self) -> bool:
        """Say whether it is a program or a library, by its name."""
        name = self.path.rpartition("/")[2].lower()
        return name.endswith(_BINARY) or ".so." in name

    @property
    def looks_taken(self) -> bool:
        """Say whether a scanner may have taken it away: a program or library that is missing or empty."""
        return self.is_binary and not self.size and self.wanted != 0


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is not as it was installed."""

    distribution: NormalizedName | None
    """None where it is the environment's own."""
    path: str
    """From site-packages, with slashes; "" where it is the whole distribution."""
    expected: str
    found: str
    cause: str
    """The likely cause with its confidence, and where to look."""

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.distribution, self.path) if part)
        return f"{where}: expected {self.expected}, found {self.found}; {self.cause}"


def cause(seen: Evidence, *, all_taken: bool, is_windows: bool, shared: str) -> str:
    """Name the likely cause, the surest evidence first, with its confidence.

    Args:
        seen: the file.
        all_taken: whether every file that is wrong in the environment looks taken away by a scanner.
        is_windows: on Windows, where a scanner runs on every machine.
        shared: what is to be done about a file that other environments share; "" where that cannot be.
    """
    also = f"; {shared}" if seen.links > 1 and shared else ""
    if seen.looks_taken and all_taken:
        likely = "probably" if is_windows else "possibly"
        return f"{likely} an antivirus took it away, as only programs are gone: {_DEFENDER if is_windows else _SCANNER}"
    if seen.size is None:
        return "probably removed by a person or a tool: nothing else says who"
    when = moment(seen.modified)
    if seen.ends_in_zeros:
        return f"probably a damaged disk or a power cut, last written {when}: it ends in zeros{also}"
    if seen.modified > seen.laid:
        who = "a person or a tool edited it in place" if seen.is_text else "a tool wrote to it in place"
        return f"probably {who} on {when}, after the install{also}"
    if seen.wanted is not None and seen.size < seen.wanted:
        return f"possibly a damaged disk or a cut: it is shorter, and was not written since the install{also}"
    return f"possibly a damaged disk or memory: it was not written since the install, as its time says{also}"


def moment(seconds: float) -> str:
    """Write a time for a person, in UTC to the minute."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
