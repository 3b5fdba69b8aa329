"""Try the locks of a proposed app in a scratch catalogue, and mend what stops them."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from patchlock.catalogue.proposals import document, module_names
from patchlock.catalogue.proposals.findings import Proposal
from patchlock.core import uv
from patchlock.distributions import index_client
from patchlock.distributions.policy.fitting import only_sdists, uploaded_until
from patchlock.locks import lock_request, relock
from patchlock.locks.conflicts import explanation
from patchlock.locks.conflicts.explanation import Conflict, Explanation
from patchlock.locks.resolution_inputs import ResolutionInputs, last_day
from patchlock.locks.wheel_choice import newer_glibc
from patchlock.model import build_constraints
from patchlock.model.errors import MetadataMissingError, PatchlockError, PolicyError, UnsatisfiableError
from patchlock.model.lockfile import Lock
from patchlock.model.platforms import GLIBC_FLOOR
from patchlock.model.policy import IndexFile, wheel_tags
from patchlock.model.profile import Profile
from patchlock.operations import _conflict_edits, _lock_repairs, missing_imports, proposal_scratch
from patchlock.operations.missing_imports import KnownModules
from patchlock.operations.proposal_scratch import LockSettings
from patchlock.patches import import_graph
from patchlock.patches.import_graph import ReachedImport

_ROUNDS = 24
_CONFLICTS = 7
"""Resolutions, one after the other, each but the first with edits for the conflict that the last one has left."""
_REASON_SECONDS = 20
"""For the reason of one further pair; `lock --explain` takes longer."""


@dataclass(frozen=True, kw_only=True)
class LockResult:
    """What became of the lock of one pair."""

    proposal: Proposal
    """With what was written into it."""
    pair: str
    packages: int
    """0 where there is no lock."""
    file: str
    """Of the lock, from the catalogue's root; "" where there is none."""
    edits: tuple[str, ...]
    """What was added to the proposal, a clause each."""
    lock: Lock | None = None
    error: PatchlockError | None = None
    stuck: tuple[Explanation, ResolutionInputs] | None = None
    attempts: tuple[str, ...] = ()
    """What `solve` has tried in vain, and what stood in the way, a clause each; none of it is in the proposal."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say what is to be known of the lock, as `lock` prints it."""
        return self.lock.notices if self.lock is not None else ()


def lock_proposal(proposal: Proposal, trying: LockSettings, tell: Callable[[str], None] = lambda _: None) -> LockResult:
    """Lock a pair; what an sdist says of itself is added, and with `solve` what resolves a conflict.

    A build, a companion of torch's and files of a later day come before another version, and an app that goes without
    what it requires is the last resort.
    """
    pair = f"{proposal.name} × {trying.profile.name} × {trying.platform.name}"
    made = _resolved(proposal, trying, pair, [], tell)
    if made.error is None and trying.solve:
        return _as_new_as_pips(made, trying, pair, tell)
    if made.error is None or not trying.solve or not isinstance(made.error, UnsatisfiableError | PolicyError):
        return made if made.error is None else _explained(made, trying, time.monotonic() + trying.seconds, tell)
    days = (relock.now(),) if proposal.as_of else tuple(_later(trying.date))

    # From the start: what files of another day needed would stay in it without effect.
    on = functools.partial(_resolved_on, proposal, trying, pair, tell)
    latest = made if proposal.as_of else _on_nearest_day(days, on, trying, pair, tell)
    if latest.error is None:
        edit = f"locks take files until {last_day(latest.proposal.as_of)}: those of the commit's day do not fit"
        return dataclasses.replace(latest, edits=(*latest.edits, edit))
    ends = time.monotonic() + trying.seconds
    made = _explained(made, trying, ends, tell)
    attempts: list[LockResult] = []

    def edited(start: LockResult, *, may_drop: bool = False) -> LockResult:
        attempts.append(_with_edits(start, trying, pair, ends, tell, may_drop=may_drop))
        return attempts[-1]

    tried = edited(made)
    if tried.error is not None:
        tried = _on_nearest_day(
            days, lambda day: edited(latest if latest.proposal.as_of == day else on(day)), trying, pair, tell
        )
    if tried.error is not None and tried.stuck is not None:
        tried = edited(tried, may_drop=True)
    if tried.error is None:
        return tried
    proposal_scratch.write(made.proposal, trying.catalogue.root)
    return dataclasses.replace(made, attempts=tuple(dict.fromkeys(_in_vain(one, made) for one in attempts)))


