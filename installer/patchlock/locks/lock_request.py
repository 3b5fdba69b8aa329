"""What is asked for, and all that can be known about it before anything is touched; writes nothing but the cache."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from packaging.utils import NormalizedName, canonicalize_name

from patchlock.catalogue import codemods, optional_patches
from patchlock.catalogue.reader import Catalogue
from patchlock.core import command_lines
from patchlock.model import build_constraints, lockfile
from patchlock.model.app import App, EmbeddedUpstream, rules_of
from patchlock.model.digests import sha256
from patchlock.model.errors import LockFormatError, LockMissingError, LockStaleError, UpstreamError
from patchlock.model.fits import Platform
from patchlock.model.hosts import Host
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.installation import Installation
from patchlock.model.lock_rules import Constraint, Exclusion, LockRules
from patchlock.model.lockfile import Lock, LockedPackage
from patchlock.model.origins import UPSTREAM, Origin
from patchlock.model.patch import Outcome, Patched
from patchlock.model.profile import Profile
from patchlock.model.recorded_index import RecordedIndex
from patchlock.patches import engine, outcomes, requirements_for_locks, targets
from patchlock.worktree import patch_cache, upstream_cache

if TYPE_CHECKING:
    from patchlock.hardware.profile_choice import ProfileChoice
    from patchlock.hardware.stored_choice import StoredChoice
    from patchlock.locks.resolution_inputs import ResolutionInputs
    from patchlock.patches.pip_requirements import RequirementLine


@dataclass(frozen=True, kw_only=True)
class Request:
    """One app on one profile, with all that the user chose."""

    app: App
    profile: Profile
    platform: Platform
    catalogue: Catalogue
    home: Path
    cache: Path
    source: str | None = None
    """Another place to take upstream from, a path or a URL."""
    revision: str | None = None
    """Another commit than the catalogue's."""
    reinstall: bool = False
    archives: tuple[Path, ...] = ()
    """Archives of overlays that the user has; each stands for the one that the profile calls so."""
    accept_changed: tuple[str, ...] = ()
    """Archives of overlays that may have other bytes than at their first use."""
    accept_edited_lock: bool = False
    """Whether the lock's owner says that he edited it."""
    local_addresses: bool = False
    """Whether the lock may name files of this machine, and servers on it."""
    chosen: tuple[str, ...] = ()
    """Names of optional patches, sorted."""
    machine: ProfileChoice | None = None
    """For which machine and device the profile was chosen; None where nobody has looked."""
    kept: StoredChoice | None = None
    """What was chosen for it of the machine's devices now; None where nobody has looked: an earlier one is kept."""

    @property
    def simulated(self) -> Host | None:
        """Give the machine that is simulated; None where it is this one."""
        observed = self.machine.observed if self.machine else None
        return observed.host if observed and observed.overrides else None

    @property
    def installation(self) -> Installation:
        """The folder of this app on this profile."""
        return Installation(folder=self.home / f"{self.app.name}@{self.profile.name}")

    @property
    def lock_path(self) -> Path:
        """The lockfile in the catalogue."""
        return self.catalogue.lock_path(self.app, self.profile, self.platform)

    @property
    def lock_name(self) -> str:
        """The same as a POSIX path from the catalogue's root."""
        return self.lock_path.relative_to(self.catalogue.root).as_posix()

    @property
    def build_path(self) -> Path:
        """The file beside the lock that pins what builds its sdists."""
        return self.catalogue.build_path(self.lock_path)


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """Upstream's files as the wanted commit has them, patched."""

    snapshot: upstream_cache.Snapshot
    requirements: dict[PurePosixPath, bytes]
    """The patched requirement files and all that they include."""
    raw: dict[PurePosixPath, bytes]
    """The same files before patching."""
    patched: Patched


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What the patches are applied to."""

    contents: dict[PurePosixPath, bytes]
    """All files that the patches may touch, before patching, by path from the app's folder."""
    seen: dict[PurePosixPath, bytes]
    """Files as the patches' author saw them that are not there any more; see `patches.engine.apply`."""


