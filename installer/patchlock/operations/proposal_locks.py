"""Lock a proposed app, and mend what stops it: edits for conflicts, and files that are younger than its commit."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import re
import time
from collections.abc import Callable, Iterator, Sequence

from packaging.utils import NormalizedName

from patchlock.catalogue.proposals import document
from patchlock.catalogue.proposals.findings import Proposal
from patchlock.locks import relock
from patchlock.locks.conflicts import explanation
from patchlock.locks.resolution_inputs import last_day
from patchlock.model.errors import PolicyError, UnsatisfiableError
from patchlock.operations import _conflict_edits, _lock_repairs, _sdist_builds, proposal_scratch
from patchlock.operations.lock_trials import LockResult, discard, try_lock
from patchlock.operations.proposal_scratch import LockSettings

_CONFLICTS = 7
"""Resolutions, one after the other, each but the first with edits for the conflict that the last one has left."""


def lock_proposal(proposal: Proposal, trying: LockSettings) -> LockResult:
    """Lock a pair; what an sdist says of itself is added, and with `solve` what resolves a conflict.

    A build, a companion of torch's and files of a later day come before another version, and an app that goes without
    what it requires is the last resort. Where the rules only lack what nobody has recorded, a remark says so.
    """
    made = _locked(proposal, trying)
    if not made.unknown:
        return made
    told = with_unknown(made.proposal, trying, made.unknown)
    proposal_scratch.write(told, trying.catalogue.root)
    return dataclasses.replace(made, proposal=told)


def with_unknown(proposal: Proposal, trying: LockSettings, why: str) -> Proposal:
    """Note that a pair has no lock yet, as it takes what nobody has recorded."""
    remark = f"{trying.profile.name} on {trying.platform.name} has no lock yet: {why}"
    return dataclasses.replace(proposal, remarks=(*proposal.remarks, remark))


def _locked(proposal: Proposal, trying: LockSettings) -> LockResult:
    made = try_lock(proposal, trying)
    if made.error is None:
        return _sdist_builds.as_new_as_pips(made, trying) if trying.solve else made
    ends = time.monotonic() + trying.seconds
    if not trying.solve or not isinstance(made.error, UnsatisfiableError | PolicyError):
        return explained(made, trying, ends)
    days = (relock.now(),) if proposal.as_of else tuple(_days_after(trying.date))

    # From the start: what files of another day needed would stay in it without effect.
    on = functools.partial(_until, proposal, trying)
    latest = made if proposal.as_of else _on_nearest_day(days, on, trying)
    if latest.error is None:
        edit = f"locks take files until {last_day(latest.proposal.as_of)}: those of the commit's day do not fit"
        return dataclasses.replace(latest, edits=(*latest.edits, edit))
    ends = time.monotonic() + trying.seconds
    made = explained(made, trying, ends)
    attempts: list[LockResult] = []

    def edited(start: LockResult, *, may_drop: bool = False) -> LockResult:
        attempts.append(with_edits(start, trying, ends, may_drop=may_drop))
        return attempts[-1]

    tried = edited(made)
    if tried.error is not None:
        tried = _on_nearest_day(days, lambda day: edited(latest if latest.proposal.as_of == day else on(day)), trying)
    if tried.error is not None and tried.stuck is not None:
        tried = edited(tried, may_drop=True)
    if tried.error is None:
        return _sdist_builds.as_new_as_pips(tried, trying)
    proposal_scratch.write(made.proposal, trying.catalogue.root)
    told = (_in_vain(one, made) for one in attempts)
    return dataclasses.replace(made, attempts=tuple(dict.fromkeys(told)))


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
        here = {name: builds.pop(name) for name in found.only_here & builds.keys()}
        table, says = _lock_repairs.build_tables(builds, here, trying.platform.name, order.as_of)
        return dataclasses.replace(made.proposal, tables=(*made.proposal.tables, table)), [says]
    return _conflict_edits.mended(made.proposal, found, trying, may_drop=may_drop)


def _in_vain(attempt: LockResult, made: LockResult) -> str:
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


def _days_after(date: str) -> Iterator[str]:
    """Give cut-offs after a commit's date, nearer ones first: what its authors had in mind is as near as can be."""
    day, now = datetime.datetime.fromisoformat(date), datetime.datetime.now(datetime.UTC)
    for months in (6, 12, 18, 24, 36):
        if (later := day + datetime.timedelta(days=30 * months)) < now:
            yield later.strftime("%Y-%m-%dT%H:%M:%SZ")
    yield relock.now()


def _until(proposal: Proposal, trying: LockSettings, day: str) -> LockResult:
    """Lock a pair with files until a day."""
    return try_lock(dataclasses.replace(proposal, as_of=day), trying)


def _on_nearest_day(days: Sequence[str], on: Callable[[str], LockResult], trying: LockSettings) -> LockResult:
    """Lock with files until the nearest of some days; until the last, that is with every file, where none has a lock.

    The last day goes first: what has no solution with every file has none with fewer of them.
    """
    *nearer, last = days
    latest = on(last)
    if isinstance(latest.error, UnsatisfiableError) or not nearer:
        return latest
    discard(latest, trying)
    for day in nearer:
        if (tried := on(day)).error is None:
            return tried
    return try_lock(latest.proposal, trying, latest.edits) if latest.error is None else latest


def with_newer(failed: LockResult, trying: LockSettings) -> LockResult:
    """Let what a profile needs be younger than the app: the oldest torch for a card may be, and what it requires.

    Only what stands in the way becomes younger, for this profile alone, so that the locks of others stay as they are.
    Gives what has failed where no later day helps.
    """
    proposal = failed.proposal
    days = [day for day in _days_after(trying.date) if day > proposal.as_of]
    if not days or isinstance((latest := _until(proposal, trying, days[-1])).error, UnsatisfiableError):
        return failed  # see `_on_nearest_day`
    discard(latest, trying)
    for later in days:
        tried = _until(proposal, trying, later)
        if tried.lock is None:
            continue
        discard(tried, trying)
        names = [package.name for package in tried.lock.packages]
        younger: list[NormalizedName] = []
        made = failed
        while made.error is not None and len(younger) < len(names):
            words = "\n".join(map(str, (made.error.what, *made.error.evidence)))
            left = [name for name in names if name not in younger]
            younger += [name for name in left if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", words)] or left
            tables = tuple(_newer(proposal, name, later, trying, sorted(younger)) for name in sorted(younger))
            wanted = dataclasses.replace(proposal, tables=(*proposal.tables, *tables))
            made = try_lock(wanted, trying, [*failed.edits, f"[[newer]] of {', '.join(sorted(younger))}"])
        if made.error is None:
            return made
    return failed


def _newer(proposal: Proposal, name: NormalizedName, until: str, trying: LockSettings, names: Sequence[str]) -> str:
    day = last_day(proposal.as_of) if proposal.as_of else "the commit's day"
    return document.rule_table(
        "newer",
        name=name,
        until=until,
        profiles=(trying.profile.name,),
        why=f"{trying.profile.name} has no lock on {trying.platform.name} with the files of {day}, and has one with "
        f"later files of {', '.join(names)}",
        source=proposal.link(proposal.requirements.path),
    )
