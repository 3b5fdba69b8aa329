"""Try patches: on their own cases, twice, in another order, and on what upstream was over time; pure, no I/O."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.model.patch import BLOCKING, Located, Outcome, OutcomeKind, Patch, Patched
from patchlock.model.text_files import SourceText
from patchlock.patches import engine, targets
from patchlock.patches.evaluation import DIRECT, Evaluator, Memoized
from patchlock.patches.outcomes import lowered

Files = Mapping[PurePosixPath, bytes]

NOT_HELD = "does not hold"
"""What became of a patch whose check failed; no outcome, as the engine says it beside them."""
LOWERED = "needed, but older than upstream's"
"""What became of a patch that takes an older version than upstream asks for: where it was only needed before, that has
moved above it."""
_FIRST = (
    *(OutcomeKind.AMBIGUOUS, OutcomeKind.REQUIRED_AT_IMPORT, OutcomeKind.UNPARSABLE, OutcomeKind.MOVED),
    *(OutcomeKind.NEW_SITES, OutcomeKind.PARTLY_FIXED, OutcomeKind.NEEDED, OutcomeKind.FIXED_UPSTREAM),
    *(OutcomeKind.BROKEN, OutcomeKind.PASSED_OVER),
)
"""Which outcome stands for a patch that has several."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Files before and after one patch."""

    patch: str
    name: str
    before: Files
    after: Files | None
    """None: nothing may change."""
    outcome: str
    """What must become of the patch; "": it does its work."""


# --- one patch on its own cases ---------------------------------------------------------------------------------------


def problems_of_case(patch: Patch, case: Case) -> tuple[str, ...]:
    """Say what a patch does not do in a case, one clause each."""
    evaluator = Memoized()
    patched = engine.apply((patch,), case.before, evaluator=evaluator)
    kinds = {outcome.kind.value for outcome in patched.outcomes}
    problems = list(patched.failures)
    if case.outcome and case.outcome not in kinds:
        problems.append(f'it is "{", ".join(sorted(kinds))}", not "{case.outcome}"')
    if not case.outcome:
        problems += [
            f"{outcome.path}: {outcome.kind.value}: {outcome.detail}"
            for outcome in patched.outcomes
            if outcome.kind in BLOCKING
        ]
    result = _after(case.before, patched)
    expected = case.before if case.after is None else case.after
    problems += [_difference(path, result.get(path), expected.get(path)) for path in _unequal(result, expected)]
    again = engine.apply((patch,), result, evaluator=evaluator)
    problems += [f"{change.path}: applied twice it changes" for change in again.changes]
    if case.after is not None and not problems and patched.changes and not _tells(patch, patched):
        problems.append("its checks hold before it is applied too, so that they prove nothing")
    return tuple(problems)


def _tells(patch: Patch, patched: Patched) -> bool:
    return any(ensure.problems(c.path, c.before or b"") for c in patched.changes for ensure in patch.ensures)


def _after(before: Files, patched: Patched) -> dict[PurePosixPath, bytes]:
    return {**before, **{change.path: change.after for change in patched.changes}}


def _unequal(one: Files, other: Files) -> list[PurePosixPath]:
    return [path for path in sorted({*one, *other}) if one.get(path) != other.get(path)]


def _difference(path: PurePosixPath, made: bytes | None, wanted: bytes | None) -> str:
    if made is None or wanted is None:
        return f"{path} {'is not made' if made is None else 'is in no after-tree'}"
    pairs = itertools.zip_longest(made.splitlines(keepends=True), wanted.splitlines(keepends=True))
    line, one, other = next((n, a, b) for n, (a, b) in enumerate(pairs, start=1) if a != b)
    if b"\0" in made + wanted:
        return f"{path}: it is binary, and becomes {len(made)} bytes, not the {len(wanted)} that are wanted"
    return f"{path}:{line}: it becomes {_shown(one)}, not {_shown(other)}"


def _shown(line: bytes | None) -> str:
    return "the end of the file" if line is None else repr(line.decode("utf-8", errors="replace"))


# --- all patches of an app --------------------------------------------------------------------------------------------


