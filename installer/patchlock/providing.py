"""The wheels of an install that this machine makes or fetches itself, before uv fills the environment with them."""

from __future__ import annotations

from collections.abc import Callable

from patchlock.gathering import Request
from patchlock.lockfile import Lock
from patchlock.wheelhouse import LocalWheels


def provide(request: Request, lock: Lock, *, tell: Callable[[str], None], held: int) -> LocalWheels:
    """Bring together all wheels that do not come from the index as they are.

    Args:
        request: the pair.
        lock: what is to be installed.
        tell: told what is being done, in a few words.
        held: descriptor of the installation's lock, for children.

    Raises:
        PatchlockError: as `source_builds.provide`.
    """
    from patchlock import source_builds

    made = dict(source_builds.provide(request, lock, tell=tell, held=held))
    if any(package.original for package in lock.packages):
        from patchlock import patched_wheels  # most locks have no use for it

        made |= patched_wheels.provide(request, lock, tell)
    return made
