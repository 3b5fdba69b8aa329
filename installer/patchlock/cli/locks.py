"""`lock`: make the lockfiles of apps, or say which are stale."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import launcher, options, output
from patchlock.errors import PatchlockError, UnknownProfileError, UsageError, nearest

if TYPE_CHECKING:
    from patchlock.catalogue import Catalogue
    from patchlock.gathering import Request


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """One pair in the table at the end."""

    pair: str
    file: str
    state: str
    """`written`, `unchanged`, `fresh`, `stale`, `missing`, `refused` or `failed`."""
    detail: str
    code: str = ""

    @property
    def good(self) -> bool:
        return self.state in {"written", "unchanged", "fresh", "refused"}


@click.command("lock")
@click.argument("apps", nargs=-1)
@click.option("--profile", metavar="PROFILE", help="Only this profile (default: all).")
@click.option("--check", is_flag=True, help="Only say which locks are stale, and why; asks no network.")
@click.option(
    "--as-of",
    default="commit",
    metavar="TIME",
    help="Ignore files uploaded later: `commit` (upstream's date, the default), `now`, or 2026-01-31T00:00:00Z.",
)
@options.upstream
@options.common
def lock_command(
    apps: tuple[str, ...],
    profile: str | None,
    check: bool,
    as_of: str,
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
    """
    _require_time(as_of)
    if revision is not None:
        raise UsageError("a lock is made for the commit in the app's file", remedy="write the new commit there first")
    opened = options.open_catalogue(catalogue)
    requests = _requests(opened, apps, profile, source)
    if check:
        lines = [_check(request) for request in requests]
    else:
        from patchlock import uv

        uv.find()  # once before the threads: `sysconfig`, which it asks, may not be started in several (CPython 3.11)
        progress = output.progress(as_json)
        with progress.stage("lock"):
            with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
                lines = list(pool.map(lambda request: _lock(request, as_of), requests))
            progress.say(f"{len(lines)} pairs")
    passed = all(line.good for line in lines)
    if as_json:
        output.succeed("lock", {"pairs": [dataclasses.asdict(line) for line in lines]}, ok=passed)
    else:
        click.echo(
            output.rows([(line.pair, f"{line.state:<9}  {line.detail or line.file}") for line in lines], indent=0)
        )
        if check and not passed:
            stale = sorted({line.pair.partition(" ")[0] for line in lines if not line.good})
            click.echo(f"to renew: {launcher.itself(options.home())} lock {' '.join(stale)}", err=True)
    return 0 if passed else 1


def _require_time(as_of: str) -> None:
    import datetime

    if as_of in {"commit", "now"}:
        return
    try:
        parsed = datetime.datetime.fromisoformat(as_of)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise UsageError(
            f'--as-of "{as_of}" is neither commit, now nor a time with its zone', remedy="write 2026-01-31T00:00:00Z"
        )


def _requests(catalogue: Catalogue, apps: tuple[str, ...], profile: str | None, source: str | None) -> list[Request]:
    from patchlock.gathering import Request

    if profile is not None and profile not in catalogue.profile_names():
        raise UnknownProfileError(
            f'there is no profile "{profile}"', remedy=nearest(profile, catalogue.profile_names())
        )
    profiles = [catalogue.profile(name) for name in ([profile] if profile else catalogue.profile_names())]
    return [
        Request(
            app=app,
            profile=chosen,
            platform=platform,
            catalogue=catalogue,
            home=options.home(),
            cache=options.cache(),
            source=source,
        )
        for app in [catalogue.app(name) for name in (apps or catalogue.app_names())]
        for chosen in profiles
        for platform in chosen.platforms
    ]


def _names(request: Request) -> tuple[str, str]:
    path = request.catalogue.lock_path(request.app, request.profile, request.platform)
    pair = f"{request.app.name} × {request.profile.name} × {request.platform.name}"
    return pair, path.relative_to(request.catalogue.root).as_posix()


def _check(request: Request) -> _Line:
    from patchlock import gathering, lockfile, planning

    pair, file = _names(request)
    try:
        planning.require_possible(request.app, request.profile, request.platform)
        lock, _ = gathering.read_lock(request)
    except PatchlockError as error:
        state = {"refused": "refused", "lock-missing": "missing"}.get(error.code, "failed")
        return _Line(pair=pair, file=file, state=state, detail=error.what, code=error.code)
    reasons = lockfile.stale(
        lock,
        commit=request.app.upstream.commit,
        python=str(request.profile.python),
        inputs=gathering.lock_inputs(request, None),
    )
    return _Line(pair=pair, file=file, state="stale" if reasons else "fresh", detail="; ".join(reasons))


def _lock(request: Request, as_of: str) -> _Line:
    from patchlock import gathering, lockfile, locking, patching, planning

    pair, file = _names(request)
    started = time.monotonic()
    try:
        planning.require_possible(request.app, request.profile, request.platform)
        upstream = gathering.read_upstream(request)
        patching.require_complete(upstream.patched, f"{request.app.name} at {upstream.snapshot.commit[:12]}")
        bound = {"commit": upstream.snapshot.date, "now": ""}.get(as_of, as_of)
        lock = locking.resolve(gathering.order(request, upstream, bound))
    except PatchlockError as error:
        state = "refused" if error.code == "refused" else "failed"
        return _Line(pair=pair, file=file, state=state, detail=str(error), code=error.code)
    path = request.catalogue.lock_path(request.app, request.profile, request.platform)
    data = lockfile.render(lock).encode()
    before = path.read_bytes() if path.is_file() else b""
    if data != before:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.new")
        beside.write_bytes(data)
        beside.replace(path)
    took = f"{len(lock.packages)} packages in {time.monotonic() - started:.1f} s: {file}"
    return _Line(pair=pair, file=file, state="written" if data != before else "unchanged", detail=took)
