"""`lock`: make the lockfiles of apps, or say which are stale."""

from __future__ import annotations

import concurrent.futures
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import conflicts, lock_again, lock_checks, lock_modes, lock_table, options, output
from patchlock.cli.lock_table import Line
from patchlock.errors import (
    PatchlockError,
    UnknownProfileError,
    UnsatisfiableError,
    UsageError,
    nearest,
)
from patchlock.os_errors import from_os

if TYPE_CHECKING:
    from packaging.utils import NormalizedName

    from patchlock.catalogue import Catalogue
    from patchlock.cli.lock_again import Again
    from patchlock.gathering import Request
    from patchlock.questions import Ahead
    from patchlock.relocking import CutOff


@click.command("lock")
@click.argument("apps", nargs=-1)
@click.option("--profile", metavar="PROFILE", help="Only this profile (default: all).")
@click.option("--check", is_flag=True, help="Only say which locks are stale, and why; asks no network.")
@click.option("--upgrade", is_flag=True, help="Take what has been uploaded up to now.")
@click.option("--package", "packages", multiple=True, metavar="NAME", help="With --upgrade: only this distribution.")
@click.option(
    "--as-of",
    metavar="TIME",
    help="Ignore files uploaded later: `commit` (upstream's date), `now`, 2026-01-31T00:00:00Z, "
    "or `none` for no bound (default: as the lock has it, or `commit`).",
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
    help="This wheel may have other bytes than the lock or the record; give it once for each.",
)
@lock_modes.add
@options.upstream
@options.common
def lock_command(
    apps: tuple[str, ...],
    profile: str | None,
    check: bool,
    upgrade: bool,
    packages: tuple[str, ...],
    as_of: str | None,
    platform: str | None,
    mode: lock_modes.Mode,
    explain: float,
    accept: tuple[str, ...],
    source: str | None,
    revision: str | None,
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Make the lockfiles of apps, one for each profile and platform, or check them.

    \b
    Example:
      patchlock lock demo
      patchlock lock --check
      patchlock lock demo --upgrade --package numpy
    """
    whole = not (apps or profile or platform)
    if check and not (upgrade or packages or as_of or accept or source or revision or mode.is_any):
        asked = ("lock --check", repr(apps), repr(profile), repr(platform))
        lines = lock_checks.remembered(
            catalogue, asked, lambda: lock_checks.every(*_opened(catalogue, apps, profile, platform, source), whole)
        )
        return lock_table.tell(lines, {}, check=check, as_json=as_json)
    if revision is not None:
        raise UsageError("a lock is made for the commit in the app's file", remedy="write the new commit there first")
    _require_wheels(accept)
    cut_off = _cut_off(upgrade, packages, as_of)
    opened, requests = _opened(catalogue, apps, profile, platform, source)
    code = lock_modes.run(mode, requests, cut_off, check=check, as_json=as_json)
    if code is not None:
        return code
    if check:
        return lock_table.tell(lock_checks.every(opened, requests, whole), {}, check=check, as_json=as_json)
    from patchlock.questions import Ahead

    progress = output.progress(as_json)
    again: Again | None = click.get_current_context().obj
    lines = _lock_all(requests, cut_off, progress, again.ahead if again else Ahead(options.cache()), accept)
    if again:
        again.remember(lines)
    stuck = [r for r, line in zip(requests, lines, strict=True) if line.code == UnsatisfiableError.code]
    told = conflicts.tell(stuck, cut_off, explain, progress) if stuck and explain else {}
    return lock_table.tell(lines, told, check=check, as_json=as_json)


def _cut_off(upgrade: bool, packages: tuple[str, ...], as_of: str | None) -> CutOff:
    from patchlock import relocking

    if upgrade and as_of:
        raise UsageError("--upgrade and --as-of both say how new files may be", remedy="give one of them")
    if packages and not upgrade:
        raise UsageError("--package goes with --upgrade", remedy="add --upgrade")
    if packages:
        return relocking.Upgraded(names=tuple(map(_distribution, packages)), now=relocking.now())
    if upgrade or as_of == "now":
        return relocking.Until(time=relocking.now())
    if as_of == "none":
        return relocking.Until(time="")
    return relocking.Until(time=_time(as_of)) if as_of else relocking.Kept()


def _require_wheels(filenames: tuple[str, ...]) -> None:
    from packaging.utils import parse_wheel_filename

    for filename in filenames:
        try:
            parse_wheel_filename(filename)
        except ValueError as error:
            raise UsageError(
                f'--accept-changed "{filename}" is no file name of a wheel', remedy="give it as the message has it"
            ) from error


def _distribution(name: str) -> NormalizedName:
    from patchlock import tables

    try:
        return tables.distribution(name)
    except ValueError as error:
        raise UsageError(f"--package {error}", remedy="write its name on PyPI, such as numpy") from error


def _time(as_of: str) -> str:
    import datetime

    if as_of == "commit":
        return as_of
    try:
        parsed = datetime.datetime.fromisoformat(as_of)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise UsageError(
            f'--as-of "{as_of}" is neither commit, now, none nor a time with its zone',
            remedy="write 2026-01-31T00:00:00Z",
        )
    try:
        return parsed.astimezone(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except OverflowError as error:
        raise UsageError(f'--as-of "{as_of}" is before all time', remedy="write 2026-01-31T00:00:00Z") from error


def _opened(
    folder: Path | None, apps: tuple[str, ...], profile: str | None, platform: str | None, source: str | None
) -> tuple[Catalogue, list[Request]]:
    """Open the catalogue, and gather the pairs that are meant."""
    from patchlock.gathering import Request
    from patchlock.platforms import PLATFORMS

    catalogue = options.open_catalogue(folder)
    if profile is not None and profile not in catalogue.profile_names():
        raise UnknownProfileError(
            f'there is no profile "{profile}"', remedy=nearest(profile, catalogue.profile_names())
        )
    if platform is not None and platform not in PLATFORMS:
        raise UsageError(f'there is no platform "{platform}"', remedy=nearest(platform, PLATFORMS))
    profiles = [catalogue.profile(name) for name in ([profile] if profile else catalogue.profile_names())]
    requests = [
        Request(
            app=app,
            profile=chosen,
            platform=one,
            catalogue=catalogue,
            home=options.home(),
            cache=options.cache(),
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
    progress: output.Silent | output.Plain | output.Live,
    ahead: Ahead,
    accept: tuple[str, ...],
) -> list[Line]:
    """Lock pairs side by side; one that fails does not stop the others."""
    from patchlock import questions, uv

    uv.find()  # once before the threads: `sysconfig`, which it asks, may not be started in several (CPython 3.11)
    with progress.stage("lock"), concurrent.futures.ThreadPoolExecutor(max_workers=questions.at_once()) as pool:
        waiting = {
            pool.submit(_lock, request, cut_off, ahead, accept): lock_checks.names(request)[0] for request in requests
        }
        for done, _ in enumerate(concurrent.futures.as_completed(tuple(waiting)), start=1):
            running = [pair for future, pair in waiting.items() if future.running()]
            progress.say(
                f"{done} of {lock_table.counted(len(requests))}" + (f", {', '.join(running)}" if running else "")
            )
        progress.say(lock_table.counted(len(requests)))
        return [future.result() for future in waiting]


def _lock(request: Request, cut_off: CutOff, ahead: Ahead, accept: tuple[str, ...]) -> Line:
    from patchlock import relocking

    pair, file = lock_checks.names(request)
    started = time.monotonic()
    try:
        lock = relocking.resolve(request, cut_off, ahead)
        warnings = relocking.require_known_bytes(request, lock, accept)
        _, state = relocking.write(request, lock)
    except (PatchlockError, OSError) as found:  # a pair that the system stops does not stop the others
        error = from_os(found) if isinstance(found, OSError) else found
        refused = "refused" if error.code == "refused" else "failed"
        return Line(pair=pair, file=file, state=refused, detail=str(error), code=error.code)
    warnings = (*warnings, *lock.notices)
    line = Line(pair=pair, file=file, state=state, detail="", packages=len(lock.packages), warnings=warnings)
    return lock_again.timed(line, time.monotonic() - started)