def _on_nearest_day(
    days: Sequence[str],
    on: Callable[[str], LockResult],
    trying: LockSettings,
    pair: str,
    tell: Callable[[str], None],
) -> LockResult:
    """Lock with files until the nearest of some days; until the last, that is with every file, where none has a lock.

    The last day goes first: what has no solution with every file has none with fewer of them.
    """
    *nearer, last = days
    latest = on(last)
    if isinstance(latest.error, UnsatisfiableError) or not nearer:
        return latest
    if latest.file:
        _remove_lock(trying.catalogue.root / latest.file)
    for day in nearer:
        if (tried := on(day)).error is None:
            return tried
    return _resolved(latest.proposal, trying, pair, list(latest.edits), tell) if latest.error is None else latest


def _with_edits(
    tried: LockResult,
    trying: LockSettings,
    pair: str,
    ends: float,
    tell: Callable[[str], None],
    *,
    may_drop: bool,
) -> LockResult:
    """Edit a proposal for one conflict after the other, until it has a lock, or no edit is known or found in time."""
    for _ in range(_CONFLICTS - 1):
        tried = _explained(tried, trying, ends, tell, builds_first=True)
        mended = _edited(tried, trying, may_drop=may_drop)
        if mended is None:
            return tried
        tried = _resolved(mended[0], trying, pair, [*tried.edits, *mended[1]], tell)
    return _explained(tried, trying, ends, tell)


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


def _as_new_as_pips(made: LockResult, trying: LockSettings, pair: str, tell: Callable[[str], None]) -> LockResult:
    """Build what is locked in an old version only because newer ones have no wheel: pip takes the newest there is.

    What has no plain wheel stays: its build takes a compiler. So does what is bound to the old version by others.
    """
    plain = {
        package.name: package.version
        for package in (made.lock.packages if made.lock is not None else ())
        if (wheel_tags(package) or "").endswith("none-any")
    }
    if not plain or not index_client.is_asked(online=uv.is_online()):
        return made
    offered = index_client.read_all(plain)
    newer = [_without_wheels(name, plain[name], files) for name, files in offered.items()]
    found = {n: v for n, v in only_sdists(newer, offered) if not v.is_prerelease}
    for name in found:
        wheel = _newest_wheel(uploaded_until(offered[name], made.proposal.as_of or trying.date))
        if wheel is not None and wheel > plain[name]:
            bound = f"{name}=={wheel}"
            if (higher := _with_builds_below(made, bound, trying, pair, tell)) is not None:
                return _as_new_as_pips(higher, trying, pair, tell)
    while found:
        table, says = _lock_repairs.build_tables(found, {}, trying.platform.name, "")
        wanted = dataclasses.replace(made.proposal, tables=(*made.proposal.tables, table))
        tried = _resolved(wanted, trying, pair, [*made.edits, says], tell)
        if tried.lock is None:
            break
        locked = {package.name: package.version for package in tried.lock.packages}
        moved = {name: locked[name] for name in found if locked.get(name, plain[name]) != plain[name]}
        if moved == found:
            return tried
        found = moved
    proposal_scratch.write(made.proposal, trying.catalogue.root)
    return made


def _with_builds_below(
    made: LockResult, bound: str, trying: LockSettings, pair: str, tell: Callable[[str], None]
) -> LockResult | None:
    """Allow the builds that a newer wheel's requirements need, which kept it out; None where that is not why.

    Args:
        made: what was locked.
        bound: the requirement that only the newer version satisfies.
        trying: of the pair.
        pair: its name.
        tell: called with what goes on.
    """
    table = document.rule_table("constraint", requirement=bound, why=bound, source=bound)
    tables = (*made.proposal.tables, table)
    bounded = _resolved(dataclasses.replace(made.proposal, tables=tables), trying, pair, list(made.edits), tell)
    if bounded.error is None and bounded.proposal.tables != tables:
        left = tuple(one for one in bounded.proposal.tables if one != table)
        tried = _resolved(dataclasses.replace(bounded.proposal, tables=left), trying, pair, list(bounded.edits), tell)
        locked = tried.lock.packages if tried.lock is not None else ()
        if bound in {f"{package.name}=={package.version}" for package in locked}:
            return tried
    if bounded.error is None:
        renew(made.proposal, trying)
    proposal_scratch.write(made.proposal, trying.catalogue.root)
    return None


