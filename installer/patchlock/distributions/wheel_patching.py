"""Fetch the wheel of a third-party distribution, patch it and prove it with the cases; never edits one in place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.version import Version

from patchlock.catalogue import agreement
from patchlock.catalogue.distributions import Distribution
from patchlock.core import atomic_files, download
from patchlock.distributions import file_locations, wheel_cases, wheelhouse, wheels
from patchlock.distributions.wheel_cases import CaseResult
from patchlock.distributions.wheels import PackedWheel, Wheel
from patchlock.model.errors import DownloadError, PatchError, PatchlockError, UnknownDistributionError, UsageError
from patchlock.model.identities import Sha256
from patchlock.model.patch import Outcome, OutcomeKind, Patched
from patchlock.patches import engine, targets


@dataclass(frozen=True, kw_only=True)
class UpstreamWheel:
    """A wheel of upstream on this machine."""

    path: Path
    sha256: Sha256
    is_known: bool
    """Whether the catalogue names this file; otherwise the sha256 is what the index says."""


@dataclass(frozen=True, kw_only=True)
class WheelPatchResult:
    """What became of a wheel."""

    original: Wheel
    kind: OutcomeKind
    """By its cases on the unpatched wheel: needed, partly fixed, or fixed upstream."""
    before: tuple[CaseResult, ...]
    after: tuple[CaseResult, ...]
    """Empty where upstream has fixed it."""
    outcomes: tuple[Outcome, ...]
    """One for each patch, or none where upstream has fixed it."""
    packed: PackedWheel | None
    """None where upstream has fixed it: the original is the wheel to install."""
    notices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Whether the patches of a distribution hold for one wheel that the catalogue names."""

    filename: str
    made: WheelPatchResult | None
    problem: PatchlockError | None


def patch(distribution: Distribution, root: Path, wheel: Path, *, sha256: Sha256 | None) -> WheelPatchResult:
    """Patch one wheel, and prove it.

    The cases decide, on the wheel itself: where all of them pass, nothing is patched. Otherwise all patches must hold,
    all cases must pass on the result, and each control must give the value that it gave before.

    Args:
        distribution: what is patched.
        root: of the catalogue, for the cases.
        wheel: the file, under its own name.
        sha256: what it must be; None for a file that the user vouches for.

    Raises:
        PatchError: the patches do not do what they say for this wheel.
        WheelError: it is no wheel that can be used.
        HashMismatchError: it is another file.
        UnknownDistributionError: the patches are not for its version.
        UsageError: it is a wheel of another distribution.
    """
    original = wheels.read(wheel, sha256)
    if original.name != distribution.name:
        raise UsageError(f"{wheel.name} is a wheel of {original.name}, not of {distribution.name}")
    require_version(distribution, original.version)
    script = root / distribution.cases
    before = _run(distribution, script, original, {})
    _require_controls(original, script, before)
    failed = [result for result in before if not result.passed]
    if not failed:
        fixed = OutcomeKind.FIXED_UPSTREAM
        notices = _history(distribution, original.version, fixed)
        return WheelPatchResult(
            original=original, kind=fixed, before=before, after=(), outcomes=(), packed=None, notices=notices
        )
    patched = apply(distribution, original)
    changes = {change.path: change.after for change in patched.changes}
    after = _run(distribution, script, original, changes)
    _require_better(original, script, before, after)
    packed = wheels.repack(original, changes)
    has_passed = any(result.passed and not result.is_control for result in before)
    kind = OutcomeKind.PARTLY_FIXED if has_passed else OutcomeKind.NEEDED
    return WheelPatchResult(
        original=original,
        kind=kind,
        before=before,
        after=after,
        outcomes=patched.outcomes,
        packed=packed,
        notices=(*packed.notices, *_history(distribution, original.version, kind)),
    )


def apply(distribution: Distribution, original: Wheel) -> Patched:
    """Apply the patches to the files of a wheel, in memory; proves no more than their `ensure`s.

    Raises:
        PatchError: a patch cannot do what it says.
    """
    contents = original.contents()
    wanted = targets.candidates(distribution.patches, contents)
    patched = engine.apply(distribution.patches, {path: contents[path] for path in wanted})
    engine.require_complete(patched, f"{distribution.origin.file}, {original.filename}")
    return patched


def _run(
    distribution: Distribution, script: Path, wheel: Wheel, changes: Mapping[PurePosixPath, bytes]
) -> tuple[CaseResult, ...]:
    if distribution.untrusted is not None:
        raise agreement.untrusted_error(distribution.untrusted)
    files = {member.path: member.data for member in wheel.members}
    return wheel_cases.run(script, files | dict(changes), distribution.stubs)


def _require_controls(wheel: Wheel, script: Path, before: tuple[CaseResult, ...]) -> None:
    broken = [f"{r.id}: {r.why}" for r in before if r.is_control and not r.passed]
    if broken:
        raise PatchError(
            f"the controls fail on {wheel.filename} as upstream made it, so its cases prove nothing",
            where=str(script),
            remedy="correct them, or `versions`",
            evidence=broken,
        )


