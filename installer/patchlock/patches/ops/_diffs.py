"""Ops on whole files and literal hunks: apply a unified diff by its text, add a file; for what no other op can say."""

from __future__ import annotations

import bisect
import codecs
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.model.patch import Located, OutcomeKind, Refusal, Site
from patchlock.model.text_files import Edit, SourceText
from patchlock.patches.ops import _hunks as unified
from patchlock.patches.ops._hunks import Hunk, HunkLine

_NEWLINE = re.compile(r"\r\n|\r|\n")
_MARK = "\ufeff"
_CLEARLY = 4
"""A place is taken among several if all others are this many times as far from the stated line."""


@dataclass(frozen=True, kw_only=True)
class UnifiedDiff:
    r"""Apply the hunks of a diff where their text stands, wherever that is; there is no fuzz.

    Every line of a hunk must be there exactly; only line endings may differ, and a missing newline at the end of the
    file counts where the hunk changes that line. Of several changes in one hunk, some may be there already. Text that
    occurs several times is taken nearest to the stated line, if that is clear. New lines get the ending of the lines
    around them.

    Attributes:
        diff: as `git diff` or `diff -u` writes it. With headers, a file is known by its path from the app's folder, or
            by its name where no other file of the diff has that name; hunks without header, or for a single file, are
            for every file of `paths`.

    Raises:
        ValueError: the diff is none, or makes, deletes or renames a file; one clause.
    """

    diff: str

    def __post_init__(self) -> None:
        if "\r" in self.diff:
            raise ValueError(r"`diff` is written with \n, whatever line endings the file has")
        unified.parse(self.diff)

    def files(self) -> tuple[str, ...]:
        """Name the files of the diff; "" for hunks without a header."""
        return tuple(file.path for file in unified.parse(self.diff))

    def locate(self, source: SourceText) -> Located:
        """Find each hunk's lines as they were before, or as they are after it."""
        lines = _Lines(source)
        edits: list[Edit] = []
        sites: list[Site] = []
        settled: list[Site] = []
        refusals: list[Refusal] = []
        for hunk in self._hunks(source.path):
            match _place(lines, hunk):
                case (int(at), tuple(made)):
                    places = list(_places(hunk, at, made))
                    settled += [lines.site(index) for index, is_made, _ in places if is_made][:1]
                    edits += [_edit(lines, index, run) for index, is_made, run in places if not is_made]
                    sites += [lines.site(index) for index, is_made, _ in places if not is_made][:1]
                case str(why):
                    line = min(max(hunk.old_line, 1), max(len(lines.texts), 1))
                    refusal = Refusal.ambiguous(line, f"hunk {hunk.number}: {why}")
                    refusals.append(dataclasses.replace(refusal, is_edit=_is_added_elsewhere(lines, hunk)))
        if not refusals and (clash := _clash(edits)) is not None:
            line = bisect.bisect_right(lines.starts, clash.start)
            refusals.append(Refusal.ambiguous(line, "two hunks of the diff change the same lines"))
        if refusals:
            known = (dataclasses.replace(refusal, is_edit=refusal.is_edit and not sites) for refusal in refusals)
            return Located(settled=tuple(settled), refusals=tuple(known))
        return Located(edits=tuple(edits), sites=tuple(sites), settled=tuple(settled))

    def is_at_home(self, source: SourceText) -> bool:
        """Tell whether each hunk stands, done or not, at the very line where it stood when the diff was made."""
        lines = _Lines(source)
        return all(
            not hunk.old_line
            or lines.stand_at(hunk.before, hunk.old_line - 1)
            or lines.stand_at(hunk.after, hunk.new_line - 1)
            for hunk in self._hunks(source.path)
        )

    def _hunks(self, path: PurePosixPath) -> tuple[Hunk, ...]:
        files = unified.parse(self.diff)
        if len(files) == 1:
            return files[0].hunks
        exact = [file for file in files if file.path == str(path)]
        of_name = [file for file in files if PurePosixPath(file.path).name == path.name]
        chosen = exact or (of_name if len(of_name) == 1 else [])
        return chosen[0].hunks if chosen else ()


@dataclass(frozen=True, kw_only=True)
class Displaced:
    """Stand in for a diff whose text is found, but in a place that is not its own; no patch of a file is written so."""

    line: int
    """1-based, where the text stands."""

    def locate(self, source: SourceText) -> Located:
        """Refuse the file."""
        del source
        why = "upstream has changed the place of the edit, and its text stands here too"
        return Located(refusals=(Refusal.ambiguous(self.line, why),))


