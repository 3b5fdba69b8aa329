"""Resolve one app for one profile and platform into a lock, by driving uv; installs nothing, runs no foreign code."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import datetime
import re
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    NormalizedName,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from patchlock.catalogue import shared_sets
from patchlock.catalogue.pairs import refusal_reason
from patchlock.core import uv
from patchlock.locks import (
    _build_requirements,
    _direct_files,
    _older_versions,
    _record_gaps,
    _resolver,
    _resolver_input,
    wheel_choice,
)
from patchlock.locks._rules import enforce_policy, missing_wheels, requirements_of, takeable
from patchlock.locks.reasons import spelled_out
from patchlock.locks.resolution_inputs import ResolutionInputs, last_day
from patchlock.model import build_constraints
from patchlock.model.errors import PolicyError, RequirementsError, UnsatisfiableError, WheelError
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import Lock, LockedPackage, Provenance
from patchlock.model.origins import UPSTREAM
from patchlock.patches import engine

if TYPE_CHECKING:
    from packaging.markers import Marker
    from packaging.pylock import Package, Pylock


def resolve(order: ResolutionInputs) -> Lock:
    """Resolve an order into a lock.

    Raises:
        UnsatisfiableError: no set of packages satisfies it.
        PolicyError: the answer breaks a rule of ours.
        NetworkError: an index does not answer.
    """
    from packaging.pylock import Pylock

    _direct_files.require_possible(order.pins, order.rules)
    with (
        tempfile.TemporaryDirectory(prefix="patchlock-lock-") as name,
        concurrent.futures.ThreadPoolExecutor(max_workers=1) as pool,
    ):
        folder = Path(name)
        prefetched = _build_requirements.prefetch(order.rules, order.other_builds, target(order), pool)
        _resolver_input.write(order, folder)
        try:
            found = _resolver.ask(folder)
        except UnsatisfiableError as error:
            raise _not_there(order, error) from error
        except (WheelError, RequirementsError) as error:
            error.where = error.where or _asked_at(order, error.what)
            raise
        answer = Pylock.from_dict(tomllib.loads(found.pylock))
        idle = _idle_exclusions(order)
    _direct_files.require_stated(answer, order.rules)
    packages = _chosen(order, answer, _dependents(found.log, answer))
    not_covered = (*order.asked.not_covered, *_unknown_extras(order, found.log))
    if not packages and not order.app.installs_nothing:
        raise _nothing_asked(order, not_covered)
    notices = enforce_policy(order, packages, answer, (*idle, *_idle_exceptions(order, answer)))
    older = _older_versions.find(order, packages, found.log)
    held_back = [one.package for one in older]
    early = [one for one in _older_versions.unasked_pre_releases(order, packages) if one not in held_back]
    asked, environment = requirements_of(order), markers(order)
    gaps = (
        *_record_gaps.beyond_the_cut_off(order, packages, asked, environment),
        *_record_gaps.notices(order, packages, asked, environment),
    )
    command = f"patchlock lock {order.app.name} --profile {order.profile.name}"
    build = _build_requirements.build_constraints_of(
        packages, order.rules, order.other_builds, target(order), command, prefetched
    )
    return Lock(
        provenance=Provenance(
            app=order.app.name,
            profile=order.profile.name,
            platform=order.platform.name,
            python=str(order.profile.python),
            commit=order.commit,
            as_of=order.as_of,
            newer=order.newer,
            uv=uv.version(),
            patches=tuple(patch.id for patch in engine.for_profile(order.app.patches, order.profile.name)),
            inputs=order.inputs,
            resolver_input=found.question,
            build_constraints=build_constraints.digest(build) if build else "",
            not_covered=not_covered,
        ),
        packages=packages,
        build=build,
        builds_for_newer=tuple(dict.fromkeys(build for one in older for build in one.builds)),
        notices=(
            *(f"not covered: {one}" for one in not_covered),
            *order.asked.excluding(order.profile.python),
            *(
                f"no final version fits, and a pre-release is taken: {one.name} {one.version}; "
                "look whether the app works with it"
                for one in early
            ),
            *(one.told(str(order.app.origin.file)) for one in older),
            *notices,
            *gaps,
        ),
    )


def _nothing_asked(order: ResolutionInputs, not_covered: tuple[str, ...]) -> RequirementsError:
    files = ", ".join(map(str, order.app.requirement_files))
    return RequirementsError(
        f"{files} asks for no package on {order.platform.name}, and a lock without any installs nothing",
        where=f"{order.app.origin.file}",
        remedy="name other files in `requirements`, or what is wanted of these in `extras` and `groups`; where nothing "
        "is meant, write `installs-nothing = true`",
        evidence=not_covered,
    )


def _unknown_extras(order: ResolutionInputs, log: str) -> tuple[str, ...]:
    """Name the extras that a distribution does not have, by the lines that ask for them; uv only warns of these."""
    unknown = {(canonicalize_name(name), canonicalize_name(extra)) for name, extra in _NO_EXTRA.findall(log)}
    return tuple(
        f'{file.path}:{line.line}: {line.requirement.name} has no extra "{extra}"'
        for file, line in order.asked.requirements()
        for extra in sorted(map(canonicalize_name, line.requirement.extras))
        if (canonicalize_name(line.requirement.name), extra) in unknown
    )


_NO_EXTRA = re.compile(
    r"[Tt]he package `([A-Za-z0-9._-]+?)(?:==[^`]*| @ [^`]*)?` does not have an extra named `([^`]+)`"
)


def _not_there(order: ResolutionInputs, error: UnsatisfiableError) -> UnsatisfiableError:
    """Say where something is asked for that the index does not have: most often a slip, and no conflict."""
    words = " ".join(error.evidence)
    evidence = (*missing_wheels(order, words), *error.evidence)
    for name, places in _files(order).items():
        is_lacking = re.search(rf"(?:\b{name} was not found in|there is no version of {name}[=<>~!])", words)
        of_record = is_lacking and _record_gaps.missing(order, name, requirements_of(order), markers(order))
        if of_record:
            what, remedy, is_unknown = of_record
            lacking = UnsatisfiableError(what, where=", ".join(places), remedy=remedy, evidence=evidence)
            lacking.is_unknown = is_unknown
            return lacking
        if late := _too_late(order, name, words):
            return UnsatisfiableError(
                late.says,
                where=", ".join(places),
                remedy=f"{'ask for an older version, ' if late.is_pinned else ''}allow newer files of {name} with a "
                f"[[newer]] table in {order.app.origin.file}, or move the cut-off with --as-of",
                evidence=evidence,
            )
        if is_lacking:
            asked = re.search(rf"there is no version of {name}==([^\s,]+)", words)
            return UnsatisfiableError(
                _lacking(name, asked),
                where=", ".join(places),
                remedy=f"{_correction(order, name, asked[1] if asked else '')}, or ask another index with "
                "UV_DEFAULT_INDEX",
                evidence=evidence,
            )
    return UnsatisfiableError(error.what, evidence=evidence)


def _correction(order: ResolutionInputs, name: NormalizedName, version: str) -> str:
    """Say where a version that the index lacks is corrected: in the rule that names it, or with a patch."""
    rules = [("constraint", one) for one in order.rules.constraints]
    rules += [("override", one) for one in order.rules.overrides]
    for kind, rule in rules:
        named = {one.version for one in rule.requirement.specifier}
        is_named = canonicalize_name(rule.requirement.name) == name and version in named
        if is_named and not rule.origin.is_upstreams:
            return f"correct the [[{kind}]] in {rule.origin}"
    return "correct the line with a patch (set-requirement, rename-requirement or replace-text)"


@dataclasses.dataclass(frozen=True, kw_only=True)
class _TooLate:
    """The cut-off keeps away all of a distribution that is asked for."""

    says: str
    is_pinned: bool


def _too_late(order: ResolutionInputs, name: NormalizedName, words: str) -> _TooLate | None:
    """Say that the cut-off keeps away all of a distribution that is asked for; None where not, or uv is silent.

    uv also names a cut-off in conflicts in which an older version has a part.
    """
    found = re.search(_CUT_OFF.format(re.escape(name)), words)
    if found is None:
        return None
    until, pinned, newest, uploaded = found.groups()
    if not pinned and takeable(order, name) != frozenset():
        return None
    day = last_day(until)
    at = (uploaded, until) if uploaded[:10] == day else (uploaded[:10], day)
    late = f"{name} {pinned or newest} was uploaded on {at[0]}, after the cut-off of this lock, {at[1]}"
    return _TooLate(says=late if pinned else f"{late}, and no version from before it fits", is_pinned=bool(pinned))


_CUT_OFF = (
    r"`{}` was filtered by `exclude-newer` to only include packages uploaded before (\S+)\. "
    r"The (?:requested version, v(\S+), was|latest version satisfying the requirement is v(\S+),) published at (\S+)\."
)
"""How uv, up to 0.13.8, names a cut-off."""


def _asked_at(order: ResolutionInputs, words: str) -> str:
    """Give the places of the first distribution in backticks that somebody asks for."""
    named = map(canonicalize_name, re.findall(r"`([^`]+)`", words))
    places = _files(order)
    return next((", ".join(places[name]) for name in named if name in places), "")


def _lacking(name: NormalizedName, asked: re.Match[str] | None) -> str:
    """Say what the index lacks: a distribution, or a version, with the newest that it has."""
    from patchlock.distributions import index_client

    versions: set[Version] = set()
    if index_client.is_asked(online=uv.is_online()):
        files = index_client.read_all([name]).get(name, ())
        for file in files:
            with contextlib.suppress(InvalidWheelFilename, InvalidSdistFilename):
                parse = parse_wheel_filename if file.filename.endswith(".whl") else parse_sdist_filename
                versions.add(parse(file.filename)[1])
    with contextlib.suppress(InvalidVersion):
        if versions and asked and Version(asked[1]) not in versions:
            newest = max(versions, key=lambda version: (not version.is_prerelease, version))
            return f"the package index has no {name} {asked[1]}; the newest is {newest}"
    return f"the package index has no {name}, or not that version"


def question(order: ResolutionInputs) -> Sha256:
    """Digest what uv would be asked, without asking: equal digests mean an equal question."""
    with tempfile.TemporaryDirectory(prefix="patchlock-lock-") as name:
        _resolver_input.write(order, Path(name))
        return _resolver.digest(Path(name))


# --- the answer -------------------------------------------------------------------------------------------------------


def _dependents(log: str, answer: Pylock) -> Mapping[NormalizedName, tuple[NormalizedName, ...]]:
    """Read from uv's log which of the chosen distributions asked for which; sorted.

    uv's pylock has no "who asked", and a second run in the format that has it costs as much as the first. Should uv
    word its log differently one day, the locks have fewer comments, and `test_every_line_says_who_asked_for_it` fails.
    """
    chosen = {(package.name, str(package.version)) for package in answer.packages}
    found: dict[NormalizedName, set[NormalizedName]] = {}
    for dependent, version, asked in _TRANSITIVE.findall(log):
        if (dependent, version) in chosen and dependent != asked:
            found.setdefault(canonicalize_name(asked), set()).add(canonicalize_name(dependent))
    return {name: tuple(sorted(dependents)) for name, dependents in found.items()}


_TRANSITIVE = re.compile(
    r"^DEBUG Adding transitive dependency for ([a-z0-9-]+)(?:\[[^]]*\])?==(\S+): ([a-z0-9-]+)", re.MULTILINE
)


def _chosen(
    order: ResolutionInputs, answer: Pylock, dependents: Mapping[NormalizedName, tuple[NormalizedName, ...]]
) -> tuple[LockedPackage, ...]:
    environment = markers(order)
    wanted = (p for p in answer.packages if p.marker is None or p.marker.evaluate(dict(environment)))
    places = _places(order)
    packages = tuple(
        _locked(order, package, [*places.get(package.name, ()), *_via(dependents.get(package.name, ()))])
        for package in wanted
    )
    return tuple(sorted(packages, key=lambda package: package.name))


def target(order: ResolutionInputs) -> _build_requirements.Target:
    """Give what the builds of an order's sdists are for."""
    return _build_requirements.Target(
        profile=order.profile,
        platform=order.platform,
        markers=markers(order),
        as_of=order.as_of,
        cut_offs=order.cut_offs,
    )


