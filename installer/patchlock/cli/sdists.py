"""`sdist`: what an sdist and its build require, as a table for an app's file."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from patchlock.cli import options, output
from patchlock.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from patchlock.sdist_statements import Statement


@click.command("sdist")
@click.argument("name")
@click.argument("version")
@click.option(
    "--run-hooks",
    is_flag=True,
    help="Also ask its build backend: this runs the code of the sdist on this machine, with pip-tools.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for programs.")
def sdist_command(name: str, version: str, run_hooks: bool, as_json: bool) -> None:
    """Show what an sdist and its build require, as a [[metadata]] table.

    It goes into an app's file. The static files are read, and no code is run without --run-hooks.

    \b
    Example:
      patchlock sdist jieba 0.42.1
    """
    from patchlock import indexes, sdist_statements, sdists, stating, tables

    try:
        wanted = (tables.distribution(name), tables.version(version))
    except ValueError as error:
        raise UsageError(str(error), remedy="write `patchlock sdist jieba 0.42.1`") from error
    found = indexes.sdist(*wanted)
    statement = stating.state(found, options.cache())
    if run_hooks:
        statement = _asked(statement, sdists.fetch(found, options.cache()))
    if as_json:
        output.succeed(
            "sdist",
            {
                "name": found.name,
                "version": str(found.version),
                "sha256": found.sha256,
                "requires": list(map(str, statement.requires)),
                "build": list(map(str, statement.build)),
                "told-by": statement.told_by,
                "doubt": statement.doubt,
            },
        )
    else:
        click.echo(sdist_statements.as_table(found, statement))


def _asked(statement: Statement, archive: Path) -> Statement:
    """Add what the build backend asks for."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    from patchlock import build_hooks

    stated = {canonicalize_name(requirement.name) for requirement in statement.build}
    more = tuple(Requirement(name) for name in build_hooks.ask(archive) if name not in stated)
    return dataclasses.replace(statement, build=statement.build + more, doubt="")
