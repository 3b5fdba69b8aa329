"""The transaction: source, environment, checks, receipt, switch. Killed anywhere, the old generation still stands."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.catalogue.pairs import require_possible
from patchlock.core import command_lines, disk_space
from patchlock.core.disk_space import SpaceRequirement
from patchlock.environments import failed_verify, fill, generations, kept_catalogue, overlays, preloads, venv
from patchlock.environments.builds import in_tree, in_tree_files
from patchlock.environments.generations import CheckRecord, Receipt
from patchlock.hardware import stored_choice
from patchlock.locks.lock_request import Request, Upstream, fetch, read_patched, read_sealed_lock, require_fresh
from patchlock.model import lockfile
from patchlock.model.addresses import without_secrets
from patchlock.model.app import App
from patchlock.model.checks import Check, ImportsCheck, LoadsCheck, OnnxSessionCheck, OwnCheck, SmokeImportCheck
from patchlock.model.digests import generation_id, sha256
from patchlock.model.errors import SourceConflictError, UsageError, VerifyError
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.installation import Installation
from patchlock.model.lockfile import Lock
from patchlock.model.models import models_for
from patchlock.model.patch import Outcome
from patchlock.model.progress import Progress
from patchlock.operations import _session, launch, missing_imports, readiness
from patchlock.operations.install_plan import built_here, inputs_digest, up_to_date
from patchlock.patches import engine
from patchlock.patches import outcomes as patches_outcomes
from patchlock.verify import checks, proof, sounds, start
from patchlock.verify.checks import LEVELS
from patchlock.worktree import clone, clone_patches, move, trees, upstream_cache


@dataclass(frozen=True, kw_only=True)
class InstallResult:
    """What an install did."""

    receipt: Receipt
    outcomes: tuple[Outcome, ...]
    merged: tuple[str, ...]
    """Files where the user's edits were kept by merging."""
    seconds: float
    notes: tuple[str, ...]
    """What the machine lacks that did not stop the install."""
    warnings: tuple[str, ...]
    """That the lock is older than files of the catalogue, advisory patches that were left out, files that a patch could
    not read."""
    computed: int
    """Kernels that work where the profile computes; with none of them, nothing may be called verified."""
    was_done: bool = False
    """Whether another patchlock has installed exactly that in the meantime; nothing of the above was done then."""
    unproved: VerifyError | None
    """That nothing was computed on a device, which somebody has to want."""


