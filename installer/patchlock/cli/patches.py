"""`patch status` and `patch diff`: what the patches of an app do to its source."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import options, output
from patchlock.cli.apps import outcome_data, outcome_lines

if TYPE_CHECKING:
    from patchlock.gathering import Request, Upstream
    from patchlock.model import Outcome


@click.group("patch", no_args_is_help=True)
def patch_command() -> None:
    """Show what the patches of an app do to its source.

    \b
    Example:
      patchlock patch status demo
      patchlock patch diff demo
    """


@patch_command.command("status")
@options.pair
@options.upstream
@options.common
def status_command(
    app: str, profile: str | None, source: str | None, revision: str | None, catalogue: Path | None, as_json: bool
) -> int:
    """Say what became of every patch in every file, in the installed source or else in upstream.

    \b
    Example:
      patchlock patch status demo --profile cpu
    """
    from patchlock import gathering
    from patchlock.model import BLOCKING

    request = options.request(catalogue, app, profile, source=source, revision=revision)
    upstream = gathering.read_upstream(request)
    outcomes = tuple(_in_tree(request, upstream, outcome) for outcome in upstream.patched.outcomes)
    blocked = bool(upstream.patched.failures) or any(o.kind in BLOCKING for o in outcomes)
    if as_json:
        data = {
            "commit": upstream.snapshot.commit,
            "outcomes": [outcome_data(outcome) for outcome in outcomes],
            "failures": list(upstream.patched.failures),
        }
        output.succeed("patch status", data, ok=not blocked)
    else:
        click.echo(f"{app} at commit {upstream.snapshot.commit[:12]} on {request.profile.name}")
        click.echo(outcome_lines(outcomes))
        for failure in upstream.patched.failures:
            click.echo(f"does not hold: {failure}")
    return 1 if blocked else 0


def _in_tree(request: Request, upstream: Upstream, outcome: Outcome) -> Outcome:
    """Look at the installed file: is it as we patched it, or has the user gone on from there?"""
    from patchlock import environments, planning
    from patchlock.model import OutcomeKind

    changes = {change.path: change for change in upstream.patched.changes}
    if outcome.path not in changes or outcome.path is None or not request.installation.source.exists():
        return outcome
    change = changes[outcome.path]
    file = request.installation.source / request.app.directory / outcome.path
    present = file.read_bytes() if file.is_file() else None
    receipt = environments.current(request.installation)
    ours = receipt.patched.get(str(request.app.directory / outcome.path)) if receipt else None
    if present == change.after or (present is not None and planning.sha256(present) == ours):
        return dataclasses.replace(outcome, kind=OutcomeKind.ALREADY_OURS)
    if present == change.before:
        return outcome
    return dataclasses.replace(outcome, kind=OutcomeKind.DRIFTED, detail="the file is neither upstream's nor ours")


@patch_command.command("diff")
@options.pair
@options.upstream
@options.common
def diff_command(
    app: str, profile: str | None, source: str | None, revision: str | None, catalogue: Path | None, as_json: bool
) -> None:
    """Print the difference between upstream and the patched source, as a unified diff.

    \b
    Example:
      patchlock patch diff demo --profile cpu
    """
    from patchlock import gathering, planning

    request = options.request(catalogue, app, profile, source=source, revision=revision)
    upstream = gathering.read_upstream(request)
    text = planning.diff(upstream.patched.changes)
    if as_json:
        output.succeed("patch diff", {"commit": upstream.snapshot.commit, "diff": text})
    else:
        click.echo(text, nl=False)
