"""Explain why an order cannot be resolved, and find edits that resolve it, each tried with uv; changes no file."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.locks import wheel_choice
from patchlock.locks._rules import built_here, only_built
from patchlock.locks.conflicts import _provenance, _search, edits
from patchlock.locks.conflicts._search import Core, Correction, Resolver
from patchlock.locks.conflicts._trials import ResolverSession, pins, solved
from patchlock.locks.conflicts._versions import is_together, nearest, pinned
from patchlock.locks.conflicts.edits import Remedy
from patchlock.locks.conflicts.model import CUT_OFF, Atoms, Edit, Member, Question, Solved, Unsolved, atoms
from patchlock.locks.resolution_inputs import ResolutionInputs, last_day
from patchlock.model.errors import (
    CommandFailedError,
    MetadataMissingError,
    NetworkError,
    PatchlockError,
    UnsatisfiableError,
)
from patchlock.model.lock_rules import Build, LockRules
from patchlock.model.patch import Patch
from patchlock.patches import engine

Files = Mapping[PurePosixPath, bytes]


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """One of the things that cannot be together."""

    member: Member | None
    """None: the cut-off."""
    also: tuple[Member, ...]
    """Lines of other files, or of the same, that ask for the same."""
    is_any_version: bool
    """No version of it fits, whatever the bound."""
    otherwise: str
    """What the resolver takes without its bound, and who asks for that; "" where it has none."""
    recorded: str
    """Which versions the recorded index of that name has for this machine; "" where the name is in none."""


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """Things of which each is needed for the conflict."""

    culprits: tuple[Culprit, ...]
    words: tuple[str, ...]
    """uv's own, about these alone."""
    is_minimal: bool


def clause(conflict: Conflict) -> str:
    """Say what cannot be together, a clause."""
    told = _told(conflict)
    names = [_named(one) for one in told if one.member is not None] or ["what is asked for"]
    until = " with files until the cut-off" if any(one.member is None for one in told) else ""
    if len(names) == 1:
        return f"{names[0]} cannot be installed{until}"
    return f"{', '.join(names[:-1])} and {names[-1]} cannot be installed together{until}"


def clause_with_cause(conflict: Conflict) -> str:
    """Say what cannot be together, and of one thing alone also why not, as uv says it first; a clause."""
    said, words = clause(conflict), " ".join(" ".join(conflict.words).split())
    culprits = [one for one in _told(conflict) if one.member is not None]
    if len(culprits) != 1:
        return said
    (first,) = culprits
    if found := re.search(r"Wheels are required for `([a-z0-9-]+)", words):  # uv's words may have lost their begin
        member = first.member
        of = "it" if member is not None and member.name == found[1] else f"{found[1]}, which it needs,"
        return f"{said}: {of} has no wheel that fits"
    named = f" and you require {_named(first)}"
    return f"{said}: {cause.removesuffix(named)}" if (cause := first_cause(words)) else said


def first_cause(words: str) -> str:
    """Give what uv's words about a conflict say first, a clause; "" where they begin otherwise."""
    found = re.search(r"\bBecause (.+?),? we can conclude", " ".join(words.split()))
    return found[1] if found else ""


def _told(conflict: Conflict) -> tuple[Culprit, ...]:
    """Leave out who asks for any version of what another one bounds: it is the bound that cannot be had."""
    bounded = {one.member.name for one in conflict.culprits if one.member and not one.is_any_version}
    return tuple(
        one
        for one in conflict.culprits
        if one.member is None or not one.is_any_version or one.member.name not in bounded
    )