def install(
    request: Request,
    progress: Progress,
    *,
    leave_conflicts: bool = False,
    ignore_needs: bool = False,
    no_device: bool = False,
) -> InstallResult:
    """Install an app, or finish or update an install; see `install_plan.up_to_date` for when there is nothing to do.

    Args:
        request: what to install.
        progress: told what goes on.
        leave_conflicts: where the user's edits and ours meet, leave both between markers instead of writing nothing.
        ignore_needs: only tell what the app and the profile need and this machine lacks.
        no_device: nothing has to be computed, as it is meant for another machine.

    Raises:
        LockFormatError: the lock was changed after it was made, and nobody says that he edited it; nothing was touched.
        UntrustedCatalogueError: nobody has agreed that this catalogue runs code; nothing was touched.
        NotReadyError: the machine lacks something; nothing was touched.
        SourceConflictError: the user's edits and ours meet; the generation in use is as it was.
        PatchlockError: one of its other kinds; the generation in use is as it was.
    """
    started = time.monotonic()
    is_needed = up_to_date(request) is None
    require_possible(request.app, request.profile, request.platform)
    request.catalogue.require_trusted()
    with progress.stage("preflight"):
        _preflight(request)
        overlays.require_possible(request)
        lock, data = read_sealed_lock(request)
        ready = readiness.require(request, lock, ignore_needs=ignore_needs)
        progress.say(f"{request.profile.name} on {request.platform.name}, {ready.says}")
        for finding in ready.findings:
            if not finding.stops and (finding.is_sure or finding.kind == "trouble"):
                progress.note(f"{'warning' if finding.kind == 'trouble' else 'note'}: {finding}")
        if not lock.is_intact:
            progress.note(f"the lock {lockfile.EDITED}")
        if built := built_here(request, lock):
            from patchlock.locks import sdist_declarations  # which an install of wheels has no use for

            progress.note(f"built from source on this machine, which may take minutes: {', '.join(built)}")
            for doubt in sdist_declarations.failing_builds(lock.packages, request.cache):
                progress.note(f"warning: {doubt}")
    with contextlib.ExitStack() as stack:
        held = stack.enter_context(_session.lock(request.installation, progress))
        before = stored_choice.read(request.installation.folder)
        if request.kept is not None:
            kept = dataclasses.replace(request.kept, instead=before.instead)
            stored_choice.write(request.installation.folder, kept)
        if is_needed and not before.instead and (done := up_to_date(request)) is not None:
            return _was_done(done, ready.notes)
        stack.enter_context(_session.begun(request))
        with progress.stage("source"):
            job = _prepare(request, lock, data, held, ready.python, leave_conflicts=leave_conflicts)
            counted = patches_outcomes.counted(job.upstream.patched.outcomes)
            progress.say(f"commit {job.upstream.snapshot.commit[:12]}; patches: {counted}")
            warnings = (
                *([job.newer_files] if job.newer_files else []),
                *patches_outcomes.warnings(job.upstream.patched),
            )
            missing = missing_imports.missing_imports(request, job.upstream, lock)
            warnings += (missing_imports.told(request, lock, missing),) if missing else ()
            for text in warnings:
                progress.note(f"warning: {text}")
        receipt, merged, computed = _bring_up(job, progress)
        is_unproved = not (computed or no_device or request.profile.back_end == "cpu")
        if before.instead and not is_unproved:
            kept = stored_choice.read(request.installation.folder)
            stored_choice.write(request.installation.folder, dataclasses.replace(kept, instead=""))
    return InstallResult(
        receipt=receipt,
        outcomes=job.upstream.patched.outcomes,
        merged=tuple(str(path) for path in merged),
        seconds=time.monotonic() - started,
        notes=ready.notes,
        warnings=warnings,
        computed=computed,
        unproved=_unproved(request) if is_unproved else None,
    )


def _was_done(receipt: Receipt, notes: tuple[str, ...]) -> InstallResult:
    return InstallResult(
        receipt=receipt,
        outcomes=(),
        merged=(),
        seconds=0.0,
        notes=notes,
        warnings=(),
        computed=0,
        unproved=None,
        was_done=True,
    )


def _unproved(request: Request) -> VerifyError:
    pair = f"{request.app.name} --profile {request.profile.name}"
    return VerifyError(
        f"{request.app.name} is installed; not verified: nothing was computed on {request.profile.back_end}, as no "
        "device was found",
        where=str(request.installation.folder),
        remedy=f"where the device is, run `patchlock verify {pair}`; an install that is meant for another machine is "
        "made with --no-device",
    )


@dataclass(frozen=True, kw_only=True)
class _Job:
    """An install that knows all it needs and has not touched the working tree yet."""

    request: Request
    upstream: Upstream
    lock: Lock
    lock_digest: Sha256
    applied: CommitId
    ref: str
    """Of the patched commit, in our cache."""
    inputs: Sha256
    name: str
    """Of the generation; its environment was made, and is empty, where it is not complete."""
    held: int
    """Descriptor of the installation's lock."""
    leave_conflicts: bool
    newer_files: str
    """That files of the catalogue are newer than the lock, which still holds; or ""."""


