"""Prove before anything is installed that a proposed app can start: what its program imports is in its lock.

What the lock shows of the app goes into the proposal: what it lacks and what the locked libraries lack, which needs it
has of the machine, and an older setuptools for packages that import pkg_resources.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.catalogue.proposals import (
    device_places,
    findings,
    launch,
    onnx_builds,
    pkg_resources_users,
    python_limits,
    reached_code,
    removed_interfaces,
    run_time_installs,
    shared_sets,
    stand_in_uses,
    submodules,
)
from patchlock.catalogue.proposals.findings import Finding, Issue, Proposal, SetChoice
from patchlock.catalogue.proposals.imports import Imports
from patchlock.catalogue.proposals.launch_commands import LaunchCommand
from patchlock.distributions import index_client
from patchlock.locks import relock
from patchlock.model.errors import PatchlockError, UnsatisfiableError
from patchlock.model.lockfile import Lock
from patchlock.model.profile import Profile
from patchlock.operations import _locked_needs, _start_cures, lock_trials, proposal_locks, proposal_scratch
from patchlock.operations._pin_repairs import Offers
from patchlock.operations.lock_trials import LockResult
from patchlock.operations.proposal_scratch import LockSettings
from patchlock.operations.propose_app import ProposalResult
from patchlock.patches import import_graph
from patchlock.patches.import_graph import ReachedImport, Trees
from patchlock.patches.ops.requirements.ops import SetRequirement

_ROUNDS = 4
_TRIED = 4
"""Commands."""


@dataclass(frozen=True, kw_only=True)
class StartResult:
    """How far a proposal comes."""

    locked: LockResult
    missing: tuple[ReachedImport, ...]
    """What its program imports at its start, and that nothing brings."""


def prove(proposed: ProposalResult, locked: LockResult, trying: LockSettings) -> StartResult:
    """Bring what the program imports at its start, and take the first command that has all; writes proposal and lock.

    Args:
        proposed: the app and the commands that may start it.
        locked: its lock, which there is.
        trying: where and for what locks are tried.
    """
    found: list[tuple[LockResult, tuple[ReachedImport, ...], LaunchCommand]] = []
    for one in proposed.commands[:_TRIED]:
        trying.tell(f"following the imports of {' '.join(one.command)}")
        found.append((*_cured(proposed, locked, trying, one), one))
        if not found[-1][1]:
            break
    best, proposal = locked, locked.proposal
    missing: tuple[ReachedImport, ...] = ()
    made: tuple[ReachedImport, ...] = ()
    if found:
        whole = min(found, key=lambda one: len(one[1]))
        best, missing, command = whole if not whole[1] else found[0]
        proposal = _with_command(best.proposal, best.lock, command, proposed)
        made = _made_by_builds(proposed, command)
    lock = best.lock
    versions: Mapping[NormalizedName, Version] = (
        {package.name: package.version for package in lock.packages} if lock is not None else {}
    )
    proposal, more = _with_pkg_resources(proposal, versions, proposed)
    if "torch" in versions:
        proposal = onnx_builds.with_torch(proposal)
    proposal, versions = _without_idle_sets(proposal, versions, trying)
    trees = proposed.clone.trees
    kept = tuple(issue for issue in proposal.issues if shared_sets.holds(issue, versions))
    used: tuple[Issue, ...] = ()
    _, command_line, python_path = _program(proposal, proposed)
    files = import_graph.reached(trees.files, command_line, python_path, trees).files
    removed = removed_interfaces.find(trees, versions, proposed.asked, files)
    if found:
        idle = reached_code.idle_lines(trees, files, command_line, python_path)
        kept, removed = (findings.of_program(every, files, idle, proposal.together) for every in (kept, removed))
        without = device_places.idle_lines("cpu", trees, files, command_line, python_path, idle)
        never = {path: {*lines, *without[path]} for path, lines in idle.items()}
        used = stand_in_uses.issues(trees, proposal.sections, files, command_line, never)
    limits = python_limits.find(
        versions,
        trying.profile.python,
        {name: trying.catalogue.profile(name).python for name in trying.catalogue.profile_names()},
        proposed.asked,
        [one.module for one in import_graph.reached(*_program(proposal, proposed), proposed.clone.trees).modules],
    )
    remarks = (
        *proposed.without_brought(proposal.remarks, versions),
        *run_time_installs.remarks(kept, versions),
    )
    lacking = (
        *((_issue(missing, trying),) if missing else ()),
        *((_issue_of_builds(made),) if made else ()),
        *submodules.issues(proposed.clone.submodules, Imports(trees.files, trees), [one.module for one in missing]),
        *used,
        *removed,
        *removed_interfaces.of_packages(
            Trees(_locked_needs.sdist_code(lock.packages if lock else (), trying.cache)), versions, proposed.asked
        ),
    )
    kept = (*kept, *(dataclasses.replace(one, is_left=True) for one in (*limits, *lacking)))
    proposal = dataclasses.replace(proposal, issues=(*kept, *more), remarks=remarks)
    if lock is not None:
        contents = _locked_needs.read(lock, proposal.tables, trying.cache)
        proposal = dataclasses.replace(
            proposal, needs=proposed.needs(trying.catalogue.resource_names(), contents, proposal.facts.launch)
        )
    if proposal != locked.proposal or any(one is not locked for one, _, _ in found):
        trying.tell(f"renewing {locked.pair} for the whole proposal")
        try:
            lock = lock_trials.renew(proposal, trying)
        except UnsatisfiableError:  # something of the lock requires a newer setuptools
            if not more:
                raise
            more = tuple(dataclasses.replace(one, remedy="no lock has an older setuptools beside it") for one in more)
            proposal = dataclasses.replace(proposal, sets=best.proposal.sets, issues=(*kept, *more))
            lock = lock_trials.renew(proposal, trying)
    return StartResult(
        locked=dataclasses.replace(best, proposal=proposal, lock=lock),
        missing=(*missing, *made),
    )


def _without_idle_sets(
    proposal: Proposal, versions: Mapping[NormalizedName, Version], trying: LockSettings
) -> tuple[Proposal, Mapping[NormalizedName, Version]]:
    """Leave out the shared sets that only bound versions, where the lock without them keeps to their bounds.

    Gives the versions of that lock too.
    """
    for choice in proposal.sets:
        bounds = [one.op for one in trying.sets[choice.name].patches if isinstance(one.op, SetRequirement)]
        if not versions or len(bounds) < len(trying.sets[choice.name].patches):
            continue
        fewer = dataclasses.replace(
            proposal,
            sets=tuple(one for one in proposal.sets if one is not choice),
            issues=tuple(one for one in proposal.issues if one.name != choice.name),
        )
        trying.tell(f"resolving {trying.pair(proposal)} without {choice.name}")
        with contextlib.suppress(PatchlockError):
            other = relock.resolve(proposal_scratch.request_for(fewer, trying), relock.Kept())
            locked = {package.name: package.version for package in other.packages}
            if all(one.specifier.contains(locked[one.name], prereleases=True) for one in bounds if one.name in locked):
                proposal, versions = fewer, locked
        proposal_scratch.write(proposal, trying.catalogue.root)
    return proposal, versions


def _program(proposal: Proposal, proposed: ProposalResult) -> tuple[Mapping[PurePosixPath, bytes], Sequence[str], str]:
    launching = proposal.facts.launch
    return proposed.clone.trees.files, launching.command, launching.environment.get("PYTHONPATH", "")


def _with_pkg_resources(
    proposal: Proposal, versions: Mapping[NormalizedName, Version], proposed: ProposalResult
) -> tuple[Proposal, tuple[Issue, ...]]:
    """Take the shared set for what the lock has in a version that imports pkg_resources; gives what is to be told."""
    users = pkg_resources_users.users(versions)
    if not users or any(one.name == pkg_resources_users.SET for one in proposal.sets):
        return proposal, ()
    name = pkg_resources_users.SET
    why = f"{', '.join(users)} {'is' if len(users) == 1 else 'are'} locked"
    issue = Issue(
        name=name,
        title="a library imports pkg_resources and does not require it",
        means=pkg_resources_users.reason(users),
        found=tuple(
            place.found for user in users for place in proposed.asked.get(canonicalize_name(user.partition(" ")[0]), ())
        ),
        remedy=f'the shared set "{name}" fixes it',
    )
    choice = SetChoice(name=name, why=why)
    return dataclasses.replace(proposal, sets=(*proposal.sets, choice)), (issue,)


def _issue(missing: Sequence[ReachedImport], trying: LockSettings) -> Issue:
    """Tell of imports that nothing brings."""
    places = tuple(
        Finding(path=one.path, line=one.line, text=f"imports {one.module}{f' {one.when}' * bool(one.device)}")
        for one in missing
    )
    return Issue(
        name="missing-at-the-start",
        title=f"the program imports {' and '.join(dict.fromkeys(one.when for one in missing))} what nothing requires",
        means="it ends with ModuleNotFoundError",
        found=places,
        remedy="find out what brings it, and require that" + ("" if trying.solve else "; `--solve` looks for it"),
        is_at_start=not all(one.device for one in missing),
    )


def _made_by_builds(proposed: ProposalResult, command: LaunchCommand) -> tuple[ReachedImport, ...]:
    """Name modules of the app's own packages that its program imports at its start, and no file of the commit is."""
    trees, path = proposed.clone.trees, command.environment.get("PYTHONPATH", "")
    roots = import_graph.import_roots(trees.files, command.command, path)
    packages = {one.parent.name for one in trees.files if one.name == "__init__.py" and one.parent.parent in roots}
    stems = {one.name.partition(".")[0] for one in (*proposed.clone.listed, *trees.files)}
    folders = {folder.name for one in trees.files for folder in one.parents}
    return tuple(
        one
        for one in import_graph.reached(trees.files, command.command, path, trees).modules
        if one.module.partition(".")[0] in packages and not {*one.module.split(".")[1:]} <= stems | folders
    )


