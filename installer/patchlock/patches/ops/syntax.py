"""Where the nodes of a Python file stand in its text; parses and never edits anything."""

from __future__ import annotations

import ast
import bisect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from patchlock.model.patch import OutcomeKind, Refusal, Site
from patchlock.model.text_files import SourceText
from patchlock.patches.ops import _newer_syntax

Positioned = ast.expr | ast.stmt | ast.keyword | ast.alias
"""Nodes that know their place."""

_NEWLINE = re.compile(r"\r\n|\r|\n")
_LEAVES = frozenset({"ctx", "id", "attr"})
"""Fields of the commonest nodes in which there is no other node, but for how a name is used."""
_PUNCTUATION = re.compile(r"#[^\r\n]*|[(),]")


@dataclass(frozen=True, kw_only=True)
class Module:
    """A parsed file; all offsets are characters of `source.text`."""

    source: SourceText
    tree: ast.Module

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Of each line; line 1 is index 0."""
        return self.source.line_starts()

    def start(self, node: Positioned) -> int:
        """Give the offset of a node's first character; the decorators of a definition are not part of it."""
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: Positioned) -> int:
        """Give the offset after a node's last character."""
        if node.end_lineno is None or node.end_col_offset is None:  # only in trees that no parser made
            raise ValueError("the node has no end")
        return self._offset(node.end_lineno, node.end_col_offset)

    def segment(self, node: Positioned) -> str:
        """Give a node's source; parentheses around it are not part of it."""
        return self.source.text[self.start(node) : self.end(node)]

    def line_start(self, offset: int) -> int:
        """Give the offset of the start of the line that holds `offset`."""
        return self.starts[bisect.bisect_right(self.starts, offset) - 1]

    def line_end(self, offset: int) -> int:
        """Give the offset of the line ending that follows `offset`, or the length of the text."""
        ending = _NEWLINE.search(self.source.text, offset)
        return ending.start() if ending else len(self.source.text)

    def newline(self, offset: int) -> str:
        """Give the line ending of the line that holds `offset`; the last line without one has its neighbour's."""
        text = self.source.text
        ending = _NEWLINE.search(text, offset)
        if ending:
            return ending.group()
        before = _NEWLINE.findall(text, 0, offset)
        return before[-1] if before else self.source.newline

    def site(self, node: Positioned) -> Site:
        """Name a node's place by the line on which it begins."""
        start = self.start(node)
        return Site(line=node.lineno, text=self.source.text[self.line_start(start) : self.line_end(start)].strip())

    def _offset(self, line: int, column: int) -> int:
        """Turn a line and a column of `ast`, which counts UTF-8 bytes, into an offset."""
        start = self.starts[line - 1]
        text = self.source.text[start : self.starts[line]] if line < len(self.starts) else self.source.text[start:]
        return start + (column if text.isascii() else len(text.encode()[:column].decode()))


@lru_cache(maxsize=256)
def parse(source: SourceText) -> Module | Refusal:
    """Parse a file as `parse_anew` does; several patches look at one file, so the answer is kept and never changed."""
    return _parsed(source, tree_of)


def parse_anew(source: SourceText) -> Module | Refusal:
    """Parse a file with the grammar of the running Python, or of a newer one; a refusal says why it cannot be."""
    return _parsed(source, _new_tree)


def _parsed(source: SourceText, read: Callable[[str], ast.Module]) -> Module | Refusal:
    if source.encoding.startswith("utf-16"):
        return Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why=f"Python reads no {source.encoding}")
    try:
        tree = read(source.text)
    except SyntaxError as error:
        newer = _newer_syntax.parse(source)
        if isinstance(newer, str):
            why = f"it is written for a newer Python, and {newer}" if newer else f"it does not parse: {error.msg}"
            return Refusal(line=error.lineno or 1, kind=OutcomeKind.UNPARSABLE, why=why)
        tree = newer
    except (ValueError, RecursionError, MemoryError) as error:
        return Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why=f"it does not parse: {error}")
    return Module(source=source, tree=tree)


