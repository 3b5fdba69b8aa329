"""`lock --diff`: what regenerating would change, or what has changed since a commit, pair by pair."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchlock.cli import _lock_table, _output, _progress
from patchlock.model.errors import DriftError, PatchlockError, RefusedError, UsageError

if TYPE_CHECKING:
    from patchlock.locks.diff import Change, Difference
    from patchlock.locks.lock_request import Request
    from patchlock.locks.relock import CutOff
    from patchlock.model.identities import CommitId
    from patchlock.model.lockfile import Lock
    from patchlock.model.profile import Profile


@dataclass(frozen=True, kw_only=True)
class _Line:
    """One pair: what is different, or why that cannot be said."""

    pair: str
    file: str
    difference: Difference | None
    refused: str = ""
    failed: str = ""
    code: str = ""
    warnings: tuple[str, ...] = ()
    """What a lock that was made to compare is to be known of."""

    @property
    def state(self) -> str:
        if self.failed or self.refused:
            return "failed" if self.failed else "refused"
        return "different" if self.difference else "same"


def show(
    requests: Sequence[Request],
    cut_off: CutOff,
    *,
    since: str | None,
    against: str | None,
    markdown: bool,
    as_json: bool,
    is_named: bool,
) -> int:
    """Print the differences of all pairs.

    Args:
        requests: the pairs.
        cut_off: how new files may be, see `locks.relock`.
        since: compare the lockfiles with those of this commit instead, and resolve nothing.
        against: compare the lockfiles with those of this profile on the same platform instead, and resolve nothing.
        markdown: for a pull request.
        as_json: in an envelope.
        is_named: as in `_lock_table.print_locks`.

    Returns:
        0 where nothing is different, else 1; two profiles may be different, and a named one must not be refused.

    Raises:
        UsageError: there is no such commit, or nothing to compare.
    """
    from patchlock.core import uv
    from patchlock.locks import relock
    from patchlock.operations import catalogue_at_commit

    if since is not None:
        commit = catalogue_at_commit.commit_of(requests[0].catalogue.root, since)
        lines = [_line(request, lambda one: (_at(one, commit), _committed(one))) for request in requests]
    elif against is not None:
        other, requests = _on_both(requests, against)
        lines = [
            _line(request, lambda one: (_committed(dataclasses.replace(one, profile=other)), _committed(one)))
            for request in requests
        ]
    else:

        def both(request: Request) -> tuple[Lock | None, Lock]:
            return _committed(request), relock.resolve(request, cut_off)

        uv.find()  # once before the threads, see `lock`
        progress = _progress.progress(as_json)
        with progress.stage("resolve"), concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            lines = list(
                pool.map(lambda one: _line(one, lambda it: (_committed(it), relock.resolve(it, cut_off))), requests)
            )
            progress.say(_lock_table.counted(len(lines)))
    good = {"same", "refused"} | ({"different"} if against else set())
    of = _lock_table.app_and_profile
    lockable = {of(line.pair) for line in lines if not line.refused}
    changed = [line for line in lines if line.state not in good or (is_named and of(line.pair) not in lockable)]
    if as_json:
        return _output.succeed("lock", {"pairs": [_data(line) for line in lines]}, _objection(changed))
    if markdown:
        _output.echo(_markdown([line for line in lines if line.state == "different" or line in changed]))
    else:
        width = max((len(line.pair) for line in lines), default=0)
        _output.echo("\n".join(_text(line, width) for line in lines))
    _lock_table.warn({line.pair: line.warnings for line in lines})
    return 1 if changed else 0


def _objection(changed: Sequence[_Line]) -> PatchlockError | None:
    if not changed:
        return None
    failed = [(line.pair, line.failed or line.refused) for line in changed if line.failed or line.refused]
    return _lock_table.locks_error(failed, len(changed), ()) or DriftError(
        f"{len(changed)} lock{' is' if len(changed) == 1 else 's are'} different",
        remedy="read what `data` says of each; `patchlock lock APP` writes a new lock",
        evidence=(line.pair for line in changed),
    )


def _line(request: Request, locks: Callable[[Request], tuple[Lock | None, Lock | None]]) -> _Line:
    from patchlock.catalogue.pairs import require_possible
    from patchlock.locks import diff, relock

    pair = f"{request.app.name} × {request.profile.name} × {request.platform.name}"
    file = request.lock_name
    try:
        require_possible(request.app, request.profile, request.platform)
        old, new = locks(request)
        warnings = new.notices if new is not None else ()
        return _Line(pair=pair, file=file, difference=diff.compare(old, new), warnings=warnings)
    except RefusedError as error:
        found = relock.refused_status(request, error)
        is_left = found.state == "failed"
        refused, failed = ("", found.reasons[0]) if is_left else (found.reasons[0], "")
        return _Line(pair=pair, file=file, difference=None, refused=refused, failed=failed, code=found.code)
    except PatchlockError as error:
        return _Line(pair=pair, file=file, difference=None, failed=str(error), code=error.code)


def _committed(request: Request) -> Lock | None:
    from patchlock.model import lockfile

    path = request.lock_path
    if not path.is_file():
        return None
    text = path.read_bytes().decode("utf-8", errors="replace")
    return lockfile.parse(text, request.lock_name)


def _on_both(requests: Sequence[Request], against: str) -> tuple[Profile, list[Request]]:
    """Give another profile, and the pairs on platforms that it has too: locks of two systems are not alike anyway.

    Raises:
        UnknownProfileError: there is no such profile.
        UsageError: it has no platform of any pair.
    """
    other = requests[0].catalogue.profile(against)
    found = [one for one in requests if one.platform in other.platforms]
    if not found:
        asked = dict.fromkeys(one.platform.name for one in requests)
        raise UsageError(
            f"there is nothing to compare: {against} is for {', '.join(one.name for one in other.platforms)}, and what "
            f"you ask for is on {', '.join(asked)}",
            remedy="name profiles of one platform with --profile and --against",
        )
    return other, found


def _at(request: Request, commit: CommitId) -> Lock | None:
    """Read a lock as a commit of the catalogue's repository has it."""
    from patchlock.model import lockfile
    from patchlock.operations import catalogue_at_commit

    text = catalogue_at_commit.read(request.catalogue.root, commit, request.lock_name)
    return None if text is None else lockfile.parse(text, f"{commit[:12]}:{request.lock_name}")


