"""`lock`: make the lockfiles of apps, or say which are stale."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.catalogue import location
from patchlock.cli import (
    _complete,
    _conflict_report,
    _lock_check,
    _lock_modes,
    _lock_table,
    _options,
    _output,
    _progress,
)
from patchlock.cli._lock_table import Line
from patchlock.model.errors import PatchlockError, UnknownProfileError, UnsatisfiableError, UsageError, from_os, nearest

if TYPE_CHECKING:
    import datetime

    from packaging.utils import NormalizedName

    from patchlock.catalogue.reader import Catalogue
    from patchlock.locks.lock_request import Request
    from patchlock.locks.relock import CutOff


@click.command("lock")
@click.argument("apps", nargs=-1, shell_complete=_complete.apps)
@click.option(
    "--profile",
    multiple=True,
    metavar="PROFILE",
    shell_complete=_complete.profiles,
    help="Only this profile (default: all); can be repeated.",
)
@click.option("--check", is_flag=True, help="Only show which locks are stale, and why; uses no network.")
@click.option(
    "--online",
    is_flag=True,
    help="With --check: resolve again too, with each lock's own cut-off, and compare; a lock that was edited and "
    "sealed again does not come out so.",
)
@click.option("--upgrade", is_flag=True, help="Use everything uploaded so far.")
@click.option("--package", "packages", multiple=True, metavar="NAME", help="With --upgrade: only this distribution.")
@click.option(
    "--as-of",
    metavar="TIME",
    help="Ignore files uploaded later: `commit` (upstream's date), `now`, 2026-01-31T00:00:00Z, "
    "2026-01-31 (to its end, in UTC), or `none` for no bound (default: as the lock has it, or "
    "`commit`). A recorded index without upload times is not limited.",
)
@click.option("--platform", metavar="PLATFORM", help="Only this platform (default: all).")
@click.option(
    "--explain",
    type=click.FloatRange(min=0),
    default=120,
    metavar="SECONDS",
    help="How long to look for the cause of a conflict and for edits that resolve it; 0: not at all (default: 120).",
)
@click.option(
    "--accept-changed",
    "accept",
    multiple=True,
    metavar="FILE",
    help="Accept changed bytes for this wheel; can be repeated.",
)
@_options.local_addresses
@_lock_modes.add
@_options.source
@_options.common
def lock_command(
    apps: tuple[str, ...],
    profile: tuple[str, ...],
    check: bool,
    online: bool,
    upgrade: bool,
    packages: tuple[str, ...],
    as_of: str | None,
    platform: str | None,
    mode: _lock_modes.Mode,
    explain: float,
    accept: tuple[str, ...],
    local_addresses: bool,
    source: str | None,
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Make or check lockfiles, one for each app and profile.

    \b
    Example:
      patchlock lock demo
      patchlock lock --check
      patchlock lock demo --upgrade --package numpy
    """
    whole, is_named = not (apps or profile or platform), bool(apps and profile)
    if online and not check:
        raise UsageError("--online says how --check does its work", remedy="add --check")
    if check and not (online or upgrade or packages or as_of or accept or source or mode.is_any):
        asked = ("lock --check", repr(apps), repr(profile), repr(platform))
        lines = _lock_check.run_cached_check(
            catalogue,
            asked,
            lambda: _lock_check.check_locks(*_opened(catalogue, apps, profile, platform, source), whole),
        )
        return _lock_table.print_locks(lines, {}, check=check, as_json=as_json, is_named=is_named)
    opened, requests = _opened(catalogue, apps, profile, platform, source)
    _require_wheels(accept)
    cut_off = _cut_off(upgrade, packages, as_of)
    requests = [dataclasses.replace(one, local_addresses=local_addresses) for one in requests]
    code = _lock_modes.run(mode, requests, cut_off, check=check, as_json=as_json, is_named=is_named)
    if code is not None:
        return code
    progress = _progress.progress(as_json)
    if check:
        lines = (
            _lock_check.check_online(opened, requests, whole, progress)
            if online
            else _lock_check.check_locks(opened, requests, whole)
        )
        return _lock_table.print_locks(lines, {}, check=check, as_json=as_json, is_named=is_named)
    location.require_own(opened.root)
    lines = _lock_all(requests, cut_off, progress, accept)
    stuck = [r for r, line in zip(requests, lines, strict=True) if line.code == UnsatisfiableError.code]
    told = _conflict_report.explain_conflicts(stuck, cut_off, explain, progress) if stuck and explain else {}
    return _lock_table.print_locks(lines, told, check=check, as_json=as_json, is_named=is_named)


def _cut_off(upgrade: bool, packages: tuple[str, ...], as_of: str | None) -> CutOff:
    from patchlock.locks import relock

    if upgrade and as_of:
        raise UsageError("--upgrade and --as-of both say how new files may be", remedy="give one of them")
    if packages and not upgrade:
        raise UsageError("--package needs --upgrade", remedy="add --upgrade")
    if packages:
        return relock.Upgraded(names=tuple(map(_distribution, packages)), now=relock.now())
    if upgrade or as_of == "now":
        return relock.Until(time=relock.now())
    if as_of == "none":
        return relock.Until(time="")
    return relock.Until(time=_time(as_of)) if as_of else relock.Kept()


def _require_wheels(filenames: tuple[str, ...]) -> None:
    from packaging.utils import parse_wheel_filename

    for filename in filenames:
        try:
            parse_wheel_filename(filename)
        except ValueError as error:
            raise UsageError(
                f'--accept-changed "{filename}" is not a file name of a wheel', remedy="give it as the message has it"
            ) from error


