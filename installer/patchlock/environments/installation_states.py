"""How each installation stands: in use, interrupted, older than the catalogue, running; reads a few files of each."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from patchlock.core import file_lock
from patchlock.environments import failed_verify, freshness, generations
from patchlock.environments.failed_verify import FailedVerify
from patchlock.environments.generations import Receipt, Unfinished
from patchlock.model.installation import Installation

State = Literal["current", "stale", "unlisted", "interrupted", "removed"]


@dataclass(frozen=True, kw_only=True)
class InstallationState:
    """One installation."""

    installation: Installation
    state: State
    """`stale`: the catalogue has another lock. `unlisted`: it has none. `interrupted`: an install was killed,
    has failed, or still runs where it `is_busy`. `removed`: only files of the user are left."""
    is_running: bool
    """Whether the app runs."""
    is_busy: bool
    """Whether another patchlock works on it."""
    used: Receipt | None
    """Of the generation in use."""
    made: tuple[Receipt, ...]
    """Of all generations, the newest first."""
    unfinished: Unfinished
    """Of the last install, where the state is `interrupted`."""
    failed_verify: FailedVerify | None
    """The last `verify` of the generation in use, if that failed."""


def states(home: Path, catalogue: Path) -> tuple[InstallationState, ...]:
    """Look at every installation of a home, sorted by name.

    Args:
        home: of the installations.
        catalogue: its root; what an installation is compared with.
    """
    return tuple(_state(one, catalogue) for one in generations.installations(home))


def _state(one: Installation, catalogue: Path) -> InstallationState:
    made, used = generations.receipts(one), generations.current(one)
    busy = generations.is_busy(one)
    state: State
    if one.journal.is_file() and not busy:
        state = "interrupted"
    elif used is None:
        state = "interrupted" if busy or made else "removed"
    else:
        state = _compared(catalogue, used)
    return InstallationState(
        installation=one,
        state=state,
        is_running=any(file_lock.is_shared(folder / "pyvenv.cfg") for folder in one.environments.glob("*")),
        is_busy=busy,
        used=used,
        made=made,
        unfinished=generations.read_journal(one),
        failed_verify=failed_verify.read(generations.generation(one, used.id)) if used else None,
    )


def pinned_commit(one: InstallationState, catalogue: Path) -> str:
    """Name the commit of the catalogue's lock, where the generation in use is at another one; else ""."""
    if one.used is None:
        return ""
    lock = _lock(catalogue, one.used)
    pinned = re.search(rb'^# commit = "([0-9a-f]+)"$', lock.read_bytes(), re.MULTILINE)
    return pinned[1].decode() if pinned and pinned[1].decode() != one.used.upstream else ""


def changed_inputs(one: InstallationState, catalogue: Path) -> tuple[str, ...]:
    """Name the files of the catalogue that have changed since its lock was made: nothing is installed from that."""
    if one.used is None:
        return ()
    text = _lock(catalogue, one.used).read_text(encoding="utf-8")
    listed = re.findall(r'^# "([^":]+)" = "([0-9a-f]{64})"$', text, re.MULTILINE)
    return tuple(name for name, digest in listed if _digest(catalogue / name) != digest)


def _lock(catalogue: Path, used: Receipt) -> Path:
    return freshness.lock_file(catalogue / "lockfiles" / used.app, used.profile, used.platform)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def _compared(catalogue: Path, used: Receipt) -> State:
    """Compare with the catalogue's lock, which names all files of the catalogue that it was made from."""
    lock = _lock(catalogue, used)
    if not lock.is_file():
        return "unlisted"
    return "current" if _digest(lock) == used.lock else "stale"
