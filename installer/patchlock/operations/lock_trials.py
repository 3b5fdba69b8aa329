"""Lock one pair of a proposed app in the scratch catalogue, and add to the proposal what costs no version."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from patchlock.catalogue.proposals import module_names
from patchlock.catalogue.proposals.findings import Proposal
from patchlock.locks import lock_request, relock
from patchlock.locks.conflicts.explanation import Explanation
from patchlock.locks.lock_request import Request
from patchlock.locks.resolution_inputs import ResolutionInputs, last_day
from patchlock.model.backends import BACK_ENDS
from patchlock.model.errors import MetadataMissingError, PatchlockError, PolicyError, UnsatisfiableError
from patchlock.model.lockfile import Lock
from patchlock.model.patch import Outcome
from patchlock.operations import _lock_repairs, missing_imports, proposal_scratch
from patchlock.operations.missing_imports import KnownModules
from patchlock.operations.proposal_scratch import LockSettings
from patchlock.patches.import_graph import ReachedImport

_ROUNDS = 24


@dataclass(frozen=True, kw_only=True)
class LockResult:
    """What became of the lock of one pair."""

    proposal: Proposal
    """With what was written into it."""
    pair: str
    edits: tuple[str, ...]
    """What was added to the proposal, a clause each."""
    lock: Lock | None = None
    error: PatchlockError | None = None
    """Why there is no lock; None where there is one."""
    stuck: tuple[Explanation, ResolutionInputs] | None = None
    attempts: tuple[str, ...] = ()
    """What `solve` has tried in vain, and what stood in the way, a clause each; none of it is in the proposal."""

    @property
    def packages(self) -> int:
        """Count the packages of the lock; 0 where there is none."""
        return len(self.lock.packages) if self.lock is not None else 0

    @property
    def unknown(self) -> str:
        """Say what nobody has recorded, where only that keeps it from a lock, a clause; "" where it is not so."""
        if not isinstance(self.error, UnsatisfiableError | PolicyError) or not self.error.is_unknown:
            return ""
        return "; ".join(filter(None, (self.error.what, self.error.remedy)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say what is to be known of the lock, as `lock` prints it."""
        return self.lock.notices if self.lock is not None else ()


def try_lock(proposal: Proposal, trying: LockSettings, edits: Sequence[str] = ()) -> LockResult:
    """Lock a pair with what costs no version: metadata of sdists, builds of what has no wheel, companions of torch.

    Args:
        proposal: of the app.
        trying: the pair.
        edits: what was added to it before, a clause each.
    """
    pair = trying.pair(proposal)
    until = f" with files until {last_day(proposal.as_of)}" if proposal.as_of else ""
    for _ in range(_ROUNDS):
        request = proposal_scratch.request_for(proposal, trying)
        trying.tell(f"resolving {pair}{until}")
        try:
            lock = relock.resolve(request, relock.Kept())
        except PatchlockError as error:
            more = _without_cost(proposal, request, trying, error)
            if more is None:
                return LockResult(proposal=proposal, pair=pair, edits=tuple(edits), error=error)
            proposal, edits = more[0], (*edits, *more[1])
        else:
            relock.write(request, lock)
            return LockResult(proposal=proposal, pair=pair, edits=tuple(edits), lock=lock)
    failed = UnsatisfiableError(f"{_ROUNDS} rounds of edits were not enough")
    return LockResult(proposal=proposal, pair=pair, edits=tuple(edits), error=failed)


def _without_cost(
    proposal: Proposal, request: Request, trying: LockSettings, error: PatchlockError
) -> tuple[Proposal, tuple[str, ...]] | None:
    """Add what an error asks for; None where that is not known or would cost a version."""
    match error:
        case MetadataMissingError():
            table = "\n".join(error.evidence)
            todo = sum("TODO" in line for line in table.splitlines())
            doubts = (f"{todo} [[metadata]] tables below have a TODO",) if todo else ()
            remarks = tuple(dict.fromkeys((*proposal.remarks, *doubts)))
            added = dataclasses.replace(proposal, tables=(*proposal.tables, table), remarks=remarks)
            return added, tuple(f"[[metadata]] of {sdist}" for sdist in error.sdists)
        case UnsatisfiableError() if trying.solve:
            more = _lock_repairs.builds(proposal, request, error)
        case PolicyError() if trying.solve:
            more = _lock_repairs.companions(proposal, trying, error)
        case _:
            more = None
    if more is None:
        return None
    return dataclasses.replace(proposal, tables=_lock_repairs.added(proposal.tables, more[0])), (more[1],)


def renew(proposal: Proposal, trying: LockSettings) -> Lock:
    """Write a proposal, and lock a pair that could be locked before: a lock names the app's file that it is made from.

    Raises:
        PatchlockError: it cannot be locked any more.
    """
    request = proposal_scratch.request_for(proposal, trying)
    lock = relock.resolve(request, relock.Kept())
    relock.write(request, lock)
    return lock


def discard(made: LockResult, trying: LockSettings) -> None:
    """Remove the lock of a trial, and what its builds require: the next lock of that pair would take its cut-off."""
    request = proposal_scratch.request_for(made.proposal, trying)
    for path in (request.lock_path, request.build_path):
        path.unlink(missing_ok=True)


def outcomes(proposal: Proposal, trying: LockSettings) -> tuple[Outcome, ...]:
    """Apply the patches of a proposal that has a lock, as an install does, and say what becomes of each."""
    return lock_request.read_patched(proposal_scratch.request_for(proposal, trying)).patched.outcomes


def imports_missing(
    proposal: Proposal, lock: Lock, trying: LockSettings, command: Sequence[str] = (), python_path: str = ""
) -> tuple[ReachedImport, ...]:
    """Name what the program imports at its start or for the profile's device, and nothing in a lock brings.

    The lines are upstream's, whatever patches write above them.

    Args:
        proposal: of the app.
        lock: its lock.
        trying: the pair.
        command: where the program has another one than the proposal's.
        python_path: of that command.
    """
    request = proposal_scratch.request_for(proposal, trying)
    upstream = lock_request.read_patched(request)
    files = missing_imports.read_files(upstream)
    if files is None:
        return ()
    packages = KnownModules(lock.packages, trying.cache, module_names.brings)
    launch = request.app.launch
    path = python_path if command else launch.environment.get("PYTHONPATH", "")
    at_start = missing_imports.of_program(files, packages, command or launch.command, path)
    kind = BACK_ENDS[trying.profile.back_end].device
    later = missing_imports.on_device(kind, files, packages, command or launch.command, path)
    known = {one.module for one in at_start}
    every = (*at_start, *(one for one in later if one.module not in known))
    before = {change.path: change.before for change in upstream.patched.changes if change.before is not None}
    return tuple(
        dataclasses.replace(one, line=_line_before(one.line, before[one.path], files[one.path]))
        if one.path in before
        else one
        for one in every
    )


def _line_before(line: int, before: bytes, after: bytes) -> int:
    """Give the line that a line of a patched file has in the file before, or the one above what a patch has written."""
    old, new = before.splitlines(), after.splitlines()
    for tag, first, end, start, stop in difflib.SequenceMatcher(None, new, old, autojunk=False).get_opcodes():
        if first < line <= end:
            return start + line - first if tag == "equal" else max(1, min(start + line - first, stop))
    return line
