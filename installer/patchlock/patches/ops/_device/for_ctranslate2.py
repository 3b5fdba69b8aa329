"""Which values of a file go to CTranslate2 alone, which computes on CUDA or the CPU; edits nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from patchlock.patches.ops._device import calls
from patchlock.patches.ops._device.guards import dotted
from patchlock.patches.ops.syntax import last_name, nodes_of

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SAYS = re.compile(r"ctranslate ?2|faster[-_ ]?whisper|whisperx", re.IGNORECASE)
_MESSAGES = frozenset({"print", "debug", "info", "warning", "error", "log"})


def only_for_ctranslate2(tree: ast.Module, names: calls.Names) -> frozenset[int]:
    """Give the ids of the expressions of which devices are made that nothing but CTranslate2 is given.

    What is compared, or told to people, is given to nothing.
    """
    nodes = nodes_of(tree) if names.cuda_or_cpu else ()
    models = [node for node in nodes if isinstance(node, ast.Call) and calls.is_of_ctranslate2(names, node)]
    taken = {id(value) for call in models for name, value in calls.told(call) if name == "device"}
    if not taken:
        return frozenset()
    parents = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
    made = _made(tree)
    loads: dict[str, list[ast.AST]] = {name: [] for name in made}
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and last_name(node) in loads:
            loads[last_name(node)] += [] if dotted(node).startswith("torch.") else [node]
    keys = {node.value for node in nodes if isinstance(node, ast.Constant)}
    functions = {node.name for node in nodes if isinstance(node, _Function)}
    inside = {id(inner) for node in nodes if id(node) in taken for inner in ast.walk(node)}
    kept = {name for name in functions & loads.keys() if any(id(load) not in inside for load in loads[name])}
    left = {
        name for name in made if name not in keys and (name not in functions or name in kept)
    }  # calls in `taken` are replaced
    before = -1
    while before != len(left):
        before = len(left)
        left = {name for name in left if all(_is_told(load, parents, taken, left) for load in loads[name])}
    return frozenset(id(inner) for name in left for value in made[name] for inner in ast.walk(value))


def is_offered_for_ctranslate2(call: ast.AST | None) -> bool:
    """Tell whether an option of a command line says that it is for CTranslate2, or for what computes with it."""
    texts = [node.value for node in ast.walk(call) if isinstance(node, ast.Constant)] if call is not None else []
    return any(isinstance(text, str) and bool(_SAYS.search(text)) for text in texts)


def _made(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Give what names are given, and functions return."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes_of(tree):
        match node:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                found.setdefault(last_name(target), []).append(value)
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=[*_, ast.Constant(value=str() as option)]):
                name = option.lstrip("-").replace("-", "_")
                values = [one.value for one in node.keywords if one.arg in {"choices", "default"}]
                found.setdefault(name, []).extend(values)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.setdefault(name, []).extend(_returned(node))
            case _:
                pass
    return {name: values for name, values in found.items() if name and values}


def _returned(function: ast.AST) -> Iterator[ast.expr]:
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif not isinstance(node, _Function | ast.Lambda):
            yield from _returned(node)


def _is_told(load: ast.AST, parents: Mapping[int, ast.AST], taken: set[int], names: set[str]) -> bool:
    """Tell whether what is read goes to CTranslate2, to one of some names, or to nothing."""
    here = load
    while True:
        around = parents.get(id(here))
        if id(here) in taken:
            return True
        match around:
            case ast.Compare() | ast.FormattedValue():
                return True
            case ast.Call(func=function) if function is here:
                pass
            case ast.Call(func=function):
                return last_name(function) in _MESSAGES
            case ast.IfExp(test=test) if test is here:
                return True
            case ast.IfExp() | ast.BoolOp():
                pass
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                return last_name(target) in names
            case _:
                return False
        here = around
