"""How many bytes the packages of a lock have: what the index says, kept by the lock's digest; downloads none of them.

A lock names no sizes (decision 0084), so without the network only what was asked before is known.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patchlock.model.byte_sizes import size_text
from patchlock.model.errors import CommandFailedError, DownloadError, NetworkError
from patchlock.model.fits import Platform
from patchlock.model.identities import Sha256
from patchlock.model.models import ModelSize

if TYPE_CHECKING:
    from patchlock.model.lockfile import Lock, LockedPackage

FOLDER = "sizes/locks"
"""Of the cache."""
_PATIENCE = 6.0
"""Seconds that the index may take for all files of a lock; it takes half a second for 100."""
_SHOWN = 3
"""Packages that a sentence names."""


@dataclass(frozen=True, kw_only=True)
class PackageSize(ModelSize):
    """How many bytes the packages of a lock have together."""

    unnamed: tuple[str, ...] = ()
    """Packages whose size neither the index nor their own server has said."""

    def __str__(self) -> str:
        if not self.unnamed:
            return size_text(self.bytes)
        shown = list(self.unnamed[:_SHOWN])
        shown += [f"{len(self.unnamed) - _SHOWN} more"] if len(self.unnamed) > _SHOWN else []
        names = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
        known = f"{size_text(self.bytes)} plus " if self.bytes else ""
        return f"{known}{names}, whose server gave no size"


def ask(
    lock: Lock, pins: tuple[LockedPackage, ...], digest: Sha256, platform: Platform, cache: Path
) -> PackageSize | None:
    """Ask the index, and servers of vendors, for the sizes of a lock's files; None where nobody answers.

    Args:
        lock: which.
        pins: what its builds require, which is fetched too.
        digest: of the lock.
        platform: that it is for.
        cache: patchlock's.
    """
    from patchlock.core import atomic_files, uv  # `kept` is for tables that have to be there at once
    from patchlock.environments import _download_sizes
    from patchlock.locks import addresses

    if (known := kept(digest, cache)) is not None and not known.unknown:
        return known
    if not uv.is_online():
        return known
    try:
        parts = (downloaded(lock), dataclasses.replace(lock, packages=pins))
        places = [(part, addresses.locate(part, platform, timeout=_PATIENCE)) for part in parts]
    except (DownloadError, NetworkError, CommandFailedError):
        return known
    files = {one.sha256: located[one.name] for part, located in places for one in part.packages}
    sizes = _download_sizes.collect(files, cache)
    names = {one.sha256: one.name for part in parts for one in part.packages}
    silent = tuple(name for sha256, name in names.items() if sha256 not in sizes)
    found = PackageSize(bytes=sum(sizes.values()), unknown=len(silent), unnamed=silent)
    path = _path(digest, cache)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.atomic_write(path, json.dumps(dataclasses.asdict(found)), sync=False)
    return found


def downloaded(lock: Lock) -> Lock:
    """Put the wheel of upstream, which an index has, in the place of one that is patched from it."""
    packages = (
        dataclasses.replace(one, version=of.version, url=of.url, sha256=of.sha256, original=None)
        if (of := one.original)
        else one
        for one in lock.packages
    )
    return dataclasses.replace(lock, packages=tuple(packages))


def kept(digest: Sha256, cache: Path) -> PackageSize | None:
    """Give what was last said of a lock's files; None where nobody was asked."""
    try:
        found = json.loads(_path(digest, cache).read_text(encoding="ascii"))
        silent = tuple(map(str, found["unnamed"]))
        return PackageSize(bytes=int(found["bytes"]), unknown=len(silent), unnamed=silent)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _path(digest: Sha256, cache: Path) -> Path:
    return cache / FOLDER / f"{digest}.json"
