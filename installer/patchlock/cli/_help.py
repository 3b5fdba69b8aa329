"""`help`: of a command, or of all commands together."""

from __future__ import annotations

import click

from patchlock.cli import GROUPS, MORE, _complete, _output


@click.command("help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1, shell_complete=_complete.commands)
@click.option("--all", "everything", is_flag=True, help="List every command.")
def help_command(words: tuple[str, ...], everything: bool) -> None:
    """Show the help of a command, or list all commands.

    \b
    Example:
      patchlock help install
      patchlock help --all
    """
    from patchlock.cli._commands import patchlock, write_groups

    root = click.Context(patchlock, info_name="patchlock", **patchlock.context_settings)
    if everything:
        formatter = root.make_formatter()
        write_groups(formatter, {**GROUPS, **MORE})
        _output.echo(formatter.getvalue().strip("\n"))
        return
    context, command, left = root, patchlock, list(words)
    while left and isinstance(command, click.Group):
        name, found, left = command.resolve_command(context, left)
        if found is None:
            break
        command = found  # type: ignore[assignment]
        context = click.Context(found, info_name=name, parent=context)
    _output.echo(command.get_help(context))
