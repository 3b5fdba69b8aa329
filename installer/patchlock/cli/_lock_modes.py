"""What `lock` does beside writing locks: `--diff` and `--cross-check`; both change nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from patchlock.cli import _complete
from patchlock.model.errors import UsageError

if TYPE_CHECKING:
    from patchlock.locks.lock_request import Request
    from patchlock.locks.relock import CutOff


@dataclass(frozen=True, kw_only=True)
class Mode:
    """What is asked for instead of writing locks."""

    diff: bool
    since: str | None
    against: str | None
    markdown: bool
    cross_check: bool

    @property
    def is_any(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.diff or self.since or self.against or self.markdown or self.cross_check)


def add(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the modes to a command, which gets them as one argument, `mode`."""

    @click.option(
        "--diff",
        is_flag=True,
        help="Show what would change, and why; write nothing. Ends with 1 if anything would, or has since --since.",
    )
    @click.option("--since", metavar="REV", help="With --diff: what has changed since a commit, without resolving.")
    @click.option(
        "--against",
        metavar="PROFILE",
        shell_complete=_complete.profiles,
        help="With --diff: what is different from the lock of another profile on the same platform, without resolving; "
        "a difference does not end with 1.",
    )
    @click.option("--markdown", is_flag=True, help="With --diff: as Markdown, for a pull request.")
    @click.option(
        "--cross-check",
        is_flag=True,
        help="Resolve with pip-tools too, and read this machine's locks with pip, uv and pip-sync; write nothing.",
    )
    @functools.wraps(function)
    def with_mode(
        *, diff: bool, since: str | None, against: str | None, markdown: bool, cross_check: bool, **others: object
    ) -> Any:
        mode = Mode(diff=diff, since=since, against=against, markdown=markdown, cross_check=cross_check)
        return function(mode=mode, **others)

    return with_mode


def run(
    mode: Mode, requests: Sequence[Request], cut_off: CutOff, *, check: bool, as_json: bool, is_named: bool
) -> int | None:
    """Do what the mode asks for; `is_named` is as in `_lock_table.print_locks`.

    Returns:
        The exit code, or None where no mode is asked for.
    """
    if (mode.since or mode.against or mode.markdown) and not mode.diff:
        raise UsageError("--since, --against and --markdown say how --diff does its work", remedy="add --diff")
    if mode.since and mode.against:
        raise UsageError("--since and --against are two comparisons", remedy="ask for one at a time")
    if check + mode.diff + mode.cross_check > 1:
        raise UsageError("--check, --diff and --cross-check are three questions", remedy="ask one at a time")
    if mode.markdown and as_json:
        raise UsageError("--markdown and --json are two answers to one question", remedy="leave one out")
    if mode.diff:
        from patchlock.cli import _lock_diff

        return _lock_diff.show(
            requests,
            cut_off,
            since=mode.since,
            against=mode.against,
            markdown=mode.markdown,
            as_json=as_json,
            is_named=is_named,
        )
    if mode.cross_check:
        from patchlock.cli import _cross_check

        return _cross_check.show(requests, as_json=as_json)
    return None