def _issue_of_builds(made: Sequence[ReachedImport]) -> Issue:
    return Issue(
        name="made-by-a-build",
        title="the program imports a module of its own that the repository does not have",
        means="setup.py or a build writes it where the app is installed; here it runs from its clone, and ends with "
        "ModuleNotFoundError",
        found=tuple(Finding(path=one.path, line=one.line, text=f"imports {one.module}") for one in made),
        remedy="add the file with a patch (add-file)",
    )


def _cured(
    proposed: ProposalResult,
    locked: LockResult,
    trying: LockSettings,
    command: LaunchCommand,
) -> tuple[LockResult, tuple[ReachedImport, ...]]:
    for _ in range(_ROUNDS):
        missing = _missing(locked, trying, command)
        if not missing or not trying.solve:
            return locked, missing
        look = _start_cures.Looked(
            on_index=_on_index(missing),
            has_wheel=functools.partial(_has_wheel, trying),
            profiles=[trying.catalogue.profile(name) for name in trying.catalogue.profile_names()],
            sets=trying.sets,
        )
        proposal, edits = locked.proposal, list(locked.edits)
        for one in missing:
            cure = _start_cures.cure(proposal, one, proposed.clone, look)
            if cure is not None and cure.says not in edits:
                proposal = cure.proposal
                edits.append(cure.says)
        if proposal == locked.proposal:
            return locked, missing
        again = proposal_locks.lock_proposal(proposal, trying)
        if again.error is not None:
            return locked, missing
        locked = dataclasses.replace(again, edits=(*edits, *again.edits))
    return locked, _missing(locked, trying, command)


