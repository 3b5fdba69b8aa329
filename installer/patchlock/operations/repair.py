"""Mend an installation: a new generation from the lock of the one in use, where what is damaged is unpacked again."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import NormalizedName

from patchlock.environments import fill, generations, overlays, venv
from patchlock.environments.builds import in_tree
from patchlock.environments.generations import CheckRecord, Receipt
from patchlock.environments.inspection import names
from patchlock.locks.lock_request import Request
from patchlock.model import lockfile
from patchlock.model.app import rules_of
from patchlock.model.errors import VerifyError
from patchlock.model.lockfile import Lock
from patchlock.model.progress import Progress
from patchlock.operations import _session, install, lifecycle, readiness
from patchlock.patches import outcomes
from patchlock.verify import checks, verification
from patchlock.verify.checks import CheckResult
from patchlock.verify.verification import VerificationResult
from patchlock.worktree import clone

_ROUNDS = 2
"""Environments built at most: the second where uv's cache turns out to have damage that the old one did not have."""


@dataclass(frozen=True, kw_only=True)
class RepairResult:
    """What a repair did."""

    receipt: Receipt | None
    """Of the generation that is in use now; None where nothing was wrong."""
    mended: tuple[str, ...]
    """What was wrong, a sentence each."""
    notes: tuple[str, ...]
    """What was left alone, and why."""


def repair(request: Request, progress: Progress, tell: Callable[[int, int], None]) -> RepairResult:
    """Look at every byte of an installation, and mend what is not as it was installed.

    The generation in use is never written to: a new one is made beside it from the same lock, read back byte by byte,
    checked, and only then switched to. What is damaged is fetched by its hash and unpacked anew, because uv's cache may
    share the damaged file; the rest comes from there. The working tree is not touched: what is edited in it is the
    user's.

    Args:
        request: the pair.
        progress: told what goes on.
        tell: told bytes read, and bytes in all.

    Raises:
        NotInstalledError: there is nothing to mend.
        LockFormatError: the lock that it was installed from had been changed after it was made; nothing was touched.
        VerifyError: it could not be mended; the generation in use is as it was.
        NetworkError: a damaged distribution has to be fetched, and the index does not answer.
    """
    lifecycle.recover(request, progress)
    before = generations.require_current(request.installation, request.app.name)
    folder = generations.generation(request.installation, before.id)
    path = verification.lock_file(folder, before, request.lock_path)
    lock = lockfile.parse(path.read_text(encoding="utf-8"), str(path))
    command = f"patchlock install {request.app.name} --profile {request.profile.name} --reinstall"
    if not before.edited_lock:
        lockfile.require_sealed(lock, str(path), f"run `{command}`, which takes the lock of the catalogue")
    with _session.hold_installation(request, progress) as held:
        with progress.stage("check"):
            seen = _look(request, before, lock, before.id, tell)
            progress.say(verification.counted(seen.results))
        if all(result.passed for result in seen.results):
            return RepairResult(receipt=None, mended=(), notes=_notes(request, before, seen))
        receipt = _rebuild(request, before, lock, path, seen, progress, tell, held)
        clone.protect_generation(request.installation.source, receipt.id, receipt.applied)
        generations.switch(request.installation, receipt.id)
    return RepairResult(receipt=receipt, mended=_sentences(seen), notes=_notes(request, before, seen, mended=True))


def _look(
    request: Request, receipt: Receipt, lock: Lock, generation: str, tell: Callable[[int, int], None]
) -> VerificationResult:
    folder = generations.generation(request.installation, generation)
    origin = verification.Origin(
        platform=request.platform, cache=request.cache, exceptions=rules_of(request).exceptions
    )
    return verification.deep(folder, receipt, lock, origin, tell)


def _rebuild(
    request: Request,
    before: Receipt,
    lock: Lock,
    path: Path,
    seen: VerificationResult,
    progress: Progress,
    tell: Callable[[int, int], None],
    held: int,
) -> Receipt:
    old = generations.generation(request.installation, before.id)
    name = install.next_name(request.installation, before.id.partition("-")[0])
    folder = generations.generation(request.installation, name)
    kept = old if path.parent == old else None
    python = readiness.require(request, lock, ignore_needs=True).python
    afresh = _suspects(seen, lock)
    for _ in range(_ROUNDS):
        with progress.stage("environment"):
            venv.create(folder, python, lock=held)
            fill.fill(request, lock, folder, progress, held, kept=kept, afresh=afresh)
            overlays.install_overlays(request, folder, progress.say, progress.note)
            in_tree.build_extensions(request, lock, folder, before.applied, tell=progress.say, held=held)
            progress.say(f"{len(lock.packages)} packages, {len(afresh)} of them unpacked again")
        receipt = dataclasses.replace(before, id=name, python=venv.python_version(folder))
        with progress.stage("check"):
            again = _look(request, receipt, lock, name, tell)
            progress.say(verification.counted(again.results))
        more = _suspects(again, lock) - afresh
        if not more:
            break
        afresh |= more
    checks.require_passed(again.results, request.app.name)
    return _prove(request, lock, receipt, progress)


def _suspects(seen: VerificationResult, lock: Lock) -> frozenset[NormalizedName]:
    return names(seen.findings) & {package.name for package in lock.packages}


def _prove(request: Request, lock: Lock, receipt: Receipt, progress: Progress) -> Receipt:
    """Run the checks of the new environment, and write its receipt."""
    folder = generations.generation(request.installation, receipt.id)
    told = {check.id for check in receipt.checks}
    executed = [check for p in request.app.patches for check in outcomes.smoke_checks_of(p) if check.id in told]
    with progress.stage("verify"):
        proved = install.prove(request, lock, folder, progress, executed, is_short=True)
        _require(proved.results, request)
        progress.say(f"{len(proved.results)} checks passed{proved.caveat}")
    made = generations.receipts(request.installation)
    receipt = dataclasses.replace(
        receipt,
        made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        sequence=1 + max((receipt.sequence for receipt in made), default=0),
        checks=tuple(CheckRecord(id=r.id, level=r.level, detail=r.detail) for r in proved.results),
    )
    generations.write_receipt(folder, receipt)
    return receipt


def _require(results: tuple[CheckResult, ...], request: Request) -> None:
    try:
        checks.require_passed(results, request.app.name)
    except VerifyError as error:
        error.remedy = f"every package is as locked now, so look at your edits in {request.installation.source}"
        raise


def _sentences(seen: VerificationResult) -> tuple[str, ...]:
    others = tuple(f"{r.id}: {r.detail}" for r in seen.results if not r.passed and r.id != "files")
    return (*others, *map(str, seen.findings))


def _notes(request: Request, before: Receipt, seen: VerificationResult, *, mended: bool = False) -> tuple[str, ...]:
    installation = request.installation
    notes = [*seen.notes, *verification.edits(installation, verification.changed(installation))]
    if mended and any("of no distribution" in note for note in seen.notes):
        old = generations.generation(installation, before.id)
        notes.append(f"these files stay in the old version until `patchlock cache clean` removes it: {old}")
    return tuple(notes)


def data(done: RepairResult) -> dict[str, object]:
    """Give what `install --repair --json` tells."""
    return {
        "changed": done.receipt is not None,
        "generation": done.receipt.id if done.receipt else "",
        "mended": list(done.mended),
        "notes": list(done.notes),
    }
