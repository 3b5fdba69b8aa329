"""`completions`: the script that makes a shell complete commands, apps and profiles."""

from __future__ import annotations

import os

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    add_completion_class,
    get_completion_class,
)

from patchlock.cli import _output

_POWERSHELL = """\
Register-ArgumentCompleter -Native -CommandName patchlock, patchlock.cmd, patchlock.exe -ScriptBlock {
    param($word, $command, $position)
    $before = $command.CommandElements | Where-Object { $_.Extent.StartOffset -lt $position }
    $words = @($before | ForEach-Object { "$_" })
    if ($word -ne '' -and $words.Count -gt 1) { $words = $words[0..($words.Count - 2)] }
    $env:_PATCHLOCK_COMPLETE = 'powershell_complete'
    $env:COMP_WORDS = $words -join "`n"
    $env:COMP_CWORD = $word
    try {
        & $words[0] | ForEach-Object {
            $name, $help = $_ -split "`t", 2
            if (-not $help) { $help = $name }
            [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $help)
        }
    } finally {
        Remove-Item Env:_PATCHLOCK_COMPLETE, Env:COMP_WORDS, Env:COMP_CWORD -ErrorAction Ignore
    }
}
"""


class _PowerShell(ShellComplete):
    """Windows PowerShell 5.1 and PowerShell 7."""

    name = "powershell"
    source_template = _POWERSHELL

    def source(self) -> str:
        return _POWERSHELL

    def get_completion_args(self) -> tuple[list[str], str]:
        return os.environ.get("COMP_WORDS", "").split("\n")[1:], os.environ.get("COMP_CWORD", "")

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.value}\t{item.help or ''}"


class _Bash(BashComplete):
    """As click's (8.5), whose script runs the command as it was typed, even with `~`, `$HOME` or blanks in its path."""

    source_template = BashComplete.source_template.replace(
        "    local response\n",
        '    local response program="${1/#\\~/$HOME}"\n    program="${program/#\\$HOME/$HOME}"\n',
    ).replace(" $1)", ' "$program")')


class _Fish(FishComplete):
    """As click's (8.5), whose script cuts a description at its first comma."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')


def register() -> None:
    """Let click know what it does not by itself: PowerShell as we do it, paths in bash, and commas in fish."""
    add_completion_class(_PowerShell)
    add_completion_class(_Bash)
    add_completion_class(_Fish)


@click.command("completions")
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish", "powershell"]))
def completions_command(shell: str) -> None:
    """Print the completion script of a shell.

    SHELL is bash, zsh, fish or powershell.

    \b
    Example:
      patchlock completions fish | source
      patchlock completions powershell | Out-String | Invoke-Expression
      source <(patchlock completions bash)
      source <(patchlock completions zsh)

    \b
    These are for this window. For every window:
    https://patchlock.github.io/patchlock/install/#shell-completion
    """
    from patchlock.cli._commands import patchlock

    register()
    found = get_completion_class(shell)
    if found is not None:
        _output.file_text(found(patchlock, {}, "patchlock", "_PATCHLOCK_COMPLETE").source().strip("\n") + "\n")
