"""`matrix`: the pairs of app and machine, for a matrix of continuous integration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _options, _output

if TYPE_CHECKING:
    from patchlock.catalogue.pairs import Pair


@click.command("matrix")
@click.option("--changed-since", metavar="REV", help="Only pairs whose lock may differ by what has changed since then.")
@_options.common
def matrix_command(changed_since: str | None, catalogue: Path | None, as_json: bool) -> None:
    """List the pairs of app, profile and platform as JSON, for the matrix of a CI job.

    What is printed is one line, {"include": [{"app": …, "profile": …, "platform": …, "lock": …}]}; with --json it is in
    an envelope, with the refused pairs beside it.

    \b
    Example:
      patchlock matrix
      patchlock matrix --changed-since origin/main
    """
    from patchlock.catalogue import pairs
    from patchlock.operations import catalogue_at_commit

    opened = _options.open_catalogue(catalogue)
    apps, profiles = opened.read_all()

    def lock(pair: Pair) -> str:
        return opened.lock_path(pair.app, pair.profile, pair.platform).relative_to(opened.root).as_posix()

    found = list(pairs.pairs(apps, profiles))
    if changed_since is not None:
        changed = catalogue_at_commit.changed(opened.root, catalogue_at_commit.commit_of(opened.root, changed_since))
        found = [pair for pair in found if any(pairs.is_affected_by(pair, file, lock(pair)) for file in changed)]
    include = [{**_names(pair), "lock": lock(pair)} for pair in found if not pair.refused]
    if as_json:
        refused = [{**_names(pair), "why": pair.refused} for pair in found if pair.refused]
        _output.succeed("matrix", {"include": include, "refused": refused})
    else:
        click.echo(json.dumps({"include": include}))


def _names(pair: Pair) -> dict[str, str]:
    return {"app": pair.app.name, "profile": pair.profile.name, "platform": pair.platform.name}
