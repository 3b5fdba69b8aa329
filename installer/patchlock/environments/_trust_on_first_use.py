"""What was downloaded without a promised sha256: the bytes of the first time, written down for every later time."""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path

from patchlock.catalogue.table_reader import sha256 as parse_sha256
from patchlock.core import atomic_files, file_lock
from patchlock.model.errors import OverlayError
from patchlock.model.identities import Sha256

_HEAD = """\
# Files whose makers publish no sha256. The first download of each was trusted; other bytes under the same address are
# refused ever after, whatever asks for them. Written by patchlock.
"""


def path(home: Path) -> Path:
    """Name the file, one for all installations of a home."""
    return home / "trusted.toml"


def known(home: Path, url: str) -> Sha256 | None:
    """Give the sha256 that an address had at its first use; None where it was never used.

    Raises:
        OverlayError: the file cannot be read.
    """
    return _read(home).get(url, (None, "", ""))[0]


def record(home: Path, url: str, sha256: Sha256, by: str, *, replacing: Sha256 | None = None) -> None:
    """Write down the first use of an address.

    Args:
        home: the folder of all installations.
        url: the address.
        sha256: of the bytes that came.
        by: who used it, `<app>@<profile>`.
        replacing: what a person has given up on; what else is written there stays.

    Raises:
        OverlayError: somebody else has written down other bytes meanwhile.
    """
    with file_lock.hold(home / "trusted.lock", wait=60):
        entries = _read(home)
        before = entries.get(url, (sha256, "", ""))[0]
        if before not in {sha256, replacing}:
            raise OverlayError(
                f"another install has just trusted other bytes of {url}",
                where=f"{path(home)}: sha256 {before}, now {sha256}",
                remedy="run the same command again",
            )
        if before != sha256 or url not in entries:
            now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            entries[url] = (sha256, now, by)
            _write(home, entries)


def _write(home: Path, entries: dict[str, tuple[Sha256, str, str]]) -> None:
    import tomlkit  # which is only for who writes

    rows = [dict(zip(("url", "sha256", "first", "by"), (url, *entries[url]), strict=True)) for url in sorted(entries)]
    atomic_files.atomic_write(path(home), "\n".join([_HEAD, tomlkit.dumps({"file": rows})]))


def _read(home: Path) -> dict[str, tuple[Sha256, str, str]]:
    try:
        values = tomllib.loads(path(home).read_text(encoding="utf-8"))
        return {e["url"]: (parse_sha256(e["sha256"]), str(e["first"]), str(e["by"])) for e in values.get("file", [])}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise OverlayError(
            f"the list of trusted downloads is damaged: {error}",
            where=str(path(home)),
            remedy="correct it; removing it would trust the next download blindly again",
        ) from error
