"""`lock --check`: which locks are fresh and keep the rules; asks no network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from patchlock import checked_locks
from patchlock.cli import conflicts, options
from patchlock.errors import LockFormatError, LocksError
from patchlock.lazily import dataclass

if TYPE_CHECKING:
    from patchlock.catalogue import Catalogue
    from patchlock.gathering import Request


@dataclass(frozen=True, kw_only=True)
class Line:
    """One pair in the table at the end."""

    pair: str
    file: str
    state: str
    """`written`, `unchanged`, `fresh`, `stale`, `missing`, `refused` or `failed`."""
    detail: str
    code: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nobody has to do anything."""
        return self.state in {"written", "unchanged", "fresh", "refused"}


def remembered(catalogue: Path | None, asked: Iterable[str], check: Callable[[], list[Line]]) -> list[Line]:
    """Give what a check finds; not checked again where the last one found all good, and no byte has changed since.

    Args:
        catalogue: its folder as the user named it.
        asked: which locks, in words that no other question has.
        check: looks at them.
    """
    root, words = options.root(catalogue), tuple(asked)
    digest = checked_locks.digest(root, words)
    known = checked_locks.recall(options.cache(), digest) if digest else None
    if known is not None:
        return [Line(pair=row[0], file=row[1], state=row[2], detail=row[3], code=row[4]) for row in known]
    lines = check()
    # Only if nothing has changed while it was looked at, does the digest stand for what was seen.
    if digest and all(line.good for line in lines) and checked_locks.digest(root, words) == digest:
        rows = [(one.pair, one.file, one.state, one.detail, one.code) for one in lines]
        checked_locks.remember(options.cache(), digest, rows)
    return lines


def every(catalogue: Catalogue, requests: list[Request], whole: bool) -> list[Line]:
    """Check the locks of pairs; with `whole`, these are all pairs, and a lock of none of them is told."""
    from patchlock import relocking

    rules = catalogue.rules()
    lines = []
    for request in requests:
        pair, file = names(request)
        found = relocking.standing(request, rules)
        lines.append(Line(pair=pair, file=file, state=found.state, detail="; ".join(found.reasons), code=found.code))
    detail = "it belongs to no pair of app and profile; remove it"
    strays = relocking.strays(catalogue, requests) if whole else ()
    return [
        *lines,
        *(Line(pair=file, file=file, state="failed", detail=detail, code=LockFormatError.code) for file in strays),
    ]


def objection(bad: Sequence[tuple[str, str]], count: int, command: str) -> LocksError | None:
    """Say in one error which locks are not as they should be; None where all are.

    Args:
        bad: their pairs, and what is wrong with each.
        count: how many were asked about.
        command: what mends them.
    """
    if not bad:
        return None
    return LocksError(
        f"{len(bad)} of {count} locks {'is' if len(bad) == 1 else 'are'} not as they should be",
        remedy=f"do as the lines say, or run `{command}`",
        evidence=(f"{pair}: {why}" for pair, why in bad),
    )


def names(request: Request) -> tuple[str, str]:
    """Name a pair, and its lockfile from the catalogue's root."""
    path = request.catalogue.lock_path(request.app, request.profile, request.platform)
    return conflicts.pair_of(request), path.relative_to(request.catalogue.root).as_posix()