def _prepare(request: Request, lock: Lock, data: bytes, held: int, python: str, *, leave_conflicts: bool) -> _Job:
    snapshot, digest = fetch(request), sha256(data)
    clone.require_complete(request.installation.source, snapshot)
    inputs = inputs_digest(request, data, snapshot.commit)
    name = _name(request, generation_id(digest, snapshot.commit, inputs))
    folder = generations.generation(request.installation, name)
    upstream = read_patched(request, snapshot)
    newer_files = require_fresh(request, lock, upstream)
    ref, applied = commit_patched(request, upstream)
    if generations.read_receipt(folder) is None:
        venv.create(folder, python, lock=held)
    return _Job(
        request=request,
        upstream=upstream,
        lock=lock,
        lock_digest=digest,
        applied=applied,
        ref=ref,
        inputs=inputs,
        name=name,
        held=held,
        leave_conflicts=leave_conflicts,
        newer_files=newer_files,
    )


def commit_patched(request: Request, upstream: Upstream) -> tuple[str, CommitId]:
    """Commit the patched files in our cache; gives the ref, and the commit."""
    ref = f"refs/patchlock/{request.profile.name}"
    message = patches_outcomes.commit_message(request.app, request.profile, upstream.patched.outcomes)
    snapshot = upstream.snapshot
    files = {snapshot.directory / change.path: change.after for change in upstream.patched.changes}
    scripts = [snapshot.directory / change.path for change in upstream.patched.changes if change.is_executable]
    with upstream_cache.held(snapshot.repository):
        applied = trees.commit_files(
            snapshot.repository, files, parent=snapshot.tree, message=message, ref=ref, executable=scripts
        )
    return ref, applied


def _bring_up(job: _Job, progress: Progress) -> tuple[Receipt, tuple[PurePosixPath, ...], int]:
    """Build the generation, move the working tree, prove that it works, and only then switch.

    Returns:
        The receipt, the files where edits were merged, and how many kernels work.
    """
    request, installation = job.request, job.request.installation
    before = generations.current(installation)
    folder = generations.generation(installation, job.name)
    receipt = generations.read_receipt(folder)
    with progress.stage("environment"):
        progress.say(f"{len(job.lock.packages)} packages")
        if receipt is None:
            fill.fill(request, job.lock, folder, progress, job.held)
            overlays.install_overlays(request, folder, progress.say, progress.note)
            kept_catalogue.keep(folder, request.catalogue.root, request.app)
        progress.say(f"{len(job.lock.packages)} packages, each with its sha256")
    with progress.stage("patch"):
        moved = _move_source(job)
        kept = f", your edits kept in {len(moved.merged)}" if moved.merged else ""
        kept += f", {', '.join(map(str, moved.removed))} left out, as you removed it with git" if moved.removed else ""
        count = len(job.upstream.patched.changes)
        progress.say(f"{count} file{'' if count == 1 else 's'}{kept}")
    for edit in moved.replaced:
        version = f"{clone.tree_of(installation.source).ref(move.BEFORE)}:{edit.path}"
        yours = command_lines.joined(["git", "-C", str(installation.source), "show", version])
        progress.note(f"{clone_patches.replaced(edit)}; `{yours}` prints your version")
    try:
        proved = _checked(job, folder, progress)
        receipt = _receipt(job, proved.results, proved.reservation, receipt)
        generations.write_receipt(folder, receipt)
        failed_verify.forget(folder, [result.id for result in proved.results if result.passed])
    except BaseException as error:
        if before is not None:  # the old environment gets the source that it was made for
            with trees.hold(clone.tree_of(installation.source)):
                move.move(clone.tree_of(installation.source), before.applied)
            in_tree_files.apply_generation(installation, generations.generation(installation, before.id))
            if isinstance(error, Exception):  # nothing is left to finish: all is as it was
                installation.journal.unlink(missing_ok=True)
        raise
    clone.protect_generation(installation.source, job.name, job.applied)
    generations.switch(installation, job.name)
    return receipt, moved.merged, proved.computed


