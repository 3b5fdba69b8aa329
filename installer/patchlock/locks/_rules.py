"""Judge what the resolver answered by the rules of the catalogue, before a lock is made of it; reads what they need."""

from __future__ import annotations

import contextlib
import datetime
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    NormalizedName,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from patchlock.core import uv
from patchlock.distributions import policy
from patchlock.distributions.policy.declared import Kind
from patchlock.distributions.policy.fitting import gone, only_sdists, uploaded_until
from patchlock.locks import wheel_choice
from patchlock.locks.reasons import with_files
from patchlock.model.app import PairLike
from patchlock.model.errors import PolicyError
from patchlock.model.identities import Sha256
from patchlock.model.lock_rules import Constraint
from patchlock.model.lockfile import LockedPackage
from patchlock.model.platforms import wheel_rank
from patchlock.model.policy import IndexFile

if TYPE_CHECKING:
    from packaging.pylock import Pylock

    from patchlock.distributions import wheel_facts
    from patchlock.locks.resolution_inputs import ResolutionInputs

_NO_WHEELS = re.compile(r"Wheels are required for `([^`=<>]+)|\b([A-Za-z0-9._-]+)\S* ha(?:s|ve) no usable wheels")
"""Whom uv, up to 0.13.8, says that of."""
_NO_WHEELS_OF = re.compile(
    r"\b([A-Za-z0-9][A-Za-z0-9._-]*)((?:[<>=!~]=?[0-9][^\s,]*,?)+) (?:ha(?:s|ve) no usable wheels|cannot be used)"
)
"""The same, with the versions of which it is said, or what it concludes from that: long words lose their begin."""
_FROM_LOCAL, _UP_TO_LOCAL = (re.compile(sign + r"=?([^\s,+]+)\+[^\s,]*") for sign in "><")


def enforce_policy(
    order: ResolutionInputs, packages: tuple[LockedPackage, ...], answer: Pylock, idle: tuple[str, ...]
) -> tuple[str, ...]:
    """Refuse a lock that breaks a rule; otherwise tell what was taken back or could not be read, one clause each.

    Args:
        order: what was asked.
        packages: the lock.
        answer: what uv answered, with the addresses of all files.
        idle: rules of the app that the resolver shows to do nothing, a clause each.

    Raises:
        PolicyError: rules are broken; names all of them.
    """
    from patchlock.distributions import wheel_facts

    facts = wheel_facts.collect(
        packages,
        _artifacts(answer, packages, order.cache),
        cache=order.cache,
        online=uv.is_online(),
        pinned=_pinned(order),
    )
    own = order.app.rules.of(order.profile.name)
    bounds: tuple[tuple[Kind, tuple[Constraint, ...]], ...] = (
        ("constraint", own.constraints),
        ("override", own.overrides),
    )
    asked = {canonicalize_name(requirement.name) for requirement in requirements_of(order)}
    packages = with_files(packages, order.app.name, order.profile.name)
    found = policy.violations(
        packages,
        facts,
        order.catalogue.rules(),
        platform=order.platform,
        python=order.profile.python,
        arch=order.profile.arch,
        tables=[
            policy.Declared(kind=kind, name=canonicalize_name(rule.requirement.name), origin=rule.origin)
            for kind, rules in bounds
            for rule in rules
        ],
        required=asked.union(facts.required),
        exceptions=order.rules.exceptions,
        judged={order.app.origin.file},
        indexes=order.indexes,
        takeable=lambda name: takeable(order, name),
    )
    clauses = (*map(str, found), *idle)
    if clauses:
        where = f"{order.app.name} × {order.profile.name} × {order.platform.name}"
        error = PolicyError("; ".join(clauses), where=where)
        error.is_unknown = not idle and all(one.is_unknown for one in found)
        raise error
    return policy.notices(packages, facts, order.profile.back_end)


