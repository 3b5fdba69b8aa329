"""Work on an installation: alone, after what a killed predecessor left is cleared, and with words on how far it is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

from patchlock import checkout, generations, mutex, worktree
from patchlock.generations import Installation


class Progress(Protocol):
    """Tells a person what is going on."""

    def stage(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Announce a stage, and its end."""
        ...

    def say(self, text: str) -> None:
        """Say what the running stage is at, in a few words; the last one stands for its result."""
        ...

    def note(self, text: str) -> None:
        """Say something between stages, at once."""
        ...


@contextlib.contextmanager
def on(installation: Installation, progress: Progress, *, needs_source: bool = True) -> Iterator[int]:
    """Hold the installation, and clean up what a killed predecessor left.

    Args:
        installation: which one.
        progress: told when another patchlock has to end first.
        needs_source: git will work in the source, so that it must be whole.
    """

    def waiting() -> None:
        progress.note(f"waiting for another patchlock on this installation{mutex.holder(installation.lock)}")

    with mutex.hold(installation.lock, wait=300, waiting=waiting) as held:
        clear(installation)
        if installation.source.exists() and needs_source:
            worktree.require_whole(installation.source, installation.app)
        generations.write_journal(installation, "an install is running, or was killed; the next one finishes it")
        yield held
        installation.journal.unlink(missing_ok=True)


def clear(installation: Installation) -> None:
    """Remove what a killed predecessor left in an installation whose lock is held; nothing of the user's."""
    generations.clear(installation)
    if installation.journal.exists() and (installation.source / ".git").is_dir():
        checkout.clear(installation.source / ".git", since=installation.journal.stat().st_mtime)
