"""Apply patches to a file that the user has edited, instead of joining lines that meet; pure, no I/O."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.model.patch import BLOCKING, OTHERWISE, WITH_EDITS, FileChange, Outcome, OutcomeKind, Patch, Patched
from patchlock.model.text_files import SourceText, decode
from patchlock.patches import engine, targets
from patchlock.patches.evaluation import DIRECT, Evaluator
from patchlock.patches.outcomes import APPLIED


@dataclass(frozen=True, kw_only=True)
class ReplacedEdit:
    """A line that the user had edited, and of whose edit a patch has left less than all."""

    path: PurePosixPath
    """From the app's folder."""
    line: int
    """1-based, in the user's version."""
    text: str
    patches: tuple[str, ...]
    """Ids: those that replace it alone, else those with a place here, else nearest above it, else nearest below."""


@dataclass(frozen=True, kw_only=True)
class EditedFile:
    """The user's version of a file, patched."""

    data: bytes
    replaced: tuple[ReplacedEdit, ...] = ()
    has_part: bool = False
    """The user has done himself, at least in one place, what a patch does to upstream's file."""


def apply(
    patches: Iterable[Patch],
    upstreams: Patched,
    path: PurePosixPath,
    data: bytes,
    evaluator: Evaluator = DIRECT,
) -> EditedFile | None:
    """Apply the patches of one file to the user's version of it.

    Args:
        patches: those that the profile wants.
        upstreams: what the patches made of upstream's files.
        path: from the app's folder.
        data: the user's version.
        evaluator: whom to ask.

    Returns:
        His version, patched; None where a patch cannot do what it says there, or where a postcondition of a patch
        that upstream's file needs does not hold.
    """
    # Upstream's files are patched completely, so that what is blocked there is advisory.
    left_out = {o.patch for o in upstreams.outcomes if o.kind is OutcomeKind.LEFT_OUT or o.kind in BLOCKING}
    here = {path: data}
    concerned = [p for p in patches if p.id not in left_out and path in targets.matching_files(p, here)]
    patched = engine.apply(concerned, here, evaluator=evaluator)
    if engine.incomplete_error(patched, "") is not None:
        return None
    after = next((change.after for change in patched.changes if change.path == path), data)
    there = {outcome.patch for outcome in (*patched.outcomes, *upstreams.outcomes) if outcome.path == path}
    promised = [patch for patch in concerned if patch.id in there]
    if any(engine.failed_ensures(patch, path, after, evaluator) for patch in promised):
        return None
    upstream = next((change.before for change in upstreams.changes if change.path == path), None) or b""
    open_places = {o.patch: len(o.sites) for o in upstreams.outcomes if o.path == path and o.kind in APPLIED}
    return EditedFile(
        data=after,
        replaced=tuple(replaced_lines(path, upstream, data, after, patched.outcomes, concerned, evaluator)),
        has_part=any(
            outcome.kind is OutcomeKind.FIXED_UPSTREAM
            or (outcome.kind is OutcomeKind.PARTLY_FIXED and len(outcome.sites) < open_places[outcome.patch])
            for outcome in patched.outcomes
            if outcome.path == path and outcome.patch in open_places
        ),
    )


def outcome_with_edits(
    patch: Patch, change: FileChange, outcome: Outcome, data: bytes, evaluator: Evaluator
) -> Outcome:
    """Say how a patch stands in a file that is neither upstream's nor ours; only an edit of its place undoes it.

    Args:
        patch: the patch.
        change: what all patches make of upstream's file.
        outcome: of the patch, in upstream's file.
        data: the user's file.
        evaluator: whom to ask.
    """
    problems = engine.failed_ensures(patch, change.path, data, evaluator)
    problems = problems or engine.edited_places(patch, change.path, data, evaluator)
    if problems and _is_place_edited(change, outcome, data):
        return outcome_drifted(outcome, problems[0])
    return outcome_as_left(outcome, f"{WITH_EDITS}: {problems[0]}" if problems else WITH_EDITS)


