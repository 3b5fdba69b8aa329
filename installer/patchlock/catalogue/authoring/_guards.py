"""Imports that were put into a `try`: which packages became optional, and what the file is without the guards."""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Collection

from patchlock.patches.ops.optional_import import standin_class

_CAUGHT = {"ImportError", "ModuleNotFoundError", "Exception"}


def added(before: ast.Module, after: ast.Module) -> frozenset[str]:
    """Give the packages whose imports stand in a `try` of `after` that `before` does not have."""
    known = {ast.dump(node) for node in ast.walk(before) if isinstance(node, ast.Try)}
    new = [node for node in ast.walk(after) if isinstance(node, ast.Try) and ast.dump(node) not in known]
    return frozenset(package for node in new if not _is_compared(after, node) for package in _guarded(node))


def _is_compared(tree: ast.Module, node: ast.Try) -> bool:
    """Tell whether the file compares with None what a handler binds; a stand-in is not None."""
    stored = [n for handler in node.handlers for n in ast.walk(handler) if isinstance(n, ast.Name)]
    names = {name.id for name in stored if isinstance(name.ctx, ast.Store)}
    compared = [[c.left, *c.comparators] for c in ast.walk(tree) if isinstance(c, ast.Compare)]
    return any(
        any(isinstance(side, ast.Name) and side.id in names for side in sides)
        and any(isinstance(side, ast.Constant) and side.value is None for side in sides)
        for sides in compared
    )


def without(tree: ast.Module, packages: Collection[str]) -> ast.Module:
    """Give a copy of a file without the guards around imports of packages, and without statements of no effect."""
    plain = copy.deepcopy(tree)
    for node in ast.walk(plain):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                setattr(node, field, [one for statement in block for one in _plain(statement, packages)])
    return plain


def normalized_code(tree: ast.Module, packages: Collection[str]) -> str:
    """Give the code of a file as a text that is the same for files that do the same but for guards."""
    plain = without(tree, packages)
    for node in ast.walk(plain):
        block = getattr(node, "body", None)
        if isinstance(block, list):
            kept = [statement for statement in block if not _is_idle(statement)]
            cut = next((i for i, statement in enumerate(kept) if isinstance(statement, ast.Return)), len(kept))
            is_at_end = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            rest = [] if is_at_end and _returns_none(kept[cut : cut + 1]) else kept[cut : cut + 1]
            setattr(node, "body", kept[:cut] + rest)  # noqa: B010 - not every node has one
    return ast.dump(plain)


def unreachable(tree: ast.Module) -> int:
    """Count the statements that stand behind a `return` of their block."""
    blocks = [block for node in ast.walk(tree) if isinstance(block := getattr(node, "body", None), list)]
    behind = (itertools.dropwhile(lambda one: not isinstance(one, ast.Return), block) for block in blocks)
    return sum(max(len(list(rest)) - 1, 0) for rest in behind)


def _returns_none(statements: list[ast.stmt]) -> bool:
    match statements:
        case [ast.Return(value=None | ast.Constant(value=None))]:
            return True
        case _:
            return False


def _plain(statement: ast.stmt, packages: Collection[str]) -> list[ast.stmt]:
    if isinstance(statement, ast.ClassDef) and statement.name == standin_class.NAME:
        return []
    if isinstance(statement, ast.Try) and (found := _guarded(statement)) and set(found) <= set(packages):
        return [one for inner in statement.body for one in _plain(inner, packages)]
    if packages and isinstance(statement, ast.Import):
        return [ast.copy_location(ast.Import(names=[alias]), statement) for alias in statement.names]
    return [statement]


def _guarded(node: ast.Try) -> list[str]:
    """Name the packages that a `try` of nothing but imports guards; none where it does something else."""
    if node.orelse or node.finalbody or len(node.handlers) != 1 or not _catches(node.handlers[0]):
        return []
    if any(isinstance(inner, ast.Raise) for inner in ast.walk(node.handlers[0])):
        return []
    names: list[str] = []
    for statement in node.body:
        match statement:
            case ast.Import(names=aliases):
                names += [alias.name.partition(".")[0] for alias in aliases]
            case ast.ImportFrom(module=str(module), level=0):
                names.append(module.partition(".")[0])
            case _:
                return []
    return names


def _catches(handler: ast.ExceptHandler) -> bool:
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(one, ast.Name) and one.id in _CAUGHT for one in types)


def _is_idle(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return not isinstance(statement.value.value, str)
    return isinstance(statement, ast.Pass)
