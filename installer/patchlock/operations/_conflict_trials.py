"""Edit a proposed app for one conflict after the other, and say what was tried in vain."""

from __future__ import annotations

import dataclasses
import time

from patchlock.catalogue.proposals.findings import Proposal
from patchlock.locks import relock
from patchlock.locks.conflicts import explanation
from patchlock.locks.resolution_inputs import last_day
from patchlock.model.errors import UnsatisfiableError
from patchlock.operations import _conflict_edits, _lock_repairs, proposal_scratch
from patchlock.operations.lock_trials import LockResult, try_lock
from patchlock.operations.proposal_scratch import LockSettings

_CONFLICTS = 7
"""Resolutions, one after the other, each but the first with edits for the conflict that the last one has left."""


def explained(made: LockResult, trying: LockSettings, ends: float, *, builds_first: bool = False) -> LockResult:
    """Say why there is no lock, if that is not known yet and there is time."""
    seconds = ends - time.monotonic()
    if not isinstance(made.error, UnsatisfiableError) or made.stuck is not None or seconds <= 0:
        return made
    order, raw = relock.collect_inputs(proposal_scratch.request_for(made.proposal, trying), relock.Kept())
    found = explanation.explain(
        order,
        raw,
        seconds=seconds,
        builds_first=builds_first,
        is_needed=lambda name: trying.importers().is_needed(name),
        tell=trying.tell,
    )
    return dataclasses.replace(made, stuck=(found, order) if found is not None else None)


def with_edits(tried: LockResult, trying: LockSettings, ends: float, *, may_drop: bool) -> LockResult:
    """Edit a proposal for one conflict after the other, until it has a lock, or no edit is known or found in time."""
    for _ in range(_CONFLICTS - 1):
        tried = explained(tried, trying, ends, builds_first=True)
        mended = _edited(tried, trying, may_drop=may_drop)
        if mended is None:
            return tried
        tried = try_lock(mended[0], trying, (*tried.edits, *mended[1]))
    return explained(tried, trying, ends)


def _edited(made: LockResult, trying: LockSettings, *, may_drop: bool) -> tuple[Proposal, list[str]] | None:
    """Write the smallest edits that resolve a conflict into the proposal; None where none is known."""
    if made.stuck is None:
        return None
    found, order = made.stuck
    known = {name for table in made.proposal.tables for name in _lock_repairs.built(table)}
    if builds := {name: version for name, version in found.builds if name not in known}:
        table, says = _lock_repairs.build_tables(builds, {}, trying.platform.name, order.as_of)
        return dataclasses.replace(made.proposal, tables=(*made.proposal.tables, table)), [says]
    return _conflict_edits.mended(made.proposal, found, trying, may_drop=may_drop)


def in_vain(attempt: LockResult, made: LockResult) -> str:
    """Say what has been tried for a pair that has no lock with it either, and what stood in the way, a clause."""
    until = f"files until {last_day(attempt.proposal.as_of)}" if attempt.proposal.as_of else "files of the commit's day"
    edits = "; ".join(attempt.edits[len(made.edits) :]) or "no edits"
    kept = attempt.stuck[0].kept if attempt.stuck is not None else ()
    needs = f" ({', '.join(kept)} could go, but the app imports it)" if kept else ""
    why = " ".join(attempt.error.what.split()) if attempt.error is not None else ""
    is_complete = not isinstance(attempt.error, UnsatisfiableError)
    if attempt.stuck is not None:
        why, is_complete = explanation.clause_with_cause(attempt.stuck[0].conflicts[0]), attempt.stuck[0].is_complete
    more = "" if is_complete else " (the time was over: --explain SECONDS gives more)"
    return f"{until}, {edits}: {why}{needs}{more}"
