"""`index record`: bring a recorded index up to date."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _options, _output, _progress
from patchlock.cli._commands import Subcommands
from patchlock.cli._paths import UserPath
from patchlock.model.errors import DriftError, UnknownIndexError, nearest

if TYPE_CHECKING:
    from patchlock.catalogue.reader import Catalogue
    from patchlock.distributions.index_recorder import Refreshed


@click.group("index", cls=Subcommands, no_args_is_help=True)
def index_command() -> None:
    """Update the recorded indexes of the catalogue.

    \b
    Example:
      patchlock index record pytorch-cpu --check
    """


@index_command.command("record")
@click.argument("name")
@click.option("--check", is_flag=True, help="Only show what would change; write nothing.")
@click.option(
    "--accept-changed",
    "accept",
    multiple=True,
    metavar="FILE",
    help="Accept a changed hash for this wheel; can be repeated.",
)
@click.option(
    "--download",
    "by_download",
    is_flag=True,
    help="Download files for which the index has no hash or METADATA, instead of skipping them.",
)
@click.option(
    "--into",
    "into",
    type=UserPath(file_okay=False),
    metavar="FOLDER",
    help="Write into your own catalogue, which is first copied from this one if it does not exist.",
)
@_options.common
def record_command(
    name: str,
    check: bool,
    accept: tuple[str, ...],
    by_download: bool,
    into: Path | None,
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Record what an index offers now, from its pages and METADATA alone unless --download is given.

    [index.keep] in the record says which files it lists. If a wheel has another hash than before, nothing is written;
    --accept-changed accepts it, and the record keeps the earlier hash, too.

    \b
    Example:
      patchlock index record pytorch-cpu
      patchlock index record amd-rocm-windows-7.2.1 --download --into ~/my-catalogue
      patchlock lock amphion --profile rocm-windows --catalogue ~/my-catalogue
    """
    from patchlock.catalogue import location
    from patchlock.core import atomic_files
    from patchlock.distributions import index_recorder, recorded_index

    opened = _options.open_catalogue(catalogue)
    if into is not None and not check:
        opened = _own(opened, into)
    if not check:
        location.require_own(opened.root)
    if name not in opened.index_names():
        raise UnknownIndexError(f'there is no recorded index "{name}"', remedy=nearest(name, opened.index_names()))
    index = opened.index(name)
    path = opened.root / index.origin.file
    progress = _progress.progress(as_json)
    with progress.stage("record"):
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        refreshed = index_recorder.refresh(
            index, accept=accept, by_download=by_download, today=today, tell=progress.say
        )
    before = path.read_text(encoding="utf-8")
    asked = dataclasses.replace(index, whole=refreshed.whole, sdists=refreshed.sdists)
    after = recorded_index.render(asked, refreshed.wheels, recorded_index.comment_of(before))
    is_new = after != before
    if is_new and not check:
        atomic_files.atomic_write(path, after)
    state = ("would change" if check else "written") if is_new else "unchanged"
    if as_json:
        changes = [{**dataclasses.asdict(change), "kind": change.kind.value} for change in refreshed.changes]
        data = {
            "file": index.origin.file,
            "state": state,
            "wheels": len(refreshed.wheels),
            "whole": list(map(str, refreshed.whole.distributions)),
            "changes": changes,
        }
        error = None
        if check and is_new:
            error = DriftError(
                "the index has something else than what is recorded",
                where=index.origin.file,
                remedy=f"run `patchlock index record {name}`",
                evidence=(f"{change.kind.value}: {change.filename}" for change in refreshed.changes),
            )
        return _output.succeed("index record", data, error)
    whole = "" if refreshed.whole == index.whole else ", ".join(map(str, refreshed.whole.distributions))
    _output.echo(_text(_output.place(opened.root, index.origin.file), state, refreshed, whole))
    return 1 if check and is_new else 0


def _own(opened: Catalogue, into: Path) -> Catalogue:
    """Open the catalogue in a folder; where the folder is empty or not there, copy this one into it first."""
    if not into.is_dir() or not any(into.iterdir()):
        for folder in (one for one in ("profiles", "patches", "lockfiles") if (opened.root / one).is_dir()):
            shutil.copytree(opened.root / folder, into / folder)
    return _options.open_catalogue(into)


def _text(file: str, state: str, refreshed: Refreshed, whole: str) -> str:
    lines = [(change.kind.value, f"{change.filename}\n  {change.detail}") for change in refreshed.changes]
    lines += [("whole", f"for {whole}")] if whole else []
    counts = collections.Counter(change.kind.value for change in refreshed.changes)
    counted = "".join(f", {count} {kind}" for kind, count in sorted(counts.items()))
    return "\n".join(
        [
            *([_output.rows(lines, indent=0)] if lines else []),
            f"{file}: {state}, {len(refreshed.wheels)} wheels{counted}",
        ]
    )
