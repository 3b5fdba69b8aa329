"""Generations of an installation and their receipts; one is complete if and only if its receipt is there."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchlock.core import atomic_files, command_lines, file_lock
from patchlock.core.atomic_files import remove_tree
from patchlock.environments import installed_profiles
from patchlock.hardware import stored_choice
from patchlock.model import launchers
from patchlock.model.errors import BusyError, NotInstalledError
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.installation import Installation

RECEIPT = "receipt.toml"
_NAME = re.compile(r"[0-9a-f]{1,64}(-[0-9]{1,9})?")
"""Of a generation: its digest, and a number where the same one was built afresh."""


@dataclass(frozen=True, kw_only=True)
class CheckRecord:
    """One check as it was passed when the generation was made."""

    id: str
    level: str
    """`present`, `loads`, `starts` or `computes`."""
    detail: str


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The proof that a generation is complete; written last."""

    id: str
    app: str
    profile: str
    platform: str
    python: str
    """Full version of the interpreter."""
    upstream: CommitId
    applied: CommitId
    """The patched commit that this generation belongs to."""
    inputs: Sha256
    """Digest of all that the generation was made from; equal inputs need no second install."""
    lock: Sha256
    """Of the lockfile's bytes."""
    packages: int
    made: str
    """When its environment was first complete; RFC 3339, UTC."""
    sequence: int
    """Generations of one installation are numbered from 1 in the order in which they were made."""
    environment: Mapping[str, str]
    """The profile's variables."""
    patched: Mapping[str, Sha256]
    """File from the root of the clone → sha256 of its patched bytes."""
    present: Mapping[str, Sha256]
    """The same files as they stood when the checks passed, the user's edits included."""
    checks: tuple[CheckRecord, ...]
    overlays: Mapping[str, Sha256] = dataclasses.field(default_factory=dict)
    """Id → sha256 of the archive that its libraries are from."""
    shared: tuple[str, ...] = ()
    """Names of the shared sets of patches that the app's file named."""
    chosen: tuple[str, ...] = ()
    """Names of the optional patches, sorted."""
    edited_lock: bool = False
    """Whether the lock had been edited after it was made, and its owner said so."""
    source: str = ""
    """Where upstream was taken from instead of the catalogue's: an absolute path, or an address without secrets."""
    unverified: str = ""
    """What the checks have not shown, a clause; "" where the app was started and its device has computed."""


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """What is known of an install that did not finish."""

    failure: str = ""
    """Why it failed, a clause; "" where it was killed, or still runs."""
    source: str = ""
    """As in a receipt."""
    chosen: tuple[str, ...] = ()
    """As in a receipt."""

    def command(self, installation: Installation) -> str:
        """Give the command that finishes it."""
        return command_lines.joined(["patchlock", *self.words(installation)])

    def words(self, installation: Installation) -> tuple[str, ...]:
        """Give the words of that command behind `patchlock`."""
        chosen = (word for name in self.chosen for word in ("--with", name))
        source = ("--source", self.source) if self.source else ()
        return ("install", installation.app, "--profile", installation.profile, *chosen, *source)


_FAILED, _SOURCE, _CHOSEN = "failed: ", "source: ", "chosen: "


def write_journal(installation: Installation, known: Unfinished) -> None:
    """Note that an installation is changed, and what is known of that; for a person who looks after a crash, too."""
    lines = ["an install is running, or was killed; the next one finishes it"]
    lines = [f"{_FAILED}{' '.join(known.failure.split())}"] if known.failure else lines
    lines += [f"{_SOURCE}{known.source}"] if known.source else []
    lines += [f"{_CHOSEN}{' '.join(known.chosen)}"] if known.chosen else []
    atomic_files.atomic_write(installation.journal, "".join(f"{line}\n" for line in lines))