@dataclass(frozen=True, kw_only=True)
class UpstreamRequirements:
    """What upstream asks for: all that a lock needs of it."""

    snapshot: upstream_cache.Snapshot
    requirements: Mapping[PurePosixPath, bytes]
    """The patched requirement files and all that they include, by path from the app's folder."""
    raw: Mapping[PurePosixPath, bytes]
    """The same files before patching."""
    patched_by: Mapping[NormalizedName, tuple[str, ...]]
    """Distribution → patches that edited its requirement."""
    outcomes: tuple[Outcome, ...]
    """Of the patches that were applied."""


def upstream_requirements(request: Request, upstream: Upstream) -> UpstreamRequirements:
    """Take what a lock needs from upstream's files, where all of them were patched."""
    return UpstreamRequirements(
        snapshot=upstream.snapshot,
        requirements=upstream.requirements,
        raw=upstream.raw,
        patched_by=outcomes.patched_by(request.app.patches, upstream.patched),
        outcomes=upstream.patched.outcomes,
    )


def fetch(request: Request) -> upstream_cache.Snapshot:
    """Fetch the wanted commit of upstream, if need be.

    Raises:
        UpstreamError: upstream cannot be reached, or does not hold the commit.
    """
    return upstream_cache.fetch(
        request.app,
        catalogue=request.catalogue.root,
        cache=request.cache,
        source=request.source,
        revision=request.revision,
    )


def read_upstream(request: Request, fetched: upstream_cache.Snapshot | None = None) -> Upstream:
    """Apply the patches to the files of the wanted commit in memory.

    Args:
        request: the pair.
        fetched: the commit, where `fetch` was called already.

    Raises:
        UpstreamError: upstream cannot be reached, or does not hold the commit.
        RequirementsError: a requirement file cannot be read.
        CatalogueError: an optional patch changes a requirement file.
    """
    app = request.app
    snapshot = fetched or fetch(request)
    wanted = engine.for_profile(app.patches, request.profile.name, request.chosen)
    given = sources(request, snapshot)
    with patch_cache.evaluator(request.cache) as evaluator:
        patched = engine.apply(wanted, given.contents, given.seen, evaluator)
    after = given.contents | {change.path: change.after for change in patched.changes}
    asked, others = _asked(app, snapshot, after)
    optional_patches.require_same_lock(wanted, patched.outcomes, asked.paths)
    before = given.contents | others
    return Upstream(
        snapshot=snapshot,
        requirements={path: (after | others)[path] for path in asked.paths},
        raw={path: before[path] for path in asked.paths if path in before},
        patched=patched,
    )


def _asked(
    app: App, snapshot: upstream_cache.Snapshot, files: Mapping[PurePosixPath, bytes]
) -> tuple[requirements_for_locks.AskedRequirements, dict[PurePosixPath, bytes]]:
    """Read the requirement files, and what they include; gives the files that were not among the given ones too."""
    read_other, others = _read_others(app, snapshot)
    asked = requirements_for_locks.read_all(
        app.requirement_files,
        files,
        wanted=app.optional_lists,
        directory=app.directory,
        read=read_other,
        app_file=app.origin.file,
    )
    return asked, others


def _paths_asked(
    app: App, snapshot: upstream_cache.Snapshot, files: Mapping[PurePosixPath, bytes]
) -> frozenset[PurePosixPath]:
    """Name the requirement files, and what they include, also where a patch has yet to mend them."""
    read_other, _ = _read_others(app, snapshot)
    asked, _ = requirements_for_locks.walk(
        app.requirement_files, files, wanted=app.optional_lists, directory=app.directory, read=read_other
    )
    return frozenset(asked.paths)


