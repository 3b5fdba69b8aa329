"""`why`: say why a distribution is in a lock: who asked, what bounds it, where it is from, what newer ones lost to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from patchlock.cli import _complete, _conflict_report, _options, _output, _progress
from patchlock.core import command_lines
from patchlock.model.app import rules_of
from patchlock.model.errors import UnknownDistributionError, UsageError, nearest, similar

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.utils import NormalizedName

    from patchlock.catalogue.reader import Catalogue
    from patchlock.locks.alternatives import Newer
    from patchlock.locks.lock_request import Request, UpstreamRequirements
    from patchlock.locks.reasons import Chain
    from patchlock.model.lockfile import Lock, LockedPackage
    from patchlock.model.recorded_index import RecordedIndex

_SHOWN = 4
"""Distributions that are named whose bounds are not known here; --json has all."""


@click.command("why")
@click.argument("app", shell_complete=_complete.apps)
@click.argument("distribution")
@_options.profile
@click.option("--platform", metavar="PLATFORM", help="As in the lock's name (default: this machine's, or the first).")
@click.option(
    "--alternatives",
    is_flag=True,
    help="Also ask uv and the index for newer versions and why they were not chosen; takes a few seconds.",
)
@click.option("--source", metavar="PATH-OR-URL", help="With --alternatives: take upstream from here.")
@_options.common
def why_command(
    app: str,
    distribution: str,
    profile: str | None,
    platform: str | None,
    alternatives: bool,
    source: str | None,
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Explain why a package is in a lock, and what limits it.

    All but the alternatives is read without a network: from the lock, and, where they are on this computer, from
    upstream's requirement files and the installed packages.

    \b
    Example:
      patchlock why demo numpy
      patchlock why demo numpy --profile cpu --alternatives
    """
    from packaging.utils import canonicalize_name

    from patchlock.catalogue.pairs import require_possible
    from patchlock.locks import lock_request as locks_request

    request = _request(_options.open_catalogue(catalogue), app, profile, platform, source)
    require_possible(request.app, request.profile, request.platform)
    lock, _ = locks_request.read_lock(request)
    name = canonicalize_name(distribution)
    package = next((one for one in lock.packages if one.name == name), None)
    if package is None:
        taken_out = _taken_out(request, name)
        raise UnknownDistributionError(
            f"{name} is not in the lock{': ' if taken_out else ''}{'; '.join(taken_out)}",
            where=request.lock_name,
            remedy=(taken_out and "the app is meant to run without it")
            or similar(name, [one.name for one in lock.packages])
            or "that file lists what is installed with the app",
        )
    found = upstream = None
    if alternatives:
        progress = _progress.progress(as_json)
        with progress.stage("ask"):
            upstream = locks_request.read_requirements(request)
            found = _newer(request, lock, package, upstream, progress.say)
            progress.say(f"{found.asked} questions to uv")
    told = _told(request, lock, package, upstream)
    data = _data(request, lock, package, found, told)
    if as_json:
        _output.succeed("why", data)
    else:
        _output.echo(_text(request, lock, package, found, told, data))
    return 0


def _request(catalogue: Catalogue, app: str, profile: str | None, platform: str | None, source: str | None) -> Request:
    from patchlock.hardware import host_overrides, probes
    from patchlock.locks.lock_request import Request
    from patchlock.model import platforms

    chosen = catalogue.profile(profile) if profile else _options.request(catalogue.root, app, None).profile
    names = [one.name for one in chosen.platforms]
    observed = host_overrides.observe(probes.basic)
    _output.report_overrides(observed)
    here = platforms.platform_of(observed.host)
    default = here.name if here is not None and here.name in names else names[0]
    wanted = platform or default
    if wanted not in names:
        raise UsageError(f'the profile {chosen.name} has no platform "{wanted}"', remedy=nearest(wanted, names))
    return Request(
        app=catalogue.app(app),
        profile=chosen,
        platform=next(one for one in chosen.platforms if one.name == wanted),
        catalogue=catalogue,
        home=_options.home(),
        cache=_options.cache(),
        source=source,
    )