def problems_together(patches: Sequence[Patch], contents: Files, evaluator: Evaluator | None = None) -> tuple[str, ...]:
    """Apply all patches twice, and each two that write one file in both orders; say what is not the same.

    A file that a patch makes is not there the second time either: the patches before it never see it.

    Args:
        patches: all of them.
        contents: the files.
        evaluator: whom to ask; one that remembers, as the same is asked again and again.
    """
    evaluator = evaluator or Memoized()
    patched = engine.apply(patches, contents, evaluator=evaluator)
    made = {change.path for change in patched.changes if change.before is None}
    left = {path: data for path, data in _after(contents, patched).items() if path not in made}
    again = engine.apply(patches, left, evaluator=evaluator)
    problems = [
        f"{change.path}: applied twice, the patches change it again"
        for change in again.changes
        if change.path not in made
    ]
    problems += [f"applied twice: {failure}" for failure in again.failures if failure not in patched.failures]
    problems += [
        f'{path}: {one} and {other} give other bytes in another order; write after = ["{one}"] in {other}'
        if is_right
        else f"{path}: {other} takes back what {one} promises; correct one of them, or leave it out"
        for path, one, other, is_right in dependent_on_order(patches, contents, evaluator)
    ]
    return tuple(problems)


def dependent_on_order(
    patches: Sequence[Patch], contents: Files, evaluator: Evaluator | None = None
) -> Iterator[tuple[PurePosixPath, str, str, bool]]:
    """Find each two patches that give other bytes in another order, without one being `after` the other.

    Yields:
        A file, the ids in the order in which they go now, and whether both hold once that is said.
    """
    evaluator = evaluator or Memoized()
    by_id = {patch.id: patch for patch in patches}
    for one, other in sorted(_neighbours(engine.apply(patches, contents, evaluator=evaluator))):
        if one in _before(by_id, other) or other in _before(by_id, one):
            continue
        if _only_adds_a_line(by_id[one]) and _only_adds_a_line(by_id[other]):
            continue
        chosen = (by_id[one], by_id[other])
        here, there = (engine.apply(pair, contents, evaluator=evaluator) for pair in (chosen, chosen[::-1]))
        alone = [f for patch in chosen for f in engine.apply((patch,), contents, evaluator=evaluator).failures]
        said = dataclasses.replace(by_id[other], after=(*by_id[other].after, one))
        wrong = set(engine.apply((by_id[one], said), contents, evaluator=evaluator).failures) - set(alone)
        for path in _unequal(_after(contents, here), _after(contents, there)):
            yield path, one, other, not wrong


def _only_adds_a_line(patch: Patch) -> bool:
    """Whether a patch adds a requirement: in which order two of them stand is the same to every installer."""
    return patch.op_name == "add-requirement"


def _neighbours(patched: Patched) -> set[tuple[str, str]]:
    """Give each two patches that changed the same file, in the order of the patches."""
    changed = {change.path for change in patched.changes}
    writers: dict[PurePosixPath, list[str]] = {}
    for outcome in patched.outcomes:
        if outcome.path in changed and outcome.path is not None and outcome.kind not in BLOCKING:
            writers.setdefault(outcome.path, []).append(outcome.patch)
    return {pair for names in writers.values() for pair in itertools.combinations(dict.fromkeys(names), 2)}


def _before(by_id: Mapping[str, Patch], name: str) -> set[str]:
    """Name all patches that go before one."""
    found = set(by_id[name].after)
    return found.union(*(_before(by_id, other) for other in found if other in by_id))


# --- over time --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Run:
    """Neighbouring commits in which the same became of a patch."""

    what: str
    first: str
    last: str
    commits: int


