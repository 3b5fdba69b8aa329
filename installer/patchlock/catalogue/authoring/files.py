"""Say the changes of one file as drafts, and prove that they make them; falls back to a diff, which can."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.authoring import (
    _declared_changes,
    _guards,
    _key_changes,
    _python_changes,
    _requirement_changes,
    _texts,
)
from patchlock.catalogue.authoring.drafts import Draft, NamedEnsure
from patchlock.model.patch import BLOCKING, OutcomeKind, Refusal
from patchlock.model.text_files import SourceText, Undecodable, decode, encode
from patchlock.patches import engine, evaluation, key_changes
from patchlock.patches.ops.syntax import parse


class Likeness(enum.Enum):
    """How near the patched file is to the edited one."""

    BYTES = "the same bytes"
    TEXT = "the same text, in upstream's encoding and line endings"
    MEANING = "the same code, requirements or values, not the same layout and comments"
    SHORTER = "the same code without the lines that follow a function's first return"
    OTHER = "something else"


@dataclass(frozen=True, kw_only=True)
class FileDrafts:
    """What makes one file what the user made of it."""

    path: PurePosixPath
    drafts: tuple[Draft, ...]
    """In the order in which they go."""
    likeness: Likeness


def likeness(before: bytes | None, patched: bytes | None, edited: bytes, path: PurePosixPath) -> Likeness:
    """Compare a patched file with the one that the user edited."""
    if patched == edited:
        return Likeness.BYTES
    old, one, other = decode(path, before or b""), decode(path, patched or b""), decode(path, edited)
    if isinstance(old, Undecodable) or isinstance(one, Undecodable) or isinstance(other, Undecodable):
        return Likeness.OTHER
    if _texts.normalize_newlines(one.text) == _texts.normalize_newlines(other.text):
        return Likeness.TEXT
    if not _means_the_same(old, one, other):
        return Likeness.OTHER
    return Likeness.SHORTER if _unreachable(one) < _unreachable(other) else Likeness.MEANING


def _unreachable(source: SourceText) -> int:
    read = parse(source) if source.path.suffix in {".py", ".pyw"} else None
    return 0 if read is None or isinstance(read, Refusal) else _guards.unreachable(read.tree)


def drafts_for(
    path: PurePosixPath, before: bytes, after: bytes, *, semantic: bool = True, upstream: bytes | None = None
) -> FileDrafts:
    """Find the ops that make one file into the other; none where only encoding, line endings or blank lines changed.

    Args:
        path: from the app's folder.
        before: upstream's file, as other patches may have left it, which can be read as text.
        after: the edited file, which can be read as text.
        semantic: False asks for a diff at once.
        upstream: its file before other patches, where there are some.
    """
    old, new = decode(path, before), decode(path, after)
    if isinstance(old, Undecodable) or isinstance(new, Undecodable):
        raise TypeError(f"{path} is no text")
    if _texts.normalize_newlines(old.text) == _texts.normalize_newlines(new.text):
        return FileDrafts(path=path, drafts=(), likeness=Likeness.TEXT)
    if _texts.written_lines(old.text) == _texts.written_lines(new.text) and _means_the_same(old, old, new):
        return FileDrafts(path=path, drafts=(), likeness=Likeness.MEANING)
    written = _without_blank_changes(old, new)
    if written is not new:
        found = _proved(_said(path, old, written, semantic, upstream).drafts, path, before, after)
        if found.drafts:
            return found
    return _said(path, old, new, semantic, upstream)


def _without_blank_changes(old: SourceText, new: SourceText) -> SourceText:
    """Give the edited file without changes of blank lines alone, where these mean nothing."""
    written = dataclasses.replace(new, text=_texts.without_blank_changes(old.text, new.text))
    is_same = likeness(encode(old), encode(written), encode(new), new.path) is Likeness.MEANING
    return written if is_same else new


def _said(path: PurePosixPath, old: SourceText, new: SourceText, semantic: bool, upstream: bytes | None) -> FileDrafts:
    before, after = encode(old), encode(new)
    drafts, is_complete = _recognised(old, new) if semantic else ((), False)
    if drafts and is_complete:
        whole = _proved(drafts, path, before, after)
        if whole.likeness is not Likeness.OTHER and whole.drafts:
            return whole
    found = None
    first = decode(path, before if upstream is None else upstream)
    text = first.text if isinstance(first, SourceText) else None
    if semantic:
        target = _without_dead_code(drafts, path, before, encode(_declared_changes.as_ops_write(old, new)))
        found = _hunk_by_hunk(path, before, target, after, text)
        if found is None or not _is_layout_alone(found, path, before, after):
            found = _by_values(path, before, after) or found
    if found is not None:
        return found
    return _by_text(path, old, new, before, after, text)


def _is_layout_alone(found: FileDrafts, path: PurePosixPath, before: bytes, after: bytes) -> bool:
    """Tell whether the diff among some drafts is for comments and layout, as the ops say all values."""
    ops = [draft for draft in found.drafts if draft.op_name != "unified-diff"]
    one, other = decode(path, _applied(ops, path, before)), decode(path, after)
    return isinstance(one, SourceText) and isinstance(other, SourceText) and key_changes.same_values(one, other)


def _by_values(path: PurePosixPath, before: bytes, after: bytes) -> FileDrafts | None:
    """Say the change of a file with keys as ops alone: those that bring its values nearer, if together they suffice."""
    kept: list[Draft] = []
    current, wanted = before, decode(path, after)
    for recognise in (_requirements, _keys):
        source = decode(path, current)
        if isinstance(source, Undecodable) or isinstance(wanted, Undecodable):
            return None
        for draft in recognise(source, wanted)[0]:
            step = _applied((draft,), path, current)
            texts = decode(path, current), decode(path, step)
            far, near = (key_changes.distance(one, wanted) if isinstance(one, SourceText) else None for one in texts)
            if not far or near is None:
                break
            if near < far and _telling(draft, path, current, step, after):
                kept.append(draft)
                current = step
    found = _proved(tuple(kept), path, before, after) if kept else None
    return found if found is not None and found.drafts and found.likeness is not Likeness.OTHER else None


def _without_dead_code(drafts: Iterable[Draft], path: PurePosixPath, before: bytes, after: bytes) -> bytes:
    """Give the edited file without what stands behind a `return` that the user put first, as the op leaves it."""
    for draft in drafts:
        if draft.op_name == "disable-function":
            cut = _applied((draft,), path, after)
            after = after if likeness(before, cut, after, path) is Likeness.OTHER else cut
    return after


def _hunk_by_hunk(
    path: PurePosixPath, before: bytes, target: bytes, after: bytes, upstream: str | None
) -> FileDrafts | None:
    """Keep each op that brings the file nearer to what it is to become, and say the rest as a diff."""
    kept: list[Draft] = []
    current, wanted = before, decode(path, target)
    for recognise in (_requirements, _keys, _python):
        source = decode(path, current)
        if isinstance(source, Undecodable) or isinstance(wanted, Undecodable):
            return None
        for draft in recognise(source, wanted)[0]:
            step = _applied((draft,), path, current)
            if _is_nearer(path, step, current, target) and _telling(draft, path, current, step, target):
                kept.append(draft)
                current = step
    found = _completed(tuple(kept), path, before, current, target, upstream) if kept else None
    if found is None or target == after:
        return found
    proved = _proved(found.drafts, path, before, after)
    return proved if proved.drafts else None


def _is_nearer(path: PurePosixPath, step: bytes, current: bytes, target: bytes) -> bool:
    texts = [decode(path, data) for data in (step, current, target)]
    one, other, wanted = (
        "" if isinstance(text, Undecodable) else _texts.normalize_newlines(text.text) for text in texts
    )
    return step != current and _texts.distance(one, wanted) < _texts.distance(other, wanted)


def _by_text(
    path: PurePosixPath, old: SourceText, new: SourceText, before: bytes, after: bytes, upstream: str | None
) -> FileDrafts:
    found = FileDrafts(path=path, drafts=(), likeness=Likeness.OTHER)
    for drafts in _texts.diffs(path, old, new, upstream):
        found = _proved(drafts, path, before, after)
        if found.likeness in {Likeness.BYTES, Likeness.TEXT}:
            return found
    return dataclasses.replace(found, drafts=(), likeness=Likeness.OTHER)


_Said = tuple[tuple[Draft, ...], bool]
"""Ops that make one file into another, and whether they say all of it."""


def _recognised(old: SourceText, new: SourceText) -> _Said:
    if _requirement_changes.is_requirement_file(old):
        return _requirements(old, new)
    drafts, is_complete = _python(old, new)
    return drafts, is_complete and not _declared_changes.declares(old)  # of a `setup.py`, its requirements go first


def _requirements(old: SourceText, new: SourceText) -> _Said:
    if _requirement_changes.is_requirement_file(old):
        return tuple(_requirement_changes.recognise(old, new)), True
    return (tuple(_declared_changes.recognise(old, new)) if _declared_changes.declares(old) else ()), False


def _keys(old: SourceText, new: SourceText) -> _Said:
    return tuple(_key_changes.recognise(old, new)), False


def _python(old: SourceText, new: SourceText) -> _Said:
    if old.path.suffix not in {".py", ".pyw", ".ipynb"}:
        return (), False
    codes = evaluation.python_code(old), evaluation.python_code(new)
    before, after = (one if isinstance(one, Refusal) else parse(one) for one in codes)
    if isinstance(before, Refusal) or isinstance(after, Refusal):
        return (), False
    try:
        said = _python_changes.recognise(before, after)
    except RecursionError:
        return (), False
    return tuple(draft for draft in said.drafts if not _declared_changes.sets_whole_list(old, draft)), said.is_complete


def _completed(
    exact: tuple[Draft, ...], path: PurePosixPath, before: bytes, middle: bytes, after: bytes, upstream: str | None
) -> FileDrafts | None:
    """Add a diff for what the recognised ops leave undone, if that makes the diff smaller."""
    old, half, new = decode(path, before), decode(path, middle), decode(path, after)
    if isinstance(old, Undecodable) or isinstance(half, Undecodable) or isinstance(new, Undecodable):
        return None
    old_text, half_text, new_text = (_texts.normalize_newlines(source.text) for source in (old, half, new))
    if half_text == new_text:
        found = _proved(exact, path, before, after)
        return found if found.drafts else None
    is_same = likeness(before, middle, after, path) is Likeness.MEANING
    if is_same and (path.suffix == ".ipynb" or _texts.words(half_text) == _texts.words(new_text)):
        found = _proved(exact, path, before, after)  # what a run printed is no edit, nor are blank lines or an order
        return found if found.drafts else None
    if _texts.changed_lines(half_text, new_text) >= _texts.changed_lines(old_text, new_text):
        return None
    for wanted in dict.fromkeys((_without_blank_changes(half, new), new)):
        for rest in _texts.diffs(path, half, wanted, upstream):
            found = _proved((*exact, *rest), path, before, encode(wanted))
            if found.likeness in {Likeness.BYTES, Likeness.TEXT} and found.drafts:
                found = found if wanted is new else _proved(found.drafts, path, before, after)
                if found.drafts:
                    return found
    return None


def _applied(drafts: Iterable[Draft], path: PurePosixPath, before: bytes) -> bytes:
    """Apply drafts one after the other, without their checks."""
    ids: list[str] = []
    patches = []
    for index, draft in enumerate(drafts):
        patches.append(dataclasses.replace(draft, ensures=()).patch(f"draft-{index}", [path], after=tuple(ids)))
        ids.append(f"draft-{index}")
    changes = engine.apply(patches, {path: before}).changes
    return changes[0].after if changes else before


def _proved(drafts: tuple[Draft, ...], path: PurePosixPath, before: bytes, after: bytes) -> FileDrafts:
    """Choose the checks that tell each draft's result from what was before it, and compare the result with the edit."""
    result = _applied(drafts, path, before)
    chosen: list[Draft] = []
    current = before
    for draft in drafts:
        step = _applied((draft,), path, current)
        if step == current:
            return FileDrafts(path=path, drafts=(), likeness=Likeness.OTHER)
        source = decode(path, current)
        sites = len(evaluation.DIRECT.locate(draft.op, source).sites) if isinstance(source, SourceText) else 0
        telling = _telling(draft, path, current, step, result, after)
        chosen.append(dataclasses.replace(draft, ensures=telling, sites=sites))
        if not _is_known(chosen[-1], path, (current, step, result, after)):
            return FileDrafts(path=path, drafts=(), likeness=Likeness.OTHER)
        current = step
    if current != result or not all(draft.ensures for draft in chosen):
        return FileDrafts(path=path, drafts=(), likeness=Likeness.OTHER)
    return FileDrafts(path=path, drafts=tuple(chosen), likeness=likeness(before, result, after, path))


