"""Recognise code that takes CUDA where it is there and else the CPU; edits nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

from patchlock.patches.ops._device.guards import KINDS, Guards, ends, kind_of
from patchlock.patches.ops._device.strings import is_device
from patchlock.patches.ops._device.walk import Spot
from patchlock.patches.ops.syntax import last_name


class Choice(NamedTuple):
    """An expression that is CUDA where a test is true, and else the CPU."""

    test: ast.expr
    taken: ast.expr
    cpu: ast.expr


class Branches(NamedTuple):
    """What runs where a test is true, and what runs, or has run already, where it is not."""

    test: ast.expr
    taken: list[ast.stmt]
    others: list[ast.stmt]
    are_around: bool = False
    """The others stand in front of the statement or behind it."""
    given: frozenset[str] = frozenset()
    """Code of names that a caller, or a statement in front, has given a device."""
    defaults: tuple[tuple[str, ast.expr], ...] = ()
    """Code of the names of parameters, with their default values; none where something is assigned in front."""


def choice_of(guards: Guards, node: ast.expr) -> Choice | None:
    """Give the choice that an expression is, with the CPU that it ends with: `CUDA if it is there else CPU`."""
    for test, taken, other in _alternatives(guards, node):
        leaf = other
        while isinstance(leaf, ast.IfExp) and kind_of(leaf.body) != guards.kind:
            leaf = leaf.orelse
        is_cpu = kind_of(leaf) == "cpu" or is_misspelt(leaf) or (isinstance(leaf, ast.Constant) and leaf.value == "CPU")
        is_named = any(word in last_name(taken).lower() for word in ("cuda", "device", "gpu"))
        if is_cpu and (is_named or is_device(taken) or kind_of(taken) == "cuda" or is_device(_argument(taken))):
            return Choice(test, taken, leaf)
    return None


def _alternatives(guards: Guards, node: ast.expr) -> Iterator[tuple[ast.expr, ast.expr, ast.expr]]:
    """Give a test, what an expression is where it is true, and what it is else."""
    match node:
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield test, body, orelse
            if guards.kind != "cpu":
                yield _negated(test), orelse, body
        case _ if guards.kind == "cpu":
            return
        case ast.BoolOp(op=ast.Or(), values=[ast.BoolOp(op=ast.And(), values=[*tests, taken]), other]):
            yield tests[0] if len(tests) == 1 else ast.BoolOp(op=ast.And(), values=tests), taken, other
        case ast.Subscript(value=ast.List(elts=[other, taken]) | ast.Tuple(elts=[other, taken]), slice=test):
            yield _bare(test), taken, other
        case ast.Subscript(value=ast.Dict(keys=keys, values=[first, second]), slice=test):
            match [key.value for key in keys if isinstance(key, ast.Constant)]:
                case [True, False]:
                    yield _bare(test), first, second
                case [False, True]:
                    yield _bare(test), second, first
                case _:
                    pass
        case _:
            pass


def _bare(test: ast.expr) -> ast.expr:
    """Give what is asked in `int(what)` and `bool(what)`."""
    match test:
        case ast.Call(func=ast.Name(id="int" | "bool"), args=[inner], keywords=[]):
            return inner
        case _:
            return test


def _negated(test: ast.expr) -> ast.expr:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case _:
            return ast.UnaryOp(op=ast.Not(), operand=test)


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


def branches_of(guards: Guards, spot: Spot, node: ast.If) -> Iterator[Branches]:
    """Give the branches of a statement by its test and by the contrary, with what stands around it."""
    others, is_end = node.orelse, True
    while len(others) == 1 and isinstance(others[0], ast.If):
        if any(kind_of(value) == guards.kind for one in others[0].body for _, value in _gifts(one)):
            return  # it chooses the machine's device itself
        is_end &= ends(others[0].body)
        others = others[0].orelse
    test, body = node.test, node.body
    while not node.orelse and len(body) == 1 and isinstance(body[0], ast.If) and not body[0].orelse:
        test, body = ast.BoolOp(op=ast.And(), values=[test, body[0].test]), body[0].body
    rest = _behind(guards, spot) if ends(body) and is_end else []
    before = _before(spot)
    defaults = () if others else tuple(_defaults(spot))
    yield Branches(test, body, others or [*before, *rest], are_around=not others, defaults=defaults)
    in_front = [statement for statement in before if not any(kind_of(v) == "cpu" for _, v in _gifts(statement))]
    named = frozenset(target for s in node.body for target, _ in _gifts(s) if "device" in target.lower())
    yield Branches(_negated(node.test), [*in_front, *(node.orelse or rest)], node.body, given=named)


def cpu_fallbacks(branches: Branches) -> Iterator[ast.expr]:
    """Give the texts `"cpu"` that take effect where the test is not true that CUDA is taken by."""
    chosen = {*_chosen(branches.taken), *branches.given}
    for target, value in (*(pair for one in branches.others for pair in _gifts(one)), *branches.defaults):
        if kind_of(value) == "cpu" and target in chosen:
            yield _argument(value)


def _chosen(block: list[ast.stmt]) -> Iterator[str]:
    """Give the code of what a block gives a CUDA device to, whatever else is asked there."""
    for statement in block:
        yield from (target for target, value in _gifts(statement) if is_device(value) or is_device(_argument(value)))
        if isinstance(statement, ast.If):
            others = set(_chosen(statement.orelse))
            yield from (target for target in _chosen(statement.body) if target in others)


def _gifts(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Give what a statement gives a value to, as code, with that value: a name, or the caller."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            yield from zip(map(ast.unparse, targets), values, strict=True)
        case ast.Assign(targets=targets, value=value):
            yield ", ".join(map(ast.unparse, targets)), value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield ast.unparse(target), value
        case ast.Return(value=ast.expr() as value):
            yield "return", value
        case _:
            pass


def _before(spot: Spot) -> list[ast.stmt]:
    """Give the statements in front of one in which a choice may begin: `d = "cpu"`, the last for each name."""
    siblings, at = _siblings(spot)
    last: dict[str, ast.stmt] = {}
    for statement in siblings[:at]:
        last |= {target: statement for target, _ in _gifts(statement)}
    return list({id(statement): statement for statement in last.values()}.values())


def _defaults(spot: Spot) -> Iterator[tuple[str, ast.expr]]:
    """Give the parameters that still have their default values in a statement of a function's own block."""
    if not isinstance(spot.parent, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    siblings, at = _siblings(spot)
    assigned = {target for statement in siblings[:at] for target, _ in _gifts(statement)}
    arguments = spot.parent.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    yield from ((name.arg, value) for name, value in pairs if value is not None and name.arg not in assigned)


def _behind(guards: Guards, spot: Spot) -> list[ast.stmt]:
    """Give the statements behind one, unless they choose the machine's device themselves."""
    siblings, at = _siblings(spot)
    rest = siblings[at + 1 :]
    while spot.around and isinstance(spot.parent, ast.If) and spot.field == "orelse" and ends(spot.parent.body):
        spot = spot.around
        siblings, at = _siblings(spot)
        rest = [*rest, *siblings[at + 1 :]]
    while rest and isinstance(rest[-1], ast.If) and rest[-1].orelse:  # other GPUs, and then the CPU
        rest = [*rest, *rest[-1].orelse]
    return [] if any(kind_of(node) == guards.kind for one in rest for node in ast.walk(one)) else rest


def _siblings(spot: Spot) -> tuple[list[ast.stmt], int]:
    siblings = getattr(spot.parent, spot.field, [])
    return siblings, next((index for index, sibling in enumerate(siblings) if sibling is spot.node), 0)


def pairs_of(node: ast.IfExp) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Give what stands at the same place of two tuples: `("cuda", 1) if torch.cuda.is_available() else ("cpu", 0)`."""
    match node:
        case ast.IfExp(body=ast.Tuple(elts=taken), orelse=ast.Tuple(elts=others)) if len(taken) == len(others):
            yield from zip(taken, others, strict=True)
        case _:
            pass


def _argument(node: ast.expr) -> ast.expr:
    """Give `"cpu"` of `torch.device("cpu")`, and any other expression itself."""
    is_call = isinstance(node, ast.Call) and last_name(node.func) == "device" and node.args
    return node.args[0] if is_call and isinstance(node, ast.Call) else node
