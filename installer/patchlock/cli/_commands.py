"""The commands together, each read only when it is asked for; what `--help` says of all of them."""

from __future__ import annotations

import importlib

import click

from patchlock import __version__
from patchlock.cli import COMMANDS
from patchlock.model.errors import UsageError, nearest

_OVERVIEW = """Patch, lock, install and verify AI applications on the hardware you really have.

\b
Example:
  patchlock install demo --profile cpu
  patchlock run demo
"""


class _Commands(click.Group):
    """Finds commands in `COMMANDS`, so that `--help` reads none of their modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            hint = nearest(args[0], COMMANDS)
            remedy = f"{hint}{'' if hint.endswith('?') else ';'} see `patchlock --help`"
            raise UsageError(f'there is no command "{args[0]}"', remedy=remedy)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_text) for name, (_, help_text) in COMMANDS.items()])


@click.group(
    cls=_Commands,
    help=_OVERVIEW,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(__version__, prog_name="patchlock", message="%(prog)s %(version)s")
def patchlock() -> None:
    """Hold the commands together."""