def _checked(job: _Job, folder: Path, progress: Progress) -> proof.ProofResult:
    _build_in_tree(job, folder, progress)
    # Also where the generation was complete already: the source may have moved, or the user have changed it.
    with progress.stage("verify"):
        needed = patches_outcomes.smoke_checks(job.request.app.patches, job.upstream.patched.outcomes)
        proved = prove(job.request, job.lock, folder, progress, needed, is_short=True)
        checks.require_passed(proved.results, job.request.app.name)
        progress.say(f"{len(proved.results)} checks passed{proved.caveat}")
    return proved


def _build_in_tree(job: _Job, folder: Path, progress: Progress) -> None:
    """Build what the app keeps in its own tree, and take out what an earlier generation had there."""
    wanted = in_tree.in_tree_builds(job.request)
    stage = progress.stage("build") if wanted else contextlib.nullcontext()
    with stage:
        tell = progress.say if wanted else lambda _text: None
        kept = in_tree.build_extensions(job.request, job.lock, folder, job.applied, tell=tell, held=job.held)
        if wanted:
            progress.say(", ".join(f"{one.id} in {one.folder}" for one in wanted))
    if kept:
        progress.note(f"kept your own file instead of the built one: {', '.join(map(str, kept))}")


def _move_source(job: _Job) -> move.Moved:
    source = job.request.installation.source
    if not source.exists():
        clone.make(source, job.request.app, job.upstream.snapshot, job.ref, job.held)
        return move.Moved(written=tuple(change.path for change in job.upstream.patched.changes))
    tree = clone.tree_of(source)
    with trees.hold(tree), trees.refs_kept(source, "refs/remotes", tree.ref(clone.INCOMING)):
        clone.prepare(source, job.upstream.snapshot, job.ref, job.held)
        wanted, request = job.request.app, job.request
        moved = move.move(
            tree,
            job.applied,
            restore_all=request.reinstall,
            leave_conflicts=job.leave_conflicts,
            by_meaning=clone_patches.by_meaning(
                engine.for_profile(wanted.patches, request.profile.name, request.chosen),
                wanted.directory,
                job.upstream.patched,
            ),
            app=wanted.name,
        )
    if moved.conflicts:
        app = wanted.name
        raise SourceConflictError(
            f"your edits conflict with ours in {', '.join(map(str, moved.conflicts))}: "
            "both versions are there, between conflict markers",
            where=str(source),
            remedy=f"resolve each, then run `patchlock update {app}` again; "
            f"`patchlock update {app} --abort` undoes the update",
        )
    return moved


def _name(request: Request, digest: str) -> str:
    """Name the generation: by its digest, or with a number where the same one is to be built afresh."""
    if not request.reinstall:
        current = generations.current(request.installation)
        if current is not None and current.id.partition("-")[0] == digest:
            return current.id
        return digest
    return next_name(request.installation, digest)


def next_name(installation: Installation, digest: str) -> str:
    """Name a generation by its digest, with a number where there are complete ones of the same."""
    taken = {receipt.id for receipt in generations.receipts(installation)}
    return next(name for n in range(1, len(taken) + 2) if (name := f"{digest}-{n}" if n > 1 else digest) not in taken)


def _receipt(job: _Job, results: tuple[checks.CheckResult, ...], unverified: str, before: Receipt | None) -> Receipt:
    request, name = job.request, job.name
    made, now = generations.receipts(request.installation), generations.current(request.installation)
    is_used = before is not None and now is not None and before.id == now.id
    source = request.installation.source
    patched = patches_outcomes.patched_digests(job.upstream.patched.changes, request.app.directory)
    return Receipt(
        id=name,
        app=request.app.name,
        profile=request.profile.name,
        platform=request.platform.name,
        python=venv.python_version(generations.generation(request.installation, name)),
        upstream=job.upstream.snapshot.commit,
        applied=job.applied,
        inputs=job.inputs,
        lock=job.lock_digest,
        packages=len(job.lock.packages),
        made=before.made if before else datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        sequence=before.sequence if before and is_used else 1 + max((receipt.sequence for receipt in made), default=0),
        environment=request.profile.environment,
        patched=patched,
        present={file: sha256((source / file).read_bytes()) for file in patched if (source / file).is_file()}
        | in_tree.present(generations.generation(request.installation, name), source),
        checks=tuple(CheckRecord(id=r.id, level=r.level, detail=r.detail) for r in results),
        overlays=preloads.archives(generations.generation(request.installation, name)),
        shared=tuple(one.name for one in request.app.shared),
        chosen=request.chosen,
        edited_lock=not job.lock.is_intact,
        source=without_secrets(upstream_cache.absolute_address(request.source)) if request.source is not None else "",
        unverified=unverified,
    )


