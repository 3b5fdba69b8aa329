"""Verify a generation at three depths: by sizes, by running it, by every byte; says what is wrong and who did it."""

from __future__ import annotations

import dataclasses
import datetime
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from packaging.utils import NormalizedName

from patchlock.core import atomic_files
from patchlock.environments import damage, failed_verify, file_owners, gate, inspection, installed, ledger, venv
from patchlock.environments.damage import DamageFinding
from patchlock.environments.failed_verify import FailedVerify
from patchlock.environments.generations import Receipt
from patchlock.environments.inspection import Contents, Deviation
from patchlock.environments.ledger import InstalledFile, Ledger
from patchlock.model import lockfile
from patchlock.model.errors import LockFormatError
from patchlock.model.installation import Installation
from patchlock.model.lockfile import Lock
from patchlock.verify import checks
from patchlock.verify.checks import CheckResult

if TYPE_CHECKING:
    from patchlock.model.fits import Platform
    from patchlock.model.lock_rules import PolicyException

ONE_OWNER = "one-owner"
"""Id of the check that no file was written by two distributions: of the lock, and not of what became of it."""
_OF_DISK = frozenset({"environment", "files", ONE_OWNER})
"""Ids of the checks that look for what became of an environment since it was filled."""
_SHOWN = 3
"""Findings in one line for a person; --json has all."""


@dataclass(frozen=True, kw_only=True)
class VerificationResult:
    """What was found without running anything of the environment."""

    results: tuple[CheckResult, ...]
    findings: tuple[DamageFinding, ...]
    """Files and distributions that are not as they were installed."""
    notes: tuple[str, ...]
    """What is no damage, and worth knowing."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the wheels of a generation can be asked."""

    platform: Platform
    cache: Path
    exceptions: tuple[PolicyException, ...] = ()
    """Of the app and the profile, from rules of locks."""


def counted(results: Collection[CheckResult], caveat: str = "") -> str:
    """Count all checks, and those that an install does not make, which has just laid the files.

    Args:
        results: of all checks.
        caveat: about the proof, which follows the number.
    """
    disk = sum(one.id in _OF_DISK for one in results)
    told = f"; {disk} of them look at the files on disk" if disk else ""
    return f"{sum(one.passed for one in results)} of {len(results)} checks passed{caveat}{told}"


def quick(folder: Path, receipt: Receipt, lock: Lock | None) -> VerificationResult:
    """Look at everything that costs no reading of files: interpreter, gate, distributions, presence and sizes.

    Args:
        folder: the generation.
        receipt: its receipt.
        lock: what it was made from; None where that was changed, so that distributions cannot be compared with it.
    """
    book, contents = ledger.read(folder), inspection.read(folder)
    return _seen(folder, receipt, lock, book, contents, inspection.find_size_deviations(contents), read=False)


def quick_without_catalogue(folder: Path, receipt: Receipt) -> VerificationResult:
    """Do as `quick` with the lock that the generation keeps, so that nothing of the catalogue is read."""
    path = folder / venv.LOCK
    lock = lockfile.parse(path.read_text(encoding="utf-8"), str(path)) if is_lock_unchanged(folder, receipt) else None
    return quick(folder, receipt, lock)