def _newest_wheel(files: Iterable[IndexFile]) -> Version | None:
    return max((one for one in _versions_of_wheels(files) if not one.is_prerelease), default=None)


def _versions_of_wheels(files: Iterable[IndexFile]) -> Iterator[Version]:
    for file in files:
        if file.filename.endswith(".whl") and file.yanked is None:
            with contextlib.suppress(InvalidWheelFilename):
                yield parse_wheel_filename(file.filename)[1]


def _without_wheels(name: str, locked: Version, files: Iterable[IndexFile]) -> Requirement:
    """Ask for what is newer than a version, up to the next wheel, which the cut-off or a bound has kept away."""
    above = min((version for version in _versions_of_wheels(files) if version > locked), default=None)
    return Requirement(f"{name}>{locked}" + (f",<{above}" if above is not None else ""))


@dataclass(frozen=True, kw_only=True)
class OtherLock:
    """What became of the lock of one more pair."""

    profile: str
    platform: str
    packages: int
    """0 where there is no lock."""
    why: str
    """Why there is none, a clause; "" where there is one."""
    is_refused: bool = False
    """The reason stands in the proposal, as a [[refused]]; otherwise the lock can be had later as it is."""
    warnings: tuple[str, ...] = ()
    """What is to be known of the lock, as `lock` prints it."""
    edits: tuple[str, ...] = ()
    """What was added to the proposal for it, a clause each."""
    missing: str = ""
    """What the program imports at its start and nothing in the lock brings, a clause."""


def _naming(pair: str, tell: Callable[[str], None]) -> Callable[[str], None]:
    """Name the pair in all that is told of it, as each may take minutes."""
    return lambda text: tell(text if pair in text else f"{pair}: {text}")


def lock_others(
    first: LockResult, trying: LockSettings, profiles: Iterable[Profile], tell: Callable[[str], None]
) -> tuple[LockResult, tuple[OtherLock, ...]]:
    """Lock the proposal for every platform of further profiles; where none can be made, the reason is written into it.

    Where the rules only lack what nobody has recorded, that is a remark and no refusal: the app may well run there.
    The first pair may have no lock; it is not tried again. A lock of one pair needs nothing of another: what it
    adds is bounded to its profile, or says what an sdist is. But a lock names the app's file that it was made from, so
    those that were made before its last line are made again. With `solve`, what only a profile needs may be younger
    than the app. Gives the first with the whole proposal, and the others.
    """
    found: list[OtherLock] = []
    seconds = trying.seconds
    known = list(first.stuck[0].conflicts) if first.stuck is not None else []
    in_vain = list(known)
    proposal = first.proposal
    locked = [(trying, proposal, first.lock)] if first.error is None else []
    for profile in profiles:
        for platform in profile.platforms:
            if (profile.name, platform.name) == (trying.profile.name, trying.platform.name):
                continue
            pair = f"{proposal.name} × {profile.name} × {platform.name}"
            told = _naming(pair, tell)
            there = dataclasses.replace(trying, profile=profile, platform=platform)
            made = _resolved(proposal, there, pair, [], told)
            if isinstance(made.error, UnsatisfiableError) and trying.solve:
                made = _with_newer(made, there, pair, told)
            began = time.monotonic()
            ends = began + seconds
            if isinstance(made.error, UnsatisfiableError) and trying.solve:
                beside = [one for one, _, _ in locked if one.profile == profile]
                made = _solved(made, there, pair, beside, in_vain, ends, told)
                seconds -= time.monotonic() - began
            if made.error is None:
                proposal = made.proposal
                locked.append((there, proposal, made.lock))
                done = OtherLock(profile=profile.name, platform=platform.name, packages=made.packages, why="")
                found.append(dataclasses.replace(done, edits=made.edits))
                continue
            why = _reason(made, made.error, there, ends, known, told)
            seconds = ends - time.monotonic()
            judged = made.error if isinstance(made.error, UnsatisfiableError | PolicyError) else None
            is_unknown = judged is not None and judged.is_unknown
            is_refused = judged is not None and not is_unknown
            failed = OtherLock(profile=profile.name, platform=platform.name, packages=0, why=why, is_refused=is_refused)
            found.append(failed)
            if is_refused:
                proposal = dataclasses.replace(proposal, tables=(*proposal.tables, _refused(proposal, failed)))
            elif is_unknown:
                remark = f"{profile.name} on {platform.name} has no lock yet: {why}"
                proposal = dataclasses.replace(proposal, remarks=(*proposal.remarks, remark))
    proposal_scratch.write(proposal, trying.catalogue.root)
    first = dataclasses.replace(first, proposal=proposal)
    for there, at_that_time, known_lock in locked:
        lock = known_lock
        if at_that_time != proposal or lock is None:
            tell(f"renewing {proposal.name} × {there.profile.name} × {there.platform.name} for the whole proposal")
            lock = renew(proposal, there)
        if there is trying:
            first = dataclasses.replace(first, lock=lock, packages=len(lock.packages))
            continue
        missing = imports_missing(proposal, lock, there)
        found = [
            one
            if (one.profile, one.platform) != (there.profile.name, there.platform.name)
            else dataclasses.replace(
                one,
                packages=len(lock.packages),
                warnings=lock.notices,
                missing=import_graph.missing_text(missing) if missing else "",
            )
            for one in found
        ]
    return first, tuple(found)


