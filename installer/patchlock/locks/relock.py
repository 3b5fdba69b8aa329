"""Make the lock of one pair anew: which cut-off holds, what is resolved, and the file, written whole or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from packaging.utils import NormalizedName, canonicalize_name

from patchlock.catalogue.pairs import require_possible
from patchlock.catalogue.reader import Catalogue
from patchlock.core import atomic_files
from patchlock.distributions.policy import Rules
from patchlock.locks import _resolve as locks_resolve
from patchlock.locks import _rules as locks_rules
from patchlock.locks import diff
from patchlock.locks import lock_request as locks_request
from patchlock.locks.lock_request import Request, UpstreamRequirements
from patchlock.locks.resolution_inputs import ResolutionInputs, last_day
from patchlock.model import lockfile
from patchlock.model.errors import (
    DriftError,
    LockFormatError,
    LockMissingError,
    MetadataMissingError,
    RecordChangedError,
    RefusedError,
    UnsatisfiableError,
    UsageError,
)
from patchlock.model.identities import CommitId
from patchlock.model.lockfile import Lock
from patchlock.patches import requirements_for_locks


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The cut-off stays as the lock has it; the app's, where upstream has moved or there is no lock."""


@dataclass(frozen=True, kw_only=True)
class Until:
    """One cut-off for all distributions."""

    time: str
    """RFC 3339 in UTC; `commit` for the date of upstream's commit, whose day the authors had in mind; "" for none."""


@dataclass(frozen=True, kw_only=True)
class Upgraded:
    """Some distributions may be as new as now, the others stay."""

    names: tuple[NormalizedName, ...]
    now: str
    """RFC 3339 in UTC."""


CutOff = Kept | Until | Upgraded


def now() -> str:
    """Tell the time as a cut-off: RFC 3339 in UTC, whole seconds."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def resolve(request: Request, cut_off: CutOff) -> Lock:
    """Resolve the lock of a pair; writes nothing but caches.

    Raises:
        RefusedError: the catalogue says that the pair cannot be.
        PatchError: a patch cannot do what it says.
        UsageError: a distribution that is to be upgraded is not in the lock.
        UnsatisfiableError: no set of packages satisfies it.
        PolicyError: the answer breaks a rule of ours.
        LockFormatError: an address is not https, or may hold a secret.
        MetadataMissingError: what an sdist requires is not written down; carries what to write.
        NetworkError: an index, or upstream, does not answer.
    """
    wanted, asked = _inputs(request, cut_off)
    frozen = (*_frozen(wanted, asked.snapshot.date), *(_kept(wanted) if isinstance(cut_off, Kept) else ()))
    try:
        lock = locks_resolve.resolve(wanted)
    except UnsatisfiableError as error:
        error.evidence = (*error.evidence, *frozen)
        raise
    except MetadataMissingError as error:
        from patchlock.locks import sdist_declarations  # it speaks HTTP, of which `lock --check` has no use

        raise sdist_declarations.proposed(wanted, error.sdists, request.cache) from error
    chosen = {package.name: package.sha256 for package in lock.packages}
    # An override stands in the place of what upstream asks for, and so of its hashes.
    for rule in wanted.rules.overrides:
        chosen.pop(canonicalize_name(rule.requirement.name), None)
    requirements_for_locks.require_hashes(wanted.asked, chosen, locks_resolve.markers(wanted))
    if wanted.rules.distributions:
        from patchlock.locks import patched_distributions  # as above

        lock = patched_distributions.substitute_wheels(wanted, lock)
    lockfile.require_addresses(lock, request.lock_name, local=request.local_addresses)
    before = current(request)
    notices = (*lock.notices, *frozen, *locks_request.idle_patches(request, asked), *_set_back(before, lock, wanted))
    if before is not None and before.provenance.commit != asked.snapshot.commit:
        notices += locks_request.lowering_patches(request, asked, before.provenance.commit)
    if any(package.why.endswith("sdist") for package in lock.packages):
        from patchlock.locks import sdist_declarations  # as above

        notices += sdist_declarations.failing_builds(lock.packages, request.cache)
    return keep_resolver(before, dataclasses.replace(lock, notices=notices))


def _set_back(before: Lock | None, lock: Lock, order: ResolutionInputs) -> tuple[str, ...]:
    """Name what the app asks for and gets in an older major version than before, though nothing forbids that one."""
    listed = [line.requirement for _, line in order.asked.requirements()]
    bounds = [*listed, *(rule.requirement for rule in (*order.rules.constraints, *order.rules.overrides))]
    was = {package.name: package.version for package in before.packages} if before else {}
    found = []
    for package in lock.packages:
        old = was.get(package.name, package.version)
        own = [one for one in bounds if canonicalize_name(one.name) == package.name]
        is_asked = any(canonicalize_name(one.name) == package.name for one in listed)
        if (
            is_asked
            and package.version.major < old.major
            and all(one.specifier.contains(old, prereleases=True) for one in own)
        ):
            found.append(
                f"{package.name} is locked in {package.version}, and was in {old} before: `patchlock why "
                f"{order.app.name} {package.name} --profile {order.profile.name} --alternatives` says why"
            )
    return tuple(found)


def _frozen(order: ResolutionInputs, date: str) -> tuple[str, ...]:
    """Say that the app's own cut-off is before its commit, which has moved since: files of its day are left out."""
    until, day = order.app.as_of, datetime.datetime.fromisoformat(date)
    if not until or order.as_of != until or datetime.datetime.fromisoformat(until) >= day:
        return ()
    told = (
        f"as-of in {order.app.origin.file} leaves out files uploaded after {last_day(until)}, and its commit is of "
        f"{date[:10]}: remove as-of, or write a later day, and run `patchlock lock {order.app.name} --as-of commit`"
    )
    return (told,)