def outcome_as_left(outcome: Outcome, detail: str = "") -> Outcome:
    """Say that a patch stands in a file as patchlock left it; what it found fixed there is none of ours."""
    is_ours = outcome.kind is not OutcomeKind.FIXED_UPSTREAM
    return dataclasses.replace(outcome, kind=OutcomeKind.ALREADY_OURS if is_ours else outcome.kind, detail=detail)


def outcome_drifted(outcome: Outcome, problem: str) -> Outcome:
    """Say that the user's file has something else where a patch belongs."""
    return dataclasses.replace(outcome, kind=OutcomeKind.DRIFTED, detail=f"{OTHERWISE}: {problem}")


def _is_place_edited(change: FileChange, outcome: Outcome, data: bytes) -> bool:
    """Tell whether a user's file differs from the patched one where the patch has changed it; if in doubt, yes."""
    old, made, mine = (_lines(change.path, version) for version in (change.before or b"", change.after, data))
    lines = {site.line - 1 for site in outcome.sites}
    places = [
        (first, last)
        for kind, start, end, first, last in difflib.SequenceMatcher(a=old, b=made, autojunk=False).get_opcodes()
        if kind != "equal" and any(start <= line <= max(start, end - 1) for line in lines)
    ]
    edits = [
        (start, end)
        for kind, start, end, _, _ in difflib.SequenceMatcher(a=made, b=mine, autojunk=False).get_opcodes()
        if kind != "equal"
    ]
    return not places or any(
        start <= first <= end if first == last else start < last and first < end
        for first, last in places
        for start, end in edits
    )


def replaced_lines(
    path: PurePosixPath,
    upstream: bytes,
    data: bytes,
    after: bytes,
    outcomes: Iterable[Outcome],
    patches: Iterable[Patch],
    evaluator: Evaluator,
) -> Iterator[ReplacedEdit]:
    """Name the user's lines with words of his own that are not in the patched file any more.

    Args:
        path: from the app's folder.
        upstream: the file as upstream has it.
        data: the user's version.
        after: that, patched.
        outcomes: of the patches.
        patches: these, and perhaps others.
        evaluator: whom to ask.
    """
    lost = _lost(path, upstream, data, after)
    if not lost:
        return
    mine, changing = _lines(path, data), {o.patch: o.sites for o in outcomes if o.path == path and o.sites}
    alone = {}
    for patch in (patch for patch in patches if patch.id in changing):
        made = engine.apply((patch,), {path: data}, evaluator=evaluator).changes
        alone[patch.id] = _lost(path, upstream, data, next((one.after for one in made if one.path == path), data))
    for number in lost:
        at = number + 1  # a place is known by its first line, and may go on below
        far = {patch: min((site.line > at, abs(site.line - at)) for site in sites) for patch, sites in changing.items()}
        ids = [patch for patch, numbers in alone.items() if number in numbers]
        ids = ids or [patch for patch, way in far.items() if way == min(far.values())]
        yield ReplacedEdit(path=path, line=at, text=mine[number].strip(), patches=tuple(ids))


def _lost(path: PurePosixPath, upstream: bytes, data: bytes, after: bytes) -> list[int]:
    """Give the numbers of the user's lines, from 0, of whose own words a patched file lacks one in their place."""
    old, mine, new = (_lines(path, version) for version in (upstream, data, after))
    own = {number: _words(mine[number]) - _words(*lines) for number, lines in _changed(mine, old)}
    return [number for number, lines in _changed(mine, new) if own.get(number, Counter()) - _words(*lines)]


def _changed(mine: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Give the numbers of lines that differ in another version, each with what stands in its place there."""
    for kind, start, end, first, last in difflib.SequenceMatcher(a=mine, b=other, autojunk=False).get_opcodes():
        for number in range(start, end) if kind != "equal" else ():
            at = first + number - start
            yield number, other[at : at + 1] if end - start == last - first else other[first:last]


def _lines(path: PurePosixPath, data: bytes) -> list[str]:
    source = decode(path, data)
    return source.text.splitlines() if isinstance(source, SourceText) else []


def _words(*lines: str) -> Counter[str]:
    return Counter(word for line in lines for word in re.findall(r"[\w.+-]+|[^\w\s]", line))
