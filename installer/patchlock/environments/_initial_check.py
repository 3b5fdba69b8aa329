"""Look at an environment right after it was filled: what uv's cache gave, what lies outside it; begin its ledger."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from patchlock.environments import _record_digests, inspection, ledger
from patchlock.environments.inspection import Contents, Deviation
from patchlock.environments.ledger import InstalledFile, Ledger
from patchlock.model.errors import WheelError
from patchlock.model.identities import Sha256

_PAUSE = 60.0
"""Seconds between two files of one wheel that is being unpacked; more only costs reading them."""
_SLOWEST = 1e6
"""Bytes in a second that an unpacking is expected to write at least; a slower one only costs reading the files."""


def suspects(contents: Contents, seen: Mapping[str, os.stat_result]) -> tuple[Deviation, ...]:
    """List the files that are not as their RECORD says, as far as that shows without reading all of them.

    uv links files to its cache, so that an edit in one environment is in what is filled from the cache later. It has
    changed the size, or it is later than the wheel was unpacked; only such files are read. A power cut while uv unpacks
    leaves empty files there, the RECORD too.

    Args:
        contents: what the RECORDs say.
        seen: what `inspection.stat_files` has found.
    """
    cut = [
        Deviation(distribution=distribution, path=f"{name}/RECORD", wanted="", wanted_size=None, size=None)
        for name, (distribution, rows) in contents.rows.items()
        if not any(path == f"{name}/METADATA" for path, _, _ in rows)
    ]
    paths = {deviation.path for deviation in inspection.find_size_deviations(contents, seen)} | set(
        _written_later(contents, seen)
    )
    rows = {
        name: (distribution, [row for row in listed if row[0].replace(os.sep, "/") in paths])
        for name, (distribution, listed) in contents.rows.items()
    }
    if not paths:
        return tuple(cut)
    return (*cut, *inspection.find_content_deviations(dataclasses.replace(contents, rows=rows), lambda _, __: None))


def _written_later(contents: Contents, seen: Mapping[str, os.stat_result]) -> Iterator[str]:
    """List the files that share their bytes with uv's cache and were written after their wheel was unpacked.

    A wheel is unpacked in one go, for minutes if it is large; what follows after a pause was written by somebody else.
    A file has the time of its last byte, and uv unpacks while it downloads: a large one follows as late as the line is
    slow.
    """
    for _, rows in contents.rows.values():
        linked = [(path, seen[path]) for path, _, _ in rows if path in seen and seen[path].st_nlink > 1]
        written = [status.st_mtime for _, status in linked]
        if not written or max(written) - min(written) <= _PAUSE:
            continue  # in one go, as nearly always
        times = sorted((status.st_mtime, path, status.st_size) for path, status in linked)
        pauses = (n for n in range(1, len(times)) if times[n][0] > times[n - 1][0] + _PAUSE + times[n][2] / _SLOWEST)
        first = next(pauses, len(times))
        yield from (path.replace(os.sep, "/") for _, path, _ in times[first:])


def require_inside(environment: Path) -> None:
    """Stop where the RECORDs of an environment name files that do not belong into it, before anything runs there.

    Raises:
        WheelError: a distribution wrote, or wants to write, outside the environment or over what makes it one.
    """
    outside = inspection.outside(environment)
    if outside:
        raise WheelError(
            f"the wheel of {outside[0][0].name} {outside[0][0].version} has files that do not belong into an "
            f"environment: {outside[0][1]}" + (f" and {len(outside) - 1} more" if len(outside) > 1 else ""),
            where=str(environment),
            remedy="do not install it: nothing was switched to it; report it to its authors",
            evidence=[f"{distribution.name}: {path}" for distribution, path in outside[:20]],
        )


def create_ledger(environment: Path, contents: Contents, seen: Mapping[str, os.stat_result] | None = None) -> Ledger:
    """Begin the ledger of an environment that was just filled, whose RECORDs say these contents.

    Files whose size is not the one in their RECORD are noted, as nobody has changed them yet. Only those of which
    RECORD has no hash are read: a few, of wheels whose RECORD is incomplete.

    Args:
        environment: its folder.
        contents: what its RECORDs say.
        seen: what `inspection.stat_files` has found; None looks now.

    Raises:
        WheelError: as `require_inside`.
    """
    require_inside(environment)
    files = {
        deviation.path: InstalledFile(size=deviation.size)
        for deviation in inspection.find_size_deviations(contents, seen)
    }
    for path in inspection.without_hash(contents):
        _, sha256, size = _record_digests.compare(str(contents.packages / path), "sha256=")
        files[path] = InstalledFile(size=size, sha256=Sha256(sha256))
    unlisted = inspection.unowned_files(contents)  # of setuptools the RECORDs of what it has vendored
    made = Ledger(laid=ledger.now(), records=contents.records, files=files, unlisted=unlisted)
    ledger.write(environment, made)
    return made