def _taken_out(request: Request, name: NormalizedName) -> list[str]:
    """Say which rules and patches keep a distribution out of the lock, and where they stand."""
    from patchlock.patches import engine
    from patchlock.patches.ops.requirements import ops

    told = [f"{one.origin} excludes it: {one.why}" for one in rules_of(request).exclusions if one.name == name]
    for patch in engine.for_profile(request.app.patches, request.profile.name):
        match patch.op:
            case ops.DropRequirement(name=dropped) if dropped == name:
                told.append(f"the patch {patch.id} ({patch.origin}) drops it: {patch.why}")
            case ops.RenameRequirement(name=renamed, to=to) if renamed == name:
                told.append(f"the patch {patch.id} ({patch.origin}) asks for {to} instead: {patch.why}")
            case _:
                pass
    return told


def _newer(
    request: Request, lock: Lock, package: LockedPackage, asked: UpstreamRequirements, tell: Callable[[str], None]
) -> Newer:
    from patchlock.locks import alternatives
    from patchlock.locks import lock_request as locks_request

    order = locks_request.collect_inputs(request, asked, lock.provenance.as_of, lock.provenance.newer)
    return alternatives.newer(order, asked.raw, package, lock.packages, tell=tell)


@dataclass(frozen=True, kw_only=True)
class _Bound:
    """One specifier that a version must fit, where it stands, and why if somebody says."""

    requirement: str
    where: str
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class _Told:
    """Who asks for a distribution, and with which bounds."""

    chains: tuple[tuple[Chain, tuple[str, ...]], ...]
    """With each distribution of it as the one before asks for it."""
    bounds: tuple[_Bound, ...]
    lines_unread: tuple[str, ...]
    """Places whose specifier is not on this computer."""
    packages_unread: tuple[str, ...]
    """Distributions whose requirements are not on this computer."""


def _told(request: Request, lock: Lock, package: LockedPackage, upstream: UpstreamRequirements | None) -> _Told:
    from patchlock.locks import reasons
    from patchlock.operations import specifiers

    known = specifiers.of_lock(request, lock, upstream)
    every = reasons.of_lock(lock)
    reason = every[package.name]
    lines = [(place, known.asked(place, package.name)) for place in reason.asked]
    via = [(name, known.required(name, package.name)) for name in reason.via if name in known.locked]
    rules = [_rule(request, place) for place in reason.bounds]
    theirs = [(f"{name} {known.locked[name].version}", one) for name, one in via]
    return _Told(
        chains=tuple(
            (
                chain,
                tuple(
                    _written(one) if one else name
                    for name, one in zip(chain.names, known.requirements(chain), strict=True)
                ),
            )
            for chain in reasons.chains(every, package.name)
        ),
        bounds=tuple(
            _Bound(requirement=_written(one), where=where)
            for where, one in (*lines, *theirs)
            if one and (one.specifier or one.url)
        )
        + tuple(rules),
        lines_unread=tuple(place for place, one in lines if one is None),
        packages_unread=tuple(name for name, one in via if one is None),
    )


def _written(requirement: Requirement) -> str:
    """Write a requirement without its marker, which the lock has judged."""
    text = str(requirement)
    return text.partition(";")[0].strip() if requirement.marker else text


def _record(request: Request, package: LockedPackage) -> RecordedIndex | None:
    """Give the recorded index that the file is from; None for the machine's own index."""
    from patchlock.locks import lock_request

    url = package.upstream.url
    return next(
        (
            index
            for index in lock_request.indexes_of(request)
            if url in {wheel.url for wheel in index.wheels} | {sdist.url for sdist in index.sdists}
        ),
        None,
    )