def _read_others(
    app: App, snapshot: upstream_cache.Snapshot
) -> tuple[requirements_for_locks.Read, dict[PurePosixPath, bytes]]:
    """Give what reads further files of the commit, and the files that it has read."""
    others: dict[PurePosixPath, bytes] = {}

    def read_other(path: PurePosixPath) -> bytes | None:
        """Read a file that no patch names: of another kind than most requirement files, or outside the app's folder."""
        place = requirements_for_locks.resolve_include(app.directory / "any", str(path))
        whole = dataclasses.replace(snapshot, directory=PurePosixPath())
        data = upstream_cache.read(whole, [place]).get(place) if place is not None else None
        if data is not None:
            others[path] = data
        return data

    return read_other, others


def read_requirements(request: Request) -> UpstreamRequirements:
    """Patch upstream's requirement files, and whatever they include, and no other file: a lock needs nothing else.

    Raises:
        UpstreamError: upstream cannot be reached, or does not hold the commit.
        RequirementsError: a requirement file cannot be read, or names an index that the profile does not have.
        CatalogueError: an optional patch changes a requirement file.
        PatchError: a patch of one cannot do what it says.
    """
    app, snapshot = request.app, fetch(request)
    wanted = engine.for_profile(app.patches, request.profile.name, request.chosen)
    before: dict[PurePosixPath, bytes] = {}
    paths: frozenset[PurePosixPath] = frozenset(app.requirement_files)
    with patch_cache.evaluator(request.cache) as evaluator:
        while True:  # what they include is known when they are patched
            before |= upstream_cache.read(snapshot, sorted(paths - before.keys()))
            concerned = [patch for patch in wanted if paths & set(targets.matching_files(patch, before))]
            patched = engine.apply(concerned, before, {}, evaluator)
            after = before | {change.path: change.after for change in patched.changes}
            included = _paths_asked(app, snapshot, after)
            if paths >= included:
                break
            paths |= included
    asked, others = _asked(app, snapshot, after)
    recorded: dict[NormalizedName, str] = {}
    for index in indexes_of(request):
        names = {wheel.name for wheel in index.wheels} | {sdist.name for sdist in index.sdists}
        recorded = dict.fromkeys(names, index.url) | recorded
    requirements_for_locks.require_indexes(asked, recorded, request.profile.name)
    engine.require_complete(patched, f"{app.name} at {snapshot.commit[:12]}")
    optional_patches.require_same_lock(concerned, patched.outcomes, asked.paths)
    return UpstreamRequirements(
        snapshot=snapshot,
        requirements={path: (after | others)[path] for path in asked.paths},
        raw={path: (before | others)[path] for path in asked.paths if path in before.keys() | others.keys()},
        patched_by=outcomes.patched_by(concerned, patched),
        outcomes=patched.outcomes,
    )


def idle_patches(request: Request, asked: UpstreamRequirements) -> tuple[str, ...]:
    """Name the patches that find nothing though a lock's versions depend on them; see `outcomes.idle_requirements`."""
    app, commit = request.app, asked.snapshot.commit
    found = {outcome.patch for outcome in asked.outcomes} - outcomes.gone(asked.outcomes)
    wanted = filter(outcomes.decides_versions, engine.for_profile(app.patches, request.profile.name, request.chosen))
    if commit != app.upstream.commit or found.issuperset(patch.id for patch in wanted):
        return ()
    with contextlib.suppress(UpstreamError):  # of a file that the lock has no use for, nothing need be known
        return outcomes.idle_requirements(app, commit, read_upstream(request, asked.snapshot).patched.outcomes)
    return ()