@lru_cache(maxsize=512)
def tree_of(text: str) -> ast.Module:
    """Parse a text as `ast.parse` does; the answer is kept and never changed."""
    return _new_tree(text)


def _new_tree(text: str) -> ast.Module:
    """Parse a text without warnings of upstream's invalid escapes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """List all nodes of a tree, parents first, as `ast.walk` does in much more time; but for how names are used."""
    found = [tree]
    for node in found:
        for field in node._fields:
            if field in _LEAVES:
                continue
            value = getattr(node, field, None)
            if isinstance(value, list):
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


def parse_expression(text: str) -> ast.expr | None:
    """Parse one expression, as if parentheses stood around it; `None` where it is none."""
    return parse_bare_expression(f"({text}\n)") if text.strip() else None


def parse_bare_expression(text: str) -> ast.expr | None:
    """Parse one expression as it stands; `None` where it is none, or needs parentheses to span its lines."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def same(left: ast.AST, right: ast.AST, instead: Mapping[int, object] | None = None) -> bool:
    """Tell whether two trees are the same code; places and comments do not count.

    Args:
        left: a tree.
        right: the other.
        instead: by `id()`, what stands for a node or list of `left`.
    """
    pairs: list[tuple[object, object]] = [(left, right)]
    while pairs:
        a, b = pairs.pop()
        if instead:
            a = instead.get(id(a), a)
        if type(a) is not type(b):
            return False
        if isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pairs += zip(a, b, strict=True)
        elif isinstance(a, ast.AST):
            for field in a._fields:
                one, other = getattr(a, field, None), getattr(b, field, None)
                if isinstance(one, ast.AST | list) and not isinstance(one, ast.expr_context):
                    pairs.append((one, other))
                elif type(one) is not type(other) or (field != "ctx" and one != other):
                    return False
        elif a != b:
            return False
    return True