def takeable(order: ResolutionInputs, name: NormalizedName) -> frozenset[Version] | None:
    """Give the versions, without local tags, that a lock may have of a distribution; None where that is not known.

    One whose upload time is not known may be had.
    """
    from patchlock.distributions import index_client

    # The first index that has a name hides the others.
    files = next(
        (found for one in order.indexes if (found := [(w.filename, w.uploaded) for w in one.wheels if w.name == name])),
        [],
    )
    if not files and index_client.is_asked(online=uv.is_online()):
        files = [(one.filename, one.uploaded) for one in index_client.read_all([name]).get(name, ())]
    if not files:
        return None
    until, ranks = order.cut_offs.get(name, order.as_of), wheel_rank(order.platform, order.profile.python)
    environment = wheel_choice.marker_environment(order.platform, order.profile.python)
    rules = (*order.rules.constraints, *order.rules.overrides)
    asked = [*requirements_of(order), *(rule.requirement for rule in rules)]
    named = [one for one in asked if canonicalize_name(one.name) == name]
    bounds = [one.specifier for one in named if one.marker is None or one.marker.evaluate(dict(environment))]
    known: set[Version] = set()
    for filename, uploaded in files:
        with contextlib.suppress(InvalidWheelFilename):
            _, version, _, tags = parse_wheel_filename(filename)
            is_late = until and uploaded and _time(uploaded) > _time(until)
            if not is_late and not ranks.keys().isdisjoint(tags):
                known.add(Version(version.public))
    return frozenset(one for one in known if all(bound.contains(one, prereleases=True) for bound in bounds))


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def policy_violations(
    request: PairLike, packages: tuple[LockedPackage, ...], rules: policy.Rules, cache: Path | None
) -> tuple[str, ...]:
    """Judge a lock as it stands, without any network: by the tables, and by what is known of its files on this machine.

    What an app's bounds and exceptions do shows when a lock is made, and is not judged here.

    Args:
        request: whose lock it is.
        packages: the lock.
        rules: the tables of the catalogue.
        cache: folder for what was read of wheels; None judges by the tables alone, everywhere the same.

    Returns:
        one sentence for each broken rule.
    """
    packages = with_files((package.upstream for package in packages), request.app.name, request.profile.name)
    facts = policy.Facts()
    if cache is not None:
        from patchlock.distributions import wheel_facts

        facts = wheel_facts.collect(packages, {}, cache=cache, online=False)
    found = policy.violations(
        packages,
        facts,
        rules,
        platform=request.platform,
        python=request.profile.python,
        arch=request.profile.arch,
        exceptions=(*request.profile.rules.exceptions, *request.app.rules.of(request.profile.name).exceptions),
    )
    return tuple(map(str, found))


def _artifacts(answer: Pylock, packages: tuple[LockedPackage, ...], cache: Path) -> dict[Sha256, wheel_facts.Place]:
    """Say where each file of a lock lies; recorded indexes are not asked, what is named by address is here."""
    from patchlock.distributions import mirrors, wheel_facts, wheelhouse

    recorded = {package.sha256 for package in packages if package.url}
    found = {}
    for package in answer.packages:
        for artifact in (*(package.wheels or ()), *((package.sdist,) if package.sdist else ())):
            sha256, url = Sha256(artifact.hashes.get("sha256", "")), mirrors.with_password(artifact.url or "")
            found[sha256] = wheel_facts.Place(
                filename=unquote(url.rpartition("/")[2]), url=url, is_asked=sha256 not in recorded
            )
        if package.archive is not None:
            sha256 = Sha256(package.archive.hashes.get("sha256", ""))
            if (path := wheelhouse.find(cache, sha256)) is not None:
                found[sha256] = wheel_facts.Place(filename=path.name, url=path.absolute().as_uri())
    return found


def _pinned(order: ResolutionInputs) -> set[NormalizedName]:
    """Name what upstream pins to one version: only such a version can be a yanked one (PEP 592)."""
    return {
        canonicalize_name(requirement.name)
        for requirement in requirements_of(order)
        if any(specifier.operator in {"==", "==="} for specifier in requirement.specifier)
    }


def requirements_of(order: ResolutionInputs) -> list[Requirement]:
    """List what the app asks for, patched."""
    return [line.requirement for _, line in order.asked.requirements()]


def missing_wheels(order: ResolutionInputs, words: str) -> tuple[str, ...]:
    """Say what has no wheels, or none any more, one clause each: uv does not tell that from a conflict.

    Raises:
        NetworkError: what should be the index is none, so that nothing can be said of wheels.
    """
    from patchlock.distributions import index_client

    index_client.require_pages(words)
    wanted, offered = _doubtful(order, words)
    in_time = _in_time(order, wanted, offered)
    return (
        *gone(wanted, offered),
        *(
            f"{name} {version} has no wheel, only an sdist; allow its build with a [[build]] table, or use another "
            "version"
            for name, version in only_sdists(*in_time)
        ),
    )


def only_built(order: ResolutionInputs, words: str) -> tuple[tuple[NormalizedName, Version], ...]:
    """Name what a lock can have as sdists alone, and the newest version of each; arguments as `missing_wheels`.

    What is plain Python is among them where its wheels came after the cut-off, or are for another Python. Of what other
    distributions ask for, it is as uv says it: in these versions.
    """
    wanted, offered = _in_time(order, *_doubtful(order, words))
    for name, files in offered.items():
        offered[name] = tuple(
            one for one in files if not one.filename.endswith("-none-any.whl") or _fits(one.filename, order)
        )
    alone = only_sdists(wanted, offered)
    # uv also says it of versions between wheels that it cannot take for want of one of these.
    if any(name in words for name, _ in alone) or built_here(order, words):
        return alone
    ranges = {canonicalize_name(name): read_range(name, bound) for name, bound in _NO_WHEELS_OF.findall(words)}
    return only_sdists((*wanted, *filter(None, ranges.values())), offered)


