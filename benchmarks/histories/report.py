"""Write what was measured as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from histories.measure import REPLAYS, Measured
from histories.peers import LAGS
from histories.together import Together

_INTRODUCTION = """# Survival of patches over upstream's whole history

Made by `benchmarks/survival.py`; `PATCHLOCK_UPSTREAMS` names a folder of clones. Every commit that HEAD reaches counts
in which a patch's target exists: where an independent judge (`benchmarks/histories/judge_*.py`, no code of patchlock)
finds the trouble that the patch is for. *Right*: the judge finds none afterwards, nothing else changed, and every
`ensure` holds. *Refused*: patchlock says which file and line, and why, and changes nothing. *Silent*: patchlock claims
to be done and the judge disagrees. Where each file is judged alone, the judge also says whether a refusal is right (the
file calls the package while it is imported, or does not parse); one that is not is listed as *needlessly*.
A file that does not parse has no trouble that the judge could see, so that a commit with a broken target counts in the
table of whole sets only.
"""
_PEERS = """Updates of the mainline that changed the target. One diff is made from an ideal state and carried by
`git apply --3way` over so many updates; the fork's one patch commit is rebased over each single update and made ideal
again after a failure. Bases are spread evenly over each history.

| updates | trials | diff right | conflict | silent | fork right | conflict | silent | ours right | refused | silent|"""


def markdown(measured: Sequence[Measured], sets: Sequence[Together] = (), only: str = "") -> str:
    """Give the whole report."""
    lines = [
        *_summary(measured),
        *(["", f"Only the rows with `{only}` in their names."] if only else []),
        "",
        "## Every commit",
        "",
        *_table(measured),
        "",
        *_sets(sets),
        "## Reasons",
        "",
    ]
    lines += [*_reasons(measured), "", "## The same updates by three roads", "", *_roads(measured), ""]
    lines += [*_first(measured), "", "## Histories", "", *_histories(measured), ""]
    return "\n".join(lines)


def _summary(measured: Sequence[Measured]) -> Iterator[str]:
    yield _INTRODUCTION
    yield "| | commits with target | states | right | refused | silent |"
    yield "|---|---|---|---|---|---|"
    for title, rows in (
        ("patches of the catalogue", [row for row in measured if row.is_app]),
        ("the same ops on other repositories", [row for row in measured if not row.is_app and not row.by_file]),
        ("each distinct file alone (files, not commits)", [row for row in measured if row.by_file]),
    ):
        total = sum((row.counted for row in rows), Counter[str]())
        distinct = sum((row.distinct for row in rows), Counter[str]())
        yield f"| {title} | {_cells(total, distinct)} |"


def _cells(counted: Counter[str], distinct: Counter[str]) -> str:
    with_target = sum(counted[kind] for kind in ("right", "refused", "silent"))
    cells = [str(with_target), str(sum(distinct[kind] for kind in ("right", "refused", "silent")))]
    cells += [_share(counted[kind], with_target) for kind in ("right", "refused", "silent")]
    return " | ".join(cells)


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.2f} %)" if part and whole else str(part)


def _table(measured: Sequence[Measured]) -> Iterator[str]:
    yield "| repository | patch | commits with target | states | right | refused | silent |"
    yield "|---|---|---|---|---|---|---|"
    for row in measured:
        if row.counted.keys() - {"no target"}:
            every = f" (every {row.every}th commit)" if row.every > 1 else ""
            yield f"| {row.repository} | {row.patch}{every} | {_cells(row.counted, row.distinct)} |"
    absent = [f"{row.repository} {row.patch}" for row in measured if not row.counted.keys() - {"no target"}]
    if absent:
        yield ""
        yield f"No target in the whole history: {', '.join(absent)}."


def _sets(sets: Sequence[Together]) -> Iterator[str]:
    if not sets:
        return
    yield "## All patches of an app at once"
    yield ""
    yield "An advisory patch that cannot do what it says is left out, and must not be why a commit is refused."
    yield ""
    kinds = ("right", "left out", "refused", "vetoed", "silent")
    heads = ("every patch right", "advisory ones left out", "refused", "refused for an advisory one", "silent", "why")
    yield f"| repository | patches | commits | {' | '.join(heads)} |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for one in sets:
        counts = [_share(one.counted[kind], one.commits) for kind in kinds]
        why = "; ".join(f"{count} {reason}" for reason, count in one.reasons.most_common(5)).replace("|", "&#124;")
        yield f"| {one.repository} | {one.patches} | {one.commits} | {' | '.join(counts)} | {why} |"
    yield ""


def _reasons(measured: Sequence[Measured]) -> Iterator[str]:
    if not any(row.reasons for row in measured):
        yield "Nothing was refused."
        return
    yield "| repository | patch | commits | why |"
    yield "|---|---|---|---|"
    for row in measured:
        for reason, count in row.reasons.most_common():
            yield f"| {row.repository} | {row.patch} | {count} | {reason.replace('|', '&#124;')} |"


def _roads(measured: Sequence[Measured]) -> Iterator[str]:
    yield _PEERS
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for lag in LAGS:
        diffs = _kinds(measured, "diff", lag)
        forks = _kinds(measured, "fork", lag)
        ours = sum((row.ours for row in measured), Counter[tuple[int, str]]())
        mine = Counter({kind: ours[lag, kind] for kind in ("right", "refused", "silent")})
        cells = [str(lag), str(diffs.total()), *_percents(diffs, "conflict")]
        cells += _percents(forks, "conflict") if forks else ["", "", ""]
        yield f"| {' | '.join([*cells, *_percents(mine, 'refused')])} |"
    yield ""
    yield f"The fork was rebased over {_kinds(measured, 'fork', 1).total()} updates."


def _first(measured: Sequence[Measured]) -> Iterator[str]:
    total = _kinds(measured, "diff", 0)
    shares = [f"{_share(total[kind], total.total())} {kind}" for kind in ("right", "conflict", "silent")]
    yield f"The oldest diff, on {total.total()} later states, at most {REPLAYS} of a row:"
    yield f"{', '.join(shares)}."


def _kinds(measured: Iterable[Measured], peer: str, lag: int) -> Counter[str]:
    return Counter(t.kind for row in measured for t in row.trials if t.peer == peer and t.lag == lag)


def _percents(kinds: Counter[str], refused: str) -> list[str]:
    total = kinds.total()
    return [f"{100 * kinds[kind] / total:.1f} %" if total else "" for kind in ("right", refused, "silent")]


def _histories(measured: Sequence[Measured]) -> Iterator[str]:
    yield "| repository | commits | HEAD | seconds for all its states |"
    yield "|---|---|---|---|"
    for name in dict.fromkeys(row.repository for row in measured):
        rows = [row for row in measured if row.repository == name]
        yield f"| {name} | {rows[0].commits} | {rows[0].head} | {sum(row.seconds for row in rows):.1f} |"
