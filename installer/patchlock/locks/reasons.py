"""Why a distribution is in a lock, read from the comments of the lock's own lines; pure, asks nobody."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from packaging.utils import NormalizedName, canonicalize_name

from patchlock.model.lockfile import Lock, LockedPackage

_MOST = 8
"""Chains that are told; torch and numpy have hundreds."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """What the comment of one line says."""

    asked: tuple[str, ...]
    """Requirement files with lines, and the patches that wrote them."""
    bounds: tuple[str, ...]
    """Lines of the profile's and the app's file."""
    via: tuple[NormalizedName, ...]
    """Distributions that ask for it."""
    file: str
    """Which kind of file was chosen: `wheel cp311-cp311-win_amd64`, `sdist`."""


@dataclass(frozen=True, kw_only=True)
class Chain:
    """One way from a requirement down to a distribution."""

    asked: str
    """Where the first one is asked for."""
    names: tuple[NormalizedName, ...]
    """From the one that is asked for to the distribution itself."""


def reason(package: LockedPackage, app: str, profile: str) -> Reason:
    """Read a line's comment.

    Args:
        package: the line.
        app: whose file `app:12` means.
        profile: whose file `profile cpu:12` means.
    """
    asked: list[str] = []
    bounds: list[str] = []
    via: tuple[NormalizedName, ...] = ()
    file = ""
    for part in filter(None, package.why.split(" · ")):
        kind, _, rest = part.partition(" ")
        if kind == "via":
            via = tuple(map(canonicalize_name, rest.split(", ")))
        elif part == "sdist" or kind == "wheel":
            file = part
        elif (place := spelled_out(part, app, profile)) != part:
            bounds.append(place)
        else:
            asked.append(part)
    return Reason(asked=tuple(asked), bounds=tuple(bounds), via=via, file=file)


def spelled_out(part: str, app: str, profile: str) -> str:
    """Give the file of the catalogue and the line that a part of a comment is short for; other parts as they are."""
    kind, _, rest = part.partition(" ")
    if part.startswith("app:"):
        return f"patches/{app}/app.toml:{part.removeprefix('app:')}"
    if part.startswith(f"profile {profile}:"):
        return f"profiles/{rest.replace(':', '.toml:')}"
    if kind == "shared":
        return f"patches/shared/{rest.replace(':', '.toml:')}"
    return part


def with_files(packages: Iterable[LockedPackage], app: str, profile: str) -> tuple[LockedPackage, ...]:
    """Spell out the comments of packages, for messages: a lock has them short."""
    return tuple(
        dataclasses.replace(
            package, why=" · ".join(spelled_out(part, app, profile) for part in package.why.split(" · "))
        )
        for package in packages
    )


def of_lock(lock: Lock) -> Mapping[NormalizedName, Reason]:
    """Read the comments of all lines."""
    p = lock.provenance
    return {package.name: reason(package, p.app, p.profile) for package in lock.packages}


def chains(reasons: Mapping[NormalizedName, Reason], name: NormalizedName) -> tuple[Chain, ...]:
    """Give the shortest way from each direct requirement down to a distribution, shortest first; at most eight."""
    waiting: deque[tuple[NormalizedName, ...]] = deque([(name,)])
    seen = {name}
    made = []
    while waiting:
        names = waiting.popleft()
        top = reasons.get(names[0])
        if top is None:
            continue
        made += [Chain(asked=place, names=names) for place in top.asked]
        for dependent in top.via:
            if dependent not in seen:
                seen.add(dependent)
                waiting.append((dependent, *names))
    return tuple(made[:_MOST])