def _data(request: Request, lock: Lock, package: LockedPackage, found: Newer | None, told: _Told) -> dict[str, object]:
    from patchlock.locks import reasons, resolution_inputs

    record = _record(request, package)
    untimed = resolution_inputs.untimed(resolution_inputs.fitting(record, request)) if record else frozenset()
    reason = reasons.reason(package, request.app.name, request.profile.name)
    return {
        "name": package.name,
        "version": str(package.version),
        "lock": request.lock_name,
        "chains": [
            {"asked": chain.asked, "names": list(chain.names), "requirements": list(requirements)}
            for chain, requirements in told.chains
        ],
        "bounds": [{"requirement": one.requirement, "where": one.where, "why": one.why} for one in told.bounds],
        "bounds_unknown": [*told.lines_unread, *told.packages_unread],
        "index": f"{record.name} ({record.origin.file})" if record else "the default index",
        "url": package.url,
        "file": reason.file,
        "sha256": package.sha256,
        "patched": _patched_data(request, package),
        "as_of": lock.provenance.as_of,
        "as_of_holds": record is None or package.name not in untimed,
        "newer": [
            {"until": until, "where": where, "why": why} for until, where, why in _exceptions(request, lock, package)
        ],
        "alternatives": None if found is None else _alternatives(found),
    }


def _patched_data(request: Request, package: LockedPackage) -> dict[str, object] | None:

    of = package.original
    if of is None:
        return None
    rules = [rule for rule in rules_of(request).distributions if rule.name == package.name]
    return {
        "version": str(of.version),
        "sha256": of.sha256,
        "patches": list(of.patches),
        "why": [rule.why for rule in rules],
        "asked": [str(rule.origin) for rule in rules],
    }


def _alternatives(found: Newer) -> dict[str, object]:
    return {
        "fits": str(found.fits or ""),
        "would_resolve": found.would_resolve,
        "conflict": _conflict_report.conflict_data(found.conflict) if found.conflict else None,
        "younger": str(found.younger or ""),
        "younger_is_late": found.is_late,
        "elsewhere": str(found.elsewhere or ""),
        "unmet": str(found.unmet or ""),
        "taken": str(found.taken or ""),
        "held_back": found.held_back.told("the app's file") if found.held_back else "",
        "questions": found.asked,
    }


def _text(
    request: Request,
    lock: Lock,
    package: LockedPackage,
    found: Newer | None,
    told: _Told,
    data: dict[str, object],
) -> str:
    ways = [f"{chain.asked}: {' → '.join(requirements)}" for chain, requirements in told.chains]
    if _patches_requirements(request, [chain.asked for chain, _ in told.chains]):
        ways.append("(line numbers are those of the patched files)")
    record = _record(request, package)
    rows = [
        ("asked by", "\n".join(ways) or "(the lock does not say)"),
        ("bounded by", "\n".join(_bounds(request, told))),
        ("from", str(data["index"]) + (f"\n{package.url}" if package.url else "")),
        ("file", f"{data['file']}, sha256 {package.sha256}"),
        (
            "cut-off",
            "\n".join(
                [
                    lock.provenance.as_of or "none",
                    *_unlimited(package, record, is_limited=bool(data["as_of_holds"]) or not lock.provenance.as_of),
                    *(
                        f"{package.name} {f'until {until}' if until else 'of any date'}  {where}: {why}"
                        for until, where, why in _exceptions(request, lock, package)
                    ),
                ]
            ),
        ),
    ]
    if package.original is not None:
        rows.insert(-1, ("patched", "\n".join(_patched(request, package))))
    if found is None:
        words = ["patchlock", "why", request.app.name, package.name]
        words += [
            *_output.given("profile", "platform"),
            *_options.source_words(request.app.name),
            *_output.given("catalogue"),
        ]
        rows.append(("newer", f"not asked; this asks: {command_lines.joined([*words, '--alternatives'])}"))
    else:
        rows.append(("newer", "\n".join(_lost(request, lock, package, found, record))))
    return f"{package.name} {package.version} in {data['lock']}\n{_output.rows(rows)}"


def _patches_requirements(request: Request, places: list[str]) -> bool:
    """Say whether a patch is for one of the files of some places, so that upstream's line may be another one."""
    from patchlock.patches import engine, targets

    files = dict.fromkeys((PurePosixPath(place.partition(" (patch ")[0].rpartition(":")[0]) for place in places), b"")
    patches = engine.for_profile(request.app.patches, request.profile.name)
    return any(path in files for patch in patches for path in targets.matching_files(patch, files))


def _unlimited(package: LockedPackage, record: RecordedIndex | None, *, is_limited: bool) -> list[str]:
    """Say that the cut-off did not keep younger files out, where the record cannot tell which are younger."""
    if record is None or is_limited:
        return []
    file = record.origin.file
    return [f"it does not hold for {package.name}: {file} does not say when each file was uploaded"]


