"""The texts of an installation's launchers, for shells and for a desktop's menu: values in, text out.

A launcher names no generation: it starts patchlock's own `run`, so that it starts whatever is in use, with the same
isolation, gate and variables.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Starter:
    """How patchlock is started again."""

    program: str
    """An absolute path, or a name on PATH."""
    arguments: tuple[str, ...]
    """Before those of patchlock."""
    variables: Mapping[str, str]
    anchor: str
    """An absolute path that is there as long as patchlock is."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """What a launcher is for."""

    app: str
    title: str
    profile: str

    @property
    def command(self) -> tuple[str, ...]:
        """Patchlock's arguments, without those of the app."""
        return ("run", self.app, "--profile", self.profile, "--")

    @property
    def says(self) -> str:
        """Say what the file is; ASCII."""
        return (
            f"Starts {self.app} as it is installed on {self.profile}: always the generation in use. "
            "Written by `patchlock install`."
        )

    @property
    def gone(self) -> tuple[str, str]:
        """Say that patchlock is not where it was: what comes before that path, and what after it; ASCII."""
        again = f"patchlock install {self.app} --profile {self.profile}"
        return "patchlock: it is not at ", f" any more; run `{again}` from where it is now, which writes this file anew"


def names(app: str, profile: str) -> tuple[str, ...]:
    """Name all files that may be an installation's launchers, on any system."""
    return "run", "run.bat", "run.ps1", _desktop_name(app, profile)


def for_programs(os: str) -> str:
    """Name the launcher that takes any words of another program: `cmd`, which reads a `.bat`, obeys signs in them."""
    return "run.ps1" if os == "windows" else "run"


def _desktop_name(app: str, profile: str) -> str:
    return f"patchlock-{app}-{profile}.desktop"


def files(starter: Starter, target: Target, *, os: str, folder: str) -> dict[str, bytes]:
    """Write the launchers that fit a system.

    Args:
        starter: how patchlock is started.
        target: what is started.
        os: `linux`, `macos` or `windows`.
        folder: where the files will be, absolute.

    Returns:
        file name → content.
    """
    if os == "windows":
        return {"run.bat": batch(starter, target), "run.ps1": powershell(starter, target)}
    made = {"run": shell(starter, target)}
    if os == "linux" and folder.isprintable():  # otherwise no menu could name it
        made[_desktop_name(target.app, target.profile)] = desktop(target, f"{folder}/run")
    return made


def shell(starter: Starter, target: Target) -> bytes:
    """Write a script for any POSIX shell. Paths that are no UTF-8 keep their bytes."""
    before, after = target.gone
    words = shlex.join((starter.program, *starter.arguments, *target.command))
    lines = [
        "#!/bin/sh",
        f"# {target.says}",
        f"if [ ! -e {shlex.quote(starter.anchor)} ]; then",
        f"    printf '%s\\n' {shlex.quote(before + starter.anchor + after)} >&2",
        "    exit 127",
        "fi",
        "unset PYTHONHOME",
        *(f"export {name}={shlex.quote(value)}" for name, value in starter.variables.items()),
        f'exec {words} "$@"',
    ]
    return ("\n".join(lines) + "\n").encode("utf-8", errors="surrogateescape")


def desktop(target: Target, script: str) -> bytes:
    """Write an entry for the menu of a desktop.

    Source: Desktop Entry Specification 1.5, "Basic format of the file", "The Exec key".
    """
    values = {
        "Type": "Application",
        "Name": target.title.partition(": ")[0],
        "Comment": f"{target.app} on {target.profile}, as patchlock installed it",
        "Exec": f"sh {_exec_word(script)}",
        "Terminal": "true",
    }
    rows = [f"{key}={_desktop_text(value)}" for key, value in values.items()]
    return ("\n".join(["[Desktop Entry]", *rows]) + "\n").encode()