def markers(order: ResolutionInputs) -> dict[str, str]:
    """Give the environment of the machine that is locked for, as markers see it."""
    return wheel_choice.marker_environment(order.platform, order.profile.python)


def _via(dependents: tuple[NormalizedName, ...]) -> list[str]:
    return [f"via {', '.join(dependents)}"] if dependents else []


def _locked(order: ResolutionInputs, package: Package, reasons: list[str]) -> LockedPackage:
    if package.archive is not None:
        return _direct_files.locked(
            package, package.archive, order.pins, (order.platform, order.profile), reasons, order.cache
        )
    wheels = {_direct_files.filename(wheel.url or ""): wheel for wheel in package.wheels or ()}
    best = wheel_choice.best_wheel(wheels, order.platform, order.profile)
    if best is not None:
        artifact = wheels[best]
        kind = f"wheel {'-'.join(best.removesuffix('.whl').split('-')[-3:])}"
    elif package.sdist is not None and package.name in order.rules.source_builds:
        artifact, kind = package.sdist, "sdist"  # type: ignore[assignment]
    else:
        raise PolicyError(
            f"{package.name} {package.version} has no file that fits {order.platform.name}",
            where=f"{order.app.name} × {order.profile.name}",
            remedy="pin another version with a patch, or allow the build with a [[build]] table",
        )
    url = artifact.url or ""
    recorded = {wheel.url for index in order.indexes for wheel in index.wheels}
    recorded |= {sdist.url for index in order.indexes for sdist in index.sdists}
    if "sha256" not in artifact.hashes or package.version is None:
        raise PolicyError(f"the index gives no sha256 for {_direct_files.filename(url)}", where=order.app.name)
    return LockedPackage(
        name=package.name,
        version=package.version,
        url=url if url in recorded else "",
        sha256=Sha256(artifact.hashes["sha256"]),
        why=" · ".join([*reasons, kind]),
    )