def _missing(locked: LockResult, trying: LockSettings, command: LaunchCommand) -> tuple[ReachedImport, ...]:
    if locked.lock is None:
        return ()
    path = command.environment.get("PYTHONPATH", "")
    return lock_trials.imports_missing(locked.proposal, locked.lock, trying, command.command, path)


def _on_index(missing: Sequence[ReachedImport]) -> Callable[[NormalizedName], bool]:
    known = index_client.offered(_start_cures.names_wanted(missing))
    return lambda name: bool(known.get(name))


def _has_wheel(trying: LockSettings, requirement: Requirement, profile: Profile) -> bool:
    """Tell whether a profile can have a wheel that a requirement allows, as far as the index tells."""
    name = canonicalize_name(requirement.name)
    files = index_client.offered([name])
    if not any(one.filename.endswith(".whl") for one in files.get(name, ())):
        return True
    offers = Offers(profile, tuple(map(trying.catalogue.index, profile.indexes)), files)
    return any(requirement.specifier.contains(version, prereleases=True) for version in offers.versions(name))


def _with_command(proposal: Proposal, lock: Lock | None, command: LaunchCommand, proposed: ProposalResult) -> Proposal:
    ordered = [command, *(one for one in proposed.commands if one != command)]
    files: Mapping[PurePosixPath, bytes] = proposed.clone.files
    launching = launch.launching(ordered)
    locked = {package.name for package in lock.packages} if lock is not None else set()
    facts = dataclasses.replace(
        proposal.facts, launch=launching, imports=launch.modules_to_import(files, locked, launching)
    )
    return dataclasses.replace(proposal, facts=facts)
