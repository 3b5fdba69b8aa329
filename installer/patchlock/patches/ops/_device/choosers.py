"""Recognise code that takes CUDA where it is there and else the CPU; edits nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from patchlock.patches.ops._device.guards import KINDS, Guards, kind_of
from patchlock.patches.ops._device.strings import is_device
from patchlock.patches.ops._device.walk import Spot
from patchlock.patches.ops.syntax import last_name, same


def leaf_of(guards: Guards, node: ast.IfExp) -> ast.expr | None:
    """Give the CPU that `CUDA if it is there else CPU` ends with; `None` where an expression is no such choice."""
    if not guards.rules_out(node.test, True) or not guards.asks(node.test):
        return None
    is_named = any(word in last_name(node.body).lower() for word in ("cuda", "device", "gpu"))
    if not (is_named or is_device(node.body) or kind_of(node.body) == "cuda" or is_device(_argument(node.body))):
        return None
    leaf = node.orelse
    while isinstance(leaf, ast.IfExp):
        if kind_of(leaf.body) == guards.kind:
            return None  # it chooses the machine's device itself
        leaf = leaf.orelse
    is_cpu = kind_of(leaf) == "cpu" or is_misspelt(leaf) or (isinstance(leaf, ast.Constant) and leaf.value == "CPU")
    return leaf if is_cpu else None


def may_be_cuda(value: ast.expr) -> bool:
    """Tell whether a value is a CUDA device, or a choice with one."""
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            return may_be_cuda(body) or may_be_cuda(orelse)
        case ast.BoolOp(values=values):
            return any(map(may_be_cuda, values))
        case _:
            return is_device(_argument(value))


def is_misspelt(node: ast.AST) -> TypeGuard[ast.Call]:
    """Tell whether a node is `torch.device("CPU")`, which PyTorch refuses."""
    match node:
        case ast.Call(func=function, args=[ast.Constant(value=str() as text)]) if last_name(function) == "device":
            return text not in KINDS and text.lower() in {"cpu", "cuda"}
        case _:
            return False


def cpu_fallbacks(guards: Guards, spot: Spot, node: ast.If) -> Iterator[ast.expr]:
    """Give the texts `"cpu"` that take effect where the test of a choosing statement finds no CUDA."""
    if not guards.rules_out(node.test, True) or not guards.asks(node.test):
        return
    chosen = [statement for statement in node.body if _names_cuda(statement)]
    last: list[ast.stmt] = [node]
    while len(last) == 1 and isinstance(last[0], ast.If):
        if any(kind_of(value) == guards.kind for value in map(_value, last[0].body) if value):
            return  # it chooses the machine's device itself
        last = last[0].orelse
    for statement in last if node.orelse else before(spot):
        value = _value(statement)
        if value and kind_of(value) == "cpu" and any(_is_twin(statement, one) for one in chosen):
            yield _argument(value)


def before(spot: Spot) -> list[ast.stmt]:
    """Give the statements in front of one in which a choice may begin: `d = "cpu"`."""
    siblings = getattr(spot.parent, spot.field, [])
    at = next((index for index, sibling in enumerate(siblings) if sibling is spot.node), 0)
    return siblings[max(0, at - 3) : at]


def _value(statement: ast.stmt) -> ast.expr | None:
    value = getattr(statement, "value", None)
    return value if isinstance(value, ast.expr) else None


def _names_cuda(statement: ast.stmt) -> bool:
    value = _value(statement)
    return value is not None and (is_device(value) or is_device(_argument(value)))


def _is_twin(left: ast.stmt, right: ast.stmt) -> bool:
    """Tell whether two statements give a value to the same thing."""
    if isinstance(left, ast.Assign) and isinstance(right, ast.Assign):
        return len(left.targets) == len(right.targets) and all(map(same, left.targets, right.targets))
    return isinstance(left, ast.Return) and isinstance(right, ast.Return)


def _argument(node: ast.expr) -> ast.expr:
    """Give `"cpu"` of `torch.device("cpu")`, and any other expression itself."""
    is_call = isinstance(node, ast.Call) and last_name(node.func) == "device" and node.args
    return node.args[0] if is_call and isinstance(node, ast.Call) else node
