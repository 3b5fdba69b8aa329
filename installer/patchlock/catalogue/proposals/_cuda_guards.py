"""Which lines of a file run only where CUDA is there, as the file asks for it before; pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def guarded_lines(module: ast.Module) -> frozenset[int]:
    """List the lines below a question for CUDA, and those of functions that the file calls only below one."""
    lines = frozenset(line for node in ast.walk(module) for line in _below(node))
    calls: dict[str, list[bool]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            calls.setdefault(name, []).append(node.lineno in lines)
    functions = [one for one in ast.walk(module) if isinstance(one, _Function) and all(calls.get(one.name, [False]))]
    return lines.union(*(range(one.lineno, (one.end_lineno or one.lineno) + 1) for one in functions))


def _below(node: ast.AST) -> Iterator[int]:
    if isinstance(node, ast.If | ast.IfExp) and _asks(node.test):
        body = node.body if isinstance(node, ast.If) else [node.body]
        yield from range(body[0].lineno, (body[-1].end_lineno or body[-1].lineno) + 1)


def _asks(test: ast.expr) -> bool:
    """Tell whether a condition is false where CUDA is not: one of its parts that must be true names it."""
    if isinstance(test, ast.BoolOp):
        return (any if isinstance(test.op, ast.And) else all)(map(_asks, test.values))
    if isinstance(test, ast.UnaryOp) or (
        isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq | ast.NotIn | ast.IsNot)
    ):
        return False
    return "cuda" in ast.unparse(test).lower()
