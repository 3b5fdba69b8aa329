"""Lock a proposed app with files that are younger than its commit: all of them, or what a profile needs alone."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Callable, Iterator, Sequence

from packaging.utils import NormalizedName

from patchlock.catalogue.proposals import document
from patchlock.catalogue.proposals.findings import Proposal
from patchlock.locks import relock
from patchlock.locks.resolution_inputs import last_day
from patchlock.model.errors import UnsatisfiableError
from patchlock.operations.lock_trials import LockResult, discard, try_lock
from patchlock.operations.proposal_scratch import LockSettings


def days_after(date: str) -> Iterator[str]:
    """Give cut-offs after a commit's date, nearer ones first: what its authors had in mind is as near as can be."""
    day, now = datetime.datetime.fromisoformat(date), datetime.datetime.now(datetime.UTC)
    for months in (6, 12, 18, 24, 36):
        if (later := day + datetime.timedelta(days=30 * months)) < now:
            yield later.strftime("%Y-%m-%dT%H:%M:%SZ")
    yield relock.now()


def until(proposal: Proposal, trying: LockSettings, day: str) -> LockResult:
    """Lock a pair with files until a day."""
    return try_lock(dataclasses.replace(proposal, as_of=day), trying)


def on_nearest_day(days: Sequence[str], on: Callable[[str], LockResult], trying: LockSettings) -> LockResult:
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
    days = [day for day in days_after(trying.date) if day > proposal.as_of]
    if not days or isinstance((latest := until(proposal, trying, days[-1])).error, UnsatisfiableError):
        return failed  # see `on_nearest_day`
    discard(latest, trying)
    for later in days:
        tried = until(proposal, trying, later)
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
