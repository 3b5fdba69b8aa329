"""Ops on any text file: replace literal text in the file's own line endings; understands no syntax."""

from __future__ import annotations

import bisect
import dataclasses
import re
from dataclasses import dataclass

from patchlock.model.patch import Located, OutcomeKind, Refusal, Site
from patchlock.model.text_files import Edit, SourceText, splice

_NEWLINE = re.compile(r"\r\n|\r|\n")
# Never half of a CRLF.
_ANY_NEWLINE = r"(?:\r\n|\r|(?<!\r)\n)"


@dataclass(frozen=True, kw_only=True)
class ReplaceText:
    r"""Replace every occurrence of a text.

    Both texts are written with `\n`, which stands for whatever line ending the file has there. Where `new` contains
    `old` (an insertion beside an anchor), an occurrence of `old` inside one of `new` is settled.
    """

    old: str
    new: str
    """May be empty."""

    def __post_init__(self) -> None:
        if not self.old:
            raise ValueError("`old` is empty")
        if self.old == self.new:
            raise ValueError("`old` and `new` are the same")
        if "\r" in self.old + self.new:
            raise ValueError(r"`old` and `new` are written with \n, whatever line endings the file has")

    def locate(self, source: SourceText) -> Located:
        """Find `old`, or `new` where there is no `old`."""
        edits, located = self._find(source)
        if edits and self._find(splice(source, edits))[0]:
            why = "the replacement makes another occurrence of `old` with the text beside it"
            refusal = Refusal(line=located.sites[0].line, kind=OutcomeKind.AMBIGUOUS, why=why)
            return Located(settled=located.settled, refusals=(refusal,))
        return dataclasses.replace(located, edits=edits)

    def _find(self, source: SourceText) -> tuple[tuple[Edit, ...], Located]:
        ours = _occurrences(source.text, self.new) if self.new else ()
        edits: list[Edit] = []
        sites: list[Site] = []
        settled: list[Site] = []
        starts = source.line_starts()
        found = list(re.finditer(_pattern(self.old), source.text))
        for match in found:
            site = _site(source, starts, match.start())
            if any(start <= match.start() and match.end() <= end for start, end in ours):
                settled.append(site)
                continue
            sites.append(site)
            text = self.new.replace("\n", _newline_at(source, match.start()))
            edits.append(Edit(start=match.start(), end=match.end(), text=text))
        if not found:
            settled = [_site(source, starts, start) for start, _ in ours]
        return tuple(edits), Located(sites=tuple(sites), settled=tuple(settled))


def _pattern(text: str) -> str:
    return _ANY_NEWLINE.join(re.escape(line) for line in text.split("\n"))


def _occurrences(text: str, sought: str) -> tuple[tuple[int, int], ...]:
    """Find all occurrences, also those that overlap."""
    found = re.finditer(f"(?=({_pattern(sought)}))", text)
    return tuple((match.start(1), match.end(1)) for match in found)


def _newline_at(source: SourceText, position: int) -> str:
    """The ending of the line at a position; the file's where that line has none."""
    match = _NEWLINE.search(source.text, position)
    return match[0] if match else source.newline


def _site(source: SourceText, starts: tuple[int, ...], position: int) -> Site:
    line = bisect.bisect_right(starts, position)
    end = starts[line] if line < len(starts) else len(source.text)
    return Site(line=line, text=source.text[starts[line - 1] : end].strip())
