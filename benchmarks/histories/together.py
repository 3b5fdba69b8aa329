"""Apply all patches of an app at once to every commit: do they fight, and does each still do what it says?"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from histories.repository import Repository
from histories.states import Contents, Row, generalised, in_scope, relevant, remembered, violations
from patchlock.model.patch import BLOCKING
from patchlock.patches import engine


@dataclasses.dataclass(frozen=True, kw_only=True)
class Together:
    """What became of one app's whole set."""

    repository: str
    patches: int
    commits: int
    counted: Counter[str]
    """Commits by verdict: `right` (every patch), `left out` (only advisory ones could not do what they say), `refused`
    (a required one), `vetoed` (as well, but not without the advisory ones; must be 0), `silent` (must be 0)."""
    reasons: Counter[str]


def together(rows: Sequence[Row], git: Path) -> Together:
    """Measure the whole set of one app, given as the rows of its patches, on the clone at `git`."""
    rows = [remembered(row) for row in rows]
    counted: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    with Repository(git) as repository:
        questions = [relevant(row, repository) for row in rows]
        known: dict[tuple[object, ...], str] = {}
        commits = repository.commits()
        for commit in commits:
            tree = repository.folder(commit.tree, rows[0].directory)
            files = repository.files(tree, lambda path, blob: any(question(path, blob) for question in questions))
            key = tuple(sorted(files.items()))
            if key not in known:
                contents = {path: data for path, id_ in files.items() if (data := repository.read(id_)) is not None}
                known[key] = _verdict(rows, contents)
            counted[known[key].partition(":")[0]] += 1
            reasons[known[key]] += known[key] != "right"
    return Together(
        repository=rows[0].repository, patches=len(rows), commits=len(commits), counted=counted, reasons=+reasons
    )


def _verdict(rows: Sequence[Row], contents: Contents) -> str:
    done = engine.apply([row.patch for row in rows], contents)
    after = {**contents, **{change.path: change.after for change in done.changes}}
    blocked = {outcome.patch: outcome for outcome in done.outcomes if outcome.kind in BLOCKING}
    failed = {failure.partition(":")[0] for failure in done.failures}
    for row in rows:
        is_wanted = in_scope(row)
        left = violations(row, {path: data for path, data in after.items() if is_wanted(path)})
        if left and row.patch.id not in blocked and row.patch.id not in failed:
            return f"silent: {row.patch.id}: {generalised(left[0])}"
    error = engine.incomplete_error(done, "")
    if error is not None:
        required = engine.apply([row.patch for row in rows if not row.patch.advisory], contents)
        kind = "refused" if engine.incomplete_error(required, "") else "vetoed"
        return f"{kind}: {generalised(error.evidence[0])}"
    left_out = engine.left_out(done)
    return f"left out: {generalised(left_out[0].rpartition(';')[0])}" if left_out else "right"