def _places(order: ResolutionInputs) -> dict[NormalizedName, list[str]]:
    """Say for each distribution where in upstream's files or in ours it is asked for or bounded on this machine."""
    places: dict[NormalizedName, list[str]] = {}
    environment = {"extra": "", **markers(order)}

    def counts(marker: Marker | None) -> bool:
        return marker is None or "extra" in str(marker) or marker.evaluate(environment)

    for file, line in order.asked.requirements():
        if not counts(line.requirement.marker):
            continue
        name = canonicalize_name(line.requirement.name)
        by = order.patched_by.get(name)
        place = f"{file.path}:{line.line}" + (f" (patch {', '.join(by)})" if by else "")
        places.setdefault(name, []).append(place)
    for rule in (*order.rules.constraints, *order.rules.overrides):
        if not counts(rule.requirement.marker):
            continue
        origin = rule.origin
        place = f"profile {order.profile.name}:{origin.line}" if "profiles/" in origin.file else f"app:{origin.line}"
        if (shared := PurePosixPath(origin.file)).is_relative_to(shared_sets.FOLDER):
            place = f"shared {shared.stem}:{origin.line}"
        if origin.is_upstreams:
            place = str(origin).removeprefix(UPSTREAM)
        places.setdefault(canonicalize_name(rule.requirement.name), []).append(place)
    return places