def _distribution(name: str) -> NormalizedName:
    from patchlock.catalogue import table_reader

    try:
        return table_reader.distribution(name)
    except ValueError as error:
        raise UsageError(f"--package {error}", remedy="write its name on PyPI, such as numpy") from error


def _time(as_of: str) -> str:
    import datetime

    if as_of == "commit":
        return as_of
    try:
        day = _end_of_day(as_of)
        parsed = day or datetime.datetime.fromisoformat(as_of)
        utc = parsed.astimezone(datetime.UTC) if parsed.tzinfo else None
    except (ValueError, OverflowError):
        utc = None
    if utc is None:
        raise UsageError(
            f'--as-of "{as_of}" is neither commit, now, none, a day nor a time with its zone',
            remedy="write 2026-01-31 or 2026-01-31T00:00:00Z",
        )
    now = datetime.datetime.now(datetime.UTC)
    if utc > now + datetime.timedelta(days=1 if day is not None else 0):
        raise UsageError(
            f'--as-of "{as_of}" is in the future: what is uploaded until then is not known yet',
            remedy="write `now`, or a time that has passed",
        )
    utc = min(utc, now)  # today is not over
    return utc.isoformat(timespec="seconds").replace("+00:00", "Z")


def _end_of_day(text: str) -> datetime.datetime | None:
    """Read a day as uv's --exclude-newer does, with the day itself; but in UTC, the same on every machine."""
    import datetime

    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        return None
    return datetime.datetime.combine(day, datetime.time(), datetime.UTC) + datetime.timedelta(days=1)


def _opened(
    folder: Path | None, apps: tuple[str, ...], wanted: tuple[str, ...], platform: str | None, source: str | None
) -> tuple[Catalogue, list[Request]]:
    """Open the catalogue, and gather the pairs that are meant."""
    from patchlock.locks.lock_request import Request
    from patchlock.model.platforms import PLATFORMS

    catalogue = _options.open_catalogue(folder)
    for name in wanted:
        if name not in catalogue.profile_names():
            raise UnknownProfileError(f'there is no profile "{name}"', remedy=nearest(name, catalogue.profile_names()))
    if platform is not None and platform not in PLATFORMS:
        raise UsageError(f'there is no platform "{platform}"', remedy=nearest(platform, PLATFORMS))
    profiles = [catalogue.profile(name) for name in (dict.fromkeys(wanted) or catalogue.profile_names())]
    requests = [
        Request(
            app=app,
            profile=chosen,
            platform=one,
            catalogue=catalogue,
            home=_options.home(),
            cache=_options.cache(),
            source=source,
        )
        for app in [catalogue.app(name) for name in (apps or catalogue.app_names())]
        for chosen in profiles
        for one in chosen.platforms
        if platform in {None, one.name}
    ]
    return catalogue, requests


def _lock_all(
    requests: list[Request],
    cut_off: CutOff,
    progress: _progress.Silent | _progress.Plain | _progress.Live,
    accept: tuple[str, ...],
) -> list[Line]:
    """Lock pairs side by side; one that fails does not stop the others."""
    from patchlock.core import uv

    uv.find()  # once before the threads: `sysconfig`, which it asks, may not be started in several (CPython 3.11)
    workers = 2 * (os.cpu_count() or 1)  # most of the time each waits for the index
    with progress.stage("lock"), concurrent.futures.ThreadPoolExecutor(max_workers=workers) as pool:
        waiting = {pool.submit(_lock, request, cut_off, accept): _lock_check.names(request)[0] for request in requests}
        for done, _ in enumerate(concurrent.futures.as_completed(tuple(waiting)), start=1):
            running = [pair for future, pair in waiting.items() if future.running()]
            progress.say(
                f"{done} of {_lock_table.counted(len(requests))}" + (f", {', '.join(running)}" if running else "")
            )
        progress.say(_lock_table.counted(len(requests)))
        return [future.result() for future in waiting]


def _lock(request: Request, cut_off: CutOff, accept: tuple[str, ...]) -> Line:
    from patchlock.catalogue import pairs
    from patchlock.locks import relock

    pair, file = _lock_check.names(request)
    started = time.monotonic()
    try:
        lock = relock.resolve(request, cut_off)
        warnings = relock.require_known_bytes(request, lock, accept)
        _, state = relock.write(request, lock)
    except (PatchlockError, OSError) as found:  # a pair that the system stops does not stop the others
        error = from_os(found) if isinstance(found, OSError) else found
        is_refused = error.code == "refused"
        detail = str(error)
        if (table := pairs.refusal(request.app, request.profile, request.platform)) is not None:
            detail += f"\nto lock it, delete the [[refused]] table at {table.origin}, and run this again"
        where = _output.place(request.catalogue.root, file)
        if is_refused and relock.remove(request):
            detail += f"\nremoved: {where}"
        elif is_refused and request.lock_path.is_file():
            detail += f"\n{where} was edited and stays: remove it yourself"
            is_refused = False
        return Line(pair=pair, file=file, state="refused" if is_refused else "failed", detail=detail, code=error.code)
    warnings = (*warnings, *lock.notices)
    count = len(lock.packages)
    place = _output.place(request.catalogue.root, file)
    detail = f"{count} packages in {time.monotonic() - started:.1f} s: {place}"
    return Line(pair=pair, file=file, state=state, detail=detail, packages=count, warnings=warnings)
