"""What a shell completes: names of commands, apps and profiles, by the names of files alone."""

from __future__ import annotations

from pathlib import Path

import click


def _root(context: click.Context) -> Path:
    from patchlock.cli import _folders

    named = context.params.get("catalogue")
    return _folders.root(Path(named) if named else None)


def _app(context: click.Context) -> str:
    """Name the app of the command line; before the value of an option, click leaves it among what it has not read."""
    return str(context.params.get("app") or next(iter(context.args), ""))


def _starting(names: list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def apps(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Name the apps of the catalogue."""
    return _starting(sorted(path.parent.name for path in _root(context).glob("patches/*/app.toml")), incomplete)


def commands(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Name the commands, or those of the group that the line names."""
    command: click.Command | None = context.find_root().command
    for word in context.params.get("words") or ():
        command = command.get_command(context, word) if isinstance(command, click.Group) else None
    return _starting(command.list_commands(context), incomplete) if isinstance(command, click.Group) else []


def profiles(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Name the profiles of the catalogue."""
    return _starting(sorted(path.stem for path in _root(context).glob("profiles/*.toml")), incomplete)


def locked_profiles(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Name the profiles for which the app of the command line has a lock; all of them where it has none."""
    app = _app(context)
    files = (_root(context) / "lockfiles" / app).glob("*.txt") if app else ()
    locked = {file.name.partition(".")[0] for file in files}  # PROFILE.txt, or PROFILE.PLATFORM.txt
    named = profiles(context, parameter, incomplete)
    return [name for name in named if name in locked] if locked else named


def installed_apps(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Name the apps that are installed."""
    return _starting(list(_installed()), incomplete)


def installed_profiles(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Name the profiles that the app of the command line is installed on."""
    return _starting(_installed().get(_app(context), []), incomplete)


def options(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Name what the app of the command line lets a person choose, on its profile if one is named."""
    from patchlock.catalogue import app_summaries
    from patchlock.model.errors import PatchlockError

    profile = context.params.get("profile")
    try:
        app = app_summaries.read_summary(_root(context), _app(context))
    except PatchlockError:  # a shell cannot show it; the command itself will say so
        return []
    found = app_summaries.options_of(app, profile) if profile else app.options
    return _starting([one.name for one in found], incomplete)


def _installed() -> dict[str, list[str]]:
    from patchlock.cli import _folders
    from patchlock.environments import installed_profiles

    return installed_profiles.by_app(_folders.home())
