"""Where this user's installations, our cache and the catalogue are; looks into none of them."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Name the folder of all installations: PATCHLOCK_HOME, or the platform's place for user data."""
    named = os.environ.get("PATCHLOCK_HOME")
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs

    return platformdirs.user_data_path("patchlock", appauthor=False)


def cache() -> Path:
    """Name our cache: PATCHLOCK_CACHE_DIR, or the platform's place for caches."""
    named = os.environ.get("PATCHLOCK_CACHE_DIR")
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs

    return platformdirs.user_cache_path("patchlock", appauthor=False)


def bug_prefix() -> str:
    """Give what the names of files about our own mistakes begin with: they lie in a folder that all homes share."""
    import hashlib

    return f"patchlock-bug-{hashlib.sha256(os.fsencode(home())).hexdigest()[:8]}-"


def root(folder: Path | None) -> Path:
    """Name the folder of the catalogue, without a look into it."""
    from patchlock.catalogue.location import catalogue_root

    return catalogue_root(folder)
