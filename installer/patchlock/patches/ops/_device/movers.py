"""Recognise code that moves something to CUDA only if a device that is given is CUDA; edits nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from patchlock.patches.ops._device.guards import Guards, kind_of
from patchlock.patches.ops._device.strings import is_device
from patchlock.patches.ops._device.walk import Spot
from patchlock.patches.ops.syntax import last_name


class Mover(NamedTuple):
    """A choice by a device, of which one side moves something to CUDA and the other leaves it on the CPU."""

    field: str
    """The field of the choice that moves: `body` or `orelse`."""
    moving: list[ast.AST]
    """What stands in it."""
    literals: list[ast.expr]
    """The texts that the device is compared with."""


def mover_of(guards: Guards, spot: Spot, node: ast.If | ast.IfExp) -> Mover | None:
    """Tell of `if device == "cuda": model.cuda()` with `else: model.cpu()`, or with nothing."""
    given = Guards(kind=guards.kind, is_absent=False, kept=guards.kept)
    for field, truth in (("body", True), ("orelse", False)):
        if not given.rules_out(node.test, truth):
            continue
        literals = [*_compared(guards, node.test)]
        moving, other = _block(node, field), _block(node, "orelse" if truth else "body")
        tests = [node.test, *_tests_around(spot)]
        while truth and len(other) == 1 and isinstance(other[0], ast.If):
            tests.append(other[0].test)
            other = _block(other[0], "orelse")
        if not literals or any(kind_of(part) == guards.kind for test in tests for part in ast.walk(test)):
            return None
        moved = {ast.unparse(subject) for subject in _moved(moving, "cuda")}
        left = {ast.unparse(subject) for subject in _moved(other, "cpu")}
        if isinstance(node, ast.IfExp):
            left |= {ast.unparse(node.orelse if truth else node.body)}
        elif not other:
            left = moved - _moved_anyhow(spot, moving)
        if moved & left:
            return Mover(field, [inner for one in moving for inner in ast.walk(one)], literals)
    return None


def changed_comparison(test: ast.expr, literal: ast.expr, device: str) -> tuple[ast.expr | None, str]:
    """Give the display that a compared text stands in, if any, and the text that is right for another device."""
    kind = device.partition(":")[0]
    for node in ast.walk(test):
        match node:
            case ast.Compare(left=left, comparators=[ast.List() | ast.Tuple() | ast.Set() as display]):
                if any(item is literal for item in display.elts):
                    return display, kind if last_name(left) == "type" else device
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()]) if left is literal:
                return None, kind
            case ast.Compare(left=left, comparators=[right]) if literal in (left, right):
                return None, kind if "type" in map(last_name, (left, right)) else device
            case ast.Call(args=[prefix]) if prefix is literal:
                return None, kind
            case _:
                pass
    return None, device


def _block(node: ast.If | ast.IfExp, field: str) -> list[ast.AST]:
    value = getattr(node, field)
    return list(value) if isinstance(value, list) else [value]


def _compared(guards: Guards, test: ast.expr) -> Iterator[ast.expr]:
    """Give the texts that name CUDA in the comparisons of a test."""
    for node in ast.walk(test):
        match node:
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]):
                items = right.elts if isinstance(right, ast.List | ast.Tuple | ast.Set) else [left]
                yield from [one for one in items if is_device(one)][:1]
            case ast.Compare(left=left, ops=[_], comparators=[right]) if last_name(left) not in guards.kept:
                yield from (one for one in (left, right) if is_device(one))
            case ast.Call(func=ast.Attribute(attr="startswith"), args=[prefix]) if is_device(prefix):
                yield prefix
            case _:
                pass


def _tests_around(spot: Spot) -> Iterator[ast.expr]:
    """Give what was asked before in a chain of `elif`."""
    here: Spot | None = spot
    while here and here.field == "orelse" and isinstance(here.parent, ast.If) and len(here.parent.orelse) == 1:
        yield here.parent.test
        here = here.around


def _moved(block: Iterable[ast.AST], kind: str) -> Iterator[ast.expr]:
    """Give what code moves to a kind of device: `model` of `model.cuda()` and `model.to("cuda")`."""
    for node in (inner for one in block for inner in ast.walk(one)):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="to"), args=[device, *_]) if kind_of(device) == kind:
                yield value
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr == kind:
                yield value
            case _:
                pass


def _moved_anyhow(spot: Spot, moving: Sequence[ast.AST]) -> set[str]:
    """Give the code of what the function around moves elsewhere, wherever to."""
    around = spot
    while around.around and not isinstance(around.node, ast.FunctionDef | ast.AsyncFunctionDef):
        around = around.around
    known = {id(inner) for one in moving for inner in ast.walk(one)}
    return {
        ast.unparse(node.func.value)
        for node in ast.walk(around.node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and id(node) not in known
        if node.func.attr in {"to", "cuda", "xpu", "mps"}
    }