@dataclasses.dataclass(kw_only=True, slots=True)
class Survival:
    """What became of one patch over a range of commits."""

    patch: str
    with_target: int = 0
    right: int = 0
    refused: int = 0
    silent: int = 0
    """Claimed to be right, and a check that forbids something says no; must be 0."""
    reasons: dict[str, int] = dataclasses.field(default_factory=dict)
    """Of refused and silent commits."""
    runs: list[Run] = dataclasses.field(default_factory=list)

    def count(self, commit: str, verdict: Verdict) -> None:
        """Add one commit."""
        self.with_target += verdict.has_target
        self.refused += verdict.is_refused
        self.silent += verdict.is_silent
        self.right += verdict.has_target and not verdict.is_refused and not verdict.is_silent
        for reason in verdict.reasons:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
        if self.runs and self.runs[-1].what == verdict.what:
            last = self.runs.pop()
            self.runs.append(dataclasses.replace(last, last=commit, commits=last.commits + 1))
        else:
            self.runs.append(Run(what=verdict.what, first=commit, last=commit, commits=1))


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of one patch in one commit."""

    what: str
    has_target: bool
    is_refused: bool
    is_silent: bool
    reasons: tuple[str, ...]


def verdicts(
    patches: Sequence[Patch], contents: Files, seen: Files, evaluator: Evaluator = DIRECT
) -> dict[str, Verdict]:
    """Apply all patches to one commit's files, and judge each patch by what holds afterwards.

    Args:
        patches: those that the profile wants.
        contents: the commit's files.
        seen: as in `engine.apply`.
        evaluator: whom to ask; for many commits, one that remembers.
    """
    patched = engine.apply(patches, contents, seen, evaluator)
    after = _after(contents, patched)
    upstreams = {path: after[path] for path in contents}  # what the patches make is none of upstream's trouble
    found = {patch.id: _verdict(patch, patched, upstreams, evaluator) for patch in patches}
    for patch in patches:
        paths = [one.path for one in patched.outcomes if one.patch == patch.id and one.path in contents]
        if found[patch.id].what == OutcomeKind.NEEDED.value and any(lowered(patch, p, contents[p]) for p in paths if p):
            found[patch.id] = dataclasses.replace(found[patch.id], what=LOWERED)
    return found


def worst(of_groups: Iterable[Mapping[str, Verdict]]) -> dict[str, Verdict]:
    """Give for each patch the worst verdict of some groups that are applied on their own, with the reasons of all."""
    found: dict[str, list[Verdict]] = {}
    for verdicts_of_group in of_groups:
        for patch, verdict in verdicts_of_group.items():
            found.setdefault(patch, []).append(verdict)
    return {
        patch: dataclasses.replace(
            max(several, key=lambda one: (one.is_silent, one.is_refused, one.has_target)),
            reasons=tuple(dict.fromkeys(reason for one in several for reason in one.reasons)),
        )
        for patch, several in found.items()
    }


def _verdict(patch: Patch, patched: Patched, after: Files, evaluator: Evaluator) -> Verdict:
    outcomes = [outcome for outcome in patched.outcomes if outcome.patch == patch.id]
    failures = [text.removeprefix(f"{patch.id}: ") for text in patched.failures if text.startswith(f"{patch.id}: ")]
    blocked = [outcome for outcome in outcomes if outcome.kind in BLOCKING]
    reasons = [*failures, *(_reason(outcome) for outcome in blocked)]
    passed_over = {outcome.path for outcome in outcomes if outcome.kind is OutcomeKind.PASSED_OVER}
    missed = [] if reasons else list(_missed(patch, after, passed_over, evaluator))
    kinds = {outcome.kind for outcome in outcomes if outcome.path is not None}
    what = next((kind.value for kind in _FIRST if kind in kinds), OutcomeKind.GONE.value)
    return Verdict(
        what=NOT_HELD if failures and not blocked else "silent" if missed else what,
        has_target=bool(kinds or missed),
        is_refused=bool(reasons),
        is_silent=bool(missed),
        reasons=tuple(dict.fromkeys([*reasons, *missed])),
    )


def _reason(outcome: Outcome) -> str:
    return f"{outcome.path}: {outcome.kind.value}: {outcome.detail}"


def _missed(
    patch: Patch, after: Files, passed_over: Collection[PurePosixPath | None], evaluator: Evaluator
) -> Iterator[str]:
    """Find what the patch forbids in files that it names, also where its op found nothing to do."""
    found, _ = targets.locate(dataclasses.replace(patch, op=_Nothing()), targets.matching_files(patch, after), after)
    for path in (path for path in found if path in after and path not in passed_over):
        for ensure in patch.ensures:
            if not evaluator.problems(ensure, path, b""):  # one that forbids holds for an empty file
                yield from (f"{path}: {problem}" for problem in evaluator.problems(ensure, path, after[path]))


class _Nothing:
    """An op that looks at nothing."""

    def locate(self, source: SourceText) -> Located:  # noqa: ARG002 - the interface
        return Located()
