"""What is wrong with an installed file, and what has probably done it: evidence in, a sentence out; pure."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

import datetime

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
class DamageFinding:
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


@dataclass(frozen=True, kw_only=True)
class NewerDistribution:
    """A distribution whose metadata are newer than the install."""

    name: NormalizedName
    version: Version
    installer: str
    """What its INSTALLER says: `pip`, `uv`, `conda`; "" where there is none."""
    requested: bool
    """Whether somebody asked for it by name (REQUESTED), and not another distribution."""
    url: str
    """Of its `direct_url.json`, or ""."""
    requires: tuple[Requirement, ...]
    installed: float
    """Seconds since the epoch."""


def blame(changed: NormalizedName, locked: Version | None, newcomers: Iterable[NewerDistribution]) -> str:
    """Say who changed a distribution, in a clause; "" where nothing newer than the install says.

    uv marks everything that it installs as asked for, so a requirement that the locked version does not meet says more
    than that mark.

    Args:
        changed: the distribution.
        locked: the version that the lock has; None for one that is not in it.
        newcomers: all that is newer than the install.

    Source: https://packaging.python.org/en/latest/specifications/recording-installed-packages/
    """
    known = {newcomer.name: newcomer for newcomer in newcomers}
    own = known.get(changed)
    chains = tuple(_chains(changed, known))
    decisive = [chain for chain in chains if locked is None or not _asks(chain[-1], changed).contains(locked, True)]
    if decisive:
        return _sentence(changed, decisive[0])
    if own is not None and own.requested:
        origin = f" from {own.url}" if own.url else ""
        return f"{changed} {own.version} was asked for by name, and installed{origin} by {_by(own)}"
    if chains:
        return _sentence(changed, chains[0])
    return f"{changed} {own.version} was installed by {_by(own)}" if own else ""


def _sentence(changed: NormalizedName, chain: tuple[NewerDistribution, ...]) -> str:
    dependent, last = chain[0], chain[-1]
    through = f" through {', '.join(str(link.name) for link in chain[1:])}" if len(chain) > 1 else ""
    required = f"{changed}{_asks(last, changed)}"
    asked = f"{dependent.name} {dependent.version} was asked for, and requires {required}{through}"
    return f"{changed} was changed by {_by(dependent)}: {asked}"


def _by(newcomer: NewerDistribution) -> str:
    return f"{newcomer.installer or 'an unknown tool'} on {moment(newcomer.installed)}"


def _asks(newcomer: NewerDistribution, changed: NormalizedName) -> SpecifierSet:
    """Join what a distribution asks of another one."""
    asked = [r.specifier for r in newcomer.requires if canonicalize_name(r.name) == changed]
    from packaging.specifiers import SpecifierSet  # nearly always nobody is to blame

    return functools.reduce(operator.and_, asked, SpecifierSet())


def _chains(
    changed: NormalizedName, known: dict[NormalizedName, NewerDistribution]
) -> Iterator[tuple[NewerDistribution, ...]]:
    """Give the ways from what was asked for to what requires the changed one, the shortest first."""
    waiting: list[tuple[NewerDistribution, ...]] = [(n,) for n in known.values() if n.requested and n.name != changed]
    seen = {chain[0].name for chain in waiting}
    while waiting:
        chain = waiting.pop(0)
        required = [canonicalize_name(requirement.name) for requirement in chain[-1].requires]
        if changed in required:
            yield chain
        for name in required:
            if name in known and name not in seen and name != changed:
                seen.add(name)
                waiting.append((*chain, known[name]))