def _named(culprit: Culprit) -> str:
    if culprit.member is None:
        return "the cut-off"
    return culprit.member.requirement.name if culprit.is_any_version else str(culprit.member.requirement)


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A set of edits with which uv has resolved the whole order."""

    remedy: Remedy
    versions: Mapping[NormalizedName, Version]
    """All that would be locked."""
    metadata: str = ""
    """The `[[metadata]]` tables that a lock of these needs and the app lacks, of the first set alone."""
    beside: LockRules = dataclasses.field(default_factory=LockRules)
    """Builds, and what is built: the set resolves together with these."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """All that was found out."""

    conflicts: tuple[Conflict, ...]
    """The first is of the order as it stands; each later one appears once others are mended."""
    tried: tuple[Tried, ...]
    """Fewest edits first."""
    builds: tuple[tuple[NormalizedName, Version], ...]
    """What is in the conflicts only for want of a wheel: its build can be allowed. With the version that was found.

    Empty where the edits resolve without it."""
    only_here: frozenset[NormalizedName]
    """Of these, what has wheels for other machines."""
    build_metadata: str
    """The `[[metadata]]` tables that a lock with these builds needs; "" where files do not say it."""
    is_built: bool
    """The builds resolve all, without edits."""
    kept: tuple[NormalizedName, ...]
    """Without these it would resolve, but the app imports them."""
    asked: int
    """How many questions uv has answered."""
    seconds: float
    is_complete: bool
    """False: the time was over before the search was."""


def explain(
    order: ResolutionInputs,
    raw: Files,
    *,
    seconds: float = 120,
    most: int = 3,
    builds_first: bool = False,
    is_needed: Callable[[NormalizedName], bool] = lambda _: False,
    tell: Callable[[str], None] = lambda _: None,
) -> Explanation | None:
    """Find out what cannot be together in an order, and the smallest sets of edits that resolve it.

    Args:
        order: one that `locks._resolve.resolve` found unsatisfiable.
        raw: its requirement files before the patches.
        seconds: after which no more is asked.
        most: how many sets of edits are wanted.
        builds_first: where a build can be allowed, no edits are tried with uv, unless some are known without it.
        is_needed: says of a distribution that the app imports it, so that it cannot go without.
        tell: called with what goes on.

    Returns:
        None where the parts of the order do not show the conflict: it has a solution, or uv does not answer.
    """
    started, as_asked = time.monotonic(), order
    pair = f"{order.app.name} × {order.profile.name} × {order.platform.name}"
    members = members_of(order, raw)
    every = atoms(members, has_cut_off=bool(order.as_of))
    asking = ResolverSession(
        order=order,
        members=members,
        deadline=started + seconds,
        tell=lambda asked: tell(f"{pair}: looking for what cannot be together, {asked} questions to uv"),
    )
    (first,) = asking.ask([Question(atoms=every)])
    if not isinstance(first, Unsolved):
        return None
    core = _search.minimal(members, every, first, asking)
    found = _search.Found(cores=(core,), corrections=())
    builds = _builds(order, members, found.cores)
    if not builds:
        found = _search.search(members, every, first, asking, most)
        builds = _builds(order, members, found.cores)
    conflicts = tuple(conflict_of(core, members, asking, every & {CUT_OFF}) for core in found.cores)
    is_built, build_metadata, rules = False, "", LockRules()
    if builds and (found.corrections or not builds_first):  # what is pasted together has to resolve together
        known_cores, plain, more = {core.atoms for core in found.cores}, asking, builds
        found = _search.Found(cores=(), corrections=())
        while more:
            order, rules, build_metadata = _built(plain.order, builds)
            asking = dataclasses.replace(asking, order=order, known={})
            (beside,) = asking.ask([Question(atoms=every)])
            is_built, more = isinstance(beside, Solved), ()
            if isinstance(beside, Unsolved):
                core = _search.minimal(members, every, beside, asking)
                known = {name for name, _ in builds}
                more = tuple(one for one in _builds(order, members, [core]) if one[0] not in known)
                builds += more
        if isinstance(beside, Unsolved):
            found = _search.search(members, every, beside, asking, most)
            new = [core for core in found.cores if core.atoms not in known_cores]
            conflicts += tuple(conflict_of(core, members, asking, every & {CUT_OFF}) for core in new)
            plain.asked = asking.asked
            if enough := _without_builds(found.corrections, builds, every, plain):
                found = dataclasses.replace(found, corrections=enough)
                order, asking, builds, build_metadata, rules = plain.order, plain, (), "", LockRules()
    sets, kept = _tried(order, raw, members, every, found, asking, is_needed)
    if sets and not builds_first:
        sets[0] = dataclasses.replace(sets[0], metadata=_metadata_of(order, raw, sets[0]))
    sets = [dataclasses.replace(one, beside=rules) for one in sets]
    return Explanation(
        conflicts=conflicts,
        tried=tuple(sets),
        builds=builds,
        only_here=_only_here(as_asked, conflicts) if builds else frozenset(),
        build_metadata=build_metadata,
        is_built=is_built,
        kept=kept,
        asked=asking.asked,
        seconds=time.monotonic() - started,
        is_complete=not asking.is_spent(),
    )


def _tried(
    order: ResolutionInputs,
    raw: Files,
    members: Sequence[Member],
    every: Atoms,
    found: _search.Found,
    asking: ResolverSession,
    is_needed: Callable[[NormalizedName], bool],
) -> tuple[list[Tried], tuple[NormalizedName, ...]]:
    """Try corrections with uv, fewest edits first; names also what they would drop although it is needed."""
    tried: list[tuple[int, int, Tried]] = []
    kept: dict[NormalizedName, None] = {}
    for correction in found.corrections:
        dropped = [name for edit in correction.edits if edit.kind == "drop" for name in edit.names]
        if needed := [name for name in dropped if is_needed(name)]:
            kept |= dict.fromkeys(needed)
            continue
        nearer = nearest(members, every, correction, asking)
        if nearer is None or _takes_placeholder(nearer):
            continue
        verified = _verified(order, raw, members, nearer, found.cores, asking)
        if verified:
            tried.append((correction.cost, _lowered(verified), verified))
    tried.sort(key=lambda one: one[:2])
    return [one for _, _, one in tried], tuple(kept)


def _metadata_of(order: ResolutionInputs, raw: Files, tried: Tried) -> str:
    """Write the `[[metadata]]` tables of the sdists that a set of edits leads to, as far as the app has none."""
    known = {(rule.name, rule.version) for rule in order.rules.metadata}
    if {(name, tried.versions[name]) for name in order.rules.source_builds if name in tried.versions} <= known:
        return ""
    wanted = engine.for_profile(order.app.patches, order.profile.name)
    files = edits.applied(wanted, tried.remedy, raw, order.requirements)
    return _metadata(_mended(order, tried.remedy, files)) if files is not None else ""


def _builds(
    order: ResolutionInputs, members: Sequence[Member], cores: Sequence[Core]
) -> tuple[tuple[NormalizedName, Version], ...]:
    words = "\n".join(line for core in cores for line in core.words)
    in_conflict = {members[atom.member].name for core in cores for atom in core.atoms if atom.member >= 0}
    needed = builds_needed(order, words)
    both = dict((*needed.here, *needed.everywhere))
    return tuple((name, version) for name, version in both.items() if name in in_conflict or name in words)


def _only_here(order: ResolutionInputs, conflicts: Iterable[Conflict]) -> frozenset[NormalizedName]:
    needed = builds_needed(order, "\n".join(line for one in conflicts for line in one.words))
    return frozenset(name for name, _ in needed.here) - {name for name, _ in needed.everywhere}


def _without_builds(
    corrections: Sequence[Correction], builds: Sequence[tuple[NormalizedName, Version]], every: Atoms, plain: Resolver
) -> tuple[Correction, ...]:
    """Keep the corrections that resolve without the builds too, if the cheapest of all is among them."""
    names = {name for name, _ in builds}
    others = [one for one in corrections if names.isdisjoint(name for edit in one.edits for name in edit.names)]
    enough = _search.solving(others, every, plain)
    return enough if enough and enough[0].cost == corrections[0].cost else ()


def _takes_placeholder(correction: Correction) -> bool:
    """Tell whether edits lead to a release like 0.0.0, which only holds a name."""
    names = {name for edit in correction.edits if edit.kind == "free" for name in edit.names}
    versions = correction.solved.versions
    return any(name in versions and not any(versions[name].release) for name in names)


def _built(
    order: ResolutionInputs, builds: Sequence[tuple[NormalizedName, Version]]
) -> tuple[ResolutionInputs, LockRules, str]:
    """Allow builds; gives the order with them, what that adds, and the `[[metadata]]` tables of it as far as known."""
    from patchlock.locks import sdist_declarations  # which speaks HTTP

    build = Build(names=tuple(name for name, _ in builds), why="", source="", origin=order.app.origin)
    allowed = _beside(order, LockRules(builds=(build,)))
    try:
        stated, tables = sdist_declarations.stated(allowed, order.cache)
    except PatchlockError:
        return allowed, LockRules(builds=(build,)), ""
    known = len(order.app.rules.metadata)
    return stated, LockRules(builds=(build,), metadata=stated.app.rules.metadata[known:]), tables


def _beside(order: ResolutionInputs, rules: LockRules) -> ResolutionInputs:
    return dataclasses.replace(order, app=dataclasses.replace(order.app, rules=order.app.rules + rules))


def _metadata(order: ResolutionInputs) -> str:
    from patchlock.locks import _resolve, sdist_declarations  # which speak HTTP

    try:
        _resolve.resolve(order)
    except MetadataMissingError as error:
        with contextlib.suppress(PatchlockError):
            return "\n".join(sdist_declarations.proposed(order, error.sdists, order.cache).evidence)
    except PatchlockError:
        pass
    return ""


def members_of(order: ResolutionInputs, raw: Files) -> tuple[Member, ...]:
    """List all that an order asks for, and all that bounds it; arguments as `explain`."""
    environment = wheel_choice.marker_environment(order.platform, order.profile.python)
    return _provenance.members(order.app, order.profile, raw, order.requirements, environment)


def is_in(order: ResolutionInputs, raw: Files, conflict: Conflict, *, seconds: float) -> bool:
    """Ask uv once whether a conflict of another platform or profile is in an order too; arguments as `explain`."""
    members = members_of(order, raw)
    of_order = atoms(members, has_cut_off=bool(order.as_of))
    wanted = set()
    for culprit in conflict.culprits:
        index = members.index(culprit.member) if culprit.member in members else -1
        if (index < 0) != (culprit.member is None):
            return False
        wanted |= {
            one for one in of_order if one.member == index and not (culprit.is_any_version and one.part == "bound")
        }
    asking = ResolverSession(order=order, members=members, deadline=time.monotonic() + seconds, tell=lambda _: None)
    return isinstance(asking.ask([Question(atoms=frozenset(wanted))])[0], Unsolved)


@dataclass(frozen=True, kw_only=True)
class BuildsNeeded:
    """What uv misses wheels of and could be built, with the version that would be."""

    everywhere: tuple[tuple[NormalizedName, Version], ...]
    here: tuple[tuple[NormalizedName, Version], ...]
    """Other platforms have wheels of these."""


def builds_needed(order: ResolutionInputs, words: str) -> BuildsNeeded:
    """Say what could be built, so that an order has a solution."""
    return BuildsNeeded(everywhere=only_built(order, words), here=built_here(order, words))


def conflict_of(
    core: Core, members: Sequence[Member], asking: ResolverSession, beside: Atoms = frozenset()
) -> Conflict:
    """Say for each part of a core what it asks for, and what the resolver takes without that, beside what stays."""
    culprits = []
    for index in sorted({atom.member for atom in core.atoms}, key=lambda index: (index < 0, index)):
        of_member = [atom for atom in core.atoms if atom.member == index]
        bound = next((atom for atom in of_member if atom.part == "bound"), None)
        otherwise = ""
        if bound is not None:
            (answer,) = asking.ask([Question(atoms=(frozenset(core.atoms) | beside) - {bound})])
            otherwise = _taken(members[index].name, answer) if isinstance(answer, Solved) else ""
        member = None if index < 0 else members[index]
        culprits.append(
            Culprit(
                member=member,
                also=tuple(m for m in members if member and m != member and m.requirement == member.requirement),
                is_any_version=index >= 0 and bound is None,
                otherwise=otherwise,
                recorded=_recorded(member.name, asking.order) if member else "",
            )
        )
    return Conflict(culprits=tuple(culprits), words=core.words, is_minimal=core.is_minimal)


def _recorded(name: NormalizedName, order: ResolutionInputs) -> str:
    index, versions = _fitting_versions(name, order)
    return f"{index} has {', '.join(map(str, versions)) or 'none for this machine'}" if index else ""


def _fitting_versions(name: NormalizedName, order: ResolutionInputs) -> tuple[str, list[Version]]:
    """Name the recorded index that has a distribution, "" for none, and its versions for this machine, sorted."""
    for index in order.indexes:
        wheels = [wheel for wheel in index.wheels if wheel.name == name]
        if wheels:
            fits = {w.version for w in wheels if wheel_choice.best_wheel([w.filename], order.platform, order.profile)}
            return index.name, sorted(fits)
    return "", []


def _taken(name: NormalizedName, answer: Solved) -> str:
    if name not in answer.versions:
        return ""
    askers_of = answer.via.get(name, ())
    return str(answer.versions[name]) + (f", for {', '.join(askers_of)}" if askers_of else "")


def _verified(
    order: ResolutionInputs,
    raw: Files,
    members: Sequence[Member],
    correction: Correction,
    cores: Sequence[Core],
    asking: ResolverSession,
) -> Tried | None:
    """Write a correction as patches, apply these to upstream's files, and resolve the whole order with uv."""
    reasons = {edit: _reason(edit, members, cores, order) for edit in correction.edits}
    wanted = engine.for_profile(order.app.patches, order.profile.name)
    known: Remedy | None = None
    for leaves_fitting in (True, False):  # the fewest edits first
        remedy = edits.remedy(members, correction, order.app.patches, reasons, leaves_fitting=leaves_fitting)
        files = edits.applied(wanted, remedy, raw, order.requirements) if remedy != known else None
        answer = resolves(order, remedy, files, config=asking.config or "") if files is not None else None
        if answer is not None and is_together(answer.versions):
            return Tried(remedy=remedy, versions=answer.versions)
        known = remedy
    return None


