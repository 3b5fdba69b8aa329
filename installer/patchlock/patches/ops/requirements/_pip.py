"""The requirements of a pip requirement file, as entries of one list."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection
from dataclasses import dataclass

from packaging.requirements import Requirement

from patchlock.model.patch import OutcomeKind, Refusal
from patchlock.model.text_files import Edit, SourceText
from patchlock.patches.ops._literals import bare
from patchlock.patches.ops.requirements._entries import HASH_LOCKED, PipEntry, entry
from patchlock.patches.ops.requirements.lists import Addition, Declared, Doubt, RequirementList
from patchlock.patches.pip_requirements import EmptyLine, Line, OptionLine, RequirementLine, Span, parse

_UNFINISHED = re.compile(r"\\(?:\r\n|\r|\n)?\Z")


def read(source: SourceText) -> Declared:
    """Read a requirement file."""
    lines = parse(source)
    literal = bare(source.text, Span(start=0, end=len(source.text)))
    read_lines = [(index, entry(literal, line)) for index, line in enumerate(lines)]
    entries = tuple((index, one) for index, one in read_lines if isinstance(one, PipEntry))
    doubts = tuple(one for _, one in read_lines if isinstance(one, Doubt))
    layout = _PipLayout(source=source, lines=lines)
    return Declared(lists=(RequirementList(name="", entries=entries, layout=layout),), doubts=doubts)


@dataclass(frozen=True, kw_only=True)
class _PipLayout:
    source: SourceText
    lines: tuple[Line, ...]

    def without(self, chosen: Collection[int]) -> tuple[Edit, ...]:
        spans = [self.lines[index].span for index in sorted(chosen)]
        return tuple(Edit(start=span.start, end=span.end, text="") for span in spans)

    def appended(self, requirement: Requirement) -> Addition | Refusal:
        locked = next((line for line in self.lines if _demands_hashes(line)), None)
        if locked is not None:
            return Refusal(line=locked.line, kind=OutcomeKind.AMBIGUOUS, why=HASH_LOCKED)
        newline, text = self.source.newline, self.source.text
        is_complete = text.endswith(("\n", "\r")) or not text
        before = "" if is_complete else newline
        if _UNFINISHED.search(text) and not isinstance(self.lines[-1], EmptyLine):
            before += newline  # a continuation at the end of the file would swallow the new line
        after = newline if is_complete else ""
        line = len(dataclasses.replace(self.source, text=text + before).line_starts())
        edit = Edit(start=len(text), end=len(text), text=f"{before}{requirement}{after}")
        return Addition(edit=edit, line=line, place="the end of the file")


def _demands_hashes(line: Line) -> bool:
    match line:
        case RequirementLine():
            return line.has_hash
        case OptionLine():
            return ("--require-hashes", "") in line.options
        case _:
            return False
