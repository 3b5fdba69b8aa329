"""How large the models are that an app's code names: what their servers say, within seconds; downloads none of them."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Sequence

from patchlock.catalogue.proposals.downloads import Download
from patchlock.core import http_ranges, uv
from patchlock.environments import _hugging_face

_AT_ONCE = 8
_PATIENCE = 6.0
"""Seconds for each answer; no server is asked twice."""


def sizes(downloads: Sequence[Download]) -> dict[str, int]:
    """Ask for sizes, in bytes, by `Download.name`; what nobody answers for is left out, as is all while offline.

    Of a repository without a file, or with one that only a run knows, it is the size of all of its files: a library may
    take some of them alone.
    """
    if not downloads or not uv.is_online():
        return {}
    with concurrent.futures.ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        answers = pool.map(_size, downloads)
        return {one.name: size for one, size in zip(downloads, answers, strict=True) if size}


def _size(one: Download) -> int:
    if "{" in (one.repository or one.file):
        return 0
    if one.repository:
        return _hugging_face.size_of(one.repository, "" if one.is_put_together else one.file, _PATIENCE)
    return (http_ranges.size(one.file) or 0) if "://" in one.file else 0