def _preflight(request: Request) -> None:
    home = str(request.home)
    if (os.name == "posix" and os.pathsep in home) or home.encode(errors="replace").decode() != home:
        raise UsageError(
            "an environment cannot work in a folder whose name has a colon, or bytes that are no UTF-8",
            where=home,
            remedy="choose another one with PATCHLOCK_HOME",
        )
    rest = SpaceRequirement(
        what="sources and small files", folder=request.home, size=readiness.LEAST_ROOM, variable="PATCHLOCK_HOME"
    )
    disk_space.require([rest])


def prove(
    request: Request,
    lock: Lock,
    folder: Path,
    progress: Progress,
    executed: Iterable[SmokeImportCheck],
    *,
    is_short: bool = False,
) -> proof.ProofResult:
    """Prove what a generation does: it is what was installed, it loads, its device computes, the app's own checks pass.

    Args:
        request: the pair.
        lock: of the generation.
        folder: the generation.
        progress: told what runs.
        executed: ensures of patches that are executed.
        is_short: see `verify.proof.ProofPlan`.
    """
    where, tell, profile = launch.check_context(request, folder), progress.say, request.profile
    every = (*profile.checks, *executed, *request.app.checks)
    known = request.catalogue.expectations(profile.back_end)
    tell("packages")
    stands = checks.check_environment(lock, where)
    wanted = proof.plan_proof(lock, every, profile.back_end, known, is_short=is_short)
    proved = proof.prove(wanted, where, tell)
    # What kernels need was imported by now: the start of a program has a time limit.
    tell(start.ID)
    others = [check for check in every if isinstance(check, LoadsCheck | OwnCheck) and not _is_empty(check)]
    declared = start.DeclaredModels(app=request.app.name, models=models_for(request.app.models, request.profile.name))
    command = request.app.launch
    started = None if command.is_placeholder else start.prove(command, where, profile.back_end, others, declared)
    shown, of_start = (started.shown, started.check) if started else (None, None)
    loads = checks.run([one for one in others if isinstance(one, LoadsCheck)], where, tell, shown)
    own = checks.run([one for one in others if isinstance(one, OwnCheck) and one is not of_start], where, tell)
    # An install lets the app make its first sound; `verify` all of them.
    wanted_sounds = request.app.sounds[: 1 if is_short else None]
    heard = sounds.listen(wanted_sounds, where, profile.name, profile.back_end, request.installation.sounds, tell)
    starts = (started.result, *started.computed) if started else ()
    results = sorted(
        (*stands, *loads, *starts, *proved.results, *own, *heard), key=lambda result: LEVELS.index(result.level)
    )
    return dataclasses.replace(proved, results=tuple(results), unverified=_unverified(request.app, executed, started))


def _is_empty(check: Check) -> bool:
    return isinstance(check, ImportsCheck) and check.is_empty


def _unverified(app: App, executed: Iterable[SmokeImportCheck], started: start.StartProof | None) -> str:
    """Say what no check has shown of an app whose file does not say how it is started, a clause; "" of any other."""
    file = app.origin.file
    if started is not None:
        return f"{started.unverified}: see [launch] in {file}" if started.unverified else ""
    if any(not (isinstance(one, OnnxSessionCheck) or _is_empty(one)) for one in (*executed, *app.checks)):
        return f"the app was not started, as [launch] in {file} names no program yet"
    return f"nothing of the app is verified yet: fill in [launch] and [[check]] in {file}"
