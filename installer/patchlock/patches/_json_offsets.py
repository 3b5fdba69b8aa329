"""Where the strings of a JSON text stand, so that one of them can be edited and all else stays; reads only."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from patchlock.model.text_files import match_end

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_LITERAL = re.compile(r"[^\s,\]}]+")
_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)


@dataclass(frozen=True, kw_only=True)
class Text:
    """A string of a JSON text."""

    value: str
    start: int
    """Offset behind its opening quote."""
    end: int
    """Offset of its closing quote."""


Node = dict[str, "Node"] | list["Node"] | Text | float | int | bool | None


def read(text: str) -> Node:
    """Read a JSON text; of equal keys the last one counts, as everywhere.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    json.loads(text)
    return _value(text, skip_blanks(text, 0))[0]


def characters(text: str, string: Text) -> tuple[int, ...]:
    """Give the offset of each character of a string's value, and that of its closing quote."""
    return (*(match.start() for match in _CHARACTER.finditer(text, string.start, string.end)), string.end)


def written(value: str, *, is_ascii: bool) -> str:
    """Write the inside of a JSON string."""
    return json.dumps(value, ensure_ascii=is_ascii)[1:-1]


def skip_blanks(text: str, at: int) -> int:
    """Give the offset of what follows."""
    return match_end(_SPACE, text, at)


def _value(text: str, at: int) -> tuple[Node, int]:
    """Read the value that begins at an offset; the text is known to be JSON."""
    first = text[at]
    if first == '"':
        string = _string(text, at)
        return string, string.end + 1
    if first == "{":
        found: dict[str, Node] = {}
        at = skip_blanks(text, at + 1)
        while text[at] != "}":
            key = _string(text, at)
            found[key.value], at = _value(text, skip_blanks(text, skip_blanks(text, key.end + 1) + 1))
            at = _next(text, at)
        return found, at + 1
    if first == "[":
        items: list[Node] = []
        at = skip_blanks(text, at + 1)
        while text[at] != "]":
            item, at = _value(text, at)
            items.append(item)
            at = _next(text, at)
        return items, at + 1
    match = _LITERAL.match(text, at)
    word = match.group() if match else ""
    value_of_word: float | int | bool | None = json.loads(word)
    return value_of_word, at + len(word)


def _string(text: str, at: int) -> Text:
    match = _STRING.match(text, at)
    quoted = match.group() if match else '""'
    value: str = json.loads(quoted)
    return Text(value=value, start=at + 1, end=at + len(quoted) - 1)


def _next(text: str, at: int) -> int:
    """Go to the next item, or to the bracket that closes."""
    at = skip_blanks(text, at)
    return skip_blanks(text, at + 1) if text[at] == "," else at