def _is_known(draft: Draft, path: PurePosixPath, states: tuple[bytes, bytes, bytes, bytes]) -> bool:
    """Tell whether a draft is found done in the edited file, once that is committed: by its op, or by its very lines.

    Args:
        draft: with its checks.
        path: of the file.
        states: the file before the draft and after it, after all drafts, and edited.
    """
    kinds = {outcome.kind for outcome in engine.apply((draft.patch("draft", [path]),), {path: states[-1]}).outcomes}
    texts = [decode(path, data) for data in states]
    old, one, made, new = ("" if isinstance(t, Undecodable) else _texts.normalize_newlines(t.text) for t in texts)
    is_part = _texts.changed_lines(old, one) + _texts.changed_lines(one, new) == _texts.changed_lines(old, new)
    return not kinds & BLOCKING and (is_part or made == new or OutcomeKind.GONE not in kinds)


def _telling(draft: Draft, path: PurePosixPath, before: bytes, step: bytes, *results: bytes) -> tuple[NamedEnsure, ...]:
    """Give the checks that fail before and hold afterwards; lines of the change where the op has none of its own.

    They hold in what the draft makes, and in each of `results`: one is the edited file, whose layout may be another.
    """

    def tells(ensure: NamedEnsure) -> bool:
        check = ensure[1]
        return bool(check.problems(path, before)) and not any(check.problems(path, data) for data in (step, *results))

    found = tuple(ensure for ensure in draft.ensures if tells(ensure))
    if found and (not draft.stands or draft.op_name == "set-argument"):
        return found if draft.op_name == "unified-diff" else found[:1] + _second(found)
    old, new = decode(path, before), decode(path, step)
    if isinstance(old, Undecodable) or isinstance(new, Undecodable):
        return ()
    lines = _texts.proofs(*(_texts.normalize_newlines(source.text) for source in (old, new)))
    if not draft.stands:
        return tuple(one for one in lines if tells(one))
    ways = (*draft.stands, lines if all(name == "contains" for name, _ in lines) else ())
    stands = next((way for way in ways if way and all(map(tells, way))), ())
    return found[:1] + stands if stands else ()