def imports_missing(
    proposal: Proposal, lock: Lock, trying: LockSettings, command: Sequence[str] = (), python_path: str = ""
) -> tuple[ReachedImport, ...]:
    """Name what the program imports at its start and nothing in a lock brings; a command, where it has another."""
    request = proposal_scratch.request_for(proposal, trying)
    files = missing_imports.read_files(lock_request.read_patched(request))
    if files is None:
        return ()
    packages = KnownModules(lock.packages, trying.cache, module_names.brings)
    launch = request.app.launch
    return missing_imports.of_program(
        files, packages, command or launch.command, python_path if command else launch.environment.get("PYTHONPATH", "")
    )


def _solved(
    failed: LockResult,
    trying: LockSettings,
    pair: str,
    beside: Sequence[LockSettings],
    in_vain: list[Conflict],
    ends: float,
    tell: Callable[[str], None],
) -> LockResult:
    """Edit the proposal for a further pair; gives what has failed where that does not help, and notes its conflicts.

    Args:
        failed: the pair without edits.
        trying: of it.
        pair: its name.
        beside: other platforms of the profile, which have a lock: the edits are for these too, and nothing is dropped.
        in_vain: conflicts for which no edits were found before.
        ends: when no more is looked for.
        tell: called with what goes on.
    """
    order, raw = relock.collect_inputs(proposal_scratch.request_for(failed.proposal, trying), relock.Kept())
    if (left := ends - time.monotonic()) <= 0 or any(
        explanation.is_in(order, raw, one, seconds=left) for one in in_vain
    ):
        return failed
    made = _explained(failed, trying, ends, tell, builds_first=True)
    for may_drop in (False, True)[: 1 if beside else 2]:
        tried = _with_edits(made, trying, pair, ends, tell, may_drop=may_drop)
        if tried.error is None and all(_has_solution(tried.proposal, one) for one in beside):
            return tried
        if tried.file:
            _remove_lock(trying.catalogue.root / tried.file)
    if made.stuck is not None and not beside:
        in_vain += made.stuck[0].conflicts
    proposal_scratch.write(failed.proposal, trying.catalogue.root)
    return failed


def _has_solution(proposal: Proposal, trying: LockSettings) -> bool:
    try:
        relock.resolve(proposal_scratch.request_for(proposal, trying), relock.Kept())
    except PatchlockError:
        return False
    return True


def renew(proposal: Proposal, trying: LockSettings) -> Lock:
    """Write a proposal, and lock a pair that could be locked before: a lock names the app's file that it is made from.

    Raises:
        PatchlockError: it cannot be locked any more.
    """
    request = proposal_scratch.request_for(proposal, trying)
    lock = relock.resolve(request, relock.Kept())
    relock.write(request, lock)
    return lock


