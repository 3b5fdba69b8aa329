"""Which devices of a file reach nothing that computes but libraries that know CUDA and the CPU alone; runs nothing."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence

from patchlock.patches.postconditions._without_cuda import name_of

_SAID = {"print", "debug", "info", "warning", "error", "log"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def only_for_libraries(nodes: Sequence[ast.AST], is_library: Callable[[ast.Call], bool]) -> frozenset[int]:
    """Give the ids of the expressions that a file gives to names, or returns, of which only such a library is told.

    Args:
        nodes: all nodes of the file.
        is_library: tells whether a call is one of such a library.
    """
    owners = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
    values: dict[str, list[ast.expr]] = {}
    uses: dict[str, list[ast.AST]] = {}
    functions = {node.name for node in nodes if isinstance(node, _Function)}
    has_device = False
    for node in nodes:
        match node:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                values.setdefault(_last(target), []).append(value)
            case ast.Return(value=ast.expr() as value):
                here = owners[id(node)]
                while not isinstance(here, _Function | ast.Module):
                    here = owners[id(here)]
                values.setdefault(getattr(here, "name", ""), []).append(value)
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()) if not name_of(node).startswith("torch."):
                uses.setdefault(_last(node), []).append(node)
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=[*_, ast.Constant(value=str() as option)]):
                given = [one.value for one in node.keywords if one.arg in {"choices", "default"}]
                values.setdefault(option.strip("-").replace("-", "_"), []).extend(given)
            case ast.Call():
                is_told = len(node.args) > 1 or any(one.arg == "device" for one in node.keywords)
                has_device |= is_told and is_library(node)
            case _:
                pass
    if not has_device:
        return frozenset()
    keys = {node.value for node in nodes if isinstance(node, ast.Constant)}
    names = {name for name in values if name not in keys and (name not in functions or name in uses)}
    while wrong := {
        name for name in names if not all(_is_harmless(use, owners, names, is_library) for use in uses.get(name, ()))
    }:
        names -= wrong
    return frozenset(id(part) for name in names for value in values[name] for part in ast.walk(value))


def _last(node: ast.AST) -> str:
    return name_of(node).split(".")[-1]


def _is_harmless(
    use: ast.AST, owners: dict[int, ast.AST], names: Collection[str], is_library: Callable[[ast.Call], bool]
) -> bool:
    """Tell whether what is read is only compared or said, or goes to such a library, or to one of the names."""
    for child, owner in _around(use, owners):
        match owner:
            case ast.Call(func=function) if function is child:
                continue
            case ast.Call(func=function):
                return is_library(owner) or _last(function) in _SAID
            case ast.Compare() | ast.FormattedValue():
                return True
            case ast.IfExp(test=test):
                if test is child:
                    return True
            case ast.BoolOp() | ast.keyword():
                continue
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                return _last(target) in names
            case _:
                return False
    return False


def _around(node: ast.AST, owners: dict[int, ast.AST]) -> Iterator[tuple[ast.AST, ast.AST]]:
    while id(node) in owners:
        yield node, owners[id(node)]
        node = owners[id(node)]