@dataclass(frozen=True, kw_only=True)
class AddFile:
    r"""Make a file that upstream does not have.

    Attributes:
        content: all of it, written in UTF-8 with the line endings that it has here, `\n` as a rule.
        executable: a program that may be started by its name.

    Raises:
        ValueError: there is no content.
    """

    content: str
    executable: bool = False

    def __post_init__(self) -> None:
        if not self.content.removeprefix(_MARK):
            raise ValueError("`content` is empty, and an empty file cannot be told from none; write a comment")

    def locate(self, source: SourceText) -> Located:
        """Fill a file that is not there; a file with other content is refused."""
        present = (_MARK if source.bom == codecs.BOM_UTF8 else "") + source.text
        first = self.content.removeprefix(_MARK).strip().partition("\n")[0].strip()
        if present == self.content:
            return Located(settled=(Site(line=1, text=first),))
        if not present:
            return Located(edits=(Edit(start=0, end=0, text=self.content),), sites=(Site(line=1, text=first),))
        pairs = itertools.zip_longest(_NEWLINE.split(present), _NEWLINE.split(self.content))
        line = next((number for number, (have, want) in enumerate(pairs, start=1) if have != want), 1)
        why = "this file is there already, with other content"
        return Located(refusals=(Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=why),))


class _Lines:
    """The lines of a file; the last one may have no ending, and then it is not empty."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        *starts, last = source.line_starts()
        self.starts = [*starts, *([last] if last < len(source.text) else [])]
        self.bounds = [*self.starts, len(source.text)]
        matches = [_NEWLINE.search(source.text, start) for start in self.starts]
        self.endings = [match.group() if match else "" for match in matches]
        self.texts = [
            source.text[start : end - len(ending)]
            for start, end, ending in zip(self.starts, self.bounds[1:], self.endings, strict=True)
        ]
        self.places: dict[str, list[int]] = {}
        for index, text in enumerate(self.texts):
            self.places.setdefault(text, []).append(index)

    def find(self, wanted: tuple[HunkLine, ...]) -> list[int]:
        """Give the indexes of the lines where these lines begin, in order."""
        # The rarest line is looked up, the others are compared.
        rare = min(range(len(wanted)), key=lambda index: len(self.places.get(wanted[index].text, ())))
        begins = [index - rare for index in self.places.get(wanted[rare].text, ())]
        return [at for at in begins if at >= 0 and self.stand_at(wanted, at)]

    def stand_at(self, wanted: tuple[HunkLine, ...], at: int) -> bool:
        """Tell whether lines begin there."""
        if at + len(wanted) > len(self.texts):
            return False
        return all(
            line.text == self.texts[index] and (line.sign == " " or line.is_ended == bool(self.endings[index]))
            for index, line in enumerate(wanted, start=at)
        )

    def newline(self, index: int) -> str:
        """Give the ending of a line, or of its neighbour, or of the file."""
        near = [i for i in (index, index - 1) if 0 <= i < len(self.endings) and self.endings[i]]
        return self.endings[near[0]] if near else self.source.newline

    def site(self, index: int) -> Site:
        index = min(index, len(self.texts) - 1)
        return Site(line=index + 1, text=self.texts[index].strip())


def _place(lines: _Lines, hunk: Hunk) -> tuple[int, tuple[bool, ...]] | str:
    """Give the index of a hunk's first line and which of its changes are there, or say why nobody can tell."""
    wanted = [_Place(at=at, size=len(hunk.before), stated=hunk.old_line) for at in lines.find(hunk.before)]
    made = [_Place(at=at, size=len(hunk.after), stated=hunk.new_line, is_made=True) for at in lines.find(hunk.after)]
    places = _outermost([*wanted, *made])
    if not places:
        runs = list(_runs(hunk))
        partly = [(at, made) for at in range(len(lines.texts)) for made in _partly(lines, runs, at)]
        return partly[0] if len(partly) == 1 else _what_changed(lines, hunk)
    first, *others = places
    if others and not all(place.is_made for place in places):
        listed = ", ".join(str(place.at + 1) for place in sorted(places, key=lambda place: place.at))
        if not hunk.old_line:
            return f"its lines stand at lines {listed}, and it does not say which are meant"
        if others[0].distance < max(1, first.distance * _CLEARLY):
            return f"its lines stand at lines {listed}, and line {hunk.old_line} is not clearly nearest to one of them"
    return first.at, (first.is_made,) * sum(is_change for is_change, *_ in _runs(hunk))


