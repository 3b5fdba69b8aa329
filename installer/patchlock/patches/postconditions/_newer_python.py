"""Read Python whose syntax is newer than that of the Python that runs us; LibCST rewrites it, line for line, for `ast`.

The ops have a reader of their own, which keeps each character's place; here only lines count.
"""

from __future__ import annotations

import ast
import threading
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst

_STACK = 256 * 1024 * 1024
_DEEPEST, _LONGEST = 50, 1000
"""Brackets in brackets, and characters of a line: LibCST's parser ends the process on what is nested too deeply.

Source: https://github.com/Instagram/LibCST/issues/1000
"""


def parse(data: bytes | str, name: str) -> ast.Module:
    """Parse a file of any Python.

    Raises:
        SyntaxError: neither the running Python nor LibCST reads it, or it cannot be written in an older syntax.
        ValueError: as of `ast.parse`; RecursionError and MemoryError likewise.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(data, name)
        except SyntaxError:
            older = _in_a_deep_stack(data)
            if older is None:
                raise
            return ast.parse(older, name)


def _in_a_deep_stack(data: bytes | str) -> str | None:
    depth, deepest = 0, 0
    for character in data if isinstance(data, str) else data.decode("latin-1"):
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    if deepest > _DEEPEST or any(len(line) > _LONGEST for line in data.splitlines()):
        return None
    found: list[str | None] = []
    thread = threading.Thread(target=lambda: found.append(_older(data)), daemon=True)
    before = threading.stack_size(_STACK)
    try:
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return found[0] if found else None


def _older(data: bytes | str) -> str | None:
    """Write a file without what is new; None where LibCST does not read it, or something would be lost."""
    import libcst as cst  # takes a third of a second, and is hardly ever needed

    try:
        return _rewritten(cst.parse_module(data))
    except (cst.ParserSyntaxError, RecursionError, UnicodeDecodeError):
        return None


def _rewritten(module: libcst.Module) -> str | None:
    import libcst as cst
    from libcst import matchers as m

    together = m.findall(module, m.ConcatenatedString())
    if any(map(_computes, m.findall(module, m.TypeParameters()))) or not all(map(_is_read, together)):
        return None
    new = m.TypeAlias() | m.FunctionDef() | m.ClassDef() | m.ExceptHandler() | m.ExceptStarHandler()
    older = m.replace(module, new | m.FormattedString() | m.TemplatedString(), lambda node, _: _instead(node))
    return older.code if isinstance(older, cst.Module) else None


def _computes(parameters: libcst.CSTNode) -> bool:
    from libcst import matchers as m

    return bool(m.findall(parameters, m.Call() | m.SimpleString() | m.FormattedString() | m.Lambda()))


def _instead(node: libcst.CSTNode) -> libcst.CSTNode:
    import libcst as cst

    match node:
        case cst.TypeAlias():
            return cst.Assign([cst.AssignTarget(node.name)], node.value)
        case cst.FunctionDef() | cst.ClassDef():
            nothing = cst.SimpleWhitespace("")
            return node.with_changes(type_parameters=None, whitespace_after_type_parameters=nothing)
        case (
            cst.ExceptHandler(type=cst.Tuple(lpar=[]) as caught)
            | cst.ExceptStarHandler(type=cst.Tuple(lpar=[]) as caught)
        ):
            return node.with_changes(type=caught.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]))
        case cst.TemplatedString():
            return _sum(node)
        case cst.FormattedString() if not _is_read(node):
            return _sum(node)
        case _:
            return node


def _is_read(string: libcst.CSTNode) -> bool:
    import libcst as cst

    try:
        ast.parse(f"({cst.Module([]).code_for_node(string)})")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _sum(string: libcst.FormattedString | libcst.TemplatedString) -> libcst.BaseExpression:
    """Write `f"a{b["c"]}"` as `("a" + (b["c"]))`: the texts and expressions of it, on as many lines."""
    import libcst as cst

    module = cst.Module([])
    prefix = "".join(letter for letter in string.prefix if letter not in "fFtT")
    terms: list[str] = []
    parts: list[cst.CSTNode] = [*string.parts]
    while parts:
        part = parts.pop(0)
        match part:
            case cst.FormattedStringExpression() | cst.TemplatedStringExpression():
                terms.append(f"({module.code_for_node(part.expression)})")
                parts[:0] = part.format_spec or ()
            case cst.FormattedStringText() | cst.TemplatedStringText():
                terms.append(prefix + string.quote + part.value + string.quote)
    written = " + ".join(terms or ['""'])
    missing = module.code_for_node(string).count("\n") - written.count("\n")
    return cst.parse_expression("(" + written + "\n" * missing + ")")