def read_journal(installation: Installation) -> Unfinished:
    """Read what is known of an install that did not finish."""
    try:
        lines = installation.journal.read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        lines = []
    keys = (_FAILED, _SOURCE, _CHOSEN)
    told = {key: next((one[len(key) :] for one in lines if one.startswith(key)), "") for key in keys}
    return Unfinished(failure=told[_FAILED], source=told[_SOURCE], chosen=tuple(told[_CHOSEN].split()))


def generation(installation: Installation, name: str) -> Path:
    """Name the folder of a generation."""
    return installation.environments / name


def write_receipt(folder: Path, receipt: Receipt) -> None:
    """Declare a generation complete, when the disk has all of it: a power cut keeps what is synced, not what is first.

    Raises:
        OSError: the disk did not take all of it.
    """
    import tomlkit  # which is only for who writes

    sync_to_disk(folder)
    values = dataclasses.asdict(receipt)
    checks = values.pop("checks")
    for name in ("edited_lock", "source", "unverified"):  # an older patchlock reads the receipts that have none
        if not values[name]:
            del values[name]
    tables = {name: values.pop(name) for name in ("environment", "patched", "present", "overlays")}
    listed = {"checks": checks} if checks else {}
    atomic_files.atomic_write(folder / RECEIPT, tomlkit.dumps({**values, **tables, **listed}))


def read_receipt(folder: Path) -> Receipt | None:
    """Read the receipt of a generation; None where it is incomplete, or where the receipt cannot be read."""
    try:
        values: dict[str, Any] = tomllib.loads((folder / RECEIPT).read_text(encoding="utf-8"))
        checks = tuple(CheckRecord(**check) for check in values.pop("checks", ()))
        shared, chosen = tuple(values.pop("shared", ())), tuple(values.pop("chosen", ()))
        return Receipt(**values, shared=shared, chosen=chosen, checks=checks)
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):  # damaged, or of another patchlock's format
        return None


def receipts(installation: Installation) -> tuple[Receipt, ...]:
    """List the complete generations, the newest first."""
    if not installation.environments.is_dir():
        return ()
    found = (read_receipt(folder) for folder in installation.environments.iterdir())
    return tuple(sorted((r for r in found if r is not None), key=lambda r: -r.sequence))


def installations(home: Path) -> tuple[Installation, ...]:
    """List the folders of a home that hold an installation, or what was left of one; sorted.

    A folder in which an install was only begun, which failed before it laid anything down, is none.
    """
    folders = sorted(home.iterdir()) if home.is_dir() else []
    found = (Installation(folder=folder) for folder in folders if "@" in folder.name and folder.is_dir())
    return tuple(one for one in found if holds_anything(one))


def remove_if_empty(installation: Installation) -> None:
    """Remove the folder in which an install was only begun; whoever waits for its lock makes another one."""
    if not holds_anything(installation):
        with contextlib.suppress(OSError):  # another patchlock that waited has just made it anew, or, on Windows, waits
            (installation.folder / stored_choice.FILE).unlink(missing_ok=True)
            installation.lock.unlink(missing_ok=True)
            installation.folder.rmdir()


def holds_anything(installation: Installation, *, but: Path | None = None) -> bool:
    """Say whether something was laid down in a folder, which may not be there.

    Args:
        installation: whose folder.
        but: a file that does not count.
    """
    before = {installation.lock, installation.folder / stored_choice.FILE, but}
    return installation.folder.is_dir() and any(path not in before for path in installation.folder.iterdir())


def unfinished(home: Path) -> tuple[Installation, ...]:
    """List the installations of a home that were begun, and of which nothing is in use yet; sorted."""
    there = (one for one in installations(home) if not one.pointer.is_file())
    return tuple(one for one in there if one.journal.is_file() or names(one))


def is_busy(installation: Installation) -> bool:
    """Say whether another patchlock works on an installation just now."""
    return installation.journal.is_file() and file_lock.is_held(installation.lock)


def names(installation: Installation) -> tuple[str, ...]:
    """Name the generations that were complete once, also those whose receipt cannot be read; sorted."""
    return tuple(sorted(file.parent.name for file in installation.environments.glob(f"*/{RECEIPT}")))