def applicable_remedies(order: ResolutionInputs, raw: Files, tried: Sequence[Tried]) -> tuple[int, ...]:
    """Say which sets of edits, found for another platform or profile, resolve this order too.

    Returns:
        their positions.
    """
    wanted = engine.for_profile(order.app.patches, order.profile.name)
    found = []
    for number, one in enumerate(tried):
        files = edits.applied(wanted, one.remedy, raw, order.requirements)
        if files is not None and resolves(_beside(order, one.beside), one.remedy, files) is not None:
            found.append(number)
    return tuple(found)


def needed_edits(order: ResolutionInputs, raw: Files, tried: Tried) -> tuple[NormalizedName, ...]:
    """Name the distributions of a set of edits, found for another platform or profile, that this order needs edited.

    Returns:
        none where the set does not resolve the order.
    """
    beside, wanted = _beside(order, tried.beside), engine.for_profile(order.app.patches, order.profile.name)

    def is_enough(kept: Sequence[NormalizedName]) -> bool:
        remedy = edits.only(tried.remedy, kept)
        files = edits.applied(wanted, remedy, raw, order.requirements)
        answer = resolves(beside, remedy, files) if files is not None else None
        return answer is not None and is_together(answer.versions)

    kept = edits.names(tried.remedy)
    if not applicable_remedies(order, raw, [tried]):
        return ()
    for name in kept:
        fewer = tuple(one for one in kept if one != name)
        kept = fewer if is_enough(fewer) else kept
    return kept