def read_range(name: str, bound: str) -> Requirement | None:
    """Read which versions uv means; None for what a requirement cannot say, such as `|`.

    uv puts local versions in order, too, and a requirement must not: what is below, or at least, `1+cpu` is here what
    is at most, or above, 1. So is what uv, up to 0.13.9, logs as below, or above, 1 and all its local versions: `1+`.
    """
    try:
        return Requirement(name + _UP_TO_LOCAL.sub(r"<=\1", _FROM_LOCAL.sub(r">\1", bound)))
    except InvalidRequirement:
        return None


def sdists_alone(
    order: ResolutionInputs, requirements: list[Requirement], *, for_final: bool = False
) -> tuple[tuple[NormalizedName, Version], ...]:
    """Name what requirements allow as sdists alone, and that may not be built, with the newest version of each.

    Where a final version is wanted, wheels for other machines and those of pre-releases are none.
    """
    from patchlock.distributions import index_client

    names = {canonicalize_name(one.name) for one in requirements} - _not_asked(order)
    wanted, offered = _in_time(order, requirements, index_client.offered(names))
    if for_final:
        kept = {name: [one for one in files if _fits(one.filename, order)] for name, files in offered.items()}
        offered = {name: tuple(one for one in files if not _is_early(one.filename)) for name, files in kept.items()}
    return only_sdists(wanted, offered)


def _fits(filename: str, order: ResolutionInputs) -> bool:
    is_wheel = filename.endswith(".whl")
    return not is_wheel or wheel_choice.best_wheel([filename], order.platform, order.profile) is not None


def _is_early(filename: str) -> bool:
    return filename.endswith(".whl") and parse_wheel_filename(filename)[1].is_prerelease


def built_here(order: ResolutionInputs, words: str) -> tuple[tuple[NormalizedName, Version], ...]:
    """Name what uv misses wheels of although the index has some, with the newest version that has an sdist.

    They are for other machines; or their upload time is not known, then only what is plain Python is built.
    Arguments as `missing_wheels`.
    """
    _, offered = _in_time(order, *_doubtful(order, words))
    missed = {canonicalize_name(a or b) for a, b in _NO_WHEELS.findall(words)}
    found = []
    for name in sorted(missed & offered.keys()):
        files = [file.filename for file in offered[name] if file.yanked is None]
        wheels = [file for file in files if file.endswith(".whl")]
        until = order.cut_offs.get(name, order.as_of)
        in_time = uploaded_until(offered[name], until)
        timely = [file.filename for file in in_time]
        every = {file: Version(parsed[1]) for file in files if (parsed := _sdist(file)) is not None}
        sdists = [version for file, version in every.items() if file in timely] or list(every.values())
        has_known = any(one.filename in wheels and (one.uploaded or not until) for one in in_time)
        is_late = not has_known and all(wheel.endswith("-none-any.whl") for wheel in wheels)
        is_foreign = wheel_choice.best_wheel(wheels, order.platform, order.profile) is None
        if wheels and sdists and (is_late or is_foreign):
            found.append((name, max(sdists, key=lambda version: (not version.is_prerelease, version))))
    return tuple(found)


def _in_time(
    order: ResolutionInputs, wanted: list[Requirement], offered: dict[NormalizedName, tuple[IndexFile, ...]]
) -> tuple[list[Requirement], dict[NormalizedName, tuple[IndexFile, ...]]]:
    """Keep the files of the cut-off, but all of what would have to be compiled only because its wheels came later."""
    found = {}
    for name, files in offered.items():
        kept = uploaded_until(files, order.cut_offs.get(name, order.as_of))
        late = {one.filename for one in files} - {one.filename for one in kept}
        is_plain = all(filename.endswith("-none-any.whl") for filename in late if filename.endswith(".whl"))
        found[name] = kept if is_plain or any(one.filename.endswith(".whl") for one in kept) else files
    return wanted, found


def _sdist(filename: str) -> tuple[str, str] | None:
    try:
        name, version = parse_sdist_filename(filename)
    except InvalidSdistFilename:
        return None
    return name, str(version)


def _doubtful(
    order: ResolutionInputs, words: str
) -> tuple[list[Requirement], dict[NormalizedName, tuple[IndexFile, ...]]]:
    """Ask the index for all that is pinned, or that uv misses wheels of, and that may not be built."""
    from patchlock.distributions import index_client

    if not index_client.is_asked(online=uv.is_online()):
        return [], {}
    builds = _not_asked(order)
    wanted = [r for r in requirements_of(order) if canonicalize_name(r.name) not in builds]
    missed = {canonicalize_name(a or b) for a, b in _NO_WHEELS.findall(words)}
    return wanted, index_client.read_all((_pinned(order) | missed) - builds)


def _not_asked(order: ResolutionInputs) -> set[NormalizedName]:
    """Name what may be built, or whose wheels lie elsewhere, in a recorded index."""
    return {wheel.name for index in order.indexes for wheel in index.wheels}.union(order.rules.source_builds)
