"""What an install does while others work: an environment beside the patches, the clone beside uv, the ledger later."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from packaging.utils import NormalizedName

from patchlock.core import uv
from patchlock.core.atomic_files import remove_tree
from patchlock.environments import generations, venv
from patchlock.environments.fill import FilledEnvironment
from patchlock.model.app import App
from patchlock.worktree.clone import drop, make
from patchlock.worktree.upstream_cache import Snapshot


@contextlib.contextmanager
def create_in_background(folder: Path | None, python: str, lock: int) -> Iterator[Callable[[], Path | None]]:
    """Make an empty environment, and ask uv where its cache is, while the source is patched; gone if that fails.

    Args:
        folder: the environment; None where it is complete already.
        python: see `environments.venv.create`.
        lock: descriptor of the installation's lock.

    Yields:
        What waits for it, and names uv's cache.
    """
    if folder is None:
        yield lambda: None
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with ThreadPoolExecutor(max_workers=2) as pool:
            cached = pool.submit(uv.folder, folder)
            created = pool.submit(venv.create, folder, python, lock=lock)
            yield cached.result
            created.result()
    except BaseException:
        remove_tree(folder)
        with contextlib.suppress(OSError):  # there are others
            folder.parent.rmdir()
        raise


@contextlib.contextmanager
def clone_in_background(
    source: Path, app: App, snapshot: Snapshot, ref: str, lock: int
) -> Iterator[Future[None] | None]:
    """Make the clone, where there is none, beside its place and while uv fills the environment, which takes longer.

    Args:
        source: where it will be, once `worktree.clone.publish` puts it there.
        app: the app.
        snapshot: upstream's commit in our cache.
        ref: the patched commit in our cache.
        lock: descriptor of the installation's lock.

    Yields:
        What ends when it is made; None where there is a clone already.
    """
    if source.exists():
        yield None
        return
    try:
        with ThreadPoolExecutor(max_workers=1) as pool:
            clone = pool.submit(make, source, app, snapshot, ref, lock)
            yield clone
            clone.result()
    except BaseException:
        drop(source)
        raise


@contextlib.contextmanager
def create_ledger_in_background(filled: FilledEnvironment | None) -> Iterator[Callable[[], frozenset[NormalizedName]]]:
    """Look at what uv laid down and send it to the disk while the checks, which are other programs, run.

    Args:
        filled: the environment; None where it was complete already.

    Yields:
        What waits for the end of the look, and not for the disk, and gives what is spoilt; see `Filled.settle`.
    """
    if filled is None:
        yield frozenset
        return
    with ThreadPoolExecutor(max_workers=1) as pool:
        settled = pool.submit(filled.settle)
        pool.submit(generations.sync_to_disk, filled.job.folder)  # the receipt asks the disk again, and for good
        yield settled.result
