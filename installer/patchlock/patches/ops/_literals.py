"""A requirement as text inside a file, bare or between quotation marks, and how to edit it there; knows no format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from patchlock.model.text_files import Edit
from patchlock.patches.pip_requirements import Span

_ESCAPE = r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[0-7]{1,3}|N\{[^}]*\}|.)"
_CHARACTER = re.compile(rf"{_ESCAPE}|''|.", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Literal:
    """A text and where each of its characters stands in the file."""

    value: str
    """Decoded."""
    offsets: Sequence[int]
    """In the file, of each character of `value`, and of the end."""
    quote: str
    """The quotation mark around it, or ""."""

    def edit(self, start: int, end: int, text: str) -> Edit | None:
        """Replace characters of the value; None where the new text cannot stand between these quotation marks."""
        fitting = fitted(text, self.quote)
        if fitting is None:
            return None
        return Edit(start=self.offsets[start], end=self.offsets[end], text=fitting)


def bare(text: str, span: Span) -> Literal:
    """Make the literal of characters that stand for themselves."""
    return Literal(value=text[span.start : span.end], offsets=range(span.start, span.end + 1), quote="")


def quoted(text: str, span: Span, value: str) -> Literal | None:
    """Make the literal of a string with its quotation marks; None where its escapes hide what stands where.

    Args:
        text: of the file.
        span: of the string, prefix and quotation marks included.
        value: the string as its parser decodes it.
    """
    written = text[span.start : span.end]
    opening = re.match(r"[A-Za-z]?(\"\"\"|'''|\"|'|)", written)
    quote = opening[1] if opening else ""
    start = span.start + (opening.end() if opening and quote else 0)
    end = span.end - len(quote)
    if text[start:end] == value:
        return Literal(value=value, offsets=range(start, end + 1), quote=quote)
    starts = [match.start() for match in _CHARACTER.finditer(text, start, end)]
    if len(starts) != len(value):
        return None
    return Literal(value=value, offsets=(*starts, end), quote=quote)


def fitted(text: str, quote: str) -> str | None:
    """Give a requirement so that it can stand between quotation marks: markers may use the other ones."""
    if not quote:
        return text
    if "\\" in text or "\n" in text:
        return None
    mark = quote[0]
    if mark not in text:
        return text
    other = "'" if mark == '"' else '"'
    return None if other in text else text.replace(mark, other)