def deep(
    folder: Path, receipt: Receipt, lock: Lock, origin: Origin, tell: Callable[[int, int], None]
) -> VerificationResult:
    """Read every file of every distribution, and compare it with its RECORD, or with its wheel where these disagree.

    Where a RECORD turns out to be wrong, the ledger learns that.

    Args:
        folder: the generation.
        receipt: its receipt.
        lock: what it was made from.
        origin: where its wheels can be asked.
        tell: told bytes read and bytes in all.
    """
    book = ledger.read(folder)
    contents = inspection.completed(inspection.read(folder), book)
    deviations = inspection.find_content_deviations(contents, tell)
    unknown = [deviation for deviation in deviations if not inspection.is_as_installed(deviation, book)]
    proved, why = _ask(folder, lock, origin, unknown)
    if proved and book is not None:
        laid = {d.path: InstalledFile(size=d.size, sha256=d.sha256) for d in unknown if d.path in proved}
        book = dataclasses.replace(book, files={**book.files, **laid})
        ledger.write(folder, book)
    seen = _seen(folder, receipt, lock, book, contents, [d for d in deviations if d.path not in proved], read=True)
    upstream = [d for d in deviations if d.path in proved or inspection.is_as_installed(d, book)]
    notes = [
        f"the RECORD of {d.distribution.name} is wrong about {d.path}: it is as "
        + ("its wheel has it" if d.sha256 else "the install laid it down")
        for d in upstream
    ]
    added = sorted(set(inspection.unowned_files(contents)) - set(book.unlisted if book is not None else ()))
    if added:
        notes.append(f"{len(added)} files in site-packages are of no distribution: yours, or an app's: {_few(added)}")
    return dataclasses.replace(
        seen,
        results=(*seen.results, _owners(contents, lock, origin)),
        notes=(*dict.fromkeys((*notes, *why, *seen.notes)),),
    )


def _owners(contents: Contents, lock: Lock, origin: Origin) -> CheckResult:
    """Look for files that two distributions have written."""
    found = file_owners.objections(contents, lock, origin.exceptions)
    return CheckResult(
        id=ONE_OWNER,
        level="present",
        passed=not found,
        detail="; ".join(found) or "no package has overwritten a file of another one",
    )


