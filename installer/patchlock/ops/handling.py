"""Which `except` clause ends an error of Python code; reads trees only."""

from __future__ import annotations

import ast
from collections.abc import Iterable

Handlers = tuple[ast.ExceptHandler, ...]

MISSING = frozenset({"ModuleNotFoundError", "ImportError", "Exception", "BaseException"})
"""Handlers of these catch the import of a package that is not installed."""
_EXITS = ("exit", "quit", "sys.exit", "os._exit")
_Inner = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


def handler_of(guards: Iterable[Handlers], names: frozenset[str]) -> tuple[ast.ExceptHandler | None, bool]:
    """Find the handler that ends an error of one of these types.

    Args:
        guards: the handlers of each `try` around, innermost first.
        names: the error's own type and the types above it.

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


def only_gives_up(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler that raises again or exits does nothing but say so: it tries no other way."""
    return not any(
        isinstance(node, ast.Import | ast.ImportFrom | ast.Try | ast.TryStar | _Inner)
        or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")))
        for statement in handler.body
        for node in ast.walk(statement)
    )


def suppressed(items: Iterable[ast.withitem]) -> Handlers:
    """Give what `with contextlib.suppress(…)` does as handlers."""
    return tuple(
        ast.ExceptHandler(
            type=ast.Tuple(elts=item.context_expr.args), name=None, body=[ast.Pass()], lineno=item.context_expr.lineno
        )
        for item in items
        if isinstance(item.context_expr, ast.Call)
        and ast.unparse(item.context_expr.func) in {"suppress", "contextlib.suppress"}
    )


def is_exit(statement: ast.stmt) -> bool:
    """Tell whether nothing behind a statement runs."""
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return isinstance(statement, ast.Raise) or (is_call and _is_exit(statement.value))  # type: ignore[attr-defined]


def _catches(handler: ast.ExceptHandler, names: frozenset[str]) -> bool:
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return handler.type is None or any(
        isinstance(type_, ast.Name | ast.Attribute) and ast.unparse(type_).removeprefix("builtins.") in names
        for type_ in types
    )


def _raises(handler: ast.ExceptHandler) -> bool:
    stack: list[ast.AST] = [*handler.body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Raise) or _is_exit(node):
            return True
        stack += [] if isinstance(node, _Inner) else ast.iter_child_nodes(node)
    return False


def _is_exit(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in _EXITS