def _exec_word(word: str) -> str:
    """Quote a word of `Exec`: a shell's rules inside double quotes, and `%` is doubled, as it begins a field code."""
    for special in '\\"`$':
        word = word.replace(special, f"\\{special}")
    return f'"{word.replace("%", "%%")}"'


def _desktop_text(value: str) -> str:
    """Escape a value as all values of type string are, on top of what `Exec` itself escapes."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def batch(starter: Starter, target: Target) -> bytes:
    """Write a script for `cmd`, which reads a file in the console's code page: it is UTF-8 while paths are read."""
    before, after = target.gone
    settings = [
        _set(name, value) for name, value in ({"PATCHLOCK_AT": starter.anchor} | dict(starter.variables)).items()
    ]
    if not all(line.isascii() for line in settings):
        settings = [
            """for /f "tokens=2 delims=:." %%p in ('chcp') do set "PATCHLOCK_CODE_PAGE=%%p\"""",
            "chcp 65001 >nul",
            *settings,
            "chcp %PATCHLOCK_CODE_PAGE% >nul",
        ]
    words = (starter.program, *starter.arguments, *target.command)
    command = " ".join('"%PATCHLOCK_AT%"' if word == starter.anchor else _batch_word(word) for word in words)
    lines = [
        "@echo off",
        f"rem {target.says}",
        "setlocal DisableDelayedExpansion",
        *settings,
        'set "PYTHONHOME="',
        'if not exist "%PATCHLOCK_AT%" goto gone',
        f"{command} %*",
        "exit /b %ERRORLEVEL%",
        ":gone",
        f'>&2 echo {before}"%PATCHLOCK_AT%"{after}',
        "exit /b 127",
    ]
    return "".join(f"{line}\r\n" for line in lines).encode()


def _set(name: str, value: str) -> str:
    return f'set "{name}={value.replace("%", "%%")}"'


def _batch_word(word: str) -> str:
    doubled = word.replace("%", "%%")
    return f'"{doubled}"' if " " in word or not word.isascii() else doubled


def powershell(starter: Starter, target: Target) -> bytes:
    """Write a script for PowerShell 5.1 and later, which spoils quotation marks in arguments unless it is done here."""
    before, after = target.gone
    words = ", ".join(_literal(word) for word in (*starter.arguments, *target.command))
    lines = [
        f"# {target.says}",
        "$ErrorActionPreference = 'Stop'",
        f"$at = {_literal(starter.anchor)}",
        "if (-not (Test-Path -LiteralPath $at)) {",
        f"    [Console]::Error.WriteLine({_literal(before)} + $at + {_literal(after)})",
        "    exit 127",
        "}",
        "$start = New-Object Diagnostics.ProcessStartInfo",
        f"$start.FileName = {_literal(starter.program)}",
        f"$quoted = @({words}) + $args | ForEach-Object {{",
        """    '"' + ([string]$_ -replace '(\\\\*)"', '$1$1\\"' -replace '(\\\\+)$', '$1$1') + '"'""",
        "}",
        "$start.Arguments = $quoted -join ' '",
        "$start.UseShellExecute = $false",
        "$start.WorkingDirectory = (Get-Location).ProviderPath",
        "$start.EnvironmentVariables.Remove('PYTHONHOME')",
        *(
            f"$start.EnvironmentVariables[{_literal(name)}] = {_literal(value)}"
            for name, value in starter.variables.items()
        ),
        "$process = [Diagnostics.Process]::Start($start)",
        "$process.WaitForExit()",
        "exit $process.ExitCode",
    ]
    # Without a BOM, Windows PowerShell reads a file in the system's code page.
    return b"\xef\xbb\xbf" + "".join(f"{line}\r\n" for line in lines).encode()


def _literal(text: str) -> str:
    """Quote for PowerShell, to which typographic quotation marks are quotation marks too."""
    for mark in "'\u2018\u2019\u201a\u201b":
        text = text.replace(mark, mark * 2)
    return f"'{text}'"
