"""Say what a recorded index does not tell: what else there is, and how old its files are; pure, asks nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.locks import resolution_inputs, wheel_choice
from patchlock.locks.resolution_inputs import ResolutionInputs
from patchlock.model.lockfile import LockedPackage
from patchlock.model.recorded_index import RecordedIndex, RecordedWheel, RecordingFilter


def notices(
    order: ResolutionInputs,
    packages: Iterable[LockedPackage],
    asked: Iterable[Requirement],
    environment: Mapping[str, str],
) -> tuple[str, ...]:
    """Name what an index itself might answer otherwise than its record, one clause for each record."""
    locked = {package.name: package for package in packages}
    stated = [*asked, *(one for rule in order.rules.metadata if rule.name in locked for one in rule.requires)]
    found = []
    for index in order.indexes:
        unknown = _doubtful(index, order, locked, stated, environment)
        if unknown:
            told = (
                f"{name} {locked[name].version}" if locked[name].url else f"{name}, which PyPI gave" for name in unknown
            )
            is_kept = any(_is_kept(index, name, version) for name in unknown for version in unknown[name])
            found.append(
                f"the record {index.name} is not known to be complete, and the index may have other versions than "
                f"{'; '.join(sorted(told))}: {_how_to_ask(index, is_kept=is_kept)}"
            )
    return tuple(found)


def beyond_the_cut_off(
    order: ResolutionInputs,
    packages: Iterable[LockedPackage],
    asked: Iterable[Requirement],
    environment: Mapping[str, str],
) -> tuple[str, ...]:
    """Name what may be newer than the cut-off, as its record has no dates and nothing pins it; a clause each record."""
    digests = {package.name: package.sha256 for package in packages}
    found = []
    for index in order.indexes if order.as_of else ():
        undated = resolution_inputs.untimed(resolution_inputs.fitting(index, order)) - order.cut_offs.keys()
        wheels = [w for w in index.wheels if w.name in undated and digests.get(w.name) == w.sha256]
        if loose := _loose(wheels, order, asked, environment):
            told = ", ".join(sorted(f"{wheel.name} {wheel.version}" for wheel in loose))
            found.append(
                f"the cut-off, {order.as_of}, does not hold for {told}: {index.origin.file} does not say when each "
                f"file was uploaded; for an older version, add a [[constraint]] to {order.app.origin.file}"
            )
    return tuple(found)


def _loose(
    wheels: Iterable[RecordedWheel],
    order: ResolutionInputs,
    asked: Iterable[Requirement],
    environment: Mapping[str, str],
) -> list[RecordedWheel]:
    """Keep the wheels that no requirement pins, nor those of a pinned one, and that require no pinned one exactly."""
    loose, required, pinned = list(wheels), list(asked), set[NormalizedName]()

    def is_held(wheel: RecordedWheel) -> bool:
        tied = {canonicalize_name(one.name) for one in wheel.requires if _is_pinned(one.specifier)}
        return not tied.isdisjoint(pinned) or _is_pinned(_bound(order, wheel.name, required, environment))

    while held := [wheel for wheel in loose if is_held(wheel)]:
        loose = [wheel for wheel in loose if wheel not in held]
        pinned |= {wheel.name for wheel in held}
        required += [one for wheel in held for one in wheel.requires]
    return loose


def _is_pinned(bound: SpecifierSet) -> bool:
    return any(one.operator in {"==", "==="} and not one.version.endswith(".*") for one in bound)


def _doubtful(
    index: RecordedIndex,
    order: ResolutionInputs,
    locked: Mapping[NormalizedName, LockedPackage],
    stated: Iterable[Requirement],
    environment: Mapping[str, str],
) -> dict[NormalizedName, tuple[Version, ...]]:
    """Give the locked names of a record for which there may be something else, and versions that it does not know."""
    chosen = [wheel for wheel in index.wheels if wheel.name in locked and locked[wheel.name].sha256 == wheel.sha256]
    loose, required = {wheel.name for wheel in chosen}, list(stated)

    def unanswered(name: NormalizedName, version: Version | None) -> tuple[Version, ...]:
        return _unanswered(index, order, name, _bound(order, name, required, environment), version)

    while fixed := {name for name in loose if not unanswered(name, locked[name].version)}:
        loose -= fixed
        required += [one for wheel in chosen if wheel.name in fixed for one in wheel.requires]
    absent = (_kept(index, order) & locked.keys()) - _fitting(index, order).keys()
    found = {name: unanswered(name, locked[name].version) for name in loose - _tied(chosen)}
    found |= {name: unanswered(name, None) for name in absent}
    return {name: versions for name, versions in sorted(found.items()) if versions}


def missing(
    order: ResolutionInputs, name: NormalizedName, asked: Iterable[Requirement], environment: Mapping[str, str]
) -> tuple[str, str, bool] | None:
    """Say that a record has nothing of what was asked for, what to do now, and whether the index may still have it.

    None where no record has the name.

    Args:
        order: what was asked.
        name: of a distribution for which the resolver found no version.
        asked: the patched requirements of the app.
        environment: markers of the machine that is locked for.
    """
    wanted = _bound(order, name, asked, environment)
    for index in order.indexes:  # the first that has a name hides the others
        versions = _fitting(index, order).get(name)
        if not versions:
            continue
        what = (
            f"the record {index.name} has no {name}{wanted} for {order.platform.name} and "
            f"Python {order.profile.python}, only {', '.join(map(str, sorted(versions)))}"
        )
        correct = "correct the line with a patch (set-requirement, rename-requirement or replace-text)"
        unknown = _unanswered(index, order, name, wanted, None)
        if not unknown:
            return what, correct, False
        how = _how_to_ask(index, is_kept=any(_is_kept(index, name, version) for version in unknown))
        return f"{what}, and is not known to be complete", f"{how}; or {correct}", True
    return None


def _fitting(index: RecordedIndex, order: ResolutionInputs) -> dict[NormalizedName, set[Version]]:
    """Give the versions that a record has for the machine that is locked for."""
    found: dict[NormalizedName, set[Version]] = {}
    for wheel in index.wheels:
        if wheel_choice.best_wheel([wheel.filename], order.platform, order.profile):
            found.setdefault(wheel.name, set()).add(wheel.version)
    return found


def _kept(index: RecordedIndex, order: ResolutionInputs) -> set[NormalizedName]:
    """Name what a record is meant to have for the machine that is locked for."""
    keep = index.keep
    if keep is None or order.platform not in keep.platforms or order.profile.python not in keep.pythons:
        return set()
    return {canonicalize_name(requirement.name) for requirement in keep.distributions} - set(order.profile.from_pypi)


def _tied(chosen: Iterable[RecordedWheel]) -> set[NormalizedName]:
    """Name what moves only with another one of the record, as torchvision with torch: that one speaks for both."""
    wheels = tuple(chosen)
    there = {wheel.name for wheel in wheels}
    return {
        wheel.name
        for wheel in wheels
        for requirement in wheel.requires
        if canonicalize_name(requirement.name) in there - {wheel.name} and _is_pinned(requirement.specifier)
    }


def _bound(
    order: ResolutionInputs, name: NormalizedName, stated: Iterable[Requirement], environment: Mapping[str, str]
) -> SpecifierSet:
    """Join what requirements and the rules say of one distribution; an override stands in the place of requirements.

    Markers see every extra that a requirement names, whosever it is.
    """
    stated = tuple(stated)
    extras = {"", *(extra for one in stated for extra in one.extras)}
    overrides = [rule.requirement for rule in order.rules.overrides if canonicalize_name(rule.requirement.name) == name]
    bound = SpecifierSet()
    for requirement in (*(overrides or stated), *(rule.requirement for rule in order.rules.constraints)):
        marker = requirement.marker
        if canonicalize_name(requirement.name) == name and (
            marker is None or any(marker.evaluate({"extra": extra, **environment}) for extra in extras)
        ):
            bound &= requirement.specifier
    return bound


def _unanswered(
    index: RecordedIndex, order: ResolutionInputs, name: NormalizedName, wanted: SpecifierSet, chosen: Version | None
) -> tuple[Version, ...]:
    """Give versions that could be taken, newer than the chosen one, and of which the record does not know."""
    known = _fitting(index, order).get(name, set())
    return tuple(
        version
        for version in _near(wanted, chosen)
        if version not in known
        and not _is_whole(index, order, name, version)
        and wanted.contains(version, prereleases=True)
        and (chosen is None or version > Version(chosen.public))
    )


def _how_to_ask(index: RecordedIndex, *, is_kept: bool) -> str:
    if index.keep is None:
        return f"look at {index.url}, and add what is there to {index.origin.file}"
    first = "" if is_kept else f"widen [index.keep] in {index.origin.file}; then, "
    return f"{first}on a machine that reaches it, run `patchlock index record {index.name}`"


def _is_kept(index: RecordedIndex, name: NormalizedName, version: Version) -> bool:
    return index.keep is not None and _contains(index.keep, name, version)


def _contains(wanted: RecordingFilter, name: NormalizedName, version: Version) -> bool:
    return any(
        canonicalize_name(one.name) == name and one.specifier.contains(version, prereleases=False)
        for one in wanted.distributions
    )


def _is_whole(index: RecordedIndex, order: ResolutionInputs, name: NormalizedName, version: Version) -> bool:
    of = index.whole
    return (
        of is not None
        and order.platform in of.platforms
        and order.profile.python in of.pythons
        and _contains(of, name, version)
    )


def _near(wanted: SpecifierSet, chosen: Version | None) -> Iterator[Version]:
    """Give versions that there could be: each that is named or chosen, and the next patch, minor and major one."""
    named = [Version(one.version.removesuffix(".*")) for one in wanted if one.operator != "==="]
    for base in (*named, *((chosen,) if chosen is not None else ()), *(() if named or chosen else (Version("999"),))):
        major, minor, patch = base.major, base.minor, base.micro
        yield Version(base.public)
        yield from (Version(f"{major}.{minor}.{patch + 1}"), Version(f"{major}.{minor + 1}"), Version(f"{major + 1}"))
