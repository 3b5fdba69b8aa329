"""What a Python file executes while it is imported, and what ends an error there; reads trees only."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator

Handlers = tuple[ast.ExceptHandler, ...]
Parents = dict[int, tuple[ast.AST, str]]
"""By `id()` of a node: its parent, and the parent's field that holds it."""

MISSING = frozenset({"ModuleNotFoundError", "ImportError", "Exception", "BaseException"})
"""Handlers of these catch the import of a package that is not installed."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A statement that is executed while the file is imported."""

    node: ast.stmt
    body: list[ast.stmt]
    """The block that it stands in."""
    guards: tuple[Handlers, ...]
    """The handlers of each `try` whose body it is in, innermost first."""


def steps(body: list[ast.stmt], guards: tuple[Handlers, ...] = ()) -> Iterator[Step]:
    """Give the statements that run at import, in source order: not the bodies of functions, nor `TYPE_CHECKING`.

    What runs only under `if __name__ == "__main__"` does not run at import either.
    """
    for node in body:
        yield Step(node=node, body=body, guards=guards)
        match node:
            case ast.Try() | ast.TryStar():
                yield from steps(node.body, (tuple(node.handlers), *guards))
                for block in (*(handler.body for handler in node.handlers), node.orelse, node.finalbody):
                    yield from steps(block, guards)
            case ast.If():
                yield from () if _is_false(node.test) else steps(node.body, guards)
                yield from () if _is_true(node.test) else steps(node.orelse, guards)
            case ast.For() | ast.AsyncFor() | ast.While():
                yield from steps(node.body + node.orelse, guards)
            case ast.With() | ast.AsyncWith() | ast.ClassDef():
                yield from steps(node.body, guards)
            case ast.Match():
                for case in node.cases:
                    yield from steps(case.body, guards)
            case _:
                pass


def _is_false(test: ast.expr) -> bool:
    """Tell whether a condition is false while any file is imported by a program."""
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING") | ast.Constant(value=False | 0):
            return True
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]):
            return True
        case ast.Compare(left=ast.Constant(value="__main__"), ops=[ast.Eq()], comparators=[ast.Name(id="__name__")]):
            return True
        case ast.BoolOp(op=ast.And()):
            return any(_is_false(value) for value in test.values)
        case _:
            return False


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and _is_false(test.operand)


def handler_of(guards: Iterable[Handlers], names: frozenset[str]) -> tuple[ast.ExceptHandler | None, bool]:
    """Find the handler that ends an error of one of these types.

    Returns:
        The handler, and whether the error is over there; a handler that raises again hands it on to the next `try`.
    """
    last = None
    for handlers in guards:
        handler = next((handler for handler in handlers if _catches(handler, names)), None)
        if handler and not _raises(handler):
            return handler, True
        last = handler or last
    return last, False


def _catches(handler: ast.ExceptHandler, names: frozenset[str]) -> bool:
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return handler.type is None or any(
        isinstance(type_, ast.Name | ast.Attribute) and ast.unparse(type_).removeprefix("builtins.") in names
        for type_ in types
    )


def _raises(handler: ast.ExceptHandler) -> bool:
    exits = ("exit", "quit", "sys.exit", "os._exit")
    return any(
        isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and ast.unparse(node.func) in exits)
        for step in steps(handler.body)
        for node in (step.node, *own_nodes(step.node, {}))
    )


def own_nodes(statement: ast.stmt, parents: Parents) -> Iterator[ast.AST]:
    """Give the nodes that a statement itself evaluates, without the statements inside it; fill in their parents."""
    stack: list[ast.AST] = [statement]
    while stack:
        parent = stack.pop()
        for field, value in ast.iter_fields(parent):
            if isinstance(parent, ast.Lambda) and field == "body":
                continue
            for node in value if isinstance(value, list) else (value,):
                if isinstance(node, ast.AST) and not isinstance(node, ast.stmt):
                    parents[id(node)] = (parent, field)
                    stack.append(node)
                    yield node