def lowering_patches(request: Request, asked: UpstreamRequirements, before: CommitId) -> tuple[str, ...]:
    """Name the patches that take an older version than upstream asks for since another commit, a clause each."""
    with contextlib.suppress(UpstreamError):  # of a commit that cannot be had any more, nothing is said
        fetch(dataclasses.replace(request, revision=before))
    old = upstream_cache.read_known(asked.snapshot, before, asked.raw.keys())
    patches = {patch.id: patch for patch in request.app.patches}
    return tuple(
        f"the patch {one.patch} ({patches[one.patch].origin}) takes an older version than upstream, which now has "
        f"`{site.text}` ({one.path}:{site.line}): see whether upstream's works now"
        for one in asked.outcomes
        if one.path is not None and one.path in asked.raw and one.path in old
        if not outcomes.lowered(patches[one.patch], one.path, old[one.path])
        for site in outcomes.lowered(patches[one.patch], one.path, asked.raw[one.path])
    )


def read_patched(request: Request, fetched: upstream_cache.Snapshot | None = None) -> Upstream:
    """Apply the patches as `read_upstream` does, for those who can use nothing but a complete result.

    Raises:
        PatchError: a patch cannot do what it says.
    """
    upstream = read_upstream(request, fetched)
    engine.require_complete(upstream.patched, f"{request.app.name} at {upstream.snapshot.commit[:12]}")
    return upstream


def sources(request: Request, snapshot: upstream_cache.Snapshot) -> Sources:
    """Read the files of a commit that the patches, or a lock, want to see.

    Raises:
        UpstreamError: a file cannot be had.
    """
    app = request.app
    wanted = engine.for_profile(app.patches, request.profile.name, request.chosen)
    listed = upstream_cache.files(snapshot.repository, snapshot.tree, snapshot.directory)
    texts = {path for path in listed if path.suffix in {".txt", ".in"}}
    paths = {*targets.candidates(wanted, listed), *app.requirement_files} & listed.keys()
    gone = {path for patch in wanted for path in targets.missing(patch, listed)}
    return Sources(
        contents=upstream_cache.read(snapshot, sorted(paths), optional=sorted(texts)),
        seen=upstream_cache.read_known(snapshot, app.upstream.commit, gone),
    )


def read_lock(request: Request) -> tuple[Lock, bytes]:
    """Read the lock of a pair, and its bytes.

    Raises:
        LockMissingError: there is none.
        LockFormatError: it is none of ours.
    """
    name = request.lock_name
    try:
        data = request.lock_path.read_bytes()
    except FileNotFoundError as error:
        raise LockMissingError(
            f"there is no lock for {request.app.name} on {request.profile.name} on {request.platform.name}",
            where=name,
            remedy=f"make it on a connected machine: `{_lock_command(request)}`",
        ) from error
    lock = lockfile.parse(data.decode("utf-8", errors="replace"), name)
    made_for = (lock.provenance.app, lock.provenance.profile, lock.provenance.platform)
    if made_for != (request.app.name, request.profile.name, request.platform.name):
        raise LockFormatError(
            f"it is the lock of {' on '.join(made_for)}", where=name, remedy=f"run `{_lock_command(request)}`"
        )
    return lock, data


def read_sealed_lock(request: Request) -> tuple[Lock, bytes]:
    """Read the lock of a pair as `read_lock` does, for those who install what it names.

    Raises:
        LockMissingError: there is none.
        LockFormatError: it is none of ours, or was changed after it was made and nobody says that he edited it, or it
            names an address that no lock may have.
    """
    lock, data = read_lock(request)
    root = request.catalogue.root
    name = request.lock_name
    lockfile.require_addresses(lock, name, local=request.local_addresses)
    if request.accept_edited_lock:
        return lock, data
    remedy = f"make it again with `{_lock_command(request)}`"
    if (root / ".git").exists():
        remedy += f", or undo the change with `git -C {command_lines.quoted(str(root))} checkout -- {name}`"
    pair = f"{request.app.name} --profile {request.profile.name}"
    remedy += f"; if the edit is yours, `patchlock install {pair} --accept-edited-lock` installs it as edited"
    lockfile.require_sealed(lock, name, remedy)
    return lock, data