def _ask(
    folder: Path, lock: Lock, origin: Origin, unknown: Collection[Deviation]
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Ask the wheels: which files are as they have them, and why some could not be asked."""
    if not unknown:
        return frozenset(), ()
    from patchlock.environments import wheel_members

    proved: set[str] = set()
    why: list[str] = []
    locked = {package.name: package.version for package in lock.packages}
    by_name: dict[NormalizedName, list[Deviation]] = {}
    for deviation in unknown:
        own = deviation.distribution
        if deviation.sha256 is not None and locked.get(own.name) == own.version:
            by_name.setdefault(own.name, []).append(deviation)
    for name, deviations in by_name.items():
        paths = [deviation.path for deviation in deviations]
        answer = wheel_members.members(folder, lock, origin.platform, name, paths, cache=origin.cache)
        if isinstance(answer, Mapping):
            proved |= {d.path for d in deviations if answer.get(d.path) == d.sha256}
        else:
            why.append(f"whether the RECORD of {name} was wrong from the start is not known: {answer.why}")
    return frozenset(proved), tuple(why)


def _seen(
    folder: Path,
    receipt: Receipt,
    lock: Lock | None,
    book: Ledger | None,
    contents: Contents,
    deviations: Collection[Deviation],
    *,
    read: bool,
) -> VerificationResult:
    laid = book.laid if book is not None else _made(receipt)
    wrong = [deviation for deviation in deviations if not inspection.is_as_installed(deviation, book)]
    found = (*inspection.replaced(contents, book), *inspection.findings(contents, wrong, laid))
    count = sum(len(rows) for _, rows in contents.rows.values())
    whole = f"{count} files of {len(contents.rows)} packages, {'every byte' if read else 'by their sizes'}"
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    files = CheckResult(
        id="files",
        level="present",
        passed=not found,
        detail="; ".join(map(str, found[:_SHOWN])) + more if found else whole,
    )
    notes = [] if book is not None else ["this version has no ledger: it was installed by an older patchlock"]
    if receipt.edited_lock:
        notes.insert(0, f"the lock that it was installed from {lockfile.EDITED}")
    return VerificationResult(
        results=(
            _environment(folder, receipt),
            *([_packages(folder, lock, contents.packages, laid)] if lock is not None else []),
            files,
        ),
        findings=found,
        notes=tuple(notes),
    )


def keep(folder: Path, depth: str, results: Iterable[CheckResult]) -> None:
    """Keep in a generation at which checks a `verify` failed, for `status` and `doctor`; until one passes."""
    failed = {result.id: result.detail for result in results if not result.passed}
    made = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    failed_verify.keep(folder, FailedVerify(made=made, depth=depth, failed=failed))


def lock_file(folder: Path, receipt: Receipt, catalogues: Path) -> Path:
    """Find the lock that a generation was made from: the one kept in it, or the catalogue's if that is the same.

    Raises:
        LockFormatError: both were changed since.
    """
    found = next(
        (path for path in (folder / venv.LOCK, catalogues) if atomic_files.has_sha256(path, receipt.lock)), None
    )
    if found is None:
        raise LockFormatError(
            "it is not the lock that this version was installed from",
            where=str(folder / venv.LOCK),
            remedy=f"run `patchlock install {receipt.app} --profile {receipt.profile} --reinstall`",
        )
    return found


def is_lock_unchanged(folder: Path, receipt: Receipt) -> bool:
    """Say whether the lock in a generation is the one that it was made from."""
    return atomic_files.has_sha256(folder / venv.LOCK, receipt.lock)


def changed(installation: Installation) -> tuple[PurePosixPath, ...]:
    """List the app's files that are not as they were installed, or are gone; they are the user's, and left alone."""
    from patchlock.worktree import clone

    return clone.changed_files(installation.source) if (installation.source / ".git").is_dir() else ()


def edits(installation: Installation, files: Iterable[PurePosixPath]) -> list[str]:
    """Say which of the app's files were edited or removed since the install, and what brings them back.

    Args:
        installation: where they are.
        files: what `changed` gave.
    """
    pair = f"{installation.app} --profile {installation.profile}"
    told, gone = [], []
    for file in files:
        if os.path.lexists(installation.source / file):
            told.append(f"{file} is not as it was installed: it is left alone as an edit of yours")
        else:
            gone.append(str(file))
    back = f"bring back what is gone: `patchlock install {pair} --reinstall`"
    return [*told, *([f"gone from the app's folder: {', '.join(gone)}; {back}"] if gone else [])]


def _packages(folder: Path, lock: Lock, packages: Path, laid: float) -> CheckResult:
    """Compare distributions with the lock; where they differ, name the package that changed them."""
    result = checks.packages(lock, folder)
    if result.passed:
        return result
    newcomers = tuple(installed.newer_distributions(packages, laid))
    there = {d.name: d.version for d in installed.distributions(packages)}
    locked = {package.name: package.version for package in lock.packages}
    said = [damage.blame(n, version, newcomers) for n, version in locked.items() if there.get(n, version) != version]
    if not said:
        said = [damage.blame(name, None, newcomers) for name in there if name not in locked]
    return dataclasses.replace(result, detail="; ".join([result.detail, *dict.fromkeys(filter(None, said))]))


def _environment(folder: Path, receipt: Receipt) -> CheckResult:
    """Look at what makes the folder an environment of ours: the lock as installed, the interpreter, the gate."""
    wrong = [f"the gate's {path} is missing" for path in gate.missing(folder)]
    if not is_lock_unchanged(folder, receipt):
        wrong.append("lock.txt is not the lock that it was made from")
    python = venv.interpreter(folder)
    if not python.exists():
        target = python.readlink() if python.is_symlink() else python
        wrong.append(f"its interpreter is gone: {target} was removed or upgraded")
    elif not (folder / "pyvenv.cfg").is_file() or venv.python_version(folder) != receipt.python:
        wrong.append(f"pyvenv.cfg is not that of Python {receipt.python}")
    detail = "; ".join(wrong) or f"Python {receipt.python}, in environments/{receipt.id}"
    return CheckResult(id="environment", level="present", passed=not wrong, detail=detail)


def _made(receipt: Receipt) -> float:
    return datetime.datetime.strptime(receipt.made, "%Y-%m-%dT%H:%M:%S%z").timestamp()


def _few(paths: Collection[str]) -> str:
    first = sorted(paths)[:_SHOWN]
    return ", ".join(first) + (", …" if len(paths) > _SHOWN else "")
