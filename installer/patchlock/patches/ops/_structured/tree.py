"""Where the parts of a structured file stand in its text, whatever the language; holds places, not values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from patchlock.patches.pip_requirements import Span

Step = str | int
"""A key of a mapping, or the 0-based index of an item."""


@dataclasses.dataclass(kw_only=True, slots=True, eq=False)
class Node:
    """A value and its place; filled by a reader, only read afterwards."""

    span: Span
    """Of the value; of a TOML table with a header, only of the header."""
    kind: Literal["scalar", "sequence", "mapping"]
    enclosed: bool = False
    """Brackets stand around it, commas between its children."""
    children: dict[Step, Child] = dataclasses.field(default_factory=dict)
    """In file order."""
    repeated: set[Step] = dataclasses.field(default_factory=set)
    """Keys that stand there twice."""
    shared: bool = False
    """It is also reached from elsewhere, by a YAML alias or a merge."""
    parts: list[Span] = dataclasses.field(default_factory=list)
    """Of a TOML table that is not enclosed: its sections, or the dotted statements that make it."""
    home: int | None = None
    """Of a mapping that is not enclosed: the end of the statement behind which a new one goes."""

    def spans(self) -> tuple[Span, ...]:
        """Give the places of the children, in file order."""
        return tuple(child.span for child in self.children.values())


@dataclasses.dataclass(kw_only=True, slots=True, eq=False)
class Child:
    """A key and its value, or an item of a sequence."""

    span: Span
    """From the key, or the item, to the end of the value."""
    key: Span | None
    node: Node


@dataclass(frozen=True, kw_only=True)
class Unparsable:
    """A file that is not what its name says."""

    line: int
    why: str


def line_at(text: str, offset: int) -> int:
    """Give the 1-based line of an offset."""
    before = text[:offset]
    return before.count("\n") + before.replace("\r\n", "\n").count("\r") + 1


def whole_lines(text: str, span: Span) -> Span:
    """Widen a range to the lines that it touches, the last line ending included."""
    start = max(text.rfind("\n", 0, span.start), text.rfind("\r", 0, span.start)) + 1
    end = span.end
    while end < len(text) and text[end] not in "\r\n":
        end += 1
    end += 2 if text.startswith("\r\n", end) else 1 if end < len(text) else 0
    return Span(start=start, end=end)


def below(node: Node) -> Iterator[Node]:
    """Give a node and all that are in it, each once."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [child.node for child in one.children.values()]
