"""Say where a recorded index may lack what was asked for, and how to find out; pure, asks nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.locks import wheel_choice
from patchlock.locks.resolution_inputs import ResolutionInputs
from patchlock.model.lockfile import LockedPackage
from patchlock.model.recorded_index import RecordedIndex, RecordingFilter


def notices(
    order: ResolutionInputs,
    packages: Iterable[LockedPackage],
    asked: Iterable[Requirement],
    environment: Mapping[str, str],
) -> tuple[str, ...]:
    """Name what an index itself might answer otherwise than its record, one clause for each record.

    Args:
        order: what was asked.
        packages: the answer.
        asked: the patched requirements of the app.
        environment: markers of the machine that is locked for.
    """
    locked = {package.name: package for package in packages}
    bounds = _bounds(order, locked, asked, environment)
    found = []
    for index in order.indexes:
        has = _fitting(index, order)
        doubtful: dict[str, tuple[Version, ...]] = {}
        for name in sorted((has.keys() | _kept(index, order)) & locked.keys()):
            wanted, chosen = bounds.get(name, SpecifierSet()), locked[name].version if name in has else None
            label = f"{name} {chosen}" if chosen else f"{name}, which PyPI gave"
            if unknown := _unanswered(index, order, name, wanted, chosen):
                doubtful[label] = tuple(version for version in unknown if _is_kept(index, name, version))
        if doubtful:
            found.append(
                f"the record {index.name} is not known to be whole, and the index may have another "
                f"{'; '.join(doubtful)}: {_how_to_ask(index, is_kept=any(doubtful.values()))}"
            )
    return tuple(found)


def missing(
    order: ResolutionInputs, name: NormalizedName, asked: Iterable[Requirement], environment: Mapping[str, str]
) -> tuple[str, str] | None:
    """Say that a record has nothing of what was asked for, and what to do now; None where no record has the name.

    Args:
        order: what was asked.
        name: of a distribution for which the resolver found no version.
        asked: the patched requirements of the app.
        environment: markers of the machine that is locked for.
    """
    wanted = _bounds(order, {}, asked, environment).get(name, SpecifierSet())
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
            return what, correct
        how = _how_to_ask(index, is_kept=any(_is_kept(index, name, version) for version in unknown))
        return f"{what}, and is not known to be whole", f"{how}; or {correct}"
    return None


def _fitting(index: RecordedIndex, order: ResolutionInputs) -> dict[NormalizedName, set[Version]]:
    """Give the versions that a record has for the machine that is locked for."""
    found: dict[NormalizedName, set[Version]] = {}
    for wheel in index.wheels:
        if wheel_choice.best_wheel([wheel.filename], order.platform, order.profile):
            found.setdefault(wheel.name, set()).add(wheel.version)
    return found


def _kept(index: RecordedIndex, order: ResolutionInputs) -> set[NormalizedName]:
    """Name what a record is meant to have."""
    kept = index.keep.distributions if index.keep is not None else ()
    return {canonicalize_name(requirement.name) for requirement in kept} - set(order.profile.from_pypi)


def _bounds(
    order: ResolutionInputs,
    locked: Mapping[NormalizedName, LockedPackage],
    asked: Iterable[Requirement],
    environment: Mapping[str, str],
) -> dict[NormalizedName, SpecifierSet]:
    """Join what the app, the rules and the locked wheels of the records ask for; others seldom bound such a name."""
    chosen = {package.sha256 for package in locked.values()}
    recorded = [
        requirement
        for index in order.indexes
        for wheel in index.wheels
        if wheel.sha256 in chosen
        for requirement in wheel.requires
    ]
    overridden = {canonicalize_name(rule.requirement.name) for rule in order.rules.overrides}
    stated = [one for one in (*asked, *recorded) if canonicalize_name(one.name) not in overridden]
    ruled = [rule.requirement for rule in (*order.rules.constraints, *order.rules.overrides)]
    found: dict[NormalizedName, SpecifierSet] = {}
    for requirement in (*stated, *ruled):
        if requirement.marker is None or requirement.marker.evaluate({"extra": "", **environment}):
            name = canonicalize_name(requirement.name)
            found[name] = found.get(name, SpecifierSet()) & requirement.specifier
    return found


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
