"""Items between brackets and commas, in any language whose comments begin with `#`: take some out, or append one."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from patchlock.model.text_files import Edit, match_end
from patchlock.patches.pip_requirements import Span

_SPACE = re.compile(r"(?:\s|#[^\r\n]*)*")
_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)")
_LINE = re.compile(r"[^\r\n]*")


def is_plain(text: str, outer: Span, items: Sequence[Span]) -> bool:
    """Tell whether there is nothing but commas, blanks and comments between the items.

    Args:
        text: of the file.
        outer: brackets included.
        items: in order.
    """
    at = outer.start + 1
    for index, item in enumerate(items):
        after = _comma(text, at) if index else at
        if after is None or match_end(_SPACE, text, after) != item.start:
            return False
        at = item.end
    after = _comma(text, at) if items else None
    return match_end(_SPACE, text, at if after is None else after) == outer.end - 1


def without(text: str, items: Sequence[Span], chosen: Collection[int]) -> tuple[Edit, ...]:
    """Take items out, each with its comma, and with its line where nothing else stands there.

    A comma behind the last item is there afterwards if it was there before. Edits do not touch each other.

    Args:
        text: of the file.
        items: all, in order; see `is_plain`.
        chosen: their indices.
    """
    ranges = [_alone(text, items[index]) for index in sorted(chosen)]
    kept = [index for index in range(len(items)) if index not in chosen]
    if kept and len(items) - 1 in chosen and _comma(text, items[-1].end) is None:
        comma = _comma(text, items[kept[-1]].end)
        if comma is not None:
            ranges.append(Span(start=comma - 1, end=comma))
    edits: list[Edit] = []
    for span in sorted(ranges, key=lambda one: one.start):
        if edits and span.start <= edits[-1].end:
            edits[-1] = Edit(start=edits[-1].start, end=max(span.end, edits[-1].end), text=edits[-1].text)
        elif edits and edits[-1].end - edits[-1].start == 1 and text[edits[-1].start] == ",":
            between = text[edits[-1].end : span.start]  # the comma goes with what it led to, in one edit
            edits[-1] = Edit(start=edits[-1].start, end=span.end, text=between if between.strip(" \t") else "")
        else:
            edits.append(Edit(start=span.start, end=span.end, text=""))
    return tuple(edits)


def appended(text: str, outer: Span, items: Sequence[Span], new: str, newline: str) -> Edit:
    """Put an item behind the last, on a line of its own where the last has one, with a comma where the last has one.

    Args:
        text: of the file.
        outer: brackets included.
        items: all, in order; see `is_plain`.
        new: the item as it will stand there.
        newline: the file's.
    """
    if not items:
        inside = text[outer.start + 1 : outer.end - 1]
        if not inside.strip():
            return Edit(start=outer.start + 1, end=outer.end - 1, text=new)
        indent = _indent(text, outer.start)
        return Edit(start=outer.end - 1, end=outer.end - 1, text=f"    {new},{newline}{indent}")
    last = items[-1]
    comma = _comma(text, last.end)
    indent = _indent(text, last.start)
    is_first = not text[_line_start(text, last.start) : last.start].strip()
    if not is_first:
        at = last.end if comma is None else comma
        return Edit(start=at, end=at, text=f", {new}" if comma is None else f" {new},")
    end = last.end if comma is None else comma
    rest = _LINE.match(text, end)
    after = rest.group() if rest else ""
    if outer.end - 1 < end + len(after):  # the bracket closes on this line
        after = text[end : outer.end - 1].rstrip()
    separator, trailing = (",", "") if comma is None else ("", ",")
    added = f"{separator}{after}{newline}{indent}{new}{trailing}"
    return Edit(start=end, end=end + len(after), text=added)


def _alone(text: str, item: Span) -> Span:
    """The range that goes with an item."""
    end = _comma(text, item.end) or item.end
    start = _line_start(text, item.start)
    rest = _REST_OF_LINE.match(text, end)
    if not text[start : item.start].strip() and rest:
        return Span(start=start, end=rest.end())
    blanks = len(text[end:]) - len(text[end:].lstrip(" \t"))
    if text[end + blanks : end + blanks + 1] not in {"", "\r", "\n", "#", "]", "}", ")"}:
        return Span(start=item.start, end=end + blanks)
    before = text[start : item.start]
    return Span(start=item.start - (len(before) - len(before.rstrip(" \t"))), end=end)


def _comma(text: str, at: int) -> int | None:
    """The offset behind the comma that follows, if blanks and comments are all that stands before it."""
    at = match_end(_SPACE, text, at)
    return at + 1 if text[at : at + 1] == "," else None


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _indent(text: str, at: int) -> str:
    line = text[_line_start(text, at) : at]
    return line[: len(line) - len(line.lstrip())]
