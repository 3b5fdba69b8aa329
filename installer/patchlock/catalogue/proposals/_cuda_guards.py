"""Which lines of a file run only where CUDA is there, as the file asks for it before; pure."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from packaging.specifiers import SpecifierSet

from patchlock.catalogue.proposals import _gpu_packages, module_names

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LEAVES = ast.Return | ast.Raise | ast.Continue | ast.Break


def guarded_lines(module: ast.Module) -> frozenset[int]:
    """List the lines below a question for CUDA, and those of functions and values that the file uses only below one."""
    lines = frozenset(line for node in ast.walk(module) for line in _below(node))
    calls: dict[str, list[bool]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            calls.setdefault(name, []).append(node.lineno in lines)
    functions = [one for one in ast.walk(module) if isinstance(one, _Function) and all(calls.get(one.name, [False]))]
    loads: dict[str, list[bool]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads.setdefault(node.id, []).append(node.lineno in lines)
    values = [one for one in ast.walk(module) if all(loads.get(_assigned(one), [False]))]
    return lines.union(*(_lines([one]) for one in (*functions, *values) if isinstance(one, ast.stmt)))


def idle_lines(module: ast.Module) -> frozenset[int]:
    """List the lines of values that are replaced by the next statement of their block which names them."""
    found: set[int] = set()
    for block in (block for node in ast.walk(module) for block in _blocks(node)):
        for index, one in enumerate(block):
            if name := _assigned(one):
                later = next((after for after in block[index + 1 :] if name in _names(after)), None)
                if isinstance(later, ast.Assign) and _assigned(later) == name and name not in _names(later.value):
                    found.update(_lines([one]))
    return frozenset(found)


def taken_over_lines(module: ast.Module, devices: Collection[str]) -> frozenset[int]:
    """List the lines of values that a question for devices replaces, before anything else names them."""
    found: set[int] = set()
    for block in (block for node in ast.walk(module) for block in _blocks(node)):
        for index, one in enumerate(block):
            if isinstance(one, ast.If) and all(device in ast.unparse(one.test).lower() for device in devices):
                for name in {_target(inner) for inner in one.body} - {""}:
                    before = next((before for before in block[:index][::-1] if name in ast.unparse(before)), one)
                    made = [inner for inner in ast.walk(before) if _target(inner) == name] if before is not one else []
                    found.update(*(_lines([inner]) for inner in made if isinstance(inner, ast.stmt)))
    return frozenset(found)


def default_lines(module: ast.Module) -> frozenset[int]:
    """List the lines of what parameters are where no caller gives them another value."""
    every = [node for node in ast.walk(module) if isinstance(node, ast.arguments)]
    return frozenset(
        line for node in every for one in (*node.defaults, *node.kw_defaults) if one for line in _lines([one])
    )


def _assigned(node: ast.AST) -> str:
    """Name the one variable that a statement gives a value; "" for none."""
    name = _target(node)
    return name if name.isidentifier() else ""


def _target(node: ast.AST) -> str:
    """Write the one variable or attribute that a statement gives a value; "" for none."""
    match node:
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]):
            return ast.unparse(target)
        case _:
            return ""


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, [])
        yield block if isinstance(block, list) else []


def _below(node: ast.AST) -> Iterator[int]:
    if isinstance(node, ast.If | ast.IfExp):
        body, orelse = ([one] if isinstance(one, ast.expr) else one for one in (node.body, node.orelse))
        yield from _lines(body if _asks(node.test) else orelse if _asks(node.test, is_there=False) else [])
    for block in _blocks(node):
        for index, one in enumerate(block):
            if _ends_without(one):
                yield from _lines(block[index + 1 :])


def _ends_without(one: ast.AST) -> bool:
    """Tell whether what follows a statement runs only where CUDA is: it leaves otherwise, or imports what is CUDA's."""
    if isinstance(one, ast.If):
        return isinstance(one.body[-1], _LEAVES) and _asks(one.test, is_there=False)
    names = [alias.name for alias in one.names] if isinstance(one, ast.Import) else []
    names += [one.module or ""] if isinstance(one, ast.ImportFrom) and not one.level else []
    found = (_gpu_packages.find(module_names.distribution_of(name), SpecifierSet()) for name in names)
    return any(package is not None and package.needs == "nvidia" for package in found)


def _lines(block: Sequence[ast.stmt | ast.expr]) -> range:
    return range(block[0].lineno, (block[-1].end_lineno or block[-1].lineno) + 1) if block else range(0)


def _asks(test: ast.expr, *, is_there: bool = True) -> bool:
    """Tell whether a condition is false where CUDA is not, or, with `is_there` false, true there: its parts name it."""
    match test:
        case ast.BoolOp(op=op, values=values):
            return (any if isinstance(op, ast.And) is is_there else all)(
                _asks(one, is_there=is_there) for one in values
            )
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _asks(operand, is_there=not is_there)
        case ast.Compare(ops=[ast.NotEq() | ast.NotIn() | ast.IsNot()]) if is_there:
            return False
        case ast.Compare(ops=[ast.NotEq()]):
            return "cuda" in ast.unparse(test).lower()
        case _:
            return is_there and "cuda" in ast.unparse(test).lower()