def _with_newer(failed: LockResult, trying: LockSettings, pair: str, tell: Callable[[str], None]) -> LockResult:
    """Let what a profile needs be younger than the app: the oldest torch for a card may be, and what it requires.

    Only what stands in the way becomes younger, for this profile alone, so that the locks of others stay as they are.
    Gives what has failed where no later day helps.
    """
    proposal = failed.proposal
    days = [day for day in _later(trying.date) if day > proposal.as_of]
    on = functools.partial(_resolved_on, proposal, trying, pair, tell)
    if not days or isinstance((latest := on(days[-1])).error, UnsatisfiableError):  # see `_on_nearest_day`
        return failed
    if latest.file:
        _remove_lock(trying.catalogue.root / latest.file)
    for later in days:
        tried = on(later)
        if tried.lock is None:
            continue
        _remove_lock(trying.catalogue.root / tried.file)
        names = [package.name for package in tried.lock.packages]
        younger: list[NormalizedName] = []
        made = failed
        while made.error is not None and len(younger) < len(names):
            words = "\n".join(map(str, (made.error.what, *made.error.evidence)))
            left = [name for name in names if name not in younger]
            younger += [name for name in left if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", words)] or left
            tables = tuple(_newer(proposal, name, later, trying, sorted(younger)) for name in sorted(younger))
            made = _resolved(
                dataclasses.replace(proposal, tables=(*proposal.tables, *tables)),
                trying,
                pair,
                [*failed.edits, f"[[newer]] of {', '.join(sorted(younger))}"],
                tell,
            )
        if made.error is None:
            return made
    return failed


def _remove_lock(file: Path) -> None:
    """Remove the lock of a trial, and what its builds require: the next lock of that pair would take its cut-off."""
    for path in (file, file.with_name(build_constraints.filename_for(file.name))):
        path.unlink(missing_ok=True)


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


def _reason(
    made: LockResult,
    error: PatchlockError,
    trying: LockSettings,
    ends: float,
    known: list[Conflict],
    tell: Callable[[str], None],
) -> str:
    """Say why a pair has no lock, a clause: what cannot be together, as for another pair, or found in time."""
    why = _cause(made, error, trying, ends, known, tell)
    return why + "".join(f"; {one}" for one in _only_for_newer_systems(why, trying))


_WITHOUT_WHEEL = re.compile(
    r"(?<![\w.-])([A-Za-z0-9][\w.-]*)(?:[<>=!~]\S*)? "
    r"(?:cannot be installed|has no wheels? (?:with a matching|that fits))"
)


def _only_for_newer_systems(why: str, trying: LockSettings) -> Iterator[str]:
    """Say of what has no wheel for the oldest system of a lock that it has one for newer ones, a clause each."""
    names = dict.fromkeys(canonicalize_name(found[1]) for found in _WITHOUT_WHEEL.finditer(why))
    offered = index_client.read_all(names) if names and index_client.is_asked(online=uv.is_online()) else {}
    for name in names:
        files = [one.filename for one in offered.get(name, ())]
        if glibc := newer_glibc(files, trying.platform):
            floor = ".".join(map(str, GLIBC_FLOOR))
            yield (
                f"the wheels of {name} for {trying.platform.name} need glibc {glibc} or newer, and locks for it are "
                f"made for {floor}"
            )


def _cause(
    made: LockResult,
    error: PatchlockError,
    trying: LockSettings,
    ends: float,
    known: list[Conflict],
    tell: Callable[[str], None],
) -> str:
    seconds = min(ends - time.monotonic(), _REASON_SECONDS)
    if isinstance(error, UnsatisfiableError) and error.is_unknown:
        return f"{error.what}; {error.remedy}"
    if isinstance(error, UnsatisfiableError) and seconds > 0:
        order, raw = relock.collect_inputs(proposal_scratch.request_for(made.proposal, trying), relock.Kept())
        same = next((one for one in known if explanation.is_in(order, raw, one, seconds=seconds)), None)
        if same is None:
            found = explanation.explain(order, raw, seconds=seconds, most=1, tell=tell)
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


def _explained(
    made: LockResult, trying: LockSettings, ends: float, tell: Callable[[str], None], *, builds_first: bool = False
) -> LockResult:
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
        tell=tell,
    )
    return dataclasses.replace(made, stuck=(found, order) if found is not None else None)


