"""`self`: how patchlock itself is updated and removed."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _launcher, _options, _output, _progress
from patchlock.cli._commands import Subcommands
from patchlock.core import command_lines
from patchlock.model.addresses import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchlock.core.process import Running
    from patchlock.model.errors import BusyError, UsageError

_BY_SYSTEM = "The package manager that installed it"
_NEW = "NEW"
"""Stands for a revision, or a bundle, in a command."""


@dataclass(frozen=True, kw_only=True)
class OwnFile:
    """A file or folder of patchlock itself, which belongs to no installation."""

    path: Path
    size: int
    """Bytes."""


@click.group("self", cls=Subcommands, no_args_is_help=True)
def self_command() -> None:
    """Update or remove patchlock itself.

    \b
    Example:
      patchlock self update
      patchlock self remove --dry-run
    """


def _checkout() -> Path | None:
    """Name the clone, or the unpacked archive of one, that patchlock runs from; None where it is installed."""
    bootstrap = os.environ.get("PATCHLOCK_BOOTSTRAP", "")
    folder = Path(bootstrap).parent if bootstrap else Path(__file__).parents[3]
    return folder if (folder / "install.sh").is_file() else None


def _unpacked(folder: Path) -> tuple[Path, ...]:
    """Name the folder that patchlock runs from and, where it came out of a bundle, that of its packages beside it."""
    packages = folder.parent / "tool"
    of_bundle = not (folder / ".git").exists() and any(packages.glob("uv-*.whl"))
    return (folder, packages) if of_bundle else (folder,)


def _installed_from() -> Path | str | None:
    """Name what patchlock was installed from: a folder or a wheel; a repository, if at a revision; None: an index."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    recorded = json.loads(importlib.metadata.distribution("patchlock").read_text("direct_url.json") or "{}")
    url, control = recorded.get("url", ""), recorded.get("vcs_info", {})
    if control.get("requested_revision"):
        return f"{control['vcs']}+{url}@{_NEW}"
    return Path(url2pathname(urlsplit(url).path)) if url.startswith("file:") and not control else None


def _by_installer(verb: str, source: Path | str | None = None) -> str:
    """Write the command of the program that installed patchlock; "" if that is a system's package manager.

    Args:
        verb: `update` or `remove`.
        source: what it is installed from again; None: the newest version of where it came from.
    """
    place = Path(sys.prefix).as_posix()
    what = command_lines.quoted(str(source)) if source is not None else "patchlock"
    removes = verb == "remove"
    if "/uv/tools/" in place:
        again = f"install --{'force' if isinstance(source, str) else 'reinstall'}"
        return f"uv tool {'uninstall' if removes else again if source else 'upgrade'} {what}"
    if "/pipx/" in place:
        return f"pipx {'uninstall' if removes else 'install --force' if source else 'upgrade'} {what}"
    installer = (importlib.metadata.distribution("patchlock").read_text("INSTALLER") or "").strip()
    if installer == "uv":
        python = command_lines.quoted(sys.executable)
        words = "uninstall" if removes else f"install {'--reinstall' if source else '--upgrade'}"
        return f"uv pip {words} --python {python} {what}"
    if installer != "pip":
        return ""
    python = command_lines.program(sys.executable)
    words = "uninstall" if removes else f"install {'--force-reinstall' if source else '--upgrade'}"
    return f"{python} -m pip {words} {what}"


def _way(source: Path | str | None) -> tuple[str, str]:
    """Say how a patchlock that does not run from a clone is updated: a sentence, and its last command."""
    command = _by_installer("update", source)
    if not command:
        return f"patchlock was not installed from a clone. {_BY_SYSTEM} updates it.", ""
    if source is None:
        return f"patchlock was not installed from a clone. Update it with: {command}", command
    if isinstance(source, str):
        told = f"patchlock was installed at one revision. Write the one that you want instead of {_NEW}, and run:"
        return f"{told}\n  {command}", command
    pull = f"  git -C {command_lines.quoted(str(source))} pull\n" if (source / ".git").exists() else ""
    first = "Update it with" if pull else "Bring that up to date, then run"
    return f"patchlock was installed from {source}. {first}:\n{pull}  {command}", command