def patches_left_out(order: ResolutionInputs, raw: Files, conflicts: Sequence[Conflict]) -> tuple[Patch, ...]:
    """Find patches of the app that leave the profile out, and with which the order resolves; arguments as `explain`.

    Those that another profile has are tried together: of several pins of one name, each profile has its own.
    """
    here = order.profile.name
    names = {str(one.member.name) for conflict in conflicts for one in conflict.culprits if one.member}
    others = [p for p in order.app.patches if p.profiles and here not in p.profiles and not p.optional]
    others = [p for p in others if getattr(p.op, "name", None) in names]
    nothing = Remedy(changes=(), written=(), without=(), by_hand=())
    for profile in dict.fromkeys(name for patch in others for name in patch.profiles):
        added = tuple(patch for patch in others if profile in patch.profiles)
        wanted = [p for p in order.app.patches if p in added or p in engine.for_profile([p], here)]
        files = edits.applied(wanted, nothing, raw, order.requirements)
        if files is not None and resolves(order, nothing, files) is not None:
            return added
    return ()


def resolves(order: ResolutionInputs, remedy: Remedy, files: Files, *, config: str = "") -> Solved | None:
    """Resolve an order with other requirement files, and without the constraints or the cut-off that a remedy names."""
    try:
        return solved(pins(_mended(order, remedy, files), config=config, timeout=60))
    except (UnsatisfiableError, CommandFailedError, NetworkError):
        return None


