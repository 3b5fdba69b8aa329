"""`prune` and `uninstall`: what they remove, what that frees, and what stays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _launcher, _options, _output

if TYPE_CHECKING:
    from patchlock.locks.lock_request import Request
    from patchlock.operations.lifecycle import PruneResult, UninstallResult

_SHOWN = 5
"""Files of the user that are named."""


@click.command("prune")
@_options.installed
@click.option("--dry-run", is_flag=True, help="Only say what would be freed.")
@_options.common
def prune_command(app: str, profile: str | None, dry_run: bool, catalogue: Path | None, as_json: bool) -> None:
    """Remove every generation but the one in use, and say how much room that frees.

    Downloads, builds and archives of overlays that no generation of any installation needs any more go too.

    \b
    Example:
      patchlock prune demo --dry-run
    """
    from patchlock.operations import lifecycle

    request = _options.installed_request(catalogue, app, profile, as_it_is=True)
    pruned = lifecycle.prune(request, _output.progress(as_json), dry_run=dry_run)
    if as_json:
        removed = [
            {"generation": receipt.id, "bytes": room.freed, "shared_bytes": room.shared}
            for receipt, room in pruned.generations
        ]
        downloads = [{"file": name, "bytes": room.freed} for name, room in pruned.downloads]
        others = [{"what": what, "bytes": room.freed} for what, room in pruned.others]
        data = {"removed": removed, "downloads": downloads, "others": others, "dry_run": dry_run}
        _output.succeed("prune", data)
    else:
        click.echo("\n".join(_pruned(pruned, "would free" if dry_run else "freed")))


def _pruned(pruned: PruneResult, verb: str) -> list[str]:
    from patchlock.core import uv

    lines = [
        f"{verb} {room.freed / 1e6:.1f} MB: generation {receipt.id}, made {receipt.made}"
        for receipt, room in pruned.generations
    ]
    cached = (*pruned.downloads, *pruned.others)
    lines += [f"{verb} {room.freed / 1e6:.1f} MB: {name}, which no generation needs" for name, room in cached]
    if len(lines) > 1:
        total = sum(room.freed for _, room in (*pruned.generations, *cached))
        lines.append(f"{verb} {total / 1e6:.1f} MB in all")
    if shared := sum(room.shared for _, room in pruned.generations):
        lines.append(
            f"not freed {shared / 1e6:.1f} MB: uv's cache or another environment has the same files; "
            f"`{uv.cache_clean_command()}` empties that cache"
        )
    return lines or ["there is only the generation in use: nothing to remove"]


@click.command("uninstall")
@_options.installed
@click.option("--purge", is_flag=True, help="Remove your own files in the app's folder too, and downloads for nothing.")
@_options.common
def uninstall_command(app: str, profile: str | None, purge: bool, catalogue: Path | None, as_json: bool) -> None:
    """Remove an installed app; models, outputs and edits of yours stay unless --purge.

    \b
    Example:
      patchlock uninstall demo
    """
    from patchlock.operations import lifecycle

    request = _options.installed_request(catalogue, app, profile, as_it_is=True)
    left = lifecycle.uninstall(request, _output.progress(as_json), purge=purge)
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
        click.echo("\n".join(_left(request, left)))


def _left(request: Request, left: UninstallResult) -> list[str]:
    app, profile = request.app.name, request.profile.name
    lines = [f"{app} is removed from {profile}"]
    purge = f"{_launcher.own_command(_options.home())} uninstall {app} --profile {profile} --purge"
    if mine := [*((path, _size(size)) for path, size in left.files), *((f"commit {c}", "") for c in left.commits)]:
        total = _size(sum(size for _, size in left.files))
        lines += [f"kept, because it is yours ({len(mine)}, {total}): {request.installation.source}"]
        lines += [f"  {path}  {size}".rstrip() for path, size in mine[:_SHOWN]]
        lines += [f"  and {len(mine) - _SHOWN} more"] if len(mine) > _SHOWN else []
        lines += [f"remove it too: {purge}"]
    if left.models:
        lines.append(f"kept for the next install: {_size(left.models)} of models; remove them too: {purge}")
    if left.downloads:
        lines.append(f"kept for the next install: {_size(left.downloads)} of downloads and builds in {request.cache}")
    return lines


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count} bytes"
