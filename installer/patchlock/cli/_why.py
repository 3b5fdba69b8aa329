"""`why`: say why a distribution is in a lock: who asked, what bounds it, where it is from, what newer ones lost to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _complete, _conflict_report, _options, _output, _progress
from patchlock.core import command_lines
from patchlock.model.app import rules_of
from patchlock.model.errors import UnknownDistributionError, UsageError, nearest, similar

if TYPE_CHECKING:
    from patchlock.catalogue.reader import Catalogue
    from patchlock.locks.alternatives import Newer
    from patchlock.locks.lock_request import Request
    from patchlock.model.lockfile import Lock, LockedPackage


@click.command("why")
@click.argument("app", shell_complete=_complete.apps)
@click.argument("distribution")
@click.option(
    "--profile",
    metavar="PROFILE",
    shell_complete=_complete.profiles,
    help="Kind of machine (default: the best match for this one).",
)
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

    All but the alternatives is read from the lock itself, without a network.

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
        raise UnknownDistributionError(
            f"{name} is not in the lock",
            where=_lock_name(request),
            remedy=similar(name, [one.name for one in lock.packages])
            or "that file lists what is installed with the app",
        )
    found = None
    if alternatives:
        progress = _progress.progress(as_json)
        with progress.stage("ask"):
            found = _newer(request, lock, package, progress.say)
            progress.say(f"{found.asked} questions to uv")
    data = _data(request, lock, package, found)
    if as_json:
        _output.succeed("why", data)
    else:
        _output.echo(_text(request, lock, package, found, data))
    return 0


def _request(catalogue: Catalogue, app: str, profile: str | None, platform: str | None, source: str | None) -> Request:
    from patchlock.hardware import host_overrides, probes
    from patchlock.locks.lock_request import Request
    from patchlock.model import platforms

    chosen = catalogue.profile(profile) if profile else _options.request(catalogue.root, app, None).profile
    names = [one.name for one in chosen.platforms]
    here = platforms.platform_of(host_overrides.observe(probes.basic).host)
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


def _lock_name(request: Request) -> str:
    path = request.catalogue.lock_path(request.app, request.profile, request.platform)
    return path.relative_to(request.catalogue.root).as_posix()


def _newer(request: Request, lock: Lock, package: LockedPackage, tell: Callable[[str], None]) -> Newer:
    from patchlock.locks import alternatives
    from patchlock.locks import lock_request as locks_request

    asked = locks_request.read_requirements(request)
    order = locks_request.collect_inputs(request, asked, lock.provenance.as_of, lock.provenance.newer)
    return alternatives.newer(order, asked.raw, package.name, package.upstream.version, tell=tell)


def _index(request: Request, package: LockedPackage) -> str:
    """Name where the file is from: a recorded index, or the machine's own."""
    for name in request.profile.indexes:
        if any(wheel.url == package.upstream.url for wheel in request.catalogue.index(name).wheels):
            return f"{name} (profiles/indexes/{name}.toml)"
    return "the default index"


def _data(request: Request, lock: Lock, package: LockedPackage, found: Newer | None) -> dict[str, object]:
    from patchlock.locks import reasons

    reason = reasons.reason(package, request.app.name, request.profile.name)
    return {
        "name": package.name,
        "version": str(package.version),
        "lock": _lock_name(request),
        "chains": [
            {"asked": one.asked, "names": list(one.names)}
            for one in reasons.chains(reasons.of_lock(lock), package.name)
        ],
        "bounds": list(reason.bounds),
        "index": _index(request, package),
        "url": package.url,
        "file": reason.file,
        "sha256": package.sha256,
        "patched": _patched_data(request, package),
        "as_of": lock.provenance.as_of,
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
        "elsewhere": str(found.elsewhere or ""),
        "questions": found.asked,
    }


def _text(request: Request, lock: Lock, package: LockedPackage, found: Newer | None, data: dict[str, object]) -> str:
    from patchlock.locks import reasons

    reason = reasons.reason(package, request.app.name, request.profile.name)
    ways = reasons.chains(reasons.of_lock(lock), package.name)
    rows = [
        ("asked by", "\n".join(f"{way.asked}: {' → '.join(way.names)}" for way in ways) or "(the lock does not say)"),
        (
            "bounded by",
            "\n".join(_constraint(request, place) for place in reason.bounds)
            or "only what is asked above; no rule of the app or the profile",
        ),
        ("from", str(data["index"]) + (f"\n{package.url}" if package.url else "")),
        ("file", f"{reason.file}, sha256 {package.sha256}"),
        ("cut-off", lock.provenance.as_of or "none"),
    ]
    if package.original is not None:
        rows.insert(-1, ("patched", "\n".join(_patched(request, package))))
    if found is None:
        words = ["patchlock", "why", request.app.name, package.name]
        words += _options.given("profile", "platform", "source", "catalogue")
        rows.append(("newer", f"not asked; this asks: {command_lines.joined([*words, '--alternatives'])}"))
    else:
        rows.append(("newer", "\n".join(_lost(found, lock))))
    return f"{package.name} {package.version} in {data['lock']}\n{_output.rows(rows)}"


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


def _constraint(request: Request, place: str) -> str:
    """Add to a place what stands there."""
    for rule in (*rules_of(request).constraints, *rules_of(request).overrides):
        if str(rule.origin) == place:
            return f"{rule.requirement}  {place}: {rule.why}"
    return place


def _lost(found: Newer, lock: Lock) -> list[str]:
    p = lock.provenance
    lines = []
    if found.fits is not None and found.would_resolve:
        lines.append(f"{found.fits} would resolve: the lock is older than the index, or `--upgrade` takes it")
    elif found.fits is not None and found.conflict is not None:
        lines.append(f"{found.fits} would fit this machine, and lost to:")
        lines += [f"  {row}" for row in _conflict_report.culprits(found.conflict)]
        lines += [f"  uv: {line.strip()}" for line in found.conflict.words]
    elif found.fits is not None:
        lines.append(f"{found.fits} would fit this machine; uv did not say what keeps it out")
    if found.younger is not None:
        lines.append(f"{found.younger} was uploaded after the cut-off, {p.as_of}")
    if found.elsewhere is not None:
        lines.append(f"{found.elsewhere} has wheels, and none for Python {p.python} on {p.platform}")
    return lines or ["there is none"]
