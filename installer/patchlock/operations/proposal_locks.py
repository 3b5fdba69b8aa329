"""Lock a proposed app for the first pair, and mend what stops it."""

from __future__ import annotations

import dataclasses
import functools
import time

from patchlock.catalogue.proposals.findings import Proposal
from patchlock.locks import relock
from patchlock.locks.resolution_inputs import last_day
from patchlock.model.errors import PolicyError, UnsatisfiableError
from patchlock.operations import _conflict_trials, _later_files, _sdist_builds, proposal_scratch
from patchlock.operations.lock_trials import LockResult, try_lock
from patchlock.operations.proposal_scratch import LockSettings


def lock_proposal(proposal: Proposal, trying: LockSettings) -> LockResult:
    """Lock a pair; what an sdist says of itself is added, and with `solve` what resolves a conflict.

    A build, a companion of torch's and files of a later day come before another version, and an app that goes without
    what it requires is the last resort.
    """
    made = try_lock(proposal, trying)
    if made.error is None:
        return _sdist_builds.as_new_as_pips(made, trying) if trying.solve else made
    ends = time.monotonic() + trying.seconds
    if not trying.solve or not isinstance(made.error, UnsatisfiableError | PolicyError):
        return _conflict_trials.explained(made, trying, ends)
    days = (relock.now(),) if proposal.as_of else tuple(_later_files.days_after(trying.date))

    # From the start: what files of another day needed would stay in it without effect.
    on = functools.partial(_later_files.until, proposal, trying)
    latest = made if proposal.as_of else _later_files.on_nearest_day(days, on, trying)
    if latest.error is None:
        edit = f"locks take files until {last_day(latest.proposal.as_of)}: those of the commit's day do not fit"
        return dataclasses.replace(latest, edits=(*latest.edits, edit))
    ends = time.monotonic() + trying.seconds
    made = _conflict_trials.explained(made, trying, ends)
    attempts: list[LockResult] = []

    def edited(start: LockResult, *, may_drop: bool = False) -> LockResult:
        attempts.append(_conflict_trials.with_edits(start, trying, ends, may_drop=may_drop))
        return attempts[-1]

    tried = edited(made)
    if tried.error is not None:
        tried = _later_files.on_nearest_day(
            days, lambda day: edited(latest if latest.proposal.as_of == day else on(day)), trying
        )
    if tried.error is not None and tried.stuck is not None:
        tried = edited(tried, may_drop=True)
    if tried.error is None:
        return tried
    proposal_scratch.write(made.proposal, trying.catalogue.root)
    told = (_conflict_trials.in_vain(one, made) for one in attempts)
    return dataclasses.replace(made, attempts=tuple(dict.fromkeys(told)))
