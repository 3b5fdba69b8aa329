"""Prove before anything is installed that a proposed app can start: what its program imports is in its lock."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.proposals import launch, module_names, removed_interfaces, submodules
from patchlock.catalogue.proposals.findings import Finding, Issue, Proposal
from patchlock.catalogue.proposals.imports import Imports
from patchlock.catalogue.proposals.launch_commands import LaunchCommand
from patchlock.core import uv
from patchlock.distributions import index_client
from patchlock.locks import lock_request
from patchlock.model.lockfile import Lock
from patchlock.operations import _start_cures, missing_imports, proposal_locks
from patchlock.operations.missing_imports import KnownModules
from patchlock.operations.proposal_locks import LockResult, LockSettings
from patchlock.operations.propose_app import ProposalResult
from patchlock.patches import import_graph
from patchlock.patches.import_graph import ReachedImport

_ROUNDS = 4
_TRIED = 4
"""Commands."""


@dataclass(frozen=True, kw_only=True)
class StartResult:
    """How far a proposal comes."""

    locked: LockResult
    missing: tuple[ReachedImport, ...]
    """What its program imports at its start, and that nothing brings."""
    issues: tuple[Issue, ...] = ()
    """What is to be told: that, and what the locked libraries have no more."""


def prove(
    proposed: ProposalResult, locked: LockResult, trying: LockSettings, tell: Callable[[str], None] = lambda _: None
) -> StartResult:
    """Bring what the program imports at its start, and take the first command that has all; writes proposal and lock.

    Args:
        proposed: the app and the commands that may start it.
        locked: its lock, which there is.
        trying: where and for what locks are tried.
        tell: called with what goes on.
    """
    found: list[tuple[LockResult, tuple[ReachedImport, ...], LaunchCommand]] = []
    for command in proposed.commands[:_TRIED]:
        tell(f"following the imports of {' '.join(command.command)}")
        mended, missing = _cured(proposed, locked, trying, command, tell)
        found.append((mended, missing, command))
        if not missing:
            break
    if not found:
        return StartResult(locked=locked, missing=())
    best, missing, command = min(found, key=lambda one: len(one[1]))
    if missing:
        best, missing, command = found[0]
    proposal = _with_command(best.proposal, best.lock, command, proposed)
    lock = best.lock
    if proposal != locked.proposal or any(one is not locked for one, _, _ in found):
        tell("renewing the lock for the whole proposal")
        lock = proposal_locks.renew(proposal, trying)
    versions = {package.name: package.version for package in lock.packages} if lock is not None else {}
    trees = proposed.clone.trees
    made = _made_by_builds(proposed, command)
    found_issues = (
        *((_issue(missing, trying),) if missing else ()),
        *((_issue_of_builds(made),) if made else ()),
        *submodules.issues(proposed.clone.submodules, Imports(trees.files, trees), [one.module for one in missing]),
        *removed_interfaces.find(trees, versions),
    )
    return StartResult(
        locked=dataclasses.replace(best, proposal=proposal, lock=lock), missing=(*missing, *made), issues=found_issues
    )


def _issue(missing: Sequence[ReachedImport], trying: LockSettings) -> Issue:
    """Tell of imports that nothing brings."""
    places = tuple(Finding(path=one.path, line=one.line, text=f"imports {one.module}") for one in missing)
    return Issue(
        name="missing-at-the-start",
        title="the program imports at its start what nothing requires",
        means="it ends with ModuleNotFoundError",
        found=places,
        remedy="find out what brings it, and require that" + ("" if trying.solve else "; `--solve` looks for it"),
    )


def _made_by_builds(proposed: ProposalResult, command: LaunchCommand) -> tuple[ReachedImport, ...]:
    """Name modules of the app's own packages that its program imports at its start, and no file of the commit is."""
    trees, path = proposed.clone.trees, command.environment.get("PYTHONPATH", "")
    packages = {one.parent.name for one in trees.files if one.name == "__init__.py"}
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
    tell: Callable[[str], None],
) -> tuple[LockResult, tuple[ReachedImport, ...]]:
    for _ in range(_ROUNDS):
        missing = _missing(locked, trying, command)
        if not missing or not trying.solve:
            return locked, missing
        on_index = _on_index(missing)
        proposal, edits = locked.proposal, list(locked.edits)
        for one in missing:
            cure = _start_cures.cure(proposal, one, proposed.clone, on_index)
            if cure is not None and cure.says not in edits:
                proposal = cure.proposal
                edits.append(cure.says)
        if proposal == locked.proposal:
            return locked, missing
        again = proposal_locks.lock_proposal(proposal, trying, tell)
        if again.error is not None:
            return locked, missing
        locked = dataclasses.replace(again, edits=(*edits, *again.edits))
    return locked, _missing(locked, trying, command)


def _missing(locked: LockResult, trying: LockSettings, command: LaunchCommand) -> tuple[ReachedImport, ...]:
    if locked.lock is None:
        return ()
    request = proposal_locks.request_for(locked.proposal, trying)
    upstream = lock_request.read_patched(request)
    files = missing_imports.read_files(upstream)
    if files is None:
        return ()
    packages = KnownModules(locked.lock.packages, trying.cache, module_names.brings)
    return missing_imports.of_program(files, packages, command.command, command.environment.get("PYTHONPATH", ""))


def _on_index(missing: Sequence[ReachedImport]) -> _start_cures.OnIndex:
    is_asked = index_client.is_asked(online=uv.is_online())
    known = index_client.read_all(_start_cures.names_wanted(missing)) if is_asked else {}
    return lambda name: bool(known.get(name))


def _with_command(proposal: Proposal, lock: Lock | None, command: LaunchCommand, proposed: ProposalResult) -> Proposal:
    ordered = [command, *(one for one in proposed.commands if one != command)]
    files: Mapping[PurePosixPath, bytes] = proposed.clone.files
    launching = launch.launching(ordered)
    locked = {package.name for package in lock.packages} if lock is not None else set()
    facts = dataclasses.replace(
        proposal.facts, launch=launching, imports=launch.modules_to_import(files, locked, launching)
    )
    return dataclasses.replace(proposal, facts=facts)
