"""Read a Python file whose syntax is newer than the Python that runs us, with each node at its place; edits nothing.

LibCST's parser knows the syntax of every Python, whichever runs it. It finds the new constructs; each is written as an
old one of the same length in a copy of the text, which `ast` then parses, so that all places are those of the file.
What has no such form is a reason, never left out: nothing in it would be found.

Sources: https://peps.python.org/pep-0695/, https://peps.python.org/pep-0696/, https://peps.python.org/pep-0701/,
https://peps.python.org/pep-0750/, https://peps.python.org/pep-0758/
"""

from __future__ import annotations

import ast
import bisect
import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from patchlock.model.text_files import SourceText

if TYPE_CHECKING:
    import libcst
    from libcst.metadata import CodeRange

_STACK = 256 * 1024 * 1024
_MOST_SIGNS, _DEEPEST = 200, 50
"""Of one expression. LibCST's parser ends the process on what is nested too deeply; with this stack, 1,000 are no harm.

Source: https://github.com/Instagram/LibCST/issues/1000
"""
_STRING = re.compile(r"(?s)\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*")
_COMPUTED = re.compile(r"[^\w \t.,:*|()=\[\]]|[\w)\]][ \t]*\(")
"""In type parameters: anything but names, and a call of one."""
_ESCAPE = "\x1a"
"""For a backslash in a string inside an f-string, where old versions allow none; no text that is looked for has it."""


def parse(source: SourceText) -> ast.Module | str:
    """Parse a file that `ast` alone does not; a clause says why not, "" where it is no Python that LibCST knows."""
    if _is_too_deep(source.text):
        return ""
    answers: list[ast.Module | str] = []
    thread = threading.Thread(target=lambda: answers.append(_parse(source)), daemon=True)
    before = threading.stack_size(_STACK)
    try:
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return answers[0] if answers else ""


def _is_too_deep(text: str) -> bool:
    bare = _STRING.sub("", text)
    depth = deepest = 0
    for bracket in re.findall(r"[(\[{}\])]", bare):
        depth += 1 if bracket in "([{" else -1
        deepest = max(deepest, depth)
    longest = max(len(re.findall(r"\w+|[^\w\s]", part)) for part in re.split(r"[,;\n]", bare))
    return deepest > _DEEPEST or longest > _MOST_SIGNS


def _parse(source: SourceText) -> ast.Module | str:
    import libcst  # takes a third of a second, and is hardly ever needed
    from libcst.metadata import MetadataWrapper, PositionProvider

    try:
        wrapper = MetadataWrapper(libcst.parse_module(source.text), unsafe_skip_copy=True)
        if wrapper.module.code != source.text:
            return "LibCST does not give the file's text back"
        return _Older(source, wrapper.resolve(PositionProvider)).parse(wrapper.module)
    except (libcst.ParserSyntaxError, RecursionError):  # of many `elif`, which are one in the other
        return ""


