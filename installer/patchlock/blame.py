"""Name the package whose installation changed a locked one: from what was installed after the install; pure."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.damage import moment
from patchlock.lazily import dataclass

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet


@dataclass(frozen=True, kw_only=True)
class Newcomer:
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


def blame(changed: NormalizedName, locked: Version | None, newcomers: Iterable[Newcomer]) -> str:
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


def _sentence(changed: NormalizedName, chain: tuple[Newcomer, ...]) -> str:
    asker, last = chain[0], chain[-1]
    through = f" through {', '.join(str(link.name) for link in chain[1:])}" if len(chain) > 1 else ""
    required = f"{changed}{_asks(last, changed)}"
    asked = f"{asker.name} {asker.version} was asked for, and requires {required}{through}"
    return f"{changed} was changed by {_by(asker)}: {asked}"


def _by(newcomer: Newcomer) -> str:
    return f"{newcomer.installer or 'an unknown tool'} on {moment(newcomer.installed)}"


def _asks(newcomer: Newcomer, changed: NormalizedName) -> SpecifierSet:
    """Join what a distribution asks of another one."""
    asked = [r.specifier for r in newcomer.requires if canonicalize_name(r.name) == changed]
    from packaging.specifiers import SpecifierSet  # nearly always nobody is to blame

    return functools.reduce(operator.and_, asked, SpecifierSet())


def _chains(changed: NormalizedName, known: dict[NormalizedName, Newcomer]) -> Iterator[tuple[Newcomer, ...]]:
    """Give the ways from what was asked for to what requires the changed one, the shortest first."""
    waiting: list[tuple[Newcomer, ...]] = [(n,) for n in known.values() if n.requested and n.name != changed]
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