def _way_of_unpacked(folder: Path) -> tuple[str, str]:
    """Say how a patchlock that runs from an unpacked archive or bundle is updated: a sentence, and its command."""
    folders = _unpacked(folder)
    if len(folders) == 1:
        return f"patchlock runs from {folder}, which is no clone. Unpack the newest version there.", ""
    unpack = f"tar -xf {_NEW}.bundle -C {command_lines.quoted(str(folder.parent))} patchlock tool"
    command = command_lines.sequence([command_lines.removal(*folders), unpack])
    told = f"patchlock was unpacked from a bundle. Put the newer one that you want instead of {_NEW}.bundle, and run:"
    return f"{told}\n  {command}", command


@self_command.command("update")
@_options.common
def update_command(catalogue: Path | None, as_json: bool) -> None:  # noqa: ARG001
    """Update patchlock, and the catalogue that came with it.

    In a clone this is `git pull --ff-only`; else it names the command of the program that installed patchlock.

    \b
    Example:
      patchlock self update
    """
    from patchlock.core import process

    folder = _checkout()
    if folder is None or not (folder / ".git").exists():
        told, command = _way_of_unpacked(folder) if folder is not None else _way(_installed_from())
        if as_json:
            _output.succeed("self update", {"changed": False, "command": command})
        else:
            _output.echo(told)
        return
    progress = _progress.progress(as_json)
    env = process.environment({"GIT_TERMINAL_PROMPT": "0"})
    with progress.stage("update"):
        before = process.run("git", "rev-parse", "HEAD", env=env, cwd=folder).text
        process.run("git", "pull", "--ff-only", "--quiet", env=env, cwd=folder)
        after = process.run("git", "rev-parse", "HEAD", env=env, cwd=folder).text
        progress.say("nothing new" if before == after else f"{before[:12]} -> {after[:12]}")
    if as_json:
        _output.succeed("self update", {"changed": before != after, "commit": after, "folder": str(folder)})
    elif before != after:
        _output.echo("patchlock is updated. See what is newer for your apps with: patchlock outdated")
    else:
        _output.echo("patchlock is up to date")


@self_command.command("remove")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_options.common
def remove_command(dry_run: bool, yes: bool, catalogue: Path | None, as_json: bool) -> None:  # noqa: ARG001
    """Remove patchlock's own files: its cache, its Python environment, its launcher and its list of trusted catalogues.

    Refuses while an app is installed, an install has not finished or another patchlock runs. The clone, or the
    package that patchlock was installed as, stays; the command that removes it is printed.

    \b
    Example:
      patchlock self remove --dry-run
    """
    from patchlock.core import atomic_files, file_lock, uv
    from patchlock.environments import cache_pruning, generations

    home, cache = _options.home(), _options.cache()
    for reason in _reasons_to_stay(home, cache):
        if not dry_run:
            raise reason
        _output.note(f"note: {reason}")
    found, homes = own_files(home, cache), cache_pruning.homes(cache, home)
    of_uv = None if as_json else Path(uv.cache_folder())  # asked now, as uv goes with the rest
    folder = _checkout()
    in_use = [path for path in (cache, _launcher.path(home).parent) if os.name == "nt" and path.is_dir()]
    rest = command_lines.removal(*_unpacked(folder), *in_use) if folder else _by_installer("remove")
    if not as_json:
        rows = [(f"{_output.size(one.size):>10}", str(one.path)) for one in found if one.size]
        head = "patchlock would remove:" if dry_run else "patchlock removes:"
        _output.echo(
            f"{head}\n{_output.rows(rows)}" if rows else "there is nothing of patchlock to remove", err=not dry_run
        )
    if found and not dry_run:
        if not _output.confirm("Remove all of this?", yes=yes, as_json=as_json):
            _output.echo("nothing was removed")
            return
        held = cache_pruning.removal_lock(home)
        with file_lock.hold(held, wait=0):  # an install that starts from now on sees it
            for reason in _reasons_to_stay(home, cache):  # and one that has started before the answer is seen
                raise reason
            for one in found:
                if one.path.is_dir():
                    atomic_files.remove_tree(one.path)
                else:
                    one.path.unlink(missing_ok=True)
        held.unlink(missing_ok=True)
        for folder_left in (cache, *(path for place in homes for path in (_launcher.path(place).parent, place))):
            with contextlib.suppress(OSError):  # something of the user's is in it
                folder_left.rmdir()
    if as_json:
        rows_data = [{"path": str(one.path), "bytes": one.size} for one in found]
        _output.succeed("self remove", {"removed": rows_data, "dry_run": dry_run, "command": rest})
    else:
        way = f"To remove the rest:\n  $ {rest}" if rest else f"{_BY_SYSTEM} removes the rest."
        done = "patchlock's own files are removed.\n" if found and not dry_run else ""
        begun = generations.unfinished(home)
        kept = [
            one.folder
            for one in generations.installations(home)
            if one.source.is_dir() and not one.pointer.is_file() and one not in begun
        ]
        yours = "".join(f"Your own files stay in {path}\n" for path in kept)
        shared = ""
        if of_uv is not None and of_uv.is_dir():
            empty = command_lines.removal(of_uv)
            shared = f"Downloads are also in uv's cache, which other programs share. To remove it:\n  $ {empty}\n"
        _output.echo(f"{done}{yours}{shared}{way}")


