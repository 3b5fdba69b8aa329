"""Write the commands that a person pastes: for sh and, on Windows, for PowerShell; pure."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

_IS_WINDOWS = os.name == "nt"
_PLAIN = re.compile(r"[\w+=:./\\-]+")
"""What PowerShell and cmd both take as it is."""


def quoted(word: str, *, windows: bool = _IS_WINDOWS) -> str:
    """Write one argument.

    On Windows it is plain where it can be and between double quotes where they do, as both mean the same to cmd.

    Source: https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_quoting_rules
    """
    if not windows:
        return shlex.quote(word)
    if _PLAIN.fullmatch(word):
        return word
    if re.search(r'["$`\u2018-\u201f]', word):  # PowerShell takes typographic quotes for quotes
        return "'" + re.sub(r"(['\u2018-\u201b])", r"\1\1", word) + "'"
    return '"' + re.sub(r"\\+$", r"\g<0>\g<0>", word) + '"'


def program(path: str, *, windows: bool = _IS_WINDOWS) -> str:
    """Write what a command begins with; PowerShell starts what is quoted only after `&`."""
    written = quoted(path, windows=windows)
    return f"& {written}" if windows and written != path else written


def removal(*folders: Path, windows: bool = _IS_WINDOWS) -> str:
    """Write what removes folders with all that is in them; git's own files are read-only."""
    words = (quoted(str(folder), windows=windows) for folder in folders)
    return f"Remove-Item -Recurse -Force -LiteralPath {', '.join(words)}" if windows else f"rm -rf {' '.join(words)}"


def copy(folder: Path, target: str, *, windows: bool = _IS_WINDOWS) -> str:
    """Write what copies a folder to where there is none yet."""
    return (
        f"{'Copy-Item -Recurse -LiteralPath' if windows else 'cp -r'} {joined([str(folder), target], windows=windows)}"
    )


def sequence(commands: Iterable[str], *, windows: bool = _IS_WINDOWS) -> str:
    """Write commands in one line, one after the other; Windows PowerShell 5.1 has no `&&`."""
    return ("; " if windows else " && ").join(commands)


def with_variable(name: str, value: str, command: str, *, windows: bool = _IS_WINDOWS) -> str:
    """Write a command that an environment variable is set for; in PowerShell it stays set in that window."""
    escaped = value.replace("'", "''")
    return f"$env:{name} = '{escaped}'; {command}" if windows else f"{name}={quoted(value, windows=False)} {command}"


def joined(words: Iterable[str], *, windows: bool = _IS_WINDOWS) -> str:
    """Write arguments one after the other."""
    return " ".join(quoted(word, windows=windows) for word in words)
