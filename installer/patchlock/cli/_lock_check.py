"""`lock --check`: which locks are fresh and keep the rules, without a network; or which come out again."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from patchlock.cli import _conflict_report, _lock_table, _options, _progress
from patchlock.cli._lock_table import Line
from patchlock.locks import check_cache
from patchlock.model.errors import LockFormatError, PatchlockError, from_os

if TYPE_CHECKING:
    from patchlock.catalogue.reader import Catalogue
    from patchlock.locks.lock_request import Request
    from patchlock.locks.relock import LockStatus


def run_cached_check(catalogue: Path | None, asked: Iterable[str], check: Callable[[], list[Line]]) -> list[Line]:
    """Give what a check finds; not checked again where the last one found all good, and no byte has changed since.

    Args:
        catalogue: its folder as the user named it.
        asked: which locks, in words that no other question has.
        check: looks at them.
    """
    root, words = _options.root(catalogue), tuple(asked)
    digest = check_cache.digest(root, words)
    known = check_cache.recall(_options.cache(), words, digest) if digest else None
    if known is not None and (lines := _lock_table.read(known)) is not None:
        return lines
    lines = check()
    # Only if nothing has changed while it was looked at, does the digest stand for what was seen.
    if digest and all(line.good for line in lines) and check_cache.digest(root, words) == digest:
        check_cache.remember(_options.cache(), words, digest, _lock_table.rows(lines))
    return lines


def check_locks(catalogue: Catalogue, requests: list[Request], whole: bool) -> list[Line]:
    """Check the locks of pairs; with `whole`, these are all pairs, and a lock of none of them is told."""
    from patchlock.locks import relock

    rules = catalogue.rules()
    lines = []
    for request in requests:
        pair, file = names(request)
        found = relock.lock_status(request, rules)
        lines.append(_line(pair, file, found))
    strays = relock.orphaned_lockfiles(catalogue, requests) if whole else ()
    return [
        *lines,
        *(
            Line(pair=file, file=file, state="failed", detail=relock.ORPHANED, code=LockFormatError.code)
            for file in strays
        ),
    ]


def check_online(
    catalogue: Catalogue,
    requests: list[Request],
    whole: bool,
    progress: _progress.Silent | _progress.Plain | _progress.Live,
) -> list[Line]:
    """Check the locks of pairs as `check_locks` does, and resolve the fresh ones again to see what comes of it."""
    from patchlock.core import uv
    from patchlock.locks import relock

    rules = catalogue.rules()
    uv.find()  # once before the threads, see `lock`

    def one(line: Line, request: Request) -> Line:
        if line.state != "fresh":
            return line
        try:
            found = relock.rederived_status(request, rules)
        except (PatchlockError, OSError) as error:
            failed = from_os(error) if isinstance(error, OSError) else error
            return dataclasses.replace(line, state="failed", detail=str(failed), code=failed.code)
        return _line(line.pair, line.file, found)

    lines = check_locks(catalogue, requests, whole)
    pairs = lines[: len(requests)]
    with progress.stage("resolve"), concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        seen = list(pool.map(one, pairs, requests))
        progress.say(_lock_table.counted(sum(line.state == "fresh" for line in pairs)))
    return [*seen, *lines[len(requests) :]]


def _line(pair: str, file: str, found: LockStatus) -> Line:
    return Line(
        pair=pair,
        file=file,
        state=found.state,
        detail="; ".join(found.reasons),
        code=found.code,
        needs_relock=found.needs_relock,
    )


def names(request: Request) -> tuple[str, str]:
    """Name a pair, and its lockfile from the catalogue's root."""
    return _conflict_report.pair_name(request), request.lock_name