def _edited(made: LockResult, trying: LockSettings, *, may_drop: bool) -> tuple[Proposal, list[str]] | None:
    """Write the smallest edits that resolve a conflict into the proposal; None where none is known."""
    if made.stuck is None:
        return None
    found, _ = made.stuck
    known = {name for table in made.proposal.tables for name in _lock_repairs.built(table)}
    if builds := {name: version for name, version in found.builds if name not in known}:
        table, says = _lock_repairs.build_tables(builds, {}, trying.platform.name, made.stuck[1].as_of)
        return dataclasses.replace(made.proposal, tables=(*made.proposal.tables, table)), [says]
    return _conflict_edits.mended(made.proposal, found, trying, may_drop=may_drop)


def _resolved_on(
    proposal: Proposal, trying: LockSettings, pair: str, tell: Callable[[str], None], day: str
) -> LockResult:
    """Lock a pair with files until a day."""
    return _resolved(dataclasses.replace(proposal, as_of=day), trying, pair, [], tell)


def _resolved(
    proposal: Proposal, trying: LockSettings, pair: str, edits: list[str], tell: Callable[[str], None]
) -> LockResult:
    """Lock a pair with what costs no version: metadata of sdists, builds of what has no wheel, companions of torch."""
    edits = list(edits)
    for _ in range(_ROUNDS):
        request = proposal_scratch.request_for(proposal, trying)
        tell(f"resolving {pair}" + (f" with files until {last_day(proposal.as_of)}" if proposal.as_of else ""))
        try:
            lock = relock.resolve(request, relock.Kept())
        except MetadataMissingError as error:
            tables = "\n".join(error.evidence)
            proposal = dataclasses.replace(
                proposal, tables=(*proposal.tables, tables), remarks=_doubts(proposal, tables)
            )
            edits += [f"[[metadata]] of {sdist}" for sdist in error.sdists]
        except UnsatisfiableError as error:
            more = _lock_repairs.builds(proposal, request, error) if trying.solve else None
            if more is None:
                return _failed(proposal, pair, edits, error)
            proposal = dataclasses.replace(proposal, tables=(*proposal.tables, more[0]))
            edits.append(more[1])
        except PolicyError as error:
            more = _lock_repairs.companions(proposal, trying, error) if trying.solve else None
            if more is None:
                return _failed(proposal, pair, edits, error)
            proposal = dataclasses.replace(proposal, tables=_lock_repairs.added(proposal.tables, more[0]))
            edits.append(more[1])
        except PatchlockError as error:
            return _failed(proposal, pair, edits, error)
        else:
            path, _ = relock.write(request, lock)
            return LockResult(
                proposal=proposal,
                pair=pair,
                packages=len(lock.packages),
                file=path.relative_to(trying.catalogue.root).as_posix(),
                edits=tuple(edits),
                lock=lock,
            )
    return _failed(proposal, pair, edits, UnsatisfiableError(f"{_ROUNDS} rounds of edits were not enough"))


def _later(date: str) -> Iterator[str]:
    """Give cut-offs after a commit's date, nearer ones first: what its authors had in mind is as near as can be."""
    day, now = datetime.datetime.fromisoformat(date), datetime.datetime.now(datetime.UTC)
    for months in (6, 12, 18, 24, 36):
        if (later := day + datetime.timedelta(days=30 * months)) < now:
            yield later.strftime("%Y-%m-%dT%H:%M:%SZ")
    yield relock.now()


def _failed(
    proposal: Proposal,
    pair: str,
    edits: list[str],
    error: PatchlockError,
) -> LockResult:
    return LockResult(proposal=proposal, pair=pair, packages=0, file="", edits=tuple(edits), error=error)


def _doubts(proposal: Proposal, tables: str) -> tuple[str, ...]:
    """Remind of what none of an sdist's files says."""
    lines = [line for line in tables.splitlines() if "TODO" in line]
    more = (f"{len(lines)} [[metadata]] tables below have a TODO",) if lines else ()
    return tuple(dict.fromkeys((*proposal.remarks, *more)))
