"""Commands to paste: sh takes them apart again; on Windows they are written as PowerShell reads them, and cmd where it can."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from patchlock.core import command_lines

WINDOWS = {
    r"C:\Users\anna\AppData\Local\patchlock\bin\patchlock.cmd": r"C:\Users\anna\AppData\Local\patchlock\bin\patchlock.cmd",
    r"C:\Users\Jörg\x": r"C:\Users\Jörg\x",
    r"C:\Users\Jörg Müller\x": r'"C:\Users\Jörg Müller\x"',
    "C:\\my apps\\": '"C:\\my apps\\\\"',
    r"C:\100%\a&b;c(d)": r'"C:\100%\a&b;c(d)"',
    r"C:\$home\x": r"'C:\$home\x'",
    "C:\\a`b\\O'Neill": "'C:\\a`b\\O''Neill'",
    r"C:\O'Neill": '''"C:\\O'Neill"''',
    "C:\\\u201cquoted\u201d \u2019s": "'C:\\\u201cquoted\u201d \u2019\u2019s'",
    "numpy,scipy": '"numpy,scipy"',
    "@mine": '"@mine"',
    "": '""',
}


@pytest.mark.parametrize(("word", "written"), WINDOWS.items(), ids=WINDOWS)
def test_argument_for_powershell(word: str, written: str) -> None:
    assert command_lines.quoted(word, windows=True) == written


def test_powershell_starts_what_is_quoted_after_an_ampersand() -> None:
    assert command_lines.program(r"C:\my apps\x.cmd", windows=True) == r'& "C:\my apps\x.cmd"'
    assert command_lines.program(r"C:\apps\x.cmd", windows=True) == r"C:\apps\x.cmd"


@pytest.mark.parametrize("word", [*WINDOWS, "a\nb"])
def test_sh_takes_apart_what_was_joined(word: str) -> None:
    assert shlex.split(command_lines.joined([word, "two"], windows=False)) == [word, "two"]
    assert command_lines.program(word, windows=False) == command_lines.quoted(word, windows=False)


def test_folders_are_copied_and_removed_with_what_is_read_only() -> None:
    folders = (Path("/my clone"), Path("/cache"))
    assert (
        command_lines.removal(*folders, windows=True) == 'Remove-Item -Recurse -Force -LiteralPath "/my clone", /cache'
    )
    assert command_lines.removal(*folders, windows=False) == "rm -rf '/my clone' /cache"
    assert command_lines.copy(folders[0], "own", windows=True) == 'Copy-Item -Recurse -LiteralPath "/my clone" own'
    assert command_lines.copy(folders[0], "own", windows=False) == "cp -r '/my clone' own"


def test_commands_follow_each_other_as_the_shell_has_it() -> None:
    assert command_lines.sequence(["a", "b"], windows=True) == "a; b"
    assert command_lines.sequence(["a", "b"], windows=False) == "a && b"


def test_variable_is_set_as_the_shell_has_it() -> None:
    assert command_lines.with_variable("X", "cpu", "run it", windows=True) == "$env:X = 'cpu'; run it"
    assert command_lines.with_variable("X", "cpu", "run it", windows=False) == "X=cpu run it"
    assert command_lines.with_variable("X", "O'Brien", "run", windows=True) == "$env:X = 'O''Brien'; run"


def test_words_are_joined_for_powershell() -> None:
    assert command_lines.joined(["--source", r"C:\my clone"], windows=True) == r'--source "C:\my clone"'
