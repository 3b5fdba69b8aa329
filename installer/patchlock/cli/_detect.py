"""`detect`: what this machine is, which profile fits it, and why the others do not."""

from __future__ import annotations

from pathlib import Path

import click

from patchlock.cli import _host_report, _options


@click.command("detect")
@click.option("--why-not", "why_not", metavar="PROFILE", help="Say only why this profile is not chosen, in full.")
@_options.common
def detect_command(why_not: str | None, catalogue: Path | None, as_json: bool) -> int:
    """Show what this machine is, and which profile fits it and why.

    With --json, what is printed is a recorded machine: without names of you or of this computer, to be sent to us, or
    to be pretended elsewhere by PATCHLOCK_HOST=FILE.

    \b
    Example:
      patchlock detect
      patchlock detect --why-not rocm-linux
    """
    return _host_report.show(why_not, catalogue, as_json=as_json)