def _kept(order: ResolutionInputs) -> tuple[str, ...]:
    """Say that the lock keeps a cut-off which is not the app's: that was written later, or `lock` was told another."""
    if not order.app.as_of or order.as_of == order.app.as_of:
        return ()
    told = (
        f"the lock keeps its cut-off, {order.as_of or 'none'}, and as-of in {order.app.origin.file} is "
        f"{order.app.as_of}: to lock with that, run `patchlock lock {order.app.name} --as-of commit`"
    )
    return (told,)


def keep_resolver(before: Lock | None, made: Lock) -> Lock:
    """Name the uv of the lock that there is, where another one gives the same lines; where it gives others, say so."""
    if before is None or before.provenance.uv == made.provenance.uv:
        return made
    provenance = dataclasses.replace(made.provenance, uv=before.provenance.uv)
    if before.is_intact and (provenance, made.packages) == (before.provenance, before.packages):
        return dataclasses.replace(made, provenance=provenance)
    notice = (
        f"uv {made.provenance.uv} resolved it, and uv {before.provenance.uv} the lock before: "
        f"differences may come from uv; to rule that out, lock with uv=={before.provenance.uv}"
    )
    return dataclasses.replace(made, notices=(*made.notices, notice))


def collect_inputs(request: Request, cut_off: CutOff) -> tuple[ResolutionInputs, Mapping[PurePosixPath, bytes]]:
    """Gather what the lock of a pair is resolved from, and the requirement files before the patches.

    Raises:
        PatchlockError: as `resolve`, but for what only uv can say.
    """
    wanted, asked = _inputs(request, cut_off)
    return wanted, asked.raw


def _inputs(request: Request, cut_off: CutOff) -> tuple[ResolutionInputs, UpstreamRequirements]:
    require_possible(request.app, request.profile, request.platform)
    asked = locks_request.read_requirements(request)
    day = request.app.as_of or asked.snapshot.date
    as_of, newer = _bounds(current(request), asked.snapshot.commit, day, cut_off)
    return locks_request.collect_inputs(request, asked, as_of, newer), asked


def current(request: Request) -> Lock | None:
    """Read the lock that there is; None where there is none, or none that this version can read."""
    with contextlib.suppress(LockMissingError, LockFormatError):
        return locks_request.read_lock(request)[0]
    return None


