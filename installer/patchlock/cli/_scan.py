"""`scan`: which GPU architectures a wheel has code for."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from patchlock.cli import _options, _output, _progress
from patchlock.model import overlays
from patchlock.model.byte_sizes import MIB, size_text
from patchlock.model.errors import DownloadError, UsageError

if TYPE_CHECKING:
    from patchlock.catalogue.reader import Catalogue
    from patchlock.model.identities import Sha256
    from patchlock.model.policy import RecordedWheelFacts


@click.command("scan")
@click.argument("wheels", nargs=-1, required=True, metavar="WHEEL...")
@click.option("--record", is_flag=True, help="Write the findings into the catalogue, for locks that use them.")
@click.option(
    "--largest",
    type=int,
    default=1024,
    show_default=True,
    metavar="MIB",
    help="Skip wheels with more than this to read.",
)
@_options.common
def scan_command(wheels: tuple[str, ...], record: bool, largest: int, catalogue: Path | None, as_json: bool) -> None:
    """Find the GPU architectures that wheels have code for.

    A WHEEL is a file, or an address that ends with #sha256=… as an index gives it; only its libraries are read.

    \b
    Example:
      patchlock scan torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl
    """
    from patchlock.catalogue import location
    from patchlock.model.gpu_archs import ordered

    opened = _options.open_catalogue(catalogue)
    if record:
        location.require_own(opened.root)
    progress = _progress.progress(as_json)
    found = {}
    for wheel in wheels:
        address, sha256 = _place(wheel)
        with progress.stage(overlays.filename(address)):
            facts = _scan(address, sha256, largest * MIB, progress)
            found[sha256] = facts
            progress.say(", ".join(ordered(facts.archs)) or "no GPU code")
    file = _record(opened, found) if record else None
    if as_json:
        rows = [
            {"filename": facts.filename, "sha256": sha256, "archs": ordered(facts.archs)}
            for sha256, facts in found.items()
        ]
        _output.succeed("scan", {"wheels": rows, "recorded": file})
        return
    for facts in found.values():
        _output.echo(f"{facts.filename}: {', '.join(ordered(facts.archs)) or 'no GPU code'}")
    if file is not None:
        _output.echo(f"recorded in {_output.place(opened.root, file)}")


def _place(wheel: str) -> tuple[str, Sha256]:
    """Give address and sha256 of what the user names."""
    from patchlock.model.digests import sha256
    from patchlock.model.identities import Sha256

    address, _, fragment = wheel.partition("#")
    if urlsplit(address).scheme in {"http", "https"}:
        known = re.fullmatch(r"sha256=([0-9a-f]{64})", fragment)
        if known is None:
            raise UsageError(f"{wheel} does not say its sha256", remedy="end it with #sha256=… as its index does")
        return address, Sha256(known[1])
    path = Path(wheel).absolute()
    if not path.is_file():
        raise UsageError(f"there is no file {wheel}", remedy="name a wheel on this machine, or its address")
    return path.as_uri(), sha256(path.read_bytes())


def _scan(
    address: str, sha256: Sha256, largest: int, progress: _progress.Silent | _progress.Plain | _progress.Live
) -> RecordedWheelFacts:
    import datetime

    from patchlock.distributions import wheel_archs, wheel_facts
    from patchlock.model.policy import RecordedWheelFacts

    filename = overlays.filename(address)
    place = wheel_facts.Place(filename=filename, url=address)
    try:
        wheel_facts.store(_options.cache() / wheel_facts.FOLDER, sha256, place)
        size = wheel_archs.size(address)
        if size > largest:
            raise DownloadError(
                f"{size_text(size)} of {filename} would have to be read",
                where=f"--largest {largest // MIB}",
                remedy=f"allow it with `--largest {size // MIB + 1}`",
            )
        archs = wheel_archs.scan(address, tell=lambda name, _: progress.note(name))
    except zipfile.BadZipFile as error:
        raise DownloadError(f"{filename} is not a wheel", where=address, remedy="check the file") from error
    today = datetime.datetime.now(datetime.UTC).date()
    return RecordedWheelFacts(filename=filename, archs=archs, source=f"its libraries, read {today}")


def _record(catalogue: Catalogue, found: dict[Sha256, RecordedWheelFacts]) -> str:
    from patchlock.catalogue.policy import WHEELS_FILE, render_wheels
    from patchlock.core import atomic_files

    path = catalogue.root / WHEELS_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.atomic_write(path, render_wheels({**catalogue.rules().wheels, **found}))
    return WHEELS_FILE
