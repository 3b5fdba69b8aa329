"""The texts of an installation's launchers, for shells and for a desktop's menu: values in, text out.

A launcher names no generation: it starts patchlock's own `run`, so that it starts whatever is in use, with the same
isolation, gate and variables.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Starter:
    """How patchlock is started again."""

    program: str
    """An absolute path, or a name on PATH."""
    arguments: tuple[str, ...]
    """Before those of patchlock."""
    variables: Mapping[str, str]
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Variables for a shell that has them not, or empty."""
    anchor: str
    """An absolute path that is there as long as patchlock is."""
    prepares: bool = False
    """Windows: `anchor` is `install.ps1`, which names the folder of the Python to start, and `program` is not used."""


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
            f"Starts {self.app} as it is installed on {self.profile}: always the version in use. "
            "Written by `patchlock install`."
        )

    @property
    def again(self) -> str:
        """Name the command that writes the launcher anew; ASCII."""
        return f"patchlock install {self.app} --profile {self.profile}"

    @property
    def name(self) -> str:
        """Name the app in a menu."""
        return self.title.partition(": ")[0]


@dataclass(frozen=True, kw_only=True)
class Itself:
    """Patchlock, as what a launcher is for."""

    command: tuple[str, ...] = ()
    says: str = "Starts patchlock. Written by `patchlock install`."
    again: str = "install.sh, or on Windows install.cmd,"


def _gone(target: Target | Itself) -> tuple[str, str]:
    """Say that patchlock is not where it was: what comes before that path, and what after it; ASCII."""
    again = f"run `{target.again}`" if isinstance(target, Target) else f"run {target.again}"
    return "patchlock is no longer at ", f"; {again} from where it is now, which rewrites this file"


def names(app: str, profile: str) -> tuple[str, ...]:
    """Name all files that may be an installation's launchers, on any system."""
    return "run", "run.bat", "run.ps1", "run.command", "start-menu.ps1", _desktop_name(app, profile)


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
        made = {"run.bat": batch(starter, target), "run.ps1": powershell(starter, target)}
        return made | {"start-menu.ps1": start_menu(target)}
    made = {"run": shell(starter, target)}
    if os == "macos":  # a name that the Finder opens in its Terminal
        made["run.command"] = made["run"]
    if os == "linux" and folder.isprintable():  # otherwise no menu could name it
        made[_desktop_name(target.app, target.profile)] = desktop(target, f"{folder}/run")
    return made


def shell(starter: Starter, target: Target | Itself) -> bytes:
    """Write a script for any POSIX shell. Paths that are no UTF-8 keep their bytes."""
    before, after = _gone(target)
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
        *(f'[ -n "${{{name}-}}" ] || export {name}={shlex.quote(value)}' for name, value in starter.defaults.items()),
        f'exec {words} "$@"',
    ]
    return ("\n".join(lines) + "\n").encode("utf-8", errors="surrogateescape")


