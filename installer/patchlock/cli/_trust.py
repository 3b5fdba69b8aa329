"""`trust`: agree that a catalogue of somebody else runs its code on this machine, or take that back."""

from __future__ import annotations

from pathlib import Path

import click

from patchlock.cli import _options, _output
from patchlock.cli._paths import UserPath


@click.command("trust")
@click.argument("folder", type=UserPath(exists=True, file_okay=False))
@click.option("--withdraw", is_flag=True, help="No longer allow it to run code.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON envelope on stdout.")
def trust_command(folder: Path, withdraw: bool, as_json: bool) -> None:
    """Allow another catalogue to run its code here.

    This also covers whatever is written there later: allow it only if you trust everyone who can write to it.

    \b
    Example:
      patchlock trust ~/catalogues/ours
      patchlock trust ~/catalogues/ours --withdraw
    """
    from patchlock.catalogue import agreement

    place = folder.resolve()
    is_new = agreement.change(place, _options.home(), trusted=not withdraw)
    if as_json:
        _output.succeed("trust", {"folder": str(place), "trusted": not withdraw, "changed": is_new})
        return
    state = "may no longer run code" if withdraw else "may run its codemods, builds and checks"
    _output.echo(f"{place} {state}" if is_new else f"{place}: nothing to do")
