"""Where the strings of a JSON text stand, so that one of them can be edited and all else stays; reads only."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from patchlock.patches.ops._structured import json_tree, tree

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
    return _placed(json.loads(text), json_tree.tree(text))


def _placed(value: object, place: tree.Node) -> Node:
    """Give a value with the places of its strings."""
    if isinstance(value, dict):
        return {key: _placed(one, place.children[key].node) for key, one in value.items()}
    if isinstance(value, list):
        return [_placed(one, place.children[index].node) for index, one in enumerate(value)]
    if isinstance(value, str):
        return Text(value=value, start=place.span.start + 1, end=place.span.end - 1)
    return value  # type: ignore[return-value]  # a number, true, false or null


def characters(text: str, string: Text) -> tuple[int, ...]:
    """Give the offset of each character of a string's value, and that of its closing quote."""
    return (*(match.start() for match in _CHARACTER.finditer(text, string.start, string.end)), string.end)


def written(value: str, *, is_ascii: bool) -> str:
    """Write the inside of a JSON string."""
    return json.dumps(value, ensure_ascii=is_ascii)[1:-1]