def _files(order: ResolutionInputs) -> dict[NormalizedName, list[str]]:
    """Give the same places as a person can open them."""
    return {
        name: [spelled_out(place, order.app.name, order.profile.name) for place in places]
        for name, places in _places(order).items()
    }


def _idle_exclusions(order: ResolutionInputs) -> tuple[str, ...]:
    """Name the app's own exclusions that leave nothing out on any platform of the profile, one clause each."""
    own = order.app.origin.file
    rules = order.app.rules.of(order.profile.name).exclusions
    idle = [rule for rule in sorted(rules, key=lambda rule: rule.name) if rule.origin.file == own]
    others = (one for one in order.profile.platforms if one != order.platform)
    for platform in (order.platform, *others):
        if not idle:
            break
        if platform == order.platform or refusal_reason(order.app, order.profile, platform) is None:
            wanted = _wanted_without_exclusions(dataclasses.replace(order, platform=platform))
            idle = [rule for rule in idle if wanted is not None and rule.name not in wanted]
    return tuple(f"nobody asks for {rule.name}: remove the [[exclude]] table at {rule.origin}" for rule in idle)


def _wanted_without_exclusions(order: ResolutionInputs) -> frozenset[str] | None:
    """Name what a lock would have without exclusions; None where it cannot be made so."""
    with tempfile.TemporaryDirectory(prefix="patchlock-lock-") as name:
        folder = Path(name)
        _resolver_input.write(order, folder)
        (folder / "excludes.txt").write_text("", encoding="utf-8")
        try:
            answer = tomllib.loads(_resolver.ask(folder).pylock)
        except (UnsatisfiableError, WheelError, RequirementsError):
            return None
    return frozenset(package["name"] for package in answer.get("packages", ()))


def _idle_exceptions(order: ResolutionInputs, answer: Pylock) -> tuple[str, ...]:
    """Name the app's own exceptions from the cut-off that let nothing newer in, one clause each."""
    if not order.as_of:
        return ()
    cut_off = datetime.datetime.fromisoformat(order.as_of)
    youngest = {
        package.name: max((wheel.upload_time for wheel in package.wheels or () if wheel.upload_time), default=None)
        for package in answer.packages
    }
    return tuple(
        f"the exception from the cut-off for {rule.name} lets nothing newer in; remove it"
        for rule in order.app.rules.of(order.profile.name).newer
        if rule.origin.file == order.app.origin.file
        and (rule.name not in youngest or ((time := youngest[rule.name]) is not None and time <= cut_off))
    )