def require_known_bytes(request: Request, lock: Lock, accept: Iterable[str] = ()) -> tuple[str, ...]:
    """Make sure that no wheel has other bytes than the records, or the lock that there is, have under its name.

    Bytes that the lock that there is has already were accepted once.

    Args:
        request: the pair.
        lock: as it would be written.
        accept: names of wheels whose bytes may be others.

    Returns:
        What was accepted, one clause each.

    Raises:
        RecordChangedError: there is one that is not accepted.
    """
    from patchlock.distributions import recorded_index

    before = current(request)
    made = [package.upstream for package in lock.packages]
    known = [package.upstream for package in before.packages] if before else []
    held = {(package.name, package.sha256) for package in known} if before and before.is_intact else set()
    indexes = [request.catalogue.index(name) for name in request.profile.indexes]
    found = (
        *recorded_index.contradictions((p for p in made if (p.name, p.sha256) not in held), indexes),
        *recorded_index.replaced(known, made, indexes),
    )
    refused = [one for one in found if not one.is_named(accept)]
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise RecordChangedError(
            f"{refused[0]}{more}; the lock was left as it is",
            where=request.lock_name,
            remedy="find out from its publisher why it changed before anybody installs it; then "
            f"`patchlock lock {request.app.name} --profile {request.profile.name} --accept-changed "
            f"{refused[0].filename}`, once for each",
            evidence=tuple(map(str, refused)),
        )
    return tuple(map(str, found))


def _bounds(
    lock: Lock | None, commit: CommitId, date: str, cut_off: CutOff
) -> tuple[str, Mapping[NormalizedName, str]]:
    """Say until when files may have been uploaded: in general, and for distributions that were upgraded since."""
    match cut_off:
        case Until(time=time):
            return (date if time == "commit" else time), {}
        case Upgraded(names=names, now=time) if lock is not None and lock.provenance.commit == commit:
            if missing := sorted(set(names) - {package.name for package in lock.packages}):
                raise UsageError(f"{', '.join(missing)} is not in the lock", remedy="see `patchlock why`")
            return lock.provenance.as_of, dict(lock.provenance.newer) | dict.fromkeys(names, time)
        case Upgraded(names=names, now=time):
            return date, dict.fromkeys(names, time)
        case Kept() if lock is not None and lock.provenance.commit == commit:
            return lock.provenance.as_of, lock.provenance.newer
        case Kept():
            return date, {}


@dataclass(frozen=True, kw_only=True)
class LockStatus:
    """How a lock stands."""

    state: Literal["fresh", "stale", "missing", "refused", "failed"]
    reasons: tuple[str, ...] = ()
    code: str = ""
    """Of the error, where there is one."""

    @property
    def needs_relock(self) -> bool:
        """Whether making the lock again mends it: not where that would fail the same, as by a rule that it breaks."""
        return self.state in {"stale", "missing"} or self.code in {LockFormatError.code, DriftError.code}


def lock_status(request: Request, rules: Rules, cache: Path | None = None) -> LockStatus:
    """Say how the lock of a pair stands, without any network: whether it is fresh, and whether it keeps the rules.

    Args:
        request: the pair.
        rules: the catalogue's.
        cache: see `locks._rules.policy_violations`.
    """
    try:
        require_possible(request.app, request.profile, request.platform)
        lock, _ = locks_request.read_lock(request)
        lockfile.require_addresses(lock, request.lock_name, local=True)
    except RefusedError as error:
        return refused_status(request, error)
    except LockMissingError as error:
        return LockStatus(state="missing", reasons=(error.what,), code=error.code)
    except LockFormatError as error:
        return LockStatus(state="failed", reasons=(f"{error.what} ({error.where})",), code=error.code)
    reasons = lockfile.staleness_reasons(
        lock,
        commit=request.app.upstream.commit,
        python=str(request.profile.python),
        inputs=locks_request.lock_inputs(request, None),
    )
    reasons += locks_request.build_objections(request, lock)
    if reasons:
        return LockStatus(state="stale", reasons=reasons)
    if broken := locks_rules.policy_violations(request, lock.packages, rules, cache):
        return LockStatus(state="failed", reasons=broken, code="policy")
    return LockStatus(state="fresh")


