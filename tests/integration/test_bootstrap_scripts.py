"""How the programs before the tool itself are written: both shells take them, and they stay small."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tree_sitter
import tree_sitter_powershell
from bootstraps import PREPARING
from conftest import ROOT

POWERSHELL = ROOT / "install.ps1"


@pytest.mark.skipif(os.name == "nt", reason="the scripts are for POSIX systems")
def test_shellcheck_is_content() -> None:
    program = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("no shellcheck: PyPI has none for this machine")
    scripts = [
        "install.sh",
        "tests/run",
        "tests/relock",
        *sorted(f".ci/{path.name}" for path in (ROOT / ".ci").iterdir()),
    ]
    result = subprocess.run([program, *scripts], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.stdout == ""
    assert result.returncode == 0


@pytest.mark.parametrize("name", ["install.sh", "install.ps1"])
def test_bootstrap_stays_small(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="ascii").splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 120


def test_both_bootstraps_name_one_uv() -> None:
    versions = {
        version
        for name in ("install.sh", "install.ps1")
        for version in re.findall(r"uv/releases/download/([0-9.]+)/", (ROOT / name).read_text(encoding="ascii"))
    }
    assert versions == {"0.12.5"}


@pytest.mark.parametrize("name", ["install.sh", "install.ps1"])
def test_both_bootstraps_say_at_once_that_they_prepare(name: str) -> None:
    prefix = "" if name == "install.sh" else "patchlock: "  # which PowerShell's function writes
    assert f"'{PREPARING.strip().removeprefix(prefix)}'" in (ROOT / name).read_text(encoding="ascii")


def test_what_windows_blocks_is_logged_and_explained() -> None:
    text = POWERSHELL.read_text(encoding="ascii")
    assert re.search(r'catch \{ "\$_" \| Out-File @to; \$false \}', text)
    assert "${uv} does not run: Defender or Smart App Control may block it" in text
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert re.search(r"`… does not run: Defender or Smart App Control\s+may block it`", page)


CMDLETS = {
    "Add-Type",
    "Copy-Item",
    "Get-FileHash",
    "Invoke-WebRequest",
    "New-Item",
    "Out-File",
    "Out-Null",
    "Remove-Item",
    "Select-Object",
    "Set-StrictMode",
    "Start-Sleep",
    "Test-Path",
    "Where-Object",
}


def powershell_troubles(source: bytes) -> list[str]:
    """Say what PowerShell 5.1 would not take, or what the bootstrap has no business to do."""
    root = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language())).parse(source).root_node
    troubles = []
    commands, functions = set(), set()
    nodes = [root]
    while nodes:
        node = nodes.pop()
        text = (node.text or b"").decode("utf-8", "replace")
        if node.type == "ERROR" or node.is_missing:
            troubles.append(f"line {node.start_point[0] + 1}: not PowerShell")
        if node.type == "command_name":
            commands.add(text)
        if node.type == "function_name":
            functions.add(text)
        if text in {"&&", "||", "??", "?."} and not node.children:
            troubles.append(f"line {node.start_point[0] + 1}: {text} is not in PowerShell 5.1")
        nodes.extend(node.children)
    troubles += [f"the command {name}" for name in sorted(commands - functions - CMDLETS - {"uv"})]
    if not source.isascii():
        troubles.append("not ASCII: PowerShell 5.1 reads it in the code page of the machine")
    if b"`\n" in source.replace(b"\r\n", b"\n") or b'@"' in source or b"@'" in source:
        troubles.append("a line end that means something")
    if names := re.findall(r"\b((?:Copy|Get|Remove|Test)-(?:Item|FileHash|Path)) (?!.*-LiteralPath)", source.decode()):
        troubles.append(f"{', '.join(names)}: -Path takes [ and ] for wildcards")
    return troubles


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_powershell_is_well_formed(newline: bytes) -> None:
    source = POWERSHELL.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", newline)
    assert powershell_troubles(source) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"function Test-Complete {", b"function Test-Complete"),
        (b"'venv'", b"'venv"),
        (b"$ErrorActionPreference = 'Continue'", b"$ErrorActionPreference = $true ? 'Continue' : 'Stop'"),
        (b"$uv = if", b"$uv = $null ?? if"),
        (b"$from = if", b"$from = $archive ?? $from; $from = if"),
        (b"Add-Type", b"uv && Add-Type"),
        (b"Add-Type", b"Invoke-Expression"),
        (b"Remove-Item -LiteralPath", b"Remove-Item"),
        (b"# by a pip", "# by a pip…".encode()),
        (b"Start-Sleep 3;", b"Start-Sleep `\n3;"),
    ],
    ids=[
        "brace",
        "string",
        "ternary",
        "coalescing",
        "coalescing names",
        "and",
        "cmdlet",
        "wildcards",
        "not ASCII",
        "continuation",
    ],
)
def test_powershell_checker_sees(old: bytes, new: bytes) -> None:
    source = POWERSHELL.read_bytes()
    assert old in source
    assert powershell_troubles(source.replace(old, new, 1)) != []
