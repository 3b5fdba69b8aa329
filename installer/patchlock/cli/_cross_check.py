"""`lock --cross-check`: what pip's resolver would have chosen, and how other tools read the lock."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patchlock.cli import _lock_table, _output, _progress
from patchlock.model.errors import PatchlockError

if TYPE_CHECKING:
    from patchlock.locks.lock_request import Request
    from patchlock.model.hosts import Host
    from patchlock.operations.cross_check import Disagreement


@dataclass(frozen=True, kw_only=True)
class _Opinion:
    """What one tool says about one lock."""

    tool: str
    disagreements: tuple[Disagreement, ...]
    is_fatal: bool
    """Whether a disagreement means that the lock is wrong: a reader must agree, another resolver need not."""


@dataclass(frozen=True, kw_only=True)
class _Line:
    pair: str
    packages: int = 0
    opinions: tuple[_Opinion, ...] = ()
    not_asked: str = ""
    skipped: str = ""
    """Why pip's resolver was not asked, where the others were."""
    failed: str = ""
    code: str = ""

    @property
    def good(self) -> bool:
        return not self.failed and not any(one.is_fatal and one.disagreements for one in self.opinions)


def show(requests: Sequence[Request], *, as_json: bool) -> int:
    """Print what others say about the locks of this machine.

    Returns:
        0, or 1 where a lock is read otherwise or pip finds no solution.
    """
    from patchlock.hardware import host_overrides, probes
    from patchlock.operations import cross_check

    cross_check.require_tools()
    observed = host_overrides.observe(probes.basic)
    _output.report_overrides(observed)
    progress = _progress.progress(as_json)
    with progress.stage("cross-check"):
        lines = []
        for request in requests:
            progress.say(f"{request.app.name} × {request.profile.name} × {request.platform.name}")
            lines.append(_ask(request, observed.host))
        progress.say(f"{sum(bool(line.opinions) for line in lines)} of {_lock_table.counted(len(lines))}")
    passed = all(line.good for line in lines)
    if as_json:
        bad = [(line.pair, _text(line)) for line in lines if not line.good]
        error = _lock_table.locks_error(bad, len(lines), ["patchlock lock"])
        return _output.succeed("lock", {"pairs": [dataclasses.asdict(line) for line in lines]}, error)
    _output.echo(_output.rows([(line.pair, _text(line)) for line in lines], indent=0))
    return 0 if passed else 1


def _ask(request: Request, host: Host) -> _Line:
    from patchlock.catalogue.pairs import require_possible
    from patchlock.locks import lock_request as locks_request
    from patchlock.model import lockfile
    from patchlock.operations import cross_check

    pair = f"{request.app.name} × {request.profile.name} × {request.platform.name}"
    try:
        if reason := cross_check.reason_not_native(request.platform, request.profile, host):
            return _Line(pair=pair, not_asked=reason)
        require_possible(request.app, request.profile, request.platform)
        lock, _ = locks_request.read_lock(request)
        asked = locks_request.read_requirements(request)
        order = locks_request.collect_inputs(request, asked, lock.provenance.as_of, lock.provenance.newer)
        file = request.lock_path
        skipped = cross_check.reason_no_counterpart(order)
        with tempfile.TemporaryDirectory(prefix="patchlock-cross-check-") as name:
            if any(package.original for package in lock.packages):  # which others can only have as upstream made them
                lock = dataclasses.replace(lock, packages=tuple(package.upstream for package in lock.packages))
                file = Path(name) / file.name
                file.write_text(lockfile.render(lock), encoding="utf-8")
            answers = dict(cross_check.read_by_others(file, with_requirements=not skipped))
        if not skipped:
            answers["pip-compile"] = cross_check.resolve(order, lock)
    except PatchlockError as error:
        if error.code in {"refused", "lock-missing"}:
            return _Line(pair=pair, not_asked=error.what)
        return _Line(pair=pair, failed=str(error), code=error.code)
    opinions = tuple(
        _Opinion(tool=tool, disagreements=cross_check.disagreements(lock, answer), is_fatal=tool != "pip-compile")
        for tool, answer in answers.items()
    )
    return _Line(pair=pair, packages=len(lock.packages), opinions=opinions, skipped=skipped)


def _text(line: _Line) -> str:
    if line.failed or line.not_asked:
        return f"failed: {line.failed}" if line.failed else f"not asked: {line.not_asked}"
    rows = [row for opinion in line.opinions for row in _rows(opinion, line.packages)]
    return "\n".join([*rows, f"{'pip-compile':<11}  not asked: {line.skipped}"] if line.skipped else rows)


def _rows(opinion: _Opinion, packages: int) -> list[str]:
    verb = "reads" if opinion.is_fatal else "chooses"
    if not opinion.disagreements:
        return [f"{opinion.tool:<11}  {verb} the same {packages} packages"]
    head = f"{opinion.tool:<11}  {verb} otherwise: {len(opinion.disagreements)} of {packages}"
    return [
        head,
        *(f"  {one.name}  {one.locked or 'not there'} → {one.other or 'not there'}" for one in opinion.disagreements),
    ]
