"""`uninstall`: what it removes, and what stays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _options, _output, _progress
from patchlock.model.visible_text import visible_name

if TYPE_CHECKING:
    from patchlock.locks.lock_request import Request
    from patchlock.operations.lifecycle import UninstallPlan, UninstallResult

_SHOWN = 5
"""Files of the user that are named."""


@click.command("uninstall")
@_options.installed
@click.option(
    "--purge", is_flag=True, help="Also delete your files in the app's folder, and downloads only this app uses."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_options.common
def uninstall_command(
    app: str, profile: str | None, purge: bool, dry_run: bool, yes: bool, catalogue: Path | None, as_json: bool
) -> None:
    """Remove an installed app; your own files stay unless --purge.

    --purge lists what will be deleted, and asks.

    \b
    Example:
      patchlock uninstall demo
      patchlock uninstall demo --purge --dry-run
    """
    from patchlock.operations import lifecycle

    request = _options.installed_request(catalogue, app, profile, as_it_is=True)
    if dry_run or (purge and not yes):
        planned = lifecycle.plan_uninstall(request, purge=purge)
        if dry_run and as_json:
            _output.succeed("uninstall", _planned_data(planned, purge) | {"dry_run": True})
            return
        if not as_json:
            _output.echo("\n".join(_planned(request, planned, purge)), err=not dry_run)
        if dry_run:
            return
        if not _output.confirm("Delete all of this?", yes=yes, as_json=as_json):
            _output.echo("nothing was removed")
            return
    progress = _progress.progress(as_json)
    with progress.stage("uninstall"):
        left = lifecycle.uninstall(request, progress, purge=purge)
        progress.say("files are removed")
    if as_json:
        kept = [*(path for path, _ in left.files), *(f"commit {commit}" for commit in left.commits)]
        data = {
            "kept": kept,
            "bytes": sum(size for _, size in left.files),
            "downloads_bytes": left.downloads,
            "models_bytes": left.models,
        }
        _output.succeed("uninstall", data | {"folder": str(request.installation.folder)})
    else:
        _output.echo("\n".join([*_left(request, left), *_nothing_left()]))


def _planned(request: Request, planned: UninstallPlan, purge: bool) -> list[str]:
    """List what goes; without --purge also what stays."""
    freed = planned.environments.freed
    lines = [f"This removes {request.app.name} on {request.profile.name}:"]
    lines += [f"  {_output.size(freed)}  its environments"] if freed else []
    mine = _mine(planned.files, planned.commits)
    total = _output.size(sum(size for _, size in planned.files))
    if purge:
        if mine:
            lines += [f"  {total}  YOUR files and commits in {request.installation.source} ({len(mine)}):"]
            lines += [f"    {line}" for line in mine[: _SHOWN * 4]]
            lines += [f"    and {len(mine) - _SHOWN * 4} more"] if len(mine) > _SHOWN * 4 else []
        lines += [f"  {_output.size(planned.models)}  models that no other app uses"] if planned.models else []
        lines += [f"  {_output.size(planned.downloads)}  downloads and builds that no other app uses"] * bool(
            planned.downloads
        )
    elif mine:
        lines.append(
            f"and keeps your {_count(planned.files, planned.commits)} ({total}): {request.installation.source}"
        )
    return lines


def _planned_data(planned: UninstallPlan, purge: bool) -> dict[str, object]:
    kept = [*(path for path, _ in planned.files), *(f"commit {commit}" for commit in planned.commits)]
    return {
        "environments_bytes": planned.environments.freed,
        "yours": kept,
        "bytes": sum(size for _, size in planned.files),
        "downloads_bytes": planned.downloads,
        "models_bytes": planned.models,
        "purge": purge,
    }


def _mine(files: tuple[tuple[str, int], ...], commits: tuple[str, ...]) -> list[str]:
    return [
        *(f"{visible_name(path)}  {_output.size(size)}" for path, size in files),
        *(f"commit {commit}" for commit in commits),
    ]


def _count(files: tuple[tuple[str, int], ...], commits: tuple[str, ...]) -> str:
    counts = [(len(files), "file or folder", "files and folders"), (len(commits), "commit", "commits")]
    return " and ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts if count)


def _left(request: Request, left: UninstallResult) -> list[str]:
    app, profile = request.app.name, request.profile.name
    lines = [f"{app} is removed from {profile}"]
    purge = f"patchlock uninstall {app} --profile {profile} --purge"
    if mine := _mine(left.files, left.commits):
        total = _output.size(sum(size for _, size in left.files))
        lines += [f"kept your {_count(left.files, left.commits)} ({total}), and the app's own files around them: "]
        lines[-1] += str(request.installation.source)
        lines += [f"  {line}" for line in mine[:_SHOWN]]
        lines += [f"  and {len(mine) - _SHOWN} more"] if len(mine) > _SHOWN else []
        lines += [f"remove them too: {purge}"]
    if left.models:
        lines.append(f"kept for the next install: {_output.size(left.models)} of models; remove them too: {purge}")
    if left.downloads:
        downloads = _output.size(left.downloads)
        lines.append(f"kept for the next install: {downloads} of downloads and builds in {request.cache}")
        lines[-1] += "; remove them too: patchlock cache clean"
    return lines


def _nothing_left() -> list[str]:
    """After the last app, name what was begun, or what patchlock itself still takes, and what removes it."""
    from patchlock.cli import _self
    from patchlock.environments import generations, installed_profiles

    if installed_profiles.by_app(_options.home()):
        return []
    if begun := generations.unfinished(_options.home()):
        return [
            f"the install of {one.app} on {one.profile} did not finish; remove it too: "
            f"patchlock uninstall {one.app} --profile {one.profile}"
            for one in begun
            if not generations.is_busy(one)
        ]
    count = sum(one.size for one in _self.own_files(_options.home(), _options.cache()))
    if not count:
        return []
    return [f"nothing is installed now; {_output.size(count)} of patchlock's own remain: patchlock self remove"]
