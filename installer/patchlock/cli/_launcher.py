"""Launchers: of patchlock itself after `install.sh`, without anything on PATH, and of each installation."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING

from patchlock.core import command_lines
from patchlock.model import launchers
from patchlock.model.addresses import without_secrets

if TYPE_CHECKING:
    from patchlock.locks.lock_request import Request

_NAME = "patchlock.cmd" if os.name == "nt" else "patchlock"
_FOLDERS = ("PATCHLOCK_HOME", "PATCHLOCK_CACHE_DIR")
"""Variables that a later shell need not have, and may have otherwise."""


def path(home: Path) -> Path:
    """Name the launcher."""
    return home / "bin" / _NAME


def write(home: Path) -> None:
    """Write the launcher, if the bootstrap started us; it starts the same bootstrap again, with the same folders."""
    bootstrap = os.environ.get("PATCHLOCK_BOOTSTRAP", "")
    if not bootstrap:
        return
    defaults = _told()
    if os.name == "nt":
        script = launchers.batch(dataclasses.replace(_prepared(bootstrap, {}), defaults=defaults), launchers.Itself())
    else:
        by = launchers.Starter(
            program=bootstrap,
            arguments=(),
            variables={"PATCHLOCK_MODULE": "patchlock"},
            defaults=defaults,
            anchor=bootstrap,
        )
        script = launchers.shell(by, launchers.Itself())
    target = path(home)
    if not target.is_file() or target.read_bytes() != script:
        from patchlock.core import atomic_files

        target.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.atomic_write(target, script, mode=0o755)
        target.chmod(0o755)


def own_command(home: Path) -> str:
    """Name patchlock in a form that can be pasted into a shell that knows nothing of this one's variables.

    That is its name where it is on PATH, else the path of the launcher or of the program that an installer of packages
    made; that one, unlike the launcher, has to be told folders that were chosen.
    """
    target, found, told = path(home), shutil.which("patchlock"), _told()
    if os.environ.get("PATCHLOCK_BOOTSTRAP"):
        is_enough = found and (not told or Path(found).resolve() == target.resolve())
        return "patchlock" if is_enough or not target.is_file() else command_lines.program(str(target))
    program = Path(sys.argv[0])
    if program.stem != "patchlock":  # `python -m patchlock`
        return "patchlock"
    command = "patchlock" if found else command_lines.program(str(program.absolute()))
    for name, folder in reversed(told.items()):
        command = command_lines.with_variable(name, folder, command)
    return command


def _told() -> dict[str, str]:
    """Give the folders that this shell names, in full."""
    named = {name: os.environ.get(name) for name in _FOLDERS}
    return {name: str(Path(folder).expanduser().absolute()) for name, folder in named.items() if folder}


def to_paste(text: str, home: Path, arguments: Sequence[str] = ()) -> str:
    """Name patchlock in a form that can be pasted wherever a text has a command of it.

    Commands stand between backquotes, or after "$ " or ": " to the end of the line. For a simulated machine nothing is
    installed, so that `plan` stands there for an `install`, if it takes its options.

    Args:
        text: what is said.
        home: holds the launcher.
        arguments: of the line that says it; its --catalogue, --source and --fallback count for the commands that take
            them, too.
    """
    is_simulated = bool(os.environ.get("PATCHLOCK_HOST"))
    itself = "patchlock" if is_simulated else own_command(home)
    given = _given(arguments)
    if itself == "patchlock" and not given and not is_simulated:
        return text

    def pasted(found: re.Match[str]) -> str:
        before, words = found[1], found[2]
        if words is None:
            return f"`{itself}`"
        is_install = is_simulated and before == "`" and words.startswith("install ")
        if is_install and {word for word in words.split() if word.startswith("--")} <= _options_of("plan"):
            words = words.replace("install", "plan", 1)
        left = [name for name, value in given.items() if name not in words and not (value and value in words)]
        taken = _options_of(words) if left else frozenset()
        return f"{before}{itself} {words}{''.join(f' {name} {given[name]}'.rstrip() for name in left if name in taken)}"

    return re.sub(r"(`|\$ |: )patchlock (?=[a-z-])([^`\n]*)|`patchlock`", pasted, text)


def _given(arguments: Sequence[str]) -> dict[str, str]:
    words = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    found = {}
    for name in ("--source", "--catalogue"):
        values = [value for word, value in itertools.pairwise(words) if word == name]
        values += [word.partition("=")[2] for word in words if word.startswith(f"{name}=")]
        if values:
            found[name] = without_secrets(command_lines.quoted(values[-1]))
    return found | ({"--fallback": ""} if "--fallback" in words else {})


def _options_of(words: str) -> frozenset[str]:
    """Name the options of the command that a line begins with."""
    import click

    from patchlock.cli._commands import patchlock

    command: click.Command = patchlock
    for word in words.split():
        inner = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if inner is None:
            break
        command = inner
    return frozenset(name for parameter in command.params for name in parameter.opts)


def is_there(app: str, profile: str, home: Path) -> bool:
    """Say whether patchlock's launcher and those of an installation are there; what is in them is not looked at."""
    own = path(home).is_file() or not os.environ.get("PATCHLOCK_BOOTSTRAP")
    folder = home / f"{app}@{profile}"
    return own and any((folder / name).is_file() for name in launchers.names(app, profile))


