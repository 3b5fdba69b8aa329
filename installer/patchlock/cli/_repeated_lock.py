"""`lock` once more: where no byte of the catalogue and no answer of uv is another, there is nothing to judge again."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from patchlock.cli import _folders, _lock_table, _output
from patchlock.cli._lock_table import Line
from patchlock.core import uv
from patchlock.locks import check_cache
from patchlock.locks.resolver_cache import ResolverPrefetch

_FRESH = 3600.0
"""Seconds for which it is believed that an index has taken back nothing of what a lock holds."""


class _OtherAnswerError(Exception):
    """Uv answers otherwise than last time."""


class RepeatedLock:
    """A plain `lock`: what it asks uv, and what it found when it changed nothing."""

    def __init__(self, words: Sequence[str], catalogue: Path | None, ahead: ResolverPrefetch, *, as_json: bool) -> None:
        """Digest all that a lock is made from, but for uv's answers.

        Args:
            words: of the command line.
            catalogue: its folder as the user named it.
            ahead: what uv is asked meanwhile.
            as_json: whether the answer is one envelope.
        """
        self.ahead = ahead
        self._root, self._words, self._as_json = _folders.root(catalogue), (uv.version(), *words), as_json
        self._contents = check_cache.contents(self._root)
        self._digest = check_cache.digest(self._root, self._words, self._contents)

    def answer(self) -> int | None:
        """Say that the locks are what they would be; None where that is not known, and they have to be made."""
        started = time.monotonic()
        known = _read(check_cache.recall(_folders.cache(), self._words, self._digest) if self._digest else None)
        if known is None:
            return None
        lines, answers = known
        progress = _output.progress(self._as_json)
        try:
            with progress.stage("lock"):
                self._require(answers)
                progress.say(_lock_table.counted(len(lines)))
        except _OtherAnswerError:
            return None
        told = [timed(line, time.monotonic() - started) for line in lines]
        return _lock_table.print_locks(told, {}, check=False, as_json=self._as_json)

    def _require(self, answers: Mapping[str, str]) -> None:
        if self.ahead.answers(answers) != answers or not self._is_as_it_was():
            raise _OtherAnswerError

    def remember(self, lines: Sequence[Line]) -> None:
        """Keep what was found, if nothing had to be written or told, and nothing was changed meanwhile."""
        is_told = any(line.warnings or line.state == "written" or not line.good for line in lines)
        if self._digest and not is_told and self._is_as_it_was():
            found = {"time": time.time(), "lines": _lock_table.rows(lines), "answers": self.ahead.answered}
            check_cache.remember(_folders.cache(), self._words, self._digest, found)

    def _is_as_it_was(self) -> bool:
        """Say whether nobody has changed the catalogue while uv was waited for."""
        return self._contents is not None and check_cache.contents(self._root) == self._contents


def _read(found: Any) -> tuple[list[Line], dict[str, str]] | None:
    """Read what was remembered, and the answers that it rests on; None where it is nothing, damaged or too old."""
    try:
        if not 0 <= time.time() - found["time"] < _FRESH:
            return None
        lines = _lock_table.read(found["lines"])
        return None if lines is None else (lines, {str(name): str(one) for name, one in found["answers"].items()})
    except (KeyError, TypeError, AttributeError):
        return None


def timed(line: Line, seconds: float) -> Line:
    """Say of a lock that was made how long it took; other lines stay as they are."""
    if line.packages is None:
        return line
    import dataclasses

    return dataclasses.replace(line, detail=f"{line.packages} packages in {seconds:.1f} s: {line.file}")
