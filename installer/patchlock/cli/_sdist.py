"""`sdist`: what an sdist and its build require, as a table for an app's file."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from patchlock.cli import _options, _output
from patchlock.model.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from patchlock.distributions.sdist_metadata import SdistMetadata


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
    """Show what an sdist requires, as a [[metadata]] table.

    It goes into an app's file. The static files are read, and no code is run without --run-hooks.

    \b
    Example:
      patchlock sdist jieba 0.42.1
    """
    from patchlock.catalogue import table_reader
    from patchlock.distributions import file_locations, sdist_metadata, sdists
    from patchlock.locks import sdist_declarations

    try:
        wanted = (table_reader.distribution(name), table_reader.version(version))
    except ValueError as error:
        raise UsageError(str(error), remedy="write `patchlock sdist jieba 0.42.1`") from error
    found = file_locations.sdist(*wanted)
    statement = sdist_declarations.read_metadata(found, _options.cache())
    if run_hooks:
        statement = _asked(statement, sdists.fetch(found, _options.cache()))
    if as_json:
        _output.succeed(
            "sdist",
            {
                "name": found.name,
                "version": str(found.version),
                "sha256": found.sha256,
                "requires": list(map(str, statement.requires)),
                "build": list(map(str, statement.build)),
                "told_by": statement.told_by,
                "doubt": statement.doubt,
                "downloads": statement.downloads,
            },
        )
    else:
        _output.echo(sdist_metadata.as_table(found, statement))


def _asked(statement: SdistMetadata, archive: Path) -> SdistMetadata:
    """Add what the build backend asks for."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    from patchlock.environments.builds import hooks

    stated = {canonicalize_name(requirement.name) for requirement in statement.build}
    more = tuple(Requirement(name) for name in hooks.get_build_requirements(archive) if name not in stated)
    return dataclasses.replace(statement, build=statement.build + more, doubt="")