# --- how it is shown --------------------------------------------------------------------------------------------------


def _versions(change: Change) -> tuple[str, str]:
    return str(change.old.version) if change.old else "", str(change.new.version) if change.new else ""


def _moved(change: Change) -> str:
    old, new = _versions(change)
    if not old or not new:
        return f"{old or 'new'} → {new or 'gone'}"
    return f"{old} → {new}" if old != new else f"{old}, {change.kind.value}"


def _shown(difference: Difference) -> tuple[list[Change], int]:
    """Keep what is installed differently, what must be looked at first; and count what is only asked for otherwise."""
    from patchlock.locks.diff import Kind

    changes = [change for change in difference.changes if change.kind is not Kind.OTHER_REASON]
    return sorted(changes, key=lambda one: not one.is_alarming), len(difference.changes) - len(changes)


def _otherwise(count: int) -> str:
    return f"{count} asked for otherwise, with the same file" if count else ""


def _text(line: _Line, width: int) -> str:
    head = f"{line.pair:<{width}}  {line.state:<9}  "
    if not line.difference:
        return head + (line.failed or line.refused or line.file)
    changes, otherwise = _shown(line.difference)
    rows = [("because", cause) for cause in line.difference.causes]
    width = max((len(_moved(change)) for change in changes), default=0)
    rows += [
        (f"{'! ' if one.is_alarming else ''}{one.name}", f"{_moved(one):<{width}}  {one.why}".rstrip())
        for one in changes
    ]
    rows += [("besides", _otherwise(otherwise))] if otherwise else []
    return f"{head}{line.file}\n{_output.rows(rows)}"


def _markdown(lines: Sequence[_Line]) -> str:
    """Write a text for a pull request; pairs with the same differences share one table."""
    groups: dict[str, list[_Line]] = {}
    for line in lines:
        groups.setdefault(_table(line), []).append(line)
    if not groups:
        return "No lock is different."
    return "\n".join(f"### {', '.join(line.pair for line in of)}\n\n{table}" for table, of in groups.items()).rstrip()


def _table(line: _Line) -> str:
    if line.difference is None:
        return f"It cannot be locked:\n\n```\n{line.failed or line.refused}\n```\n"
    changes, otherwise = _shown(line.difference)
    text = "".join(f"- {cause}\n" for cause in line.difference.causes)
    if changes:
        rows = [f"| {_bold(one)} | {_cell(_moved(one))} | {_cell(one.why)} |" for one in changes]
        text += "\n| package | change | why |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    return text + (f"\n{_otherwise(otherwise)}\n" if otherwise else "")


def _bold(change: Change) -> str:
    return f"⚠ **{change.name}**" if change.is_alarming else change.name


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _data(line: _Line) -> dict[str, object]:
    changes = line.difference.changes if line.difference else ()
    return {
        "pair": line.pair,
        "file": line.file,
        "state": line.state,
        "detail": line.failed or line.refused,
        "code": line.code,
        "causes": list(line.difference.causes) if line.difference else [],
        "changes": [
            {
                "name": one.name,
                "kind": one.kind.value,
                "old": _versions(one)[0] or None,
                "new": _versions(one)[1] or None,
                "alarming": one.is_alarming,
                "why": one.why,
            }
            for one in changes
        ],
        "warnings": list(line.warnings),
    }
