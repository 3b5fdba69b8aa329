"""Look at what a build made before anybody uses it: one wheel, whole, of what the lock names, for this platform."""

from __future__ import annotations

from pathlib import Path

from patchlock import compatibility, wheels
from patchlock.errors import BuildError, WheelError
from patchlock.fits import Platform
from patchlock.identities import Sha256
from patchlock.lazily import dataclass
from patchlock.lockfile import LockedPackage
from patchlock.model import Profile


@dataclass(frozen=True, kw_only=True)
class MadeWheel:
    """The wheel that a build made."""

    path: Path
    sha256: Sha256
    is_pure: bool
    """Nothing in it was compiled for one platform."""


def judged(profile: Profile, platform: Platform, package: LockedPackage, out: Path, log: Path) -> MadeWheel:
    """Look at what a build made, as an installer would.

    Args:
        profile: for which it was built.
        platform: the same.
        package: what the lock names.
        out: the folder with the wheel.
        log: of the build, for messages.

    Raises:
        BuildError: it is not the one wheel that was asked for.
    """
    found = sorted(out.glob("*.whl")) if out.is_dir() else []
    what = f"{package.name} {package.version}"
    if len(found) != 1:
        raise BuildError(f"the build of {what} made {len(found)} wheels, and must make one", where=str(log))
    try:
        wheel = wheels.read(found[0], None)
    except WheelError as error:
        raise BuildError(
            f"the build of {what} made a wheel that no installer should be given: {error.what}",
            where=str(log),
            remedy="tell those who made the sdist, or patch it with a recipe",
            evidence=error.evidence,
        ) from error
    if (wheel.name, wheel.version) != (package.name, package.version):
        raise BuildError(
            f"the build of {what} made {wheel.name} {wheel.version}",
            where=str(log),
            remedy="the lock names another one: correct the requirement, or patch the sdist with a recipe",
        )
    if compatibility.best_wheel([wheel.filename], platform, profile) is None:
        raise BuildError(
            f"the build of {what} made {wheel.filename}, which does not run on {platform.name}",
            where=str(log),
            remedy="correct its recipe",
        )
    return MadeWheel(path=found[0], sha256=wheel.sha256, is_pure=wheel.filename.endswith("-any.whl"))
