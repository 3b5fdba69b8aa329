"""`cache`: how much room downloads and installations take, and what of it can go."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _complete, _log, _options, _output, _progress
from patchlock.cli._commands import Subcommands

if TYPE_CHECKING:
    from patchlock.locks.lock_request import Request
    from patchlock.model.progress import Progress
    from patchlock.operations.lifecycle import PruneResult

_KINDS = {
    "wheels": "downloaded wheels",
    "builds": "packages that were built here",
    "overlays": "archives of vendors",
    "upstreams": "git repositories of upstream",
}
"""Folder of the cache → what it holds."""
_SHOWN = 5
"""Downloads that are named, the largest."""


@click.group("cache", cls=Subcommands, invoke_without_command=True)
@_options.common
@click.pass_context
def cache_command(context: click.Context, catalogue: Path | None, as_json: bool) -> None:
    """Show the disk space in use, or free it.

    \b
    Example:
      patchlock cache
      patchlock cache clean --dry-run
    """
    if context.invoked_subcommand is not None:
        return
    from patchlock.core import uv

    home, cache = _options.home(), _options.cache()
    _options.checked_root(catalogue)
    rows = sorted((*_installed(home), *_cached(cache)), key=lambda row: -row[2])
    if as_json:
        data = [{"what": what, "path": str(path), "bytes": count} for what, path, count, _ in rows]
        _output.succeed("cache", {"home": str(home), "cache": str(cache), "entries": data})
        return
    shown = [
        (f"{_output.size(count):>10}", f"{what}: {path}{f' ({_output.size(shared)} shared)' if shared else ''}")
        for what, path, count, shared in rows
    ]
    shown.append((f"{_output.size(sum(row[2] for row in rows)):>10}", "in total"))
    _output.echo(_output.rows(shown, indent=0))
    lines = [""]
    if any(row[3] for row in rows):
        lines.append(
            "What is shared is also in uv's cache or in another app: it is freed when nothing has it any more."
        )
    _, found = _unneeded(None, None, catalogue, _progress.Silent())
    if freed := sum(room.freed for _, room in (*found.generations, *found.downloads, *found.others)):
        lines += [
            f"To free {_output.size(freed)} (--dry-run only shows what would be removed):",
            "  $ patchlock cache clean",
        ]
    else:
        lines.append("`patchlock cache clean` would free nothing now.")
    lines += ["To empty uv's cache, which other programs share:", f"  $ {uv.cache_clean_command()}"]
    _output.echo("\n".join(lines))


def _installed(home: Path) -> Iterable[tuple[str, Path, int, int]]:
    """Give what is installed, where, its bytes, and how many of them something else has, too."""
    from patchlock.core import disk_space
    from patchlock.environments import generations

    for one in generations.installations(home):
        (room,) = disk_space.measure([one.folder])
        count = size_of(one.folder)
        yield f"{one.app} on {one.profile}", one.folder, count, min(count, room.shared)
    if (models := home / "models").is_dir():
        yield "models", models, size_of(models), 0


def _cached(cache: Path) -> Iterable[tuple[str, Path, int, int]]:
    others = 0
    for path in sorted(cache.iterdir()) if cache.is_dir() else ():
        if path.name in _KINDS:
            yield _KINDS[path.name], path, size_of(path), 0
        elif path.name.startswith("tool-") and path.is_dir():
            which = ", in use" if Path(sys.prefix).is_relative_to(path) else ", of another version or folder"
            yield f"Python and libraries of patchlock itself{which}", path, size_of(path), 0
        else:
            others += size_of(path)
    if others:
        yield "answers of indexes, and other small files", cache, others, 0


def size_of(path: Path) -> int:
    """Add up the files below a path, each once however many names it has; bytes."""
    if not path.is_dir():
        return path.lstat().st_size
    seen: set[tuple[int, int]] = set()
    count = 0
    for root, _, names in os.walk(path):
        for name in names:
            status = os.lstat(os.path.join(root, name))  # noqa: PTH118 - thousands of files
            if (key := (status.st_dev, status.st_ino)) not in seen:
                seen.add(key)
                count += status.st_size
    return count


@cache_command.command("clean")
@click.argument("app", required=False, shell_complete=_complete.installed_apps)
@_options.installed_profile
@click.option("--dry-run", is_flag=True, help="Only show what would be freed.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_options.common
def clean_command(
    app: str | None, profile: str | None, dry_run: bool, yes: bool, catalogue: Path | None, as_json: bool
) -> None:
    """Remove old versions of installed apps, and downloads and builds that no installation needs.

    The version in use stays; `patchlock rollback` cannot go back to one that was removed. It asks before it removes
    versions, and does not ask about downloads and builds.

    \b
    Example:
      patchlock cache clean --dry-run
      patchlock cache clean demo --yes
    """
    from patchlock.operations import lifecycle

    home, cache, progress = _options.home(), _options.cache(), _progress.progress(as_json)
    looking = progress if dry_run else _progress.Silent()  # what stays is told once
    requests, found = _unneeded(app, profile, catalogue, looking)
    if dry_run:
        _tell(found, "would free", dry_run=True, as_json=as_json)
        return
    if found.generations:
        if not yes and not as_json:
            _output.echo("\n".join(lines(found, "frees")), err=True)
        question = "Remove this? `patchlock rollback` cannot go back to a version that was removed"
        if not _output.confirm(question, yes=yes, as_json=as_json):
            _output.echo("nothing was removed")
            return
    _tell(lifecycle.prune(requests, cache, home, progress, dry_run=False), "freed", dry_run=False, as_json=as_json)


def _unneeded(
    app: str | None, profile: str | None, catalogue: Path | None, progress: Progress
) -> tuple[list[Request], PruneResult]:
    """Find what nothing needs of an app, or of all that are installed, and of the cache; nothing is removed."""
    from patchlock.environments import installed_profiles
    from patchlock.operations import lifecycle

    home, cache = _options.home(), _options.cache()
    pairs = [(name, one) for name, found in installed_profiles.by_app(home).items() for one in found]
    asked = [(app, profile)] if app is not None else pairs
    requests = [_options.installed_request(catalogue, name, one, as_it_is=True) for name, one in asked]
    return requests, lifecycle.prune(requests, cache, home, progress, dry_run=True)


def _tell(found: PruneResult, verb: str, *, dry_run: bool, as_json: bool) -> None:
    if not as_json:
        _output.echo("\n".join(lines(found, verb)) or "there is nothing to remove")
        return
    removed = [
        {
            "app": receipt.app,
            "profile": receipt.profile,
            "generation": receipt.id,
            "bytes": room.freed,
            "shared_bytes": room.shared,
        }
        for receipt, room in found.generations
    ]
    downloads = [{"file": name, "bytes": room.freed} for name, room in found.downloads]
    others = [{"what": what, "bytes": room.freed} for what, room in found.others]
    data = {"removed": removed, "downloads": downloads, "others": others, "dry_run": dry_run}
    _output.succeed("cache clean", data)


def lines(found: PruneResult, verb: str) -> list[str]:
    """Say what goes, a line each; of downloads and builds only the largest, but with --verbose all."""
    from patchlock.core import uv

    lines = [
        f"{verb} {_output.size(room.freed)}: {receipt.app} on {receipt.profile}, version {receipt.id}, "
        f"made {receipt.made}"
        for receipt, room in found.generations
    ]
    cached = sorted((*found.downloads, *found.others), key=lambda one: -one[1].freed)
    shown = cached if _log.is_verbose() else cached[:_SHOWN]
    lines += [f"{verb} {_output.size(room.freed)}: {name}, which no installation needs" for name, room in shown]
    if more := sum(room.freed for _, room in cached[len(shown) :]):
        lines.append(f"{verb} {_output.size(more)}: {len(cached) - len(shown)} more (-v lists them)")
    if len(lines) > 1:
        total = sum(room.freed for _, room in (*found.generations, *cached))
        lines.append(f"{verb} {_output.size(total)} in total")
    if shared := sum(room.shared for _, room in found.generations):
        lines.append(
            f"not freed {_output.size(shared)}: uv's cache or another environment has the same files; "
            f"`{uv.cache_clean_command()}` empties that cache"
        )
    return lines