class _Older:
    """A file as an older Python would have it."""

    def __init__(self, source: SourceText, places: Mapping[libcst.CSTNode, CodeRange]) -> None:
        self._text = source.text
        self._starts = source.line_starts()
        self._places = places
        self._characters: dict[int, str] = {}
        """By offset, what stands there instead; of the same length in UTF-8."""
        self._aliases: set[tuple[int, int]] = set()
        self._caught: set[tuple[int, int]] = set()
        """Where `type` stands, and what `except` catches: a line and a column of `ast`, in UTF-8."""

    def parse(self, module: libcst.Module) -> ast.Module | str:
        for reason in self._write(module, ()):
            return reason
        older = "".join(self._characters.get(at, character) for at, character in enumerate(self._text))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(older)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return f"has no older form: line {getattr(error, 'lineno', None) or 1}: {getattr(error, 'msg', error)}"
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and node.type and self._place(node.type) in self._caught:
                node.type = _tuple(node.type)
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    block[:] = self._with_aliases(block)
        return tree

    def _write(self, node: libcst.CSTNode, quotes: tuple[str, ...]) -> Iterator[str]:
        """Write what is new as something old, and give the reasons why something cannot be."""
        import libcst as cst

        match node:
            case cst.TypeAlias():
                at = self._start(node)
                self._aliases.add(self._column(at))
                self._characters[at + len("type")] = ";"
            case cst.TypeParameters():
                yield from self._blank(node)
            case (
                cst.ExceptHandler(type=cst.Tuple(lpar=[]) as caught)
                | cst.ExceptStarHandler(type=cst.Tuple(lpar=[]) as caught)
            ):
                yield from self._join(caught)
            case cst.SimpleString() if quotes:
                yield from self._requote(node, node.quote, quotes)
            case cst.FormattedString() | cst.TemplatedString():
                at = self._start(node) + len(node.start) - len(node.quote)
                if isinstance(node, cst.TemplatedString):
                    prefix = at - len(node.prefix) + node.prefix.lower().index("t")
                    self._characters[prefix] = "f"
                quote: str = node.quote
                if quotes:
                    yield from self._requote(node, quote, quotes)
                    quote = self._characters.get(at, quote)
                quotes = (*quotes, quote)
            case cst.Comment() if quotes:
                yield f"has a comment in an f-string on line {self._places[node].start.line}"
        for child in node.children:
            yield from self._write(child, quotes)

    def _blank(self, node: libcst.CSTNode) -> Iterator[str]:
        start, end = self._start(node), self._end(node)
        if _COMPUTED.search(self._text, start, end):
            yield f"has type parameters that are more than names on line {self._places[node].start.line}"
        for at in range(start, end):
            self._characters[at] = " " * len(self._text[at].encode())

    def _join(self, caught: libcst.Tuple) -> Iterator[str]:
        import libcst as cst

        for element in caught.elements:
            if not isinstance(element.value, cst.Name | cst.Attribute | cst.Call | cst.Subscript):
                yield f"catches what is no name on line {self._places[caught].start.line}"
            if isinstance(element.comma, cst.Comma):
                self._characters[self._start(element.comma)] = "|"
        self._caught.add(self._column(self._start(caught)))

    def _requote(self, node: libcst.CSTNode, quote: str, quotes: tuple[str, ...]) -> Iterator[str]:
        """Give a string inside an f-string a quotation mark that none of those around it has."""
        start, end = self._start(node), self._end(node)
        text = self._text[start:end]
        free = [mark for mark in ("'", '"') if mark not in "".join(quotes)]
        is_taken = quote in quotes
        if "\n" in text or "\r" in text or (is_taken and (len(quote) > 1 or not free or free[0] in text)):
            line = self._places[node].start.line
            yield f"has a string in an f-string that no older Python could have there on line {line}"
            return
        for at in range(start, end):
            if self._text[at] == "\\":
                self._characters[at] = _ESCAPE
        if is_taken:
            self._characters[start + text.index(quote)] = self._characters[end - 1] = free[0]

    def _with_aliases(self, block: list[ast.AST]) -> list[ast.AST]:
        kept: list[ast.AST] = []
        alias: tuple[int, int] | None = None
        for node in block:
            if alias is not None and isinstance(node, ast.Assign):
                node.lineno, node.col_offset = alias
            alias = self._place(node) if isinstance(node, ast.Expr) and self._place(node) in self._aliases else None
            kept += [] if alias is not None else [node]
        return kept

    def _start(self, node: libcst.CSTNode) -> int:
        place = self._places[node].start
        return self._starts[place.line - 1] + place.column

    def _end(self, node: libcst.CSTNode) -> int:
        place = self._places[node].end
        return self._starts[place.line - 1] + place.column

    def _column(self, offset: int) -> tuple[int, int]:
        line = bisect.bisect_right(self._starts, offset)
        return line, len(self._text[self._starts[line - 1] : offset].encode())

    @staticmethod
    def _place(node: ast.expr | ast.stmt) -> tuple[int, int]:
        return node.lineno, node.col_offset


def _tuple(joined: ast.expr) -> ast.Tuple:
    elements: list[ast.expr] = []
    rest = joined
    while isinstance(rest, ast.BinOp):
        elements.append(rest.right)
        rest = rest.left
    made = ast.Tuple(elts=[rest, *reversed(elements)], ctx=ast.Load())
    return ast.copy_location(made, joined)