def _mended(order: ResolutionInputs, remedy: Remedy, files: Files) -> ResolutionInputs:
    gone = {str(change.member.requirement) for change in remedy.changes if change.member and change.member.path is None}
    return dataclasses.replace(
        order,
        app=dataclasses.replace(order.app, rules=_without(order.app.rules, gone)),
        profile=dataclasses.replace(order.profile, rules=_without(order.profile.rules, gone)),
        as_of="" if any(change.member is None for change in remedy.changes) else order.as_of,
        requirements=files,
    )


def _lowered(tried: Tried) -> int:
    """Count the pins that go below upstream's: where two sets are as small, the one that raises more is shown first."""
    pins = [(c.member.name, pinned(c.member.requirement.specifier)) for c in tried.remedy.changes if c.member]
    return sum(pin is not None and name in tried.versions and tried.versions[name] < pin for name, pin in pins)


def _without(rules: LockRules, gone: set[str]) -> LockRules:
    kept = tuple(one for one in rules.constraints if str(one.requirement) not in gone)
    return dataclasses.replace(rules, constraints=kept)


def _reason(edit: Edit, members: Sequence[Member], cores: Sequence[Core], order: ResolutionInputs) -> str:
    """Say which conflict an edit mends, as the `why` of a patch."""
    core = next((core for core in cores if set(edit.takes) & set(core.atoms)), None)
    if core is None:
        return ""
    bounds = {atom.member for atom in core.atoms if atom.member >= 0 and atom.part == "bound"}
    named = {members[index].name for index in bounds}  # as in `_told`
    wanted = {atom.member for atom in core.atoms if atom.member >= 0}
    indexes = sorted(index for index in wanted if index in bounds or members[index].name not in named)
    names = [
        str(members[index].requirement) if index in bounds else members[index].requirement.name for index in indexes
    ]
    where = f"Python {order.profile.python} on {order.platform.name}"
    if CUT_OFF in core.atoms:
        where += f" with files until {last_day(order.as_of)}"
    if len(names) == 1:
        requirement = members[indexes[0]].requirement
        recorded, versions = _fitting_versions(members[indexes[0]].name, order)
        has_none = recorded and not any(requirement.specifier.contains(one, prereleases=True) for one in versions)
        of_index = f": the recorded index {recorded} has none that fits" if has_none else ""
        return f"{names[0]} cannot be installed for {where}{of_index}"
    return f"{', '.join(names[:-1])} and {names[-1]} cannot be installed together for {where}"