def build_objections(request: Request, lock: Lock) -> tuple[str, ...]:
    """Say why the file that pins what builds a lock's sdists is not the one that the lock names; empty if it is."""
    path = request.build_path
    data = path.read_bytes() if path.is_file() else None
    name = path.relative_to(request.catalogue.root).as_posix()
    return build_constraints.objections(lock.provenance.build_constraints, data, name)


def build_pins(lock: Lock, path: Path) -> tuple[LockedPackage, ...]:
    """Read what the builds of a lock may require; empty where nothing is built.

    Args:
        lock: which.
        path: of the file beside it.
    """
    if not lock.provenance.build_constraints:
        return ()
    return build_constraints.parse(path.read_text(encoding="utf-8"), str(path))


def _lock_command(request: Request) -> str:
    return f"patchlock lock {request.app.name} --profile {request.profile.name}"


def lock_inputs(
    request: Request,
    raw: Mapping[PurePosixPath, bytes] | None,
    snapshot: upstream_cache.Snapshot | None = None,
) -> dict[str, Sha256]:
    """Digest the files that a lock depends on.

    Args:
        request: the pair.
        raw: upstream's requirement files before patching; None: only what can be read without a network.
        snapshot: whose submodules count, by the names and digests of all their files; None: those are left out.
    """
    root = request.catalogue.root
    app, profile = request.app, request.profile
    files = [app.origin.file, *(one.origin.file for one in app.shared), profile.origin.file]
    files += [f"profiles/indexes/{name}.toml" for name in profile.indexes]
    inputs = {file: sha256((root / file).read_bytes()) for file in files}
    codes = codemods.texts(app.patches)
    inputs |= {f"patches/{app.name}/{file}": sha256(code.encode()) for file, code in codes.items()}
    for rule in rules_of(request).distributions:
        inputs |= _distribution_inputs(request.catalogue, rule.name)
    if raw is not None:
        inputs |= {f"upstream:{path}": sha256(data) for path, data in raw.items()}
    elif isinstance(app.upstream, EmbeddedUpstream):
        folder = root / app.upstream.folder / app.directory
        for path in app.requirement_files:
            with contextlib.suppress(FileNotFoundError):
                inputs[f"upstream:{path}"] = sha256((folder / path).read_bytes())
    if snapshot is not None:
        inputs |= {f"upstream:{one}": sha256(upstream_cache.listing(snapshot, one)) for one in app.submodules}
    return inputs


def _distribution_inputs(catalogue: Catalogue, name: NormalizedName) -> dict[str, Sha256]:
    """Digest the files that say how a distribution is patched."""
    distribution = catalogue.distribution(name)
    folder = distribution.cases.parent
    files = [distribution.origin.file, str(distribution.cases)]
    files += [str(folder / file) for file in codemods.texts(distribution.patches)]
    return {file: sha256((catalogue.root / file).read_bytes()) for file in files}


def patched_objections(request: Request, lock: Lock) -> tuple[str, ...]:
    """Say which distributions a lock does not have as the catalogue wants them now, patched or not; empty if none."""
    wanted = {rule.name for rule in rules_of(request).distributions}
    known = {PurePosixPath(file).parent.name for file in lock.provenance.inputs if file.endswith("/patch.toml")}
    added = sorted(wanted & {package.name for package in lock.packages} - known)
    gone = sorted(package.name for package in lock.packages if package.original and package.name not in wanted)
    return (
        *(f"{name} is to be patched, and was not when the lock was made" for name in added),
        *(f"{name} is patched in it, but the catalogue no longer asks for that" for name in gone),
    )


def indexes_of(request: Request) -> tuple[RecordedIndex, ...]:
    """Read the recorded indexes of the profile, without what it takes from PyPI all the same."""
    return tuple(
        dataclasses.replace(index, wheels=tuple(w for w in index.wheels if w.name not in request.profile.from_pypi))
        for index in map(request.catalogue.index, request.profile.indexes)
    )


