"""Builds that succeeded, kept in the cache below the digest of their inputs; one at a time for the same inputs."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from packaging.utils import NormalizedName

from patchlock.core import file_lock
from patchlock.core.atomic_files import remove_tree
from patchlock.environments.builds import _records
from patchlock.environments.builds._records import BuildInputs, BuildRecord
from patchlock.environments.cache_pruning import BUILDS, RECORD
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage

_PARTIAL = ".partial"
_WAIT = 6 * 3600.0
"""Seconds to wait for another patchlock that builds the same."""


def folder(cache: Path, inputs: Sha256) -> Path:
    """Name the folder of a build: its log, its lock, and below it what it made, once for each set of requirements."""
    return cache / BUILDS / inputs[:16]


def log(cache: Path, inputs: Sha256) -> Path:
    """Name the log of the last attempt."""
    return folder(cache, inputs) / "log.txt"


def find(
    cache: Path,
    inputs: Sha256,
    pins: Mapping[NormalizedName, LockedPackage],
    identify: Callable[[Iterable[str]], dict[str, str]],
) -> tuple[BuildRecord, Path] | None:
    """Find a build that would give the same if it ran now, and the folder of what it made.

    Args:
        cache: patchlock's.
        inputs: digest of what is known before it runs.
        pins: the pinned build requirements.
        identify: asks programs what they are; only asked about those that were used.
    """
    top = folder(cache, inputs)
    for file in sorted(top.glob(f"*/{RECORD}")):
        if file.parent.suffix == _PARTIAL:
            continue
        record = _records.parse(file.read_text(encoding="utf-8"))
        if record is None or record.inputs != inputs:
            continue
        if _records.is_up_to_date(record, pins, identify(record.tools)):
            return record, file.parent
    return None


@contextlib.contextmanager
def work_folder(cache: Path, inputs: Sha256) -> Iterator[tuple[Path, int]]:
    """Give an empty folder to build in, and the descriptor of its lock; it is removed at the end.

    What a killed build left is removed first. Another patchlock that builds the same is waited for, and so are its
    compilers, if it was killed and they live on.

    Raises:
        BusyError: it did not end in time.
    """
    top = folder(cache, inputs)
    top.mkdir(parents=True, exist_ok=True)
    with file_lock.hold(top / "lock", wait=_WAIT) as held:
        for left in (top / "work", *top.glob(f"*{_PARTIAL}")):
            remove_tree(left)
        log(cache, inputs).unlink(missing_ok=True)
        work = top / "work"
        work.mkdir()
        try:
            yield work, held
        finally:
            remove_tree(work)


def store_build(cache: Path, record: BuildRecord, about: BuildInputs, products: Mapping[str, Path]) -> Path:
    """Keep what a build made, whole or not at all; gives the folder.

    Args:
        cache: patchlock's.
        record: of the build.
        about: its inputs, which the record tells a person.
        products: path in the folder → file that is copied there.
    """
    top = folder(cache, record.inputs)
    target, partial = top / record.name, top / f"{record.name}{_PARTIAL}"
    remove_tree(partial)
    partial.mkdir()
    for name, file in products.items():
        (partial / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, partial / name)
        _sync(partial / name)
    (partial / RECORD).write_text(_records.render(record, about), encoding="utf-8", newline="\n")
    _sync(partial / RECORD)
    shutil.copyfile(log(cache, record.inputs), partial / "log.txt")
    remove_tree(target)
    remove_tree(top / "work")  # before the record is there, or nobody would come back to remove it
    partial.replace(target)
    return target


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
