"""Find where the keys and values of a TOML file stand; the standard library decides whether it is one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable

from patchlock.patches.ops._structured.tree import Child, Node, Step, Unparsable, whole_lines
from patchlock.patches.pip_requirements import Span

_BLANK = re.compile(r"(?:\s|#[^\r\n]*)*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|'[^']*'""")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:\\.|[^"\\\r\n])*"|' + r"'[^'\r\n]*'", re.DOTALL
)
_BARE = re.compile(r"\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]*|[^\s,\]}#]+")
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")


def load(text: str) -> dict[str, object] | Unparsable:
    """Read a TOML text as plain values, or say on which line it cannot be."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place = _AT_LINE.search(str(error))
        line = int(place[1]) if place else text.count("\n") + 1
        return Unparsable(line=line, why=f"it is not TOML: {_AT_LINE.sub('', str(error)).strip().lower()}")


def tree(text: str) -> Node:
    """Find the places in a text that `load` accepts."""
    return _Reader(text).document()


class _Reader:
    """Walks over a text that is known to be valid."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def document(self) -> Node:
        root = section = Node(span=Span(start=0, end=0), kind="mapping")
        while self._skip_blanks() < len(self.text):
            start = self.at
            if self.text[start] == "[":
                section = self._header(root)
                section.span = Span(start=start, end=self.at)
                section.parts.append(section.span)
            else:
                self._statement(section)
                if section.parts:
                    section.parts[-1] = Span(start=section.parts[-1].start, end=self.at)
            section.home = self.at
        return root

    def _header(self, root: Node) -> Node:
        is_array = self.text.startswith("[[", self.at)
        start = self.at
        self.at += 2 if is_array else 1
        *parents, (last, key) = self._keys()
        self._skip_blanks()
        self.at += 2 if is_array else 1
        node = root
        span = Span(start=start, end=self.at)
        for name, parent_key in parents:
            node = _entered(node, name, parent_key, span)
        table = Node(span=span, kind="mapping")
        if is_array:
            child = node.children.setdefault(last, Child(span=span, key=key, node=Node(span=span, kind="sequence")))
            child.node.children[len(child.node.children)] = Child(span=span, key=None, node=table)
            return table
        return node.children.setdefault(last, Child(span=span, key=key, node=table)).node

    def _statement(self, table: Node) -> None:
        start = self.at
        *parents, (last, key) = self._keys()
        self._skip("=")
        value = self._value()
        span = Span(start=start, end=self.at)
        for name, parent_key in parents:
            table = _entered(table, name, parent_key, span)
            table.parts.append(span)
        table.children[last] = Child(span=span, key=key, node=value)

    def _keys(self) -> list[tuple[str, Span]]:
        keys: list[tuple[str, Span]] = []
        while True:
            self._skip_blanks()
            start = self.at
            self._match(_KEY)
            written = self.text[start : self.at]
            is_bare = written[:1] not in "\"'"
            name = written if is_bare else next(iter(tomllib.loads(f"{written} = 0")))
            keys.append((name, Span(start=start, end=self.at)))
            if not self._match(_DOT):
                return keys

    def _value(self) -> Node:
        self._skip_blanks()
        start = self.at
        if self.text[start] == "[":
            return self._enclosed(Node(span=Span(start=start, end=start), kind="sequence", enclosed=True), self._item)
        if self.text[start] == "{":
            table = Node(span=Span(start=start, end=start), kind="mapping", enclosed=True)
            return self._enclosed(table, self._statement)
        if not self._match(_STRING):
            self._match(_BARE)
        return Node(span=Span(start=start, end=self.at), kind="scalar")

    def _enclosed(self, node: Node, read: Callable[[Node], None]) -> Node:
        self.at += 1
        while self.text[self._skip_blanks()] not in "]}":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            read(node)
        self.at += 1
        node.span = Span(start=node.span.start, end=self.at)
        return node

    def _item(self, sequence: Node) -> None:
        node = self._value()
        sequence.children[len(sequence.children)] = Child(span=node.span, key=None, node=node)

    def _skip(self, character: str) -> None:
        self._skip_blanks()
        self.at += len(character)

    def _skip_blanks(self) -> int:
        self._match(_BLANK)
        return self.at

    def _match(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match is not None


def _entered(node: Node, name: Step, key: Span, span: Span) -> Node:
    """Go into a table on the way to another; into the last one of an array of tables."""
    child = node.children.get(name)
    if child is None:
        child = node.children[name] = Child(span=span, key=key, node=Node(span=span, kind="mapping"))
    inner = child.node
    while inner.kind == "sequence" and not inner.enclosed:
        inner = inner.children[len(inner.children) - 1].node
    return inner


def removed(text: str, child: Child) -> tuple[Span, ...]:
    """Give the whole lines of a member that is not enclosed, wherever they stand; a section with the blanks behind."""
    joined: list[Span] = []
    for part in sorted(_parts(child), key=lambda span: span.start):
        span = whole_lines(text, part)
        if text[part.start] == "[":
            blank = len(text[span.end :]) - len(text[span.end :].lstrip("\r\n"))
            span = Span(start=span.start, end=span.end + blank)
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(start=joined[-1].start, end=max(span.end, joined[-1].end))
        else:
            joined.append(span)
    return tuple(joined)


def _parts(child: Child) -> list[Span]:
    node = child.node
    if node.enclosed or node.kind == "scalar":
        return [child.span]
    return [*node.parts, *(part for inner in node.children.values() for part in _parts(inner))]
