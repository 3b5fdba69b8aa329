"""Work on an installation: alone, after what a killed predecessor left is cleared, and with words on how far it is."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator

from patchlock.core import file_lock, old_folders
from patchlock.environments import cache_pruning, generations
from patchlock.environments.generations import Unfinished
from patchlock.locks.lock_request import Request
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import BusyError, PatchlockError, UpstreamError
from patchlock.model.installation import Installation
from patchlock.model.progress import Progress
from patchlock.worktree import clone, upstream_cache


@contextlib.contextmanager
def hold_installation(request: Request, progress: Progress, *, needs_source: bool = True) -> Iterator[int]:
    """Hold the installation, and clean up what a killed predecessor left; its home is one of those that use the cache.

    Args:
        request: for which one.
        progress: told when another patchlock has to end first.
        needs_source: git will work in the source, so that it must be whole.
    """
    with lock(request.installation, progress) as held, begun(request, needs_source=needs_source):
        yield held


@contextlib.contextmanager
def begun(request: Request, *, needs_source: bool = True) -> Iterator[None]:
    """Work on an installation whose lock is held, as `hold_installation` says."""
    installation = request.installation
    old_folders.remove()
    cache_pruning.take_lease(request.cache, request.home)
    clear(installation)
    if installation.source.exists() and needs_source:
        clone.require_whole(installation.source, installation.app)
    source = without_secrets(upstream_cache.absolute_address(request.source)) if request.source is not None else ""
    known = Unfinished(source=source, chosen=request.chosen)
    generations.write_journal(installation, known)
    try:
        yield
    except (PatchlockError, KeyboardInterrupt) as error:
        if isinstance(error, UpstreamError) or not generations.holds_anything(installation, but=installation.journal):
            installation.journal.unlink(missing_ok=True)  # nothing was begun
        elif isinstance(error, PatchlockError) and installation.journal.exists():  # else all is as it was
            failure = "; ".join((error.what, *error.evidence))
            generations.write_journal(installation, dataclasses.replace(known, failure=failure))
        raise
    installation.journal.unlink(missing_ok=True)


@contextlib.contextmanager
def lock(installation: Installation, progress: Progress) -> Iterator[int]:
    """Hold the installation, and leave no folder in which nothing was laid down.

    Args:
        installation: which one.
        progress: told when another patchlock has to end first.

    Raises:
        BusyError: another patchlock does not end, or removes patchlock itself.
    """
    home = installation.folder.parent
    if file_lock.is_held(cache_pruning.removal_lock(home)):
        raise BusyError("patchlock is being removed at this moment", where=str(home), remedy="wait for that to end")

    def waiting() -> None:
        progress.note(f"waiting for another patchlock on this installation{file_lock.holder(installation.lock)}")
        progress.say("waiting for another patchlock")

    try:
        with file_lock.hold(installation.lock, wait=300, waiting=waiting) as held:
            try:
                yield held
            finally:
                if os.name == "posix":  # Windows does not remove a file that is open
                    generations.remove_if_empty(installation)
    finally:
        if os.name != "posix":
            generations.remove_if_empty(installation)


def clear(installation: Installation) -> None:
    """Remove what a killed predecessor left in an installation whose lock is held; nothing of the user's."""
    generations.clear(installation)
    if installation.journal.exists() and (installation.source / ".git").is_dir():
        upstream_cache.clear(installation.source / ".git", since=installation.journal.stat().st_mtime)