def _installed(home: Path) -> UsageError | None:
    """Name the apps of a home that are installed, being changed or half installed, and the commands to end that."""
    from patchlock.environments import generations, installed_profiles
    from patchlock.model.errors import UsageError

    there = installed_profiles.by_app(home)
    told = [f"apps are installed: {', '.join(there)}"] if there else []
    commands = [f"patchlock uninstall {name}" for name in there]
    for one in generations.unfinished(home):
        name = f"{one.app} on {one.profile}"
        is_busy = generations.is_busy(one)
        told.append(f"{name} is being changed" if is_busy else f"the install of {name} did not finish")
        commands.append(f"patchlock uninstall {one.app} --profile {one.profile}")
    if not told:
        return None
    remedy = f"first run {' and '.join(f'`{command}`' for command in commands)}"
    return UsageError("; ".join(told), where=str(home), remedy=remedy)


def _reasons_to_stay(home: Path, cache: Path) -> Iterator[UsageError | BusyError]:
    """Name what needs patchlock or its cache, the first of each home."""
    from patchlock.environments import cache_pruning

    for place in cache_pruning.homes(cache, home):
        if error := _installed(place):
            yield error
    if busy := _running(cache):
        yield busy


def _running(cache: Path) -> BusyError | None:
    """Name another patchlock that works with the cache, or runs with its Python; None for none."""
    from patchlock.core import process
    from patchlock.model.errors import BusyError

    place = cache.resolve()
    found = {one.number: one for one in process.running()}
    ours, number = set(), os.getpid()
    while number in found and number not in ours:  # the guide and the program of an installer wait for this one
        ours.add(number)
        number = found[number].parent
    for one in found.values():
        words = _patchlock_words(one.words)
        uses = bool(words) and _cache_of(one, place) == place
        if one.number in ours or not (uses or Path(one.words[0]).parent.resolve().is_relative_to(place)):
            continue
        command = command_lines.joined(words or one.words)
        return BusyError(
            f"another program of patchlock is running: {without_secrets(command)}, process {one.number}",
            where=str(cache),
            remedy="wait for it to end, or end it, and run the same command again",
        )
    return None


def _patchlock_words(words: list[str]) -> list[str]:
    """Give the command line of a process from the word `patchlock` on; none where it runs something else."""
    at = 0
    if Path(words[0]).name.startswith("python"):
        plain = (number for number, word in enumerate(words) if number and not word.startswith("-"))
        at = words.index("-m") + 1 if "-m" in words[:-1] else next(plain, 0)
    return ["patchlock", *words[at + 1 :]] if Path(words[at]).name == "patchlock" else []


def _cache_of(one: Running, otherwise: Path) -> Path:
    """Name the cache that a patchlock uses; `otherwise` where its variables are not known."""
    if not one.variables:
        return otherwise
    caches = Path(one.variables.get("XDG_CACHE_HOME") or Path(one.variables.get("HOME") or "~") / ".cache")
    return Path(one.variables.get("PATCHLOCK_CACHE_DIR") or caches / "patchlock").expanduser().resolve()


def own_files(home: Path, cache: Path) -> list[OwnFile]:
    """List what patchlock keeps for itself; on Windows not the Python that runs, nor the script that has started it.

    That is all of its cache, and in each home that uses it the launcher and which catalogues are trusted.
    """
    from patchlock.catalogue import agreement
    from patchlock.cli._cache import size_of
    from patchlock.environments import cache_pruning

    places = sorted(cache.iterdir()) if cache.is_dir() else []
    for place in cache_pruning.homes(cache, home):
        ours = (_launcher.path(place), *(place / name for name in agreement.FILES))
        places += [path for path in ours if path.is_file()]
    if os.name == "nt":  # which does not remove a program that runs; and cmd reads on in its script
        places = [path for path in places if not Path(sys.prefix).is_relative_to(path) and path != _launcher.path(home)]
    return [OwnFile(path=path, size=size_of(path)) for path in places]
