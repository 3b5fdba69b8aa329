"""Name a locked distribution in a message: what it is, and where it comes from."""

from __future__ import annotations

import re
from urllib.parse import unquote

from patchlock.lockfile import LockedPackage

_KIND = re.compile(r"wheel (\S+)")


def named(package: LockedPackage) -> str:
    """Give name, version and the place that asked for it, as the lock tells it."""
    places = [part for part in package.why.split(" · ") if part and part != "sdist" and not _KIND.fullmatch(part)]
    return f"{package.name} {package.version}" + (f" ({', '.join(places)})" if places else "")


def wheel_tags(package: LockedPackage) -> str | None:
    """Give the tags of the wheel that was chosen, as in its filename; None for an sdist, or where nothing says it."""
    if package.url:
        filename = unquote(package.url.partition("#")[0].rpartition("/")[2])
        return "-".join(filename.removesuffix(".whl").split("-")[-3:]) if filename.endswith(".whl") else None
    for part in package.why.split(" · "):
        if found := _KIND.fullmatch(part):
            return found[1]
    return None