def _second(found: tuple[NamedEnsure, ...]) -> tuple[NamedEnsure, ...]:
    """Keep the check of the other requirement of a renaming."""
    return found[1:2] if [name for name, _ in found[:2]] == ["requirement", "no-requirement"] else ()


def _means_the_same(old: SourceText, one: SourceText, other: SourceText) -> bool:
    one, other = (_declared_changes.as_ops_write(old, source) for source in (one, other))
    if _texts.normalize_newlines(one.text) == _texts.normalize_newlines(other.text):
        return True
    if old.path.name.lower() == "setup.cfg":
        return _texts.written_lines(one.text) == _texts.written_lines(other.text)
    if _requirement_changes.is_requirement_file(old):
        return _requirement_changes.same_requirements(one, other)
    if key_changes.same_values(one, other):
        return True
    if old.path.suffix == ".ipynb":
        return evaluation.code_cells(one) is not None and evaluation.code_cells(one) == evaluation.code_cells(other)
    if old.path.suffix not in {".py", ".pyw"}:
        return False
    before, patched, edited = parse(old), parse(one), parse(other)
    if isinstance(before, Refusal) or isinstance(patched, Refusal) or isinstance(edited, Refusal):
        return False
    guarded = _guards.added(before.tree, edited.tree)
    return _guards.normalized_code(patched.tree, guarded) == _guards.normalized_code(edited.tree, guarded)