def current(installation: Installation) -> Receipt | None:
    """Read the receipt of the generation in use; None where nothing is installed."""
    try:
        name = installation.pointer.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return read_receipt(generation(installation, name)) if _NAME.fullmatch(name) else None


def chosen(installation: Installation) -> tuple[str, ...]:
    """Name what was chosen for an installation; for the install that did not finish, where there is one."""
    if installation.journal.is_file():
        return read_journal(installation).chosen
    used = current(installation)
    return used.chosen if used else ()


def require_current(installation: Installation, app: str) -> Receipt:
    """Read the receipt of the generation in use.

    Args:
        installation: of the app.
        app: its name.

    Raises:
        BusyError: there is none yet.
        NotInstalledError: there is none.
    """
    receipt = current(installation)
    if receipt is None and is_busy(installation):
        raise BusyError(
            f"another patchlock is changing {app} on {installation.profile} at this moment"
            f"{file_lock.holder(installation.lock)}",
            where=str(installation.folder),
            remedy="wait for that to end and run the same command again",
        )
    if receipt is None:
        known = read_journal(installation)
        command = f"`{known.command(installation)}`"
        is_interrupted = installation.journal.is_file()
        begun = f": its install failed: {known.failure}" if known.failure else ": its install was interrupted"
        finish = f"correct the cause, then run {command}" if known.failure else f"finish it with {command}"
        raise NotInstalledError(
            f"{app} is not installed on {installation.profile}"
            + (begun if is_interrupted else installed_profiles.elsewhere(installation)),
            where=str(installation.folder),
            remedy=finish if is_interrupted else f"run {command}",
        )
    return receipt


def switch(installation: Installation, name: str) -> None:
    """Make a complete generation the one in use, in one step."""
    atomic_files.atomic_write(installation.pointer, f"{name}\n")


def partial(installation: Installation) -> Path:
    """Name the folder of a source that is being made or removed."""
    return installation.source.with_name("source.partial")


def clear(installation: Installation) -> None:
    """Remove what killed installs left: generations without a receipt, clones and files that were not finished.

    The caller holds the installation's lock.
    """
    remove_tree(partial(installation))
    folders = tuple(installation.environments.iterdir()) if installation.environments.is_dir() else ()
    for folder in (installation.folder, *folders):
        atomic_files.remove_left(folder)
    for folder in folders:
        if not (folder / RECEIPT).exists():  # one that cannot be read may be of a newer patchlock
            remove_tree(folder)


def sync_to_disk(folder: Path) -> None:
    """Wait until the disk has what was written on a file system; not on Windows, where only an administrator may.

    Raises:
        OSError: it did not take all of it.
    """
    if sys.platform == "linux":
        import ctypes  # `os.sync` would wait for every other disk too

        descriptor = os.open(folder, os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
        finally:
            os.close(descriptor)
    elif sys.platform != "win32":
        os.sync()


def variables(home: Path, profile: str, wanted: Mapping[str, str], *, os: str) -> dict[str, str]:
    """Name the launchers of other apps, which start whatever is in use there, each in its own environment.

    Args:
        home: where apps are installed.
        profile: that of the app that starts them; an installation on the same one is preferred, then by name.
        wanted: variable → app.
        os: `linux`, `macos` or `windows`.

    Returns:
        variable → absolute path of a launcher; without those of apps that are not installed.
    """
    if not wanted:
        return {}
    name = launchers.for_programs(os)
    installed = sorted(installations(home), key=lambda one: (one.profile != profile, one.profile))
    there = [one for one in installed if one.app in wanted.values() and _is_ready(one, name)]
    first = {one.app: one.folder / name for one in reversed(there)}
    return {variable: str(first[app].absolute()) for variable, app in wanted.items() if app in first}


def _is_ready(installation: Installation, launcher: str) -> bool:
    return (installation.folder / launcher).is_file() and current(installation) is not None