def _require_better(wheel: Wheel, script: Path, before: tuple[CaseResult, ...], after: tuple[CaseResult, ...]) -> None:
    values = {result.id: result.value for result in before}
    wrong = [f"{r.id}: {r.why}" for r in after if not r.passed]
    wrong += [
        f"{r.id}: it gave {values[r.id]} before, and now {r.value}"
        for r in after
        if r.is_control and r.passed and r.value != values[r.id]
    ]
    if wrong:
        raise PatchError(
            f"the patched {wheel.filename} does not do what it must, so it was not made",
            where=str(script),
            remedy="correct the patches",
            evidence=wrong,
        )


def _history(distribution: Distribution, version: Version, kind: OutcomeKind) -> tuple[str, ...]:
    """Tell what the catalogue expected, where the cases say otherwise or there is a way out."""
    fixed = distribution.fixed_from
    if fixed is None:
        return ("the catalogue knows no version that has it fixed; now there is one",) if _is_fixed(kind) else ()
    if _is_fixed(kind) and version < fixed:
        return (f"the catalogue says that it is fixed from {fixed} on, but this version has it fixed already",)
    if not _is_fixed(kind) and version >= fixed:
        return (f"the catalogue says that it is fixed from {fixed} on, but the cases of this version fail",)
    return () if _is_fixed(kind) else (f"fixed upstream from {fixed} on",)


def _is_fixed(kind: OutcomeKind) -> bool:
    return kind is OutcomeKind.FIXED_UPSTREAM


def require_version(distribution: Distribution, version: Version) -> None:
    """Refuse a version that the patches are not for.

    Raises:
        UnknownDistributionError: says which they are for.
    """
    if not distribution.versions.contains(version, prereleases=True):
        raise UnknownDistributionError(
            f"the patches of {distribution.name} are for {distribution.versions}, not for {version}",
            where=str(distribution.origin),
            remedy="use a version of that range, or widen `versions` and try",
        )


def write(packed: PackedWheel, folder: Path) -> Path:
    """Put a wheel of ours into a folder, whole or not at all; gives its path."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / packed.filename
    atomic_files.atomic_write(target, packed.data)
    return target


def obtain(
    distribution: Distribution, version: Version, cache: Path, *, tell: download.ProgressCallback
) -> UpstreamWheel:
    """Bring the wheel of a version to this machine, by hash.

    The hash is the catalogue's where it names a file of that version, and the index's otherwise.

    Args:
        distribution: what is wanted.
        version: of it.
        cache: where wheels are kept.
        tell: see `core.download.ProgressCallback`.

    Raises:
        UnknownDistributionError: the patches are not for this version.
        DownloadError: the index does not have the file, or several of which none is named.
        NetworkError: the index does not answer.
        HashMismatchError: it is not the file that the catalogue names.
    """
    require_version(distribution, version)
    known = {wheel.filename: wheel for wheel in distribution.wheels if wheel.version == version}
    if len(known) == 1:
        (one,) = known.values()
        kept = wheelhouse.place(cache, one.sha256, one.filename)
        if not atomic_files.has_sha256(kept, one.sha256):
            offered = {wheel.sha256: wheel.url for wheel in _offers(distribution, version)}
            if one.sha256 not in offered:
                raise DownloadError(
                    f"the index does not have {one.filename} with the sha256 that the catalogue names",
                    where=f"sha256 {one.sha256[:12]}…",
                    remedy="give the file with `--wheel`",
                )
            download.fetch(offered[one.sha256], kept, sha256=one.sha256, tell=tell)
        return UpstreamWheel(path=kept, sha256=one.sha256, is_known=True)
    offers = _offers(distribution, version)
    if len(offers) != 1:
        raise DownloadError(
            f"the index has {len(offers)} wheels of {distribution.name} {version}, and one must be named",
            where=str(distribution.origin),
            remedy="give the file with `--wheel`",
            evidence=[wheel.filename for wheel in offers],
        )
    kept = wheelhouse.place(cache, offers[0].sha256, offers[0].filename)
    download.fetch(offers[0].url, kept, sha256=offers[0].sha256, tell=tell)
    return UpstreamWheel(path=kept, sha256=offers[0].sha256, is_known=False)


def _offers(distribution: Distribution, version: Version) -> tuple[file_locations.Offered, ...]:
    return file_locations.wheels(
        distribution.name, version, python=f"{sys.version_info.major}.{sys.version_info.minor}"
    )


def check(distribution: Distribution, root: Path, cache: Path, tell: Callable[[str], None]) -> tuple[Checked, ...]:
    """Patch every wheel that the catalogue names, and say of each what became of it; writes only to the cache.

    Args:
        distribution: what is checked.
        root: of the catalogue.
        cache: where wheels are kept.
        tell: called with the name of each file before it is tried.
    """
    results = []
    for known in distribution.wheels:
        tell(known.filename)
        made, problem = None, None
        try:
            wheel = obtain(distribution, known.version, cache, tell=lambda _done, _size: None)
            made = patch(distribution, root, wheel.path, sha256=known.sha256)
        except PatchlockError as error:
            problem = error
        results.append(Checked(filename=known.filename, made=made, problem=problem))
    return tuple(results)
