"""Measure one row: every state of the history with ours, sampled updates with the peers."""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from histories import peers
from histories.peers import LAGS, Scratch, Trial
from histories.repository import Files, Repository
from histories.states import Row, State, in_scope, remembered, states

_Item = TypeVar("_Item")

BASES = 8
"""Diffs made for each row and lag, spread evenly over its history."""
REBASES = 30
"""Updates of each row over which the fork is rebased, spread evenly."""
REPLAYS = 40
"""States of each row on which the oldest diff is tried, spread evenly."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measured:
    """What became of one patch over one history."""

    row: str
    repository: str
    patch: str
    is_app: bool
    by_file: bool
    head: str
    commits: int
    every: int
    counted: Counter[str]
    """Commits by verdict."""
    distinct: Counter[str]
    """States by verdict."""
    reasons: Counter[str]
    """Commits by reason, of refusals and silent results."""
    trials: tuple[Trial, ...]
    ours: Counter[tuple[int, str]]
    """The same updates with ours, by lag and verdict."""
    seconds: float


def measure(row: Row, git: Path, *, with_peers: bool) -> Measured:
    """Measure a row on the clone at `git`."""
    started = time.perf_counter()
    row = remembered(row)
    with Repository(git) as repository:
        history = repository.commits()
        commits = history[(len(history) - 1) % row.every :: row.every]
        found = states(row, repository, commits)
        by_commit = {commit: state for state in found for commit in state.commits}
        mainline_ids = [commit.id for commit in repository.commits(first_parent=True)]
        line = [by_commit[id_] for id_ in mainline_ids if id_ in by_commit]
        seconds = time.perf_counter() - started
        mainline = _changes([state for state in line if state.verdict.kind != "no target"])
        line_of_states = (by_commit[c.id] for c in commits if c.id in by_commit)  # one without any target has none
        oldest = next((s for s in line_of_states if s.verdict.kind == "right"), None)
        replays = [s for s in found if s.verdict.kind != "no target" and s is not oldest] if oldest else []
        trials, ours = (
            _peers(row, repository, git, mainline, oldest, replays)
            if with_peers and not row.by_file
            else ((), Counter())
        )
    counted: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for state in found:
        weight = 1 if row.by_file else len(state.commits)
        counted[state.verdict.kind] += weight
        if state.verdict.why:
            reasons[f"{state.verdict.kind}: {state.verdict.why}"] += weight
    return Measured(
        row=row.name,
        repository=row.repository,
        patch=row.patch.id,
        is_app=row.is_app,
        by_file=row.by_file,
        head=history[-1].id,
        commits=len(history),
        every=row.every,
        counted=counted,
        distinct=Counter(state.verdict.kind for state in found),
        reasons=reasons,
        trials=trials,
        ours=ours,
        seconds=seconds,
    )


def _changes(line: Sequence[State]) -> list[State]:
    """Leave out the commits that did not change the target."""
    return [state for at, state in enumerate(line) if not at or state.targets != line[at - 1].targets]


def _peers(
    row: Row, repository: Repository, git: Path, mainline: list[State], oldest: State | None, replays: list[State]
) -> tuple[tuple[Trial, ...], Counter[tuple[int, str]]]:
    trees = {commit.id: commit.tree for commit in repository.commits()}
    repository.forget_trees()
    is_wanted = in_scope(row)

    def everything(state: State) -> Files:
        return repository.files(repository.folder(trees[state.commits[-1]], row.directory), lambda p, _: is_wanted(p))

    trials: list[Trial] = []
    ours: Counter[tuple[int, str]] = Counter()
    with tempfile.TemporaryDirectory() as name:
        scratch = Scratch(Path(name) / "scratch", git)

        def attempt(peer: str, lag: int, old: State, new: State) -> None:
            change = peers.update(old, new, everything)
            way = peers.diff if peer == "diff" else peers.fork
            kind = way(row, scratch, repository.read, change)
            trials.append(Trial(peer=peer, lag=lag, kind=kind, commits=len(new.commits)))

        for lag in LAGS:
            pairs = [(old, new) for old, new in zip(mainline, mainline[lag:], strict=False) if _is_update(old, new)]
            for old, new in _spread(pairs, BASES):
                attempt("diff", lag, old, new)
                ours[lag, new.verdict.kind] += 1
        pairs = [(old, new) for old, new in itertools.pairwise(mainline) if _is_update(old, new)]
        for old, new in _spread(pairs, REBASES):
            attempt("fork", 1, old, new)
        for new in _spread(replays, REPLAYS):
            attempt("diff", 0, oldest, new)
    return tuple(trials), ours


def _is_update(old: State, new: State) -> bool:
    return old.verdict.kind == "right" and old.targets != new.targets


def _spread(items: Sequence[_Item], count: int) -> list[_Item]:
    """Choose some, evenly."""
    if len(items) <= count:
        return list(items)
    return [items[at * (len(items) - 1) // (count - 1)] for at in range(count)]
