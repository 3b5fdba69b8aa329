"""Which names a statement binds, and what is forgotten of them; reads trees only."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def bound_names(statement: ast.stmt, package: str) -> tuple[tuple[str, str], ...]:
    """Give the names that a statement binds by importing a package, each with what the import calls it."""
    match statement:
        case ast.Import(names=aliases):
            ours = [alias for alias in aliases if alias.name.partition(".")[0] == package]
            return tuple((alias.asname, alias.name) if alias.asname else (package, package) for alias in ours)
        case ast.ImportFrom(module=str(module), names=aliases, level=0) if module.partition(".")[0] == package:
            return tuple((alias.asname or alias.name, alias.name) for alias in aliases)
        case _:
            return ()


def own(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Give the nodes of a function, without the functions inside it."""
    stack = list(body)
    while stack:
        node = stack.pop()
        yield node
        stack += [] if isinstance(node, _Function) else ast.iter_child_nodes(node)


def stored(body: Iterable[ast.AST | None]) -> Iterator[str]:
    """Name what statements bind."""
    for node in own(node for node in body if node):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=asname):
                yield asname or name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case _:
                pass
