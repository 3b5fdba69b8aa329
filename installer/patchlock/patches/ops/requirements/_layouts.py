"""How requirements stand in a file: as strings between brackets, or each on a line of its own; knows no format."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from packaging.requirements import Requirement

from patchlock.model.patch import OutcomeKind, Refusal
from patchlock.model.text_files import Edit, SourceText
from patchlock.patches.ops._literals import fitted
from patchlock.patches.ops._structured import enclosed
from patchlock.patches.ops._structured.tree import line_at, whole_lines
from patchlock.patches.ops.requirements.lists import Addition
from patchlock.patches.pip_requirements import Span

_NO_PLACE = "there is no place for another requirement"


@dataclass(frozen=True, kw_only=True)
class Brackets:
    """Strings between brackets and commas."""

    source: SourceText
    outer: Span
    items: tuple[Span, ...]
    """All, also those that are no requirement."""

    def without(self, chosen: Collection[int]) -> tuple[Edit, ...]:
        """Take items out, with their commas."""
        return enclosed.without(self.source.text, self.items, chosen)

    def appended(self, requirement: Requirement) -> Addition | Refusal:
        """Put an item behind the last, in the quotation marks of that one."""
        text = self.source.text
        last = text[self.items[-1].start] if self.items else '"'
        quote = last if last in "\"'" else '"'
        written = fitted(str(requirement), quote)
        if written is None:
            return Refusal(line=line_at(text, self.outer.start), kind=OutcomeKind.AMBIGUOUS, why=_NO_PLACE)
        new = f"{quote}{written}{quote}"
        edit = enclosed.appended(text, self.outer, self.items, new, self.source.newline)
        line = line_at(text, edit.start) + edit.text.replace("\r\n", "\n").count("\n")
        return Addition(edit=edit, line=line, place="the end of the list")


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Items that each have their lines."""

    source: SourceText
    items: tuple[Span, ...]
    """All; the first may stand behind something else on its line."""
    lead: str
    """What stands before an item that is added: indentation and mark."""
    home: int
    """Where that line goes if there are no items: the end of the line before."""
    emptied: Span | None = None
    """What goes if all items go; None: only they."""

    def without(self, chosen: Collection[int]) -> tuple[Edit, ...]:
        """Take the lines of items out."""
        text = self.source.text
        if self.emptied is not None and len(chosen) == len(self.items):
            return (Edit(start=self.emptied.start, end=self.emptied.end, text=""),)
        edits: list[Edit] = []
        for span in (self.items[index] for index in sorted(chosen)):
            lines = whole_lines(text, span)
            before = text[lines.start : span.start]
            if before.strip(" \t-"):
                blanks = len(before) - len(before.rstrip(" \t"))
                edits.append(Edit(start=span.start - blanks, end=span.end, text=""))
            else:
                edits.append(Edit(start=lines.start, end=lines.end, text=""))
        return tuple(edits)

    def appended(self, requirement: Requirement) -> Addition | Refusal:
        """Put a line behind the last."""
        text, newline = self.source.text, self.source.newline
        at = self.items[-1].end if self.items else self.home
        lines = whole_lines(text, Span(start=at, end=at))
        end = lines.start + len(text[lines.start : lines.end].rstrip("\r\n"))
        edit = Edit(start=end, end=end, text=f"{newline}{self.lead}{requirement}")
        return Addition(edit=edit, line=line_at(text, end) + 1, place="the end of the list")