def refused_status(request: Request, error: RefusedError) -> LockStatus:
    """Say how a pair stands that the catalogue refuses: a lock of it from before belongs to nothing any more."""
    if request.lock_path.is_file():
        reason = f"the lockfile belongs to no pair any more; `patchlock lock` removes it: {error.what}"
        return LockStatus(state="failed", reasons=(reason,), code=LockFormatError.code)
    return LockStatus(state="refused", reasons=(error.what,), code=error.code)


def rederived_status(request: Request, rules: Rules) -> LockStatus:
    """Say how the lock of a pair stands, and if it is fresh, whether resolving again gives the same one.

    It is resolved as `lock` does, with the cut-off and the exceptions that the lock names itself; so a lock that was
    edited and sealed again is not what comes of it, unless it is as another cut-off gives it.

    Raises:
        PatchlockError: as `resolve`.
    """
    found = lock_status(request, rules)
    if found.state != "fresh":
        return found
    lock, data = locks_request.read_sealed_lock(request)
    made = resolve(request, Kept())
    require_known_bytes(request, made)
    # Another uv that gives the same answer is no difference.
    same_uv = dataclasses.replace(made.provenance, uv=lock.provenance.uv)
    if lockfile.render(dataclasses.replace(made, provenance=same_uv)).encode() == data.replace(b"\r\n", b"\n"):
        return found
    different = diff.compare(lock, made)
    reasons = [cause for cause in different.causes if not cause.startswith("uv: ")]
    reasons += [f"{change.name} {_moved(change)}" for change in different.changes]
    return LockStatus(
        state="failed",
        reasons=("resolving it again gives another lock", *(reasons or ["its header is another"])),
        code=DriftError.code,
    )


def _moved(change: diff.Change) -> str:
    old, new = (str(one.version) if one else "nothing" for one in (change.old, change.new))
    return f"{old} → {new}" if old != new else f"has {change.kind.value} ({change.why})"


_OWN = ("patchlock.txt", "development.txt", "site.txt")
"""Lockfiles of patchlock itself, which `install.sh` installs."""
ORPHANED = "it belongs to no pair of app and profile; remove it"
"""What is wrong with a lockfile that `orphaned_lockfiles` names, a clause."""


def orphaned_lockfiles(catalogue: Catalogue, requests: Iterable[Request]) -> tuple[str, ...]:
    """Name the lockfiles, relative to the catalogue, that belong to none of all its pairs; sorted."""
    locks = {request.lock_path for request in requests}
    folder = catalogue.root / "lockfiles"
    wanted = locks | {catalogue.build_path(lock) for lock in locks} | {folder / name for name in _OWN}
    found = folder.glob("**/*.txt")
    return tuple(sorted(path.relative_to(catalogue.root).as_posix() for path in found if path not in wanted))


def write(request: Request, lock: Lock) -> tuple[Path, Literal["written", "unchanged"]]:
    """Put a lock and the file that pins its builds in their places, each whole or not at all.

    Files with the same bytes are left alone. The lock goes last and names the sha256 of the other file: if patchlock is
    killed between the two, the old lock says that it is stale.
    """
    path, beside = request.lock_path, request.build_path
    changed = _put(beside, lock.build) if lock.build else False
    changed |= _put(path, lockfile.render(lock))
    if not lock.build:
        beside.unlink(missing_ok=True)
    return path, "written" if changed else "unchanged"


def remove(request: Request) -> bool:
    """Remove the lock of a pair that cannot be, and what pins its builds; one that somebody edited stays.

    Returns:
        Whether it was removed.
    """
    try:
        lock, _ = locks_request.read_lock(request)
    except (LockMissingError, LockFormatError):
        return False
    if not lock.is_intact:
        return False
    request.lock_path.unlink()
    request.build_path.unlink(missing_ok=True)
    return True


def _put(path: Path, text: str) -> bool:
    data = text.encode()
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.atomic_write(path, data)
    return True
