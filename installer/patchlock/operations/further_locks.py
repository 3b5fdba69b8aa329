"""Lock a proposed app for further profiles, and say why where none can be made."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from patchlock.catalogue.proposals import document
from patchlock.catalogue.proposals.findings import Proposal
from patchlock.distributions import index_client
from patchlock.locks import relock
from patchlock.locks.conflicts import explanation
from patchlock.locks.conflicts.explanation import Conflict
from patchlock.locks.wheel_choice import newer_glibc
from patchlock.model.errors import PatchlockError, PolicyError, UnsatisfiableError
from patchlock.model.platforms import GLIBC_FLOOR
from patchlock.model.profile import Profile
from patchlock.operations import lock_trials, proposal_locks, proposal_scratch
from patchlock.operations.lock_trials import LockResult, try_lock
from patchlock.operations.proposal_scratch import LockSettings
from patchlock.patches import import_graph

_REASON_SECONDS = 20
"""For the reason of one further pair; `lock --explain` takes longer."""


@dataclass(frozen=True, kw_only=True)
class OtherLock:
    """What became of the lock of one more pair."""

    profile: str
    platform: str
    packages: int = 0
    """0 where there is no lock."""
    why: str = ""
    """Why there is none, a clause; "" where there is one."""
    is_refused: bool = False
    """The reason stands in the proposal, as a [[refused]]; otherwise the lock can be had later as it is."""
    warnings: tuple[str, ...] = ()
    """What is to be known of the lock, as `lock` prints it."""
    edits: tuple[str, ...] = ()
    """What was added to the proposal for it, a clause each."""
    missing: str = ""
    """What the program imports at its start and nothing in the lock brings, a clause."""


def lock_others(
    first: LockResult, trying: LockSettings, profiles: Iterable[Profile]
) -> tuple[LockResult, tuple[OtherLock, ...]]:
    """Lock the proposal for every platform of further profiles; where none can be made, the reason is written into it.

    Where the rules only lack what nobody has recorded, that is a remark and no refusal: the app may well run there.
    The first pair may have no lock; it is not tried again. A lock of one pair needs nothing of another: what it
    adds is bounded to its profile, or says what an sdist is. But a lock names the app's file that it was made from, so
    those that were made before its last line are made again. With `solve`, what only a profile needs may be younger
    than the app. Gives the first with the whole proposal, and the others.
    """
    found: dict[str, OtherLock] = {}
    seconds = trying.seconds
    known = list(first.stuck[0].conflicts) if first.stuck is not None else []
    in_vain = list(known)
    proposal = first.proposal
    locked = [(trying, first)] if first.error is None else []
    for profile, platform in [(one, platform) for one in profiles for platform in one.platforms]:
        there = dataclasses.replace(trying, profile=profile, platform=platform)
        pair = there.pair(proposal)
        if pair == first.pair:
            continue
        made = try_lock(proposal, there)
        if isinstance(made.error, UnsatisfiableError) and trying.solve:
            made = proposal_locks.with_newer(made, there)
        began = time.monotonic()
        ends = began + seconds
        if isinstance(made.error, UnsatisfiableError) and trying.solve:
            beside = [one for one, _ in locked if one.profile == profile]
            made = _solved(made, there, beside, in_vain, ends)
            seconds -= time.monotonic() - began
        if made.error is None:
            proposal = made.proposal
            locked.append((there, made))
            found[pair] = OtherLock(profile=profile.name, platform=platform.name, edits=made.edits)
            continue
        why = _reason(made, made.error, there, ends, known)
        seconds = ends - time.monotonic()
        is_refused = isinstance(made.error, UnsatisfiableError | PolicyError) and not made.unknown
        found[pair] = OtherLock(profile=profile.name, platform=platform.name, why=why, is_refused=is_refused)
        if is_refused:
            proposal = dataclasses.replace(proposal, tables=(*proposal.tables, _refused(proposal, found[pair])))
        elif made.unknown:
            proposal = proposal_locks.with_unknown(proposal, there, why)
    proposal_scratch.write(proposal, trying.catalogue.root)
    first = dataclasses.replace(first, proposal=proposal)
    for there, made in locked:
        lock = made.lock
        if made.proposal != proposal or lock is None:
            trying.tell(f"renewing {made.pair} for the whole proposal")
            lock = lock_trials.renew(proposal, there)
        if there is trying:
            first = dataclasses.replace(first, lock=lock)
            continue
        missing = lock_trials.imports_missing(proposal, lock, there)
        found[made.pair] = dataclasses.replace(
            found[made.pair],
            packages=len(lock.packages),
            warnings=lock.notices,
            missing=import_graph.missing_text(missing) if missing else "",
        )
    return first, tuple(found.values())


def _solved(
    failed: LockResult, trying: LockSettings, beside: Sequence[LockSettings], in_vain: list[Conflict], ends: float
) -> LockResult:
    """Edit the proposal for a further pair; gives what has failed where that does not help, and notes its conflicts.

    Args:
        failed: the pair without edits.
        trying: of it.
        beside: other platforms of the profile, which have a lock: the edits are for these too, and nothing is dropped.
        in_vain: conflicts for which no edits were found before.
        ends: when no more is looked for.
    """
    left = ends - time.monotonic()
    if left <= 0 or _same(failed, trying, in_vain, left) is not None:
        return failed
    made = proposal_locks.explained(failed, trying, ends, builds_first=True)
    for may_drop in (False, True)[: 1 if beside else 2]:
        tried = proposal_locks.with_edits(made, trying, ends, may_drop=may_drop)
        if tried.error is None and all(_has_solution(tried.proposal, one) for one in beside):
            return tried
        lock_trials.discard(tried, trying)
    if made.stuck is not None and not beside:
        in_vain += made.stuck[0].conflicts
    proposal_scratch.write(failed.proposal, trying.catalogue.root)
    return failed


def _same(made: LockResult, trying: LockSettings, known: Iterable[Conflict], seconds: float) -> Conflict | None:
    """Find a conflict that another pair has shown, as far as the time goes."""
    order, raw = relock.collect_inputs(proposal_scratch.request_for(made.proposal, trying), relock.Kept())
    return next((one for one in known if explanation.is_in(order, raw, one, seconds=seconds)), None)


def _has_solution(proposal: Proposal, trying: LockSettings) -> bool:
    try:
        relock.resolve(proposal_scratch.request_for(proposal, trying), relock.Kept())
    except PatchlockError:
        return False
    return True


def _reason(made: LockResult, error: PatchlockError, trying: LockSettings, ends: float, known: list[Conflict]) -> str:
    """Say why a pair has no lock, a clause: what cannot be together, as for another pair, or found in time."""
    why = _cause(made, error, trying, ends, known)
    return why + "".join(f"; {one}" for one in _only_for_newer_systems(why, trying))


_WITHOUT_WHEEL = re.compile(
    r"(?<![\w.-])([A-Za-z0-9][\w.-]*)(?:[<>=!~]\S*)? "
    r"(?:cannot be installed|has no wheels? (?:with a matching|that fits))"
)


def _only_for_newer_systems(why: str, trying: LockSettings) -> Iterator[str]:
    """Say of what has no wheel for the oldest system of a lock that it has one for newer ones, a clause each."""
    names = dict.fromkeys(canonicalize_name(found[1]) for found in _WITHOUT_WHEEL.finditer(why))
    for name, files in index_client.offered(names).items():
        if glibc := newer_glibc([one.filename for one in files], trying.platform):
            floor = ".".join(map(str, GLIBC_FLOOR))
            yield (
                f"the wheels of {name} for {trying.platform.name} need glibc {glibc} or newer, and locks for it are "
                f"made for {floor}"
            )


def _cause(made: LockResult, error: PatchlockError, trying: LockSettings, ends: float, known: list[Conflict]) -> str:
    if made.unknown:
        return made.unknown
    seconds = min(ends - time.monotonic(), _REASON_SECONDS)
    if isinstance(error, UnsatisfiableError) and seconds > 0:
        same = _same(made, trying, known, seconds)
        if same is None:
            order, raw = relock.collect_inputs(proposal_scratch.request_for(made.proposal, trying), relock.Kept())
            found = explanation.explain(order, raw, seconds=seconds, most=1, tell=trying.tell)
            same = found.conflicts[0] if found is not None else None
            known += [same] if same is not None else []
        if same is not None:
            return explanation.clause_with_cause(same)
    cause = explanation.first_cause("\n".join(error.evidence))
    return " ".join(f"{error.what}: {cause}".removesuffix(": ").split())


def _refused(proposal: Proposal, one: OtherLock) -> str:
    return document.rule_table(
        "refused",
        profile=one.profile,
        platforms=(one.platform,),
        why=f"no lock can be made: {one.why}",
        source=proposal.link(proposal.requirements.path),
    )
