"""Which pairs of app and machine there are, and which of them a change of files concerns; pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterable

from patchlock import build_constraints, planning
from patchlock.errors import RefusedError
from patchlock.fits import Platform
from patchlock.lazily import dataclass
from patchlock.model import App, Profile


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One lock to be: an app on a profile on a platform."""

    app: App
    profile: Profile
    platform: Platform
    refused: str = ""
    """Why it cannot be; "" where it can."""


_OURS = ("installer/patchlock/", "lockfiles/patchlock.txt")
"""What writes locks: patchlock's own source, and the lock that names the version of uv."""


def pairs(apps: Iterable[App], profiles: Iterable[Profile]) -> tuple[Pair, ...]:
    """List all pairs in order, those that the catalogue refuses with its reason."""
    profiles = tuple(profiles)
    return tuple(
        _pair(app, profile, platform) for app in apps for profile in profiles for platform in profile.platforms
    )


def _pair(app: App, profile: Profile, platform: Platform) -> Pair:
    try:
        planning.require_possible(app, profile, platform)
    except RefusedError as error:
        return Pair(app=app, profile=profile, platform=platform, refused=error.what)
    return Pair(app=app, profile=profile, platform=platform)


def concerns(pair: Pair, file: str, lock: str) -> bool:
    """Say whether a changed file may change the lock of a pair, or is that lock or the file beside it.

    Args:
        pair: the pair.
        file: a POSIX path from the catalogue's root.
        lock: the pair's lockfile, likewise.
    """
    app, profile = pair.app, pair.profile
    files = {lock, build_constraints.beside(lock), profile.origin.file}
    files |= {f"profiles/indexes/{name}.toml" for name in profile.indexes}
    files |= {one.origin.file for one in app.shared}
    is_apps = file.startswith(f"patches/{app.name}/") and not file.startswith(f"patches/{app.name}/cases/")
    return file in files or is_apps or file.startswith(_OURS)