def desktop(target: Target, script: str) -> bytes:
    """Write an entry for the menu of a desktop.

    Source: Desktop Entry Specification 1.5, "Basic format of the file", "The Exec key".
    """
    values = {
        "Type": "Application",
        "Name": target.name,
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


def batch(starter: Starter, target: Target | Itself) -> bytes:
    """Write a script for `cmd`, which reads a file in the console's code page: it is UTF-8 while paths are read."""
    before, after = _gone(target)
    settings = [
        *(_set(name, value) for name, value in ({"PATCHLOCK_AT": starter.anchor} | dict(starter.variables)).items()),
        *(f"if not defined {name} {_set(name, value)}" for name, value in starter.defaults.items()),
    ]
    if not all(line.isascii() for line in settings):
        settings = [
            """for /f "tokens=2 delims=:." %%p in ('chcp') do set "PATCHLOCK_CODE_PAGE=%%p\"""",
            "chcp 65001 >nul",
            *settings,
            "chcp %PATCHLOCK_CODE_PAGE% >nul",
        ]
    program = '"%PATCHLOCK_PYTHON%"' if starter.prepares else _batch_word(starter.program, starter.anchor)
    words = (_batch_word(word, starter.anchor) for word in (*starter.arguments, *target.command))
    lines = [
        *_starts(target.says, " ".join([program, *words, "%*"])),
        "setlocal DisableDelayedExpansion",
        *settings,
        'set "PYTHONHOME="',
        'if not exist "%PATCHLOCK_AT%" goto gone',
        *((*_PREPARE, 'if not defined PATCHLOCK_TOOL set "PATCHLOCK_CODE=1"& goto end') if starter.prepares else ()),
        *_ENDS,
        *(_stay("run.bat") if isinstance(target, Target) else ()),
        "exit /b %PATCHLOCK_CODE%",
        ":gone",
        f'>&2 echo {before}"%PATCHLOCK_AT%"{after}',
        'set "PATCHLOCK_CODE=127"',
        "goto end",
    ]
    return "".join(f"{line}\r\n" for line in lines).encode()


def _starts(says: str, command: str) -> tuple[str, ...]:
    """Let a file begin with what it starts, whatever it does before.

    `cmd` reads on where that command stood, in what the file is then: a later version of it has the same beginning.
    """
    return "@echo off", f"rem {says}", "goto prepare", ":start", command, "goto ended", ":prepare"


_ENDS = ("goto start", ":ended", 'set "PATCHLOCK_CODE=%ERRORLEVEL%"', ":end")


def _stay(name: str) -> tuple[str, ...]:
    """Let the window of the Explorer and the Start menu wait for a key after an error.

    They start `"%1" %*`, which leaves a space at the end; no shell does.
    Source: HKEY_CLASSES_ROOT\\batfile\\shell\\open\\command
    """
    return (
        'if "%PATCHLOCK_CODE%"=="0" exit /b 0',
        """set "PATCHLOCK_FROM=%CMDCMDLINE:"=%\"""",
        f'if /i "%PATCHLOCK_FROM:~-{len(name) + 1}%"=="{name} " pause',
    )


_POWERSHELL = "powershell -NoProfile -ExecutionPolicy Bypass"
_PREPARE = (
    # `--`, `-x:y` and quotation marks do not get through PowerShell, so it prepares, and Python is started from here:
    # https://github.com/PowerShell/PowerShell/issues/20208, https://github.com/PowerShell/PowerShell/issues/16432.
    # The path of that Python might not get through a code page; the name of its folder does.
    # `%%` leaves the variable to the cmd that runs PowerShell: what a `%` in its value says is expanded by neither.
    # PowerShell 7, where it has started this, leaves the folders of its own modules, which Windows PowerShell cannot
    # load: https://github.com/PowerShell/PowerShell/issues/27774. Without the variable it finds its own.
    'set "PATCHLOCK_TOOL="',
    'set "PSModulePath="',
    'set "PATCHLOCK_PREPARE=1"',
    f'for /f "delims=" %%t in (\'{_POWERSHELL} -File "%%PATCHLOCK_AT%%" ^<nul\') do set "PATCHLOCK_TOOL=%%t"',
    'set "PATCHLOCK_PREPARE="',
    r'set "PATCHLOCK_PYTHON=%LOCALAPPDATA%\patchlock\Cache\%PATCHLOCK_TOOL%\Scripts\python.exe"',
    r'if defined PATCHLOCK_CACHE_DIR set "PATCHLOCK_PYTHON=%PATCHLOCK_CACHE_DIR%\%PATCHLOCK_TOOL%\Scripts\python.exe"',
)


def bootstrap() -> bytes:
    """Write `install.cmd`, which stands beside `install.ps1` and needs no execution policy.

    `PATCHLOCK_MODULE` names what is started in the place of `patchlock install`.
    """
    lines = [
        *_starts(
            "Prepares patchlock and starts it, under any execution policy: install.cmd APP [options]",
            '"%PATCHLOCK_PYTHON%" -P -m %PATCHLOCK_STARTS% %*',
        ),
        "rem Written by patchlock.model.launchers.bootstrap, as the launchers are.",
        "setlocal DisableDelayedExpansion",
        'set "PATCHLOCK_AT=%~dp0install.ps1"',
        'set "PATCHLOCK_BOOTSTRAP=%~dp0install.ps1"',
        'set "PYTHONPATH=%~dp0installer"',
        'set "PYTHONHOME="',
        *_PREPARE,
        'if not defined PATCHLOCK_TOOL set "PATCHLOCK_CODE=1"& goto end',
        'set "PATCHLOCK_STARTS=patchlock install"',
        'if defined PATCHLOCK_MODULE set "PATCHLOCK_STARTS=%PATCHLOCK_MODULE%"',
        'set "PATCHLOCK_MODULE="',
        'set "PATCHLOCK_LOCK="',
        *_ENDS,
        *_stay("install.cmd"),
        "exit /b %PATCHLOCK_CODE%",
    ]
    return "".join(f"{line}\r\n" for line in lines).encode("ascii")


def _set(name: str, value: str) -> str:
    return f'set "{name}={value.replace("%", "%%")}"'


def _batch_word(word: str, anchor: str) -> str:
    if word == anchor:
        return '"%PATCHLOCK_AT%"'
    doubled = word.replace("%", "%%")
    return f'"{doubled}"' if " " in word or not word.isascii() else doubled


_PREPARE_BY_POWERSHELL = (
    "$start.FileName = 'powershell'",
    """$start.Arguments = '-NoProfile -ExecutionPolicy Bypass -File "' + $at + '"'""",
    "$start.EnvironmentVariables['PATCHLOCK_PREPARE'] = '1'",
    "$start.RedirectStandardOutput = $true",
    "$process = [Diagnostics.Process]::Start($start)",
    "$tool = $process.StandardOutput.ReadToEnd().Trim()",
    "if (-not $tool) { exit 1 }",
    "$cache = $start.EnvironmentVariables['PATCHLOCK_CACHE_DIR']",
    r"""if (-not $cache) { $cache = "$env:LOCALAPPDATA\patchlock\Cache" }""",
    r"$start.FileName = Join-Path $cache (Join-Path $tool 'Scripts\python.exe')",
    "$start.RedirectStandardOutput = $false",
    "$start.EnvironmentVariables.Remove('PATCHLOCK_PREPARE')",
)


def powershell(starter: Starter, target: Target) -> bytes:
    """Write a script for PowerShell 5.1 and later, which spoils quotation marks in arguments unless it is done here."""
    before, after = _gone(target)
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
        "$start.UseShellExecute = $false",
        "$start.EnvironmentVariables.Remove('PYTHONHOME')",
        *(
            f"$start.EnvironmentVariables[{_literal(name)}] = {_literal(value)}"
            for name, value in starter.variables.items()
        ),
        *(_PREPARE_BY_POWERSHELL if starter.prepares else [f"$start.FileName = {_literal(starter.program)}"]),
        f"$quoted = @({words}) + $args | ForEach-Object {{",
        """    '"' + ([string]$_ -replace '(\\\\*)"', '$1$1\\"' -replace '(\\\\+)$', '$1$1') + '"'""",
        "}",
        "$start.Arguments = $quoted -join ' '",
        "$start.WorkingDirectory = (Get-Location).ProviderPath",
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


def start_menu(target: Target) -> bytes:
    """Write the script that adds the app to the Start menu, or takes it out with `-Remove`; for PowerShell 5.1."""
    name = re.sub(r'[<>:"/\\|?*\x00-\x1f]+', " ", f"{target.name} ({target.profile})")
    lines = [
        f"# Adds {target.app} to the Start menu, or takes it out with -Remove. Written by `patchlock install`.",
        "param([switch] $Remove)",
        "$ErrorActionPreference = 'Stop'",
        f"$link = Join-Path ([Environment]::GetFolderPath('Programs')) {_literal(name + '.lnk')}",
        "$shortcut = (New-Object -ComObject WScript.Shell).CreateShortcut($link)",
        "$target = Join-Path $PSScriptRoot 'run.bat'",
        "if ($Remove) {",
        "    if ($shortcut.TargetPath -eq $target) { Remove-Item -LiteralPath $link -ErrorAction Ignore }",
        "    exit 0",
        "}",
        "$shortcut.TargetPath = $target",
        "$shortcut.WorkingDirectory = $PSScriptRoot",
        "$shortcut.Save()",
    ]
    return b"\xef\xbb\xbf" + "".join(f"{line}\r\n" for line in lines).encode()
