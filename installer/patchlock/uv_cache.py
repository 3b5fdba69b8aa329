"""Ask uv what it has in its cache, and where that is; downloads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from packaging.utils import NormalizedName, canonicalize_name

from patchlock import disk_room, uv
from patchlock.errors import PatchlockError
from patchlock.lockfile import LockedPackage

_UNCACHED = re.compile(r"Identified uncached distribution: ([A-Za-z0-9._-]+)")
"""What uv 0.13.8 says with `-v`; where it says something else, everything is taken to be missing."""
_LIST = "wanted.txt"


def folder(environment: Path) -> Path:
    """Name uv's cache, as uv finds it from the folder of an environment, which need not be there yet."""
    return environment / uv.run("cache", "dir", "--no-config", cwd=environment.parent, installing=True).text


def is_copied(environment: Path, cached: Path) -> bool:
    """Say whether uv copies files into an environment, as its cache is on another disk, or as it is told to."""
    return disk_room.look(environment).device != disk_room.look(cached).device or uv.copies()


def uncached(packages: Iterable[LockedPackage], environment: Path, interpreter: Path) -> frozenset[NormalizedName]:
    """Say which distributions uv would have to download; asks no network.

    Distributions of an index are asked together, and count as missing together where uv cannot read the pages that it
    kept; files with an address of their own are asked one by one.

    Args:
        packages: of a lock.
        environment: a folder for the question; its packages count as missing too.
        interpreter: of that environment.
    """
    asked = tuple(packages)
    ours = [package for package in asked if not package.url]
    groups = ([ours] if ours else []) + [[package] for package in asked if package.url]
    return frozenset(name for group in groups for name in _of_group(group, environment, interpreter))


def _of_group(group: list[LockedPackage], environment: Path, interpreter: Path) -> frozenset[NormalizedName]:
    (environment / _LIST).write_text("".join(f"{package}\n" for package in group), encoding="utf-8", newline="\n")
    try:
        done = uv.run(
            *("pip", "install", "--no-config", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
            *("--python", str(interpreter), "--dry-run", "--offline", "-v", "-r", _LIST),
            cwd=environment,
            installing=True,
        )
    except PatchlockError:  # it does not know enough of them to say
        return frozenset(package.name for package in group)
    finally:
        (environment / _LIST).unlink(missing_ok=True)
    found = frozenset(canonicalize_name(name) for name in _UNCACHED.findall(done.stderr))
    # Where uv would fetch something and its words have changed, all of it counts as missing.
    return found if found or "Would download" not in done.stderr else frozenset(package.name for package in group)
