"""Find where the keys and values of a JSON file stand; the standard library decides whether it is one."""

from __future__ import annotations

import json
import re

from patchlock.model.text_files import match_end
from patchlock.patches.ops._structured.tree import Child, Node, Step, Unparsable
from patchlock.patches.pip_requirements import Span

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_BARE = re.compile(r"[^\s,\]}]+")


def load(text: str) -> object | Unparsable:
    """Read a JSON text as plain values, or say on which line it cannot be."""
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        return Unparsable(line=error.lineno, why=f"it is not JSON: {error.msg[0].lower()}{error.msg[1:]}")
    except (RecursionError, ValueError):  # so many digits are a ValueError
        return Unparsable(
            line=1, why="it is not JSON that can be read: it is nested too deeply, or a number is too long"
        )
    return value


def tree(text: str) -> Node:
    """Find the places in a text that `load` accepts."""
    return _value(text, _skip_blanks(text, 0))


def _value(text: str, at: int) -> Node:
    if text[at] not in "[{":
        return Node(span=Span(start=at, end=_end(text, at)), kind="scalar")
    start = at
    is_mapping = text[at] == "{"
    node = Node(span=Span(start=at, end=at), kind="mapping" if is_mapping else "sequence", enclosed=True)
    at = _skip_blanks(text, at + 1)
    while text[at] not in "]}":
        key = Span(start=at, end=_end(text, at)) if is_mapping else None
        name: Step = json.loads(text[key.start : key.end]) if key else len(node.children)
        value = _value(text, _skip_blanks(text, _skip_blanks(text, key.end) + 1) if key else at)
        if name in node.children:
            node.repeated.add(name)
        node.children[name] = Child(span=Span(start=at, end=value.span.end), key=key, node=value)
        at = _skip_blanks(text, value.span.end)
        at = _skip_blanks(text, at + 1) if text[at] == "," else at
    node.span = Span(start=start, end=at + 1)
    return node


def _end(text: str, at: int) -> int:
    match = _STRING.match(text, at) or _BARE.match(text, at)
    return match.end() if match else at


def _skip_blanks(text: str, at: int) -> int:
    return match_end(_SPACE, text, at)