class Place(NamedTuple):
    """A node and what stands around it; a named tuple, as one is made for each node of each file."""

    node: ast.AST
    parent: ast.AST | None = None
    field: str = ""
    """The parent's field that holds the node."""
    root: ast.expr | None = None
    """The largest expression around the node, possibly itself, that no brackets divide from it; `None` for a statement.

    How code is read inside brackets does not depend on what stands outside them.
    """
    scopes: tuple[str, ...] = ()
    """Dotted names of the functions and classes around the node, outermost first."""
    barrier: str = ""
    """Why the node's text cannot be replaced, a clause; "" where it can."""

    def inner(self) -> Iterator[Place]:
        """Give the places directly inside, in source order; docstrings and the text of f-strings are left out."""
        for field in self.node._fields:
            value = getattr(self.node, field, None)
            if isinstance(value, str | int | ast.expr_context | None):
                continue
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST) and not self._is_text(field, child):
                    yield Place(
                        node=child,
                        parent=self.node,
                        field=field,
                        root=self._root(field, child),
                        scopes=self._scopes(field),
                        barrier=self.barrier or _barrier(child),
                    )

    def is_within(self, names: tuple[str, ...]) -> bool:
        """Tell whether a function or class of one of these names is around; see `within`."""
        return within(self.scopes, names)

    def _root(self, field: str, child: ast.AST) -> ast.expr | None:
        if not isinstance(child, ast.expr):
            return self.root
        match self.node, field:
            case (ast.List() | ast.Set(), "elts") | (ast.Call(), "args") | (ast.keyword(), "value"):
                is_alone = not isinstance(child, ast.GeneratorExp)  # `f(x for x in y)` has its brackets from the call
            case ast.Dict(keys=keys), "keys" | "values":
                is_alone = None not in keys
            case _:
                is_alone = False
        return child if is_alone else self.root or child

    def _scopes(self, field: str) -> tuple[str, ...]:
        if field == "body" and isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return (*self.scopes, ".".join((*self.scopes[-1:], self.node.name)))
        return self.scopes

    def _is_text(self, field: str, child: ast.AST) -> bool:
        if isinstance(self.node, ast.JoinedStr):
            return isinstance(child, ast.Constant)
        is_documented = isinstance(self.node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        is_first = is_documented and field == "body" and child is next(iter(getattr(self.node, field)))
        return is_first and is_string_statement(child)


def _barrier(node: ast.AST) -> str:
    if isinstance(node, ast.FormattedValue):
        return "it is inside an f-string, where places differ between versions of Python"
    return "it stands in a case pattern, which is not an expression" if isinstance(node, ast.pattern) else ""


def is_string_statement(node: ast.AST) -> bool:
    """Tell whether a statement is nothing but a string, as a docstring is."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def item_ranges(module: Module, container: ast.expr) -> tuple[tuple[int, int], ...]:
    """Give the range of each argument of a call or element of a display, with the parentheses around it.

    In source order. `ast` gives the range of `(a)` without its parentheses, and has no place for a comma.
    """
    items = items_of(container)
    is_call = isinstance(container, ast.Call)
    begin = module.end(container.func) if isinstance(container, ast.Call) else module.start(container)
    bounds = [begin, *(bound for item in items for bound in (module.start(item), module.end(item)))]
    bounds.append(module.end(container))
    gaps = [_gap(module.source.text, bounds[i], bounds[i + 1]) for i in range(0, len(bounds), 2)]
    around = [_closing_before_comma(gap) for gap in gaps[1:]]
    if around and not any(mark == "," for mark, _ in gaps[-1]):
        opened = sum(mark == "(" for mark, _ in gaps[0])
        is_closed_by_parenthesis = is_call or (isinstance(container, ast.Tuple) and opened > around[0])
        around[-1] = max(0, around[-1] - is_closed_by_parenthesis)
    ranges = []
    for index, (item, count) in enumerate(zip(items, around, strict=True)):
        opening = [at for mark, at in gaps[index] if mark == "("]
        closing = [at + 1 for mark, at in gaps[index + 1] if mark == ")"]
        start, end = module.start(item), module.end(item)
        ranges.append((opening[-count], closing[count - 1]) if count else (start, end))
    return tuple(ranges)


def items_of(container: ast.expr) -> tuple[ast.expr | ast.keyword, ...]:
    """Give the arguments of a call or the elements of a display, in source order; nothing for other nodes."""
    match container:
        case ast.Call():
            return tuple(sorted((*container.args, *container.keywords), key=lambda n: (n.lineno, n.col_offset)))
        case ast.List() | ast.Tuple() | ast.Set():
            return tuple(container.elts)
        case _:
            return ()


def _gap(text: str, start: int, end: int) -> list[tuple[str, int]]:
    marks = [(match.group(), match.start()) for match in _PUNCTUATION.finditer(text, start, end)]
    return [(mark, at) for mark, at in marks if not mark.startswith("#")]


def _closing_before_comma(gap: list[tuple[str, int]]) -> int:
    marks = [mark for mark, _ in gap]
    return marks[: marks.index(",")].count(")") if "," in marks else marks.count(")")


def last_name(node: ast.AST) -> str:
    """Give `c` of `a.b.c`, `c` of `c`, and "" for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def missing_scopes(source: SourceText, names: tuple[str, ...]) -> tuple[str, ...]:
    """Name the functions and classes of `within` of which a file has none of that name."""
    module = parse(source) if names else None
    if module is None or isinstance(module, Refusal):
        return ()
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    there = {node.name for node in ast.walk(module.tree) if isinstance(node, kinds)}
    return tuple(name for name in names if name.rpartition(".")[2] not in there)


def within(scopes: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Tell whether a scope has one of these names (`load`, `Model.load`); no name: always.

    Args:
        scopes: dotted names of the functions and classes around a place.
        names: what is looked for.
    """
    return not names or any(f".{scope}".endswith(f".{name}") for scope in scopes for name in names)
