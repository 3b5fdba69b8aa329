"""Unpack an sdist into a folder of ours by the rules of `core.archives`; runs nothing of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from patchlock.core import archives
from patchlock.model.errors import ArchiveError, SdistError

_LIMITS = archives.Limits(members=200_000, ratio=100, small=200_000_000)
"""Real sdists become 3 to 20 times as large."""


def unpack(archive: Path, folder: Path, *, links: bool = False) -> Path:
    """Unpack an sdist, or another archive of a distribution's source, and give its top folder.

    Source: PEP 625.

    Args:
        archive: a `.tar.gz`, another tar, or a `.zip` by its name.
        folder: is made.
        links: symbolic links that stay in the folder are made, as a repository may have them; sdists have none.

    Raises:
        SdistError: it is no archive of one folder, or holds what no sdist should; nothing outside `folder` was written.
        OSError: there is no room.
    """
    try:
        archives.unpack(archive, folder, limits=dataclasses.replace(_LIMITS, links=links), is_portable=False)
    except ArchiveError as error:
        why = error.evidence[0] if error.evidence else f"it cannot be read: {error.__cause__ or error.what}"
        raise _bad(archive, why) from error
    tops = list(folder.iterdir())
    if len(tops) != 1 or not tops[0].is_dir():
        raise _bad(archive, f"it has {len(tops)} entries at its top, and must have one folder")
    return tops[0]


def _bad(archive: Path, why: str) -> SdistError:
    return SdistError(
        f"{archive.name} is not an sdist that is built: {why}",
        where=str(archive),
        remedy="use another version, or report it to its authors",
    )
