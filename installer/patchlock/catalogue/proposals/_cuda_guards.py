"""Which lines of a file run only where CUDA is there, as the file asks for it before, and where it ends; pure."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from packaging.specifiers import SpecifierSet

from patchlock.catalogue.proposals import _gpu_packages, module_names
from patchlock.catalogue.proposals.reached_code import lines_of

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LEAVES = ast.Return | ast.Continue | ast.Break
_EXITS = frozenset({"exit", "_exit", "quit", "abort"})


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
    return lines.union(*(lines_of([one]) for one in (*functions, *values) if isinstance(one, ast.stmt)))


def ends(module: ast.Module) -> tuple[ast.stmt, ...]:
    """List the statements with which a file ends where CUDA is not: it raises or exits there, and nobody goes on."""
    every = (one for block in _lasting_blocks(module) for one in block if isinstance(one, ast.If | ast.Assert))
    found = tuple(one for one in every if _ends_there(one) and _is_sure(one.test))
    guarded = guarded_lines(module) if found else frozenset()
    return tuple(one for one in found if one.lineno not in guarded)


def ended_lines(module: ast.Module) -> frozenset[int]:
    """List the lines to which a file does not come without CUDA, after such an end or an import of what needs CUDA."""
    found: set[int] = set()
    for block in _lasting_blocks(module):
        for index, one in enumerate(block):
            if _ends_there(one) or _imports_of_cuda(one):
                found.update(lines_of(block[index + 1 :]))
    return frozenset(found)


def idle_lines(module: ast.Module) -> frozenset[int]:
    """List the lines of values that are replaced by the next statement of their block which names them."""
    found: set[int] = set()
    for block in (block for node in ast.walk(module) for block in _blocks(node)):
        for index, one in enumerate(block):
            if name := _assigned(one):
                later = next((after for after in block[index + 1 :] if name in _names(after)), None)
                if isinstance(later, ast.Assign) and _assigned(later) == name and name not in _names(later.value):
                    found.update(lines_of([one]))
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
                    found.update(*(lines_of([inner]) for inner in made if isinstance(inner, ast.stmt)))
    return frozenset(found)


def default_lines(module: ast.Module) -> frozenset[int]:
    """List the lines of what parameters are where no caller gives them another value."""
    every = [node for node in ast.walk(module) if isinstance(node, ast.arguments)]
    return frozenset(
        line for node in every for one in (*node.defaults, *node.kw_defaults) if one for line in lines_of([one])
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
        yield from lines_of(body if _asks(node.test) else orelse if _asks(node.test, is_there=False) else [])
    for block in _blocks(node):
        for index, one in enumerate(block):
            if isinstance(one, ast.If) and isinstance(one.body[-1], _LEAVES) and _asks(one.test, is_there=False):
                yield from lines_of(block[index + 1 :])


def _lasting_blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Give the blocks of a file, but those of a `try` that may go on where one of their statements fails."""
    for name, block in (("body", getattr(node, "body", [])), ("orelse", getattr(node, "orelse", []))):
        if isinstance(block, list) and not (name == "body" and isinstance(node, ast.Try) and node.handlers):
            yield block
            for one in block:
                yield from _lasting_blocks(one)


def _ends_there(one: ast.stmt) -> bool:
    if isinstance(one, ast.Assert):
        return _asks(one.test) and _is_sure(one.test)
    if not isinstance(one, ast.If) or not _asks(one.test, is_there=False):
        return False
    match one.body[-1]:
        case ast.Raise():
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in _EXITS
        case _:
            return False


def _is_sure(test: ast.expr) -> bool:
    """Tell whether a test asks for CUDA itself, and not for something that is called so, or one of several devices."""
    nodes = list(ast.walk(test))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    asked = {node.attr for node in nodes if isinstance(node, ast.Attribute) and "cuda" in ast.unparse(node)}
    return ("cuda" in texts or not asked.isdisjoint({"is_available", "is_cuda"})) and texts.isdisjoint({"cpu", "mps"})


def _imports_of_cuda(one: ast.stmt) -> bool:
    names = [alias.name for alias in one.names] if isinstance(one, ast.Import) else []
    names += [one.module or ""] if isinstance(one, ast.ImportFrom) and not one.level else []
    found = (_gpu_packages.find(module_names.distribution_of(name), SpecifierSet()) for name in names)
    return any(package is not None and package.needs == "nvidia" for package in found)


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
