"""Which `except` clause ends an error of Python code; reads trees only."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from patchlock.patches.ops.syntax import last_name

Handlers = tuple[ast.ExceptHandler, ...]

MISSING = frozenset({"ModuleNotFoundError", "ImportError", "Exception", "BaseException"})
"""Handlers of these catch the import of a package that is not installed."""
_ERROR_NAMES = ("Error", "Exception", "Warning")
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


def caught_names(tree: ast.Module) -> frozenset[str]:
    """Give the dotted names of all that the `except` clauses of a file may name, also through names of its own.

    `ERRORS = (KeyError, a.B)` and `class Mine(a.B)` lead from `except ERRORS` and `except Mine` to `a.B`. A class that
    is called an error is one, as the `except` clause may be in another file.
    """
    made = _made(tree)
    stack = [node.type for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.type]
    stack += [base for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in _error_bases(node)]
    found: set[str] = set()
    while stack:
        match stack.pop():
            case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
                stack += items
            case ast.Starred(value=value) | ast.Subscript(value=value):
                stack.append(value)
            case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
                stack += [left, right]
            case ast.Call(func=ast.Name(id="tuple" | "set" | "frozenset"), args=arguments):
                stack += arguments
            case ast.Call(func=function):
                stack += made.get(f"{last_name(function)}()", [])
            case (ast.Name() | ast.Attribute()) as name if (dotted := ast.unparse(name)) not in found:
                found.add(dotted)
                stack += made.get(last_name(name), [])
            case _:
                pass
    return frozenset(found)


def _made(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Give what names and attributes of a file stand for, and under `name()` what a function returns."""
    made: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    made.setdefault(last_name(target), []).append(value)
            case ast.AugAssign(target=target, value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                made.setdefault(last_name(target), []).append(value)
            case ast.ClassDef(name=name, bases=bases):
                made.setdefault(name, []).extend(bases)
            case ast.FunctionDef(name=name, body=body):
                returned = [n.value for part in body for n in ast.walk(part) if isinstance(n, ast.Return) and n.value]
                made.setdefault(f"{name}()", []).extend(returned)
            case _:
                pass
    return made


def _error_bases(node: ast.ClassDef) -> list[ast.expr]:
    names = {base: last_name(base) for base in node.bases}
    if node.name.endswith(_ERROR_NAMES):
        return node.bases
    return [base for base, name in names.items() if name.endswith(_ERROR_NAMES)]


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