def _patched(request: Request, package: LockedPackage) -> list[str]:
    """Say what a patched wheel is made from, by which patches, and who asked for that."""
    of = package.upstream
    rules = [rule for rule in rules_of(request).distributions if rule.name == package.name]
    patches = package.original.patches if package.original else ()
    return [
        *(f"{rule.origin}: {rule.why}" for rule in rules),
        f"made on each machine from {of.name} {of.version}, sha256 {of.sha256}",
        f"by patches/distributions/{of.name}/patch.toml: {', '.join(patches)}",
    ]


def _rule(request: Request, place: str) -> _Bound:
    """Add to a place what stands there."""
    for rule in (*rules_of(request).constraints, *rules_of(request).overrides):
        if str(rule.origin) == place:
            return _Bound(requirement=str(rule.requirement), where=place, why=rule.why)
    return _Bound(requirement="", where=place)


def _bounds(request: Request, told: _Told) -> list[str]:
    """Say what bounds a version, and of whom that cannot be known here."""
    width = max((len(one.requirement) for one in told.bounds), default=0)
    lines = [f"{one.requirement:<{width}}  {one.where}{one.why and f': {one.why}'}".strip() for one in told.bounds]
    if told.lines_unread:
        lines.append(f"(not known here: what stands at {', '.join(told.lines_unread)}; --alternatives fetches it)")
    if told.packages_unread:
        names, more = told.packages_unread[:_SHOWN], len(told.packages_unread) - _SHOWN
        who = ", ".join(names) + (f" and {more} more" if more > 0 else "")
        install = f"`patchlock install {request.app.name} --profile {request.profile.name}`"
        lines.append(f"(not known here: the bounds of {who}; after {install}, they are)")
    return lines or ["nothing: every version fits those that ask"]


def _exceptions(request: Request, lock: Lock, package: LockedPackage) -> list[tuple[str, str, str]]:
    """Give the cut-offs of its own that a distribution has: until when, by whom, and why."""
    found = [(rule.until, str(rule.origin), rule.why) for rule in rules_of(request).newer if rule.name == package.name]
    if package.name in lock.provenance.newer:
        found.append((lock.provenance.newer[package.name], request.lock_name, "`lock --upgrade` took it"))
    return found


def _lost(
    request: Request, lock: Lock, package: LockedPackage, found: Newer, record: RecordedIndex | None
) -> list[str]:
    p = lock.provenance
    own = _exceptions(request, lock, package)
    cut_off = (own[-1][0] or "none") if own else p.as_of
    lines, here = [], f"Python {p.python} on {p.platform}"
    if found.taken is not None:
        lines.append(f"{found.taken} would resolve: the lock is older than the index, and `patchlock lock` takes it")
    elif found.fits is not None and found.would_resolve:
        lines.append(f"{found.fits} would resolve, if the app asked for {package.name}>{package.upstream.version}")
    elif found.fits is not None and found.conflict is not None:
        lines.append(f"{found.fits} would fit this machine, and lost to:")
        lines += [f"  {row}" for row in _conflict_report.culprits(found.conflict)]
        lines += [f"  uv: {line.strip()}" for line in found.conflict.words]
    elif found.fits is not None:
        lines.append(f"{found.fits} would fit this machine; uv did not say what keeps it out")
    if found.held_back is not None:
        lines.append(found.held_back.told(str(request.app.origin.file)))
    if found.younger is not None:
        late = "was uploaded" if found.is_late else "requires something that was uploaded"
        lines.append(f"{found.younger} {late} after the cut-off, {cut_off}")
    if found.elsewhere is not None:
        lines.append(f"{found.elsewhere} has wheels, and none for {here}")
    if found.unmet is not None and (found.held_back is None or found.held_back.better != found.unmet):
        listed = ", ".join(f"{name} {version}" for name, version in found.unmet_builds)
        lacking = f"{listed}, which has none" if listed else "something that has none"
        lines.append(f"{found.unmet} has a wheel for {here}, but requires {lacking}")
    return lines or [f"none in the recorded index {record.name}" if record else "there is none"]