def collect_inputs(
    request: Request, wanted: UpstreamRequirements, as_of: str, newer: Mapping[NormalizedName, str] | None = None
) -> ResolutionInputs:
    """Gather what a lock is resolved from.

    Args:
        request: the pair.
        wanted: what upstream asks for.
        as_of: see `locks.resolution_inputs.ResolutionInputs`.
        newer: distributions that may be younger, until when; see `locks.resolution_inputs.ResolutionInputs`.
    """
    from patchlock.locks.resolution_inputs import ResolutionInputs

    return ResolutionInputs(
        app=_with_upstreams_rules(request, wanted.requirements),
        profile=request.profile,
        platform=request.platform,
        indexes=indexes_of(request),
        commit=wanted.snapshot.commit,
        as_of=as_of,
        newer=newer or {},
        patched_by=wanted.patched_by,
        requirements=wanted.requirements,
        inputs=lock_inputs(request, wanted.raw, wanted.snapshot),
        catalogue=request.catalogue,
        cache=request.cache,
    )


def _with_upstreams_rules(request: Request, requirements: Mapping[PurePosixPath, bytes]) -> App:
    """Let what the files say of any distribution, such as [tool.uv] does, count as the app's rules; ours go before."""
    app = request.app
    asked = requirements_for_locks.walk(
        app.requirement_files, requirements, wanted=app.optional_lists, directory=app.directory
    )[0]

    def rule(path: PurePosixPath, line: RequirementLine) -> Constraint:
        origin = Origin(file=f"{UPSTREAM}{path}", line=line.line)
        return Constraint(requirement=line.requirement, why="upstream says so", source=str(origin), origin=origin)

    ours = {canonicalize_name(one.requirement.name) for one in rules_of(request).overrides}
    overrides = (rule(*one) for one in asked.overrides)
    origin = Origin(file=f"{UPSTREAM}{app.requirement_files[0]}", line=1)
    theirs = LockRules(
        constraints=tuple(rule(*one) for one in asked.constraints),
        overrides=tuple(one for one in overrides if canonicalize_name(one.requirement.name) not in ours),
        exclusions=tuple(
            Exclusion(name=name, why="upstream says so", source=str(origin), origin=origin) for name in asked.exclusions
        ),
    )
    return dataclasses.replace(app, rules=app.rules + theirs) if theirs != LockRules() else app


def require_fresh(request: Request, lock: Lock, upstream: Upstream) -> str:
    """Compare the files that a lock was made from with those of now, and if any differs, what uv would be asked now.

    Returns:
        That a file of the catalogue is newer than the lock, although uv would be asked the same, a sentence; or "".

    Raises:
        LockStaleError: uv would be asked something else; says every reason.
    """
    made = lock.provenance
    objections = build_objections(request, lock) + patched_objections(request, lock)
    reasons = objections or lockfile.staleness_reasons(
        lock,
        commit=upstream.snapshot.commit,
        python=str(request.profile.python),
        inputs=lock_inputs(request, upstream.raw, upstream.snapshot),
    )
    if not reasons:
        return ""
    from patchlock.locks import _resolve

    if (
        not objections
        and _resolve.question(collect_inputs(request, upstream_requirements(request, upstream), made.as_of, made.newer))
        == made.resolver_input
    ):
        return _of_older_files(request, lock)
    why = "; ".join(reasons)
    raise LockStaleError(
        f"the lock of {request.app.name} on {request.profile.name} is stale: {why}",
        where=request.lock_name,
        remedy=f"run `{_lock_command(request)}`",
    )


def _of_older_files(request: Request, lock: Lock) -> str:
    """Say which files of the catalogue are newer than a lock, as `lock --check` does; another commit is not theirs."""
    made = lock.provenance
    newer = lockfile.staleness_reasons(lock, commit=made.commit, python=made.python, inputs=lock_inputs(request, None))
    if not lock.is_intact or not newer:  # of an edited lock, it is said that it is one
        return ""
    return f"{'; '.join(newer)}; it still asks for the same packages: renew it with `{_lock_command(request)}`"