def _partly(lines: _Lines, runs: Iterable[_Run], start: int) -> list[tuple[bool, ...]]:
    """Tell which changes of a hunk are there if it begins at a line; several answers where it may be read so."""
    ends: dict[int, list[tuple[bool, ...]]] = {start: [()]}
    for is_change, before, after in runs:
        longer: dict[int, list[tuple[bool, ...]]] = {}
        for at, ways in ends.items():
            for is_made in (False, True)[: 1 + is_change]:
                wanted = after if is_made else before
                if lines.stand_at(wanted, at):
                    end = longer.setdefault(at + len(wanted), [])
                    end += [(*way, is_made) if is_change else way for way in ways][: 2 - len(end)]
        ends = longer
    return [way for ways in ends.values() for way in ways]


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where the lines of a hunk stand, as they were before it or as they are after it."""

    at: int
    """Index of the first line."""
    size: int
    stated: int
    """Line that the diff names; 0: none."""
    is_made: bool = False

    @property
    def distance(self) -> int:
        return abs(self.at + 1 - self.stated) if self.stated else 0

    def surrounds(self, other: _Place) -> bool:
        is_around = self.at <= other.at and other.at + other.size <= self.at + self.size
        return is_around and self.size > other.size and self.distance <= other.distance


def _outermost(places: list[_Place]) -> list[_Place]:
    """Leave out what lies inside another, as the context of an insertion at the end of a file does; nearest first."""
    outer = [place for place in places if not any(other.surrounds(place) for other in places)]
    return sorted(outer, key=lambda place: (place.distance, place.at))


def _is_added_elsewhere(lines: _Lines, hunk: Hunk) -> bool:
    """Tell whether all that a hunk adds stands in the file; what replaces other lines, beside a neighbour of these."""
    runs = [(False, (), ()), *_runs(hunk), (False, (), ())]
    return all(
        bool(lines.find(after)) if not before else _has_replaced(lines, above, (before, after), below)
        for (_, above, _), (is_change, before, after), (_, below, _) in zip(runs, runs[1:], runs[2:], strict=False)
        if is_change
    )


def _has_replaced(
    lines: _Lines,
    above: tuple[HunkLine, ...],
    change: tuple[tuple[HunkLine, ...], tuple[HunkLine, ...]],
    below: tuple[HunkLine, ...],
) -> bool:
    """Tell whether new lines stand in the place of others: elsewhere, they say nothing of what stands there now."""
    before, after = change
    ways = ((above[-1:], (*above[-1:], *after)), (below[:1], (*after, *below[:1])))
    is_there = any(near and near[0].text.strip() and lines.find(way) for near, way in ways)
    return bool(after) and is_there and not lines.find(before)


def _what_changed(lines: _Lines, hunk: Hunk) -> str:
    """Say which line of a hunk is not there any more; where a change is there, its former lines need not be."""
    left = (
        before for _, before, after in _runs(hunk) if not after or any(one.text not in lines.places for one in after)
    )
    gone = next((line.text for before in left for line in before if line.text not in lines.places), None)
    where = f" (line {hunk.old_line} when it was made)" if hunk.old_line else ""
    if gone is None:
        return f"its lines are no longer together{where}"
    return f"its text has changed{where}; there is no line `{gone.strip()}`"


_Run = tuple[bool, tuple[HunkLine, ...], tuple[HunkLine, ...]]
"""Neighbouring lines of a hunk, before and after: whether they change, and both."""


def _runs(hunk: Hunk) -> Iterator[_Run]:
    for is_context, run in itertools.groupby(hunk.lines, key=lambda line: line.sign == " "):
        lines = tuple(run)
        before, after = (tuple(line for line in lines if line.sign != sign) for sign in "+-")
        yield not is_context, before, after


def _places(hunk: Hunk, at: int, made: tuple[bool, ...]) -> Iterator[tuple[int, bool, _Run]]:
    """Give the changes of a hunk, each with the index of its first line and whether it is there already."""
    flags = iter(made)
    for run in _runs(hunk):
        is_change, before, after = run
        is_made = is_change and next(flags)
        if is_change:
            yield at, is_made, run
        at += len(after if is_made else before)


def _edit(lines: _Lines, index: int, run: _Run) -> Edit:
    """Give the edit for a run of changed lines; the context is not touched."""
    _, removed, added = run
    text = "".join(
        line.text + (lines.newline(index + min(number, max(len(removed) - 1, 0))) if line.is_ended else "")
        for number, line in enumerate(added)
    )
    if not removed and added and index == len(lines.texts) and not lines.endings[-1]:
        text = lines.newline(index - 1) + text  # behind a last line without newline
    return Edit(start=lines.bounds[index], end=lines.bounds[index + len(removed)], text=text)


def _clash(edits: list[Edit]) -> Edit | None:
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
    pairs = itertools.pairwise(ordered)
    return next((after for before, after in pairs if after.start < before.end or after.start == before.start), None)
