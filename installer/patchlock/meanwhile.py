"""What an install does while other programs work: the clone beside uv, the ledger and the disk beside the checks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from patchlock import generations, moving, trees, worktree
from patchlock.checkout import Snapshot
from patchlock.filling import Filled
from patchlock.identities import CommitId
from patchlock.model import App


@contextlib.contextmanager
def cloning(
    source: Path, app: App, snapshot: Snapshot, ref: str, applied: CommitId, lock: int
) -> Iterator[Future[moving.Moved] | None]:
    """Make the clone, where there is none, beside its place and while uv fills the environment, which takes longer.

    Args:
        source: where it will be, once `worktree.appear` puts it there.
        app: the app.
        snapshot: upstream's commit in our cache.
        ref: the patched commit in our cache.
        applied: the same, which the clone is moved to.
        lock: descriptor of the installation's lock.

    Yields:
        How it got to the patched commit, once it did; None where there is a clone already.
    """
    if source.exists():
        yield None
        return
    try:
        with ThreadPoolExecutor(max_workers=1) as pool:
            clone = pool.submit(_clone, source, app, snapshot, ref, applied, lock)
            yield clone
            clone.result()
    except BaseException:
        worktree.drop(source)
        raise


def _clone(source: Path, app: App, snapshot: Snapshot, ref: str, applied: CommitId, lock: int) -> moving.Moved:
    made = worktree.make(source, app, snapshot, ref, lock)
    with trees.hold(made):
        return moving.move(made, applied)


@contextlib.contextmanager
def settling(filled: Filled | None) -> Iterator[None]:
    """Begin the ledger and send what was laid down to the disk, while the checks, which are other programs, run.

    Args:
        filled: the environment; None where it was complete already.
    """
    if filled is None:
        yield
        return
    with ThreadPoolExecutor(max_workers=1) as pool:
        settled = pool.submit(_settle, filled)
        yield
        settled.result()


def _settle(filled: Filled) -> None:
    filled.settle()
    with contextlib.suppress(OSError):  # the receipt asks the disk again, and for good
        generations.reach_the_disk(filled.folder)
