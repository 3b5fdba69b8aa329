"""The commands together, each read only when it is asked for; what `--help` says of all of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

from patchlock import __version__
from patchlock.cli import COMMANDS, GROUPS, _log
from patchlock.model.errors import UsageError, nearest

_OVERVIEW = """Patch, lock, install and verify AI apps on the hardware you have.

On a terminal, `patchlock` alone shows what runs on this machine and guides you.

\b
Example:
  patchlock install demo --profile cpu
  patchlock run demo
"""


class Commands(click.Group):
    """Finds commands in `COMMANDS`, so that `--help` reads none of their modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"patchlock.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[click.shell_completion.CompletionItem]:
        """Complete names without reading any command."""
        from click.shell_completion import CompletionItem

        named = [CompletionItem(name, help=told) for name, (_, told) in COMMANDS.items() if name.startswith(incomplete)]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS and not ctx.resilient_parsing:
            if instead := _MOVED.get(args[0]):
                raise UsageError(f'"{args[0]}" is now `{instead}`', remedy=f"see `{instead} --help`")
            hint = nearest(args[0], [*COMMANDS, "--version"])
            remedy = f"{hint}{'' if hint.endswith('?') else ';'} see `patchlock --help`"
            raise UsageError(f'there is no command "{args[0]}"', remedy=remedy)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        write_groups(formatter, GROUPS)
        more = len(COMMANDS) - sum(map(len, GROUPS.values()))
        formatter.write_paragraph()
        formatter.write_text("`patchlock help COMMAND` explains a command.")
        formatter.write_text(f"`patchlock help --all` lists {more} more.")


class Subcommands(click.Group):
    """Says the whole first sentence of each command, where click cuts it to one line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(500)) for name, one in sorted(self.commands.items())])


_MOVED = {"prune": "patchlock cache clean", "search": "patchlock list", "show": "patchlock info"}
"""What had another name, or has one elsewhere → what it is called here."""


def write_groups(formatter: click.HelpFormatter, groups: Mapping[str, tuple[str, ...]]) -> None:
    """Write groups of commands, each with what it does."""
    for title, names in groups.items():
        with formatter.section(title):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in names])


@click.group(
    cls=Commands,
    help=_OVERVIEW,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@_log.options
@click.version_option(__version__, prog_name="patchlock", message="%(prog)s %(version)s")
def patchlock() -> None:
    """Hold the commands together."""