def write_for(request: Request) -> None:
    """Write the launchers of an installation; what is right already is left alone."""
    from patchlock.core import atomic_files

    folder = request.installation.folder
    target = launchers.Target(app=request.app.name, title=request.app.title, profile=request.profile.name)
    by = starter(None, request.home, request.cache, request.platform.os)
    bootstrap = os.environ.get("PATCHLOCK_BOOTSTRAP", "")
    if bootstrap and request.platform.os == "windows":
        by = _prepared(bootstrap, by.variables)
    made = launchers.files(by, target, os=request.platform.os, folder=str(folder))
    for name, content in made.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            atomic_files.atomic_write(path, content, mode=0o666 if name.endswith(".desktop") else 0o777)


def _prepared(bootstrap: str, variables: Mapping[str, str]) -> launchers.Starter:
    """Say how Windows starts the Python that `install.ps1` prepares, without handing it a word."""
    own = {name: value for name, value in variables.items() if name != "PATCHLOCK_MODULE"}
    own |= {"PATCHLOCK_BOOTSTRAP": bootstrap, "PYTHONPATH": str(PureWindowsPath(bootstrap).parent / "installer")}
    words = ("-P", "-m", "patchlock")
    return launchers.Starter(program="", arguments=words, variables=own, anchor=bootstrap, prepares=True)


def script(request: Request) -> Path:
    """Name the launcher for this system's shell."""
    return request.installation.folder / ("run.bat" if request.platform.os == "windows" else "run")


def entry(request: Request) -> Path | None:
    """Name the file for the menu of a desktop or for the Finder, if there is one."""
    *_, finder, start_menu, menu = launchers.names(request.app.name, request.profile.name)
    name = {"macos": finder, "windows": start_menu}.get(request.platform.os, menu)
    path = request.installation.folder / name
    return path if path.is_file() else None


def starter(catalogue: Path | None, home: Path, cache: Path, os_name: str) -> launchers.Starter:
    """Say how this patchlock was started, with the folders that it was told; so it can be started from anywhere.

    Args:
        catalogue: its root; None for what is installed, which keeps its own.
        home: of all installations.
        cache: patchlock's.
        os_name: `linux`, `macos` or `windows`.
    """
    variables = {"PATCHLOCK_HOME": str(home)}
    if os.environ.get("PATCHLOCK_CACHE_DIR"):
        variables["PATCHLOCK_CACHE_DIR"] = str(cache)
    package = Path(launchers.__file__).parent.parent
    if catalogue not in (None, package / "_catalogue", package.parent.parent):
        variables["PATCHLOCK_CATALOGUE"] = str(catalogue)
    bootstrap = os.environ.get("PATCHLOCK_BOOTSTRAP", "")
    if not bootstrap:
        return launchers.Starter(
            program=sys.executable,
            arguments=("-P", "-m", "patchlock"),
            variables=variables | {"PYTHONPATH": str(package.parent)},
            anchor=sys.executable,
        )
    variables["PATCHLOCK_MODULE"] = "patchlock"
    if os_name == "windows":
        words = ("-NoProfile", "-ExecutionPolicy", "Bypass", "-File", bootstrap)
        return launchers.Starter(program="powershell", arguments=words, variables=variables, anchor=bootstrap)
    return launchers.Starter(program=bootstrap, arguments=(), variables=variables, anchor=bootstrap)
