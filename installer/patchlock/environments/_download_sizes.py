"""How many bytes a file has that lies elsewhere: what the index says, or one small request; kept by sha256."""

from __future__ import annotations

import concurrent.futures
import contextlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

from patchlock.core import atomic_files, http_ranges
from patchlock.distributions import wheel_facts
from patchlock.locks.exports.pylock import Located
from patchlock.model.identities import Sha256

_FOLDER = "sizes"
"""Of the cache."""
_AT_ONCE = 16
"""Requests on their way together; each is small."""
_BIG = 100_000_000
_UNPACKED_BIG, _UNPACKED = 2.0, 3.5
"""How much larger an unpacked wheel is, from 100 MB on (CUDA libraries, packed as much as they can be) and below.

Measured on the tables of contents of 461 wheels of four locks of this repository, in November 2026. The 111 of
diffrhythm2 on cuda-linux have 3,374 MB and 6,426 MB unpacked, where this says 7,432; the 96 on macOS 362 and 1,266
(1,267), the 227 of xtts-webui on Windows 514 and 1,466 (1,799), the 27 of the demo 87 and 260 (304)."""


def collect(files: Mapping[Sha256, Located], cache: Path) -> dict[Sha256, int]:
    """Collect the sizes of files, in bytes; a server that is silent about one leaves it out.

    Args:
        files: where each lies; its size there is believed.
        cache: folder for what was learned.
    """
    known = {sha256: size for sha256, file in files.items() if (size := file.size or _kept(cache, sha256)) is not None}
    asked = {sha256: file for sha256, file in files.items() if sha256 not in known}
    if asked:
        with concurrent.futures.ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            answers = pool.map(lambda file: http_ranges.size(file.url), asked.values())
            for sha256, size in zip(asked, answers, strict=True):
                if size is not None:
                    known[sha256] = size
                    _keep(cache, sha256, size)
    return known


def unpacked_size(sha256: Sha256, size: int, cache: Path) -> int:
    """Say how many bytes a wheel has unpacked: as its table of contents says where that was read, or about.

    Args:
        sha256: of the wheel.
        size: bytes of the wheel.
        cache: of patchlock.
    """
    with contextlib.suppress(OSError, ValueError):
        return sum(file.size for file in wheel_facts.contents(cache / wheel_facts.FOLDER, sha256))
    return round(size * (_UNPACKED_BIG if size >= _BIG else _UNPACKED))


def unpacked_here(wheel: Path) -> int:
    """Add up the files of a wheel that lies on this machine, in bytes; 0 for what cannot be read."""
    with contextlib.suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(wheel) as archive:
        return sum(info.file_size for info in archive.infolist())
    return 0


def _path(cache: Path, sha256: Sha256) -> Path:
    return cache / _FOLDER / sha256[:2] / sha256


def _kept(cache: Path, sha256: Sha256) -> int | None:
    try:
        return int(_path(cache, sha256).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _keep(cache: Path, sha256: Sha256, size: int) -> None:
    path = _path(cache, sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.atomic_write(path, str(size), sync=False)
