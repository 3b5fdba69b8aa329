"""Say what a test asks besides whether CUDA is there: whether somebody wants a card at all; edits nothing."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Mapping

from patchlock.patches.ops._device.changes import only_asks
from patchlock.patches.ops._device.guards import Guards, kind_of
from patchlock.patches.ops.syntax import last_name

_OF_THE_MACHINE = frozenset({"torch", "sys", "platform", "os"})
_OF_THE_USER = frozenset({"environ", "getenv", "argv"})
_PLAIN = (
    *(ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.keyword, ast.List, ast.Tuple, ast.Set),
    *(ast.BoolOp, ast.UnaryOp, ast.Compare, ast.boolop, ast.unaryop, ast.cmpop, ast.expr_context),
)


def wishes(guards: Guards, test: ast.expr, given: Mapping[str, ast.expr]) -> list[ast.expr] | None:
    """Give what else has to be true for a test that is true only where CUDA is there.

    Args:
        guards: what is known without CUDA.
        test: the test.
        given: what the function around it has assigned to names.

    Returns:
        Code that can stand in the test's place, all of which has to be true: nothing where CUDA alone decides. None
        where something else does that cannot stand there.
    """
    return _wishes(guards, test, given, truth=True)


def joined(found: list[ast.expr]) -> str:
    """Give the code of all wishes together."""
    return ast.unparse(found[0] if len(found) == 1 else ast.BoolOp(op=ast.And(), values=found))


def _wishes(guards: Guards, test: ast.expr, given: Mapping[str, ast.expr], *, truth: bool) -> list[ast.expr] | None:
    is_ruled_out = guards.rules_out(test, truth)
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _wishes(guards, operand, given, truth=not truth)
        case ast.NamedExpr(value=value):
            return _wishes(guards, value, given, truth=truth)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is truth:
            return _all(_wishes(guards, value, given, truth=truth) for value in values)
        case ast.IfExp(test=choice, body=body, orelse=ast.Constant(value=value)) if truth and not value:
            return _all(_wishes(guards, part, given, truth=True) for part in (choice, body))
        case ast.IfExp():
            return None
        case ast.BoolOp(values=values) if is_ruled_out:
            return [] if _all(_wishes(guards, value, given, truth=truth) for value in values) == [] else None
        case ast.Name() | ast.Attribute() if is_ruled_out:
            return _of_flag(guards, test, given)
        case _ if is_ruled_out:
            device = _asked_for(test)
            return [] if device is None else _plain(_is_not_cpu(device))
        case _ if _is_of_the_machine(test):
            return []
        case _:
            return _plain(test if truth else ast.UnaryOp(op=ast.Not(), operand=test))


def _all(found: Iterable[list[ast.expr] | None]) -> list[ast.expr] | None:
    parts = list(found)
    return None if None in parts else [wish for part in parts for wish in part or ()]


def _of_flag(guards: Guards, flag: ast.Name | ast.Attribute, given: Mapping[str, ast.expr]) -> list[ast.expr] | None:
    name = last_name(flag)
    said = guards.values.get(name, ())
    others = dataclasses.replace(guards, values={key: value for key, value in guards.values.items() if key != name})
    if not any(map(guards.asks, said)):
        return []
    if all(_wishes(others, value, {}, truth=True) == [] for value in said):
        return []
    return _wishes(others, given[name], given, truth=True) if name in given else None


def _asked_for(test: ast.expr) -> ast.expr | None:
    """Give what a test compares with a device: `args.device` of `args.device == "cuda"`."""
    match test:
        case ast.Compare(left=left, comparators=[ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items)]):
            return left if any(map(kind_of, items)) else None
        case ast.Compare(left=left, comparators=[right]):
            return left if kind_of(right) else right if kind_of(left) else None
        case ast.Call(func=ast.Attribute(value=value, attr="startswith")):
            return value
        case _:
            return None


def _is_not_cpu(device: ast.expr) -> ast.expr:
    return ast.Compare(left=device, ops=[ast.NotEq()], comparators=[ast.Constant(value="cpu")])


def _plain(wish: ast.expr) -> list[ast.expr] | None:
    """Tell whether code can be executed in another place; None where it cannot."""
    is_plain = all(
        isinstance(node, _PLAIN) or (isinstance(node, ast.Call) and only_asks(node)) for node in ast.walk(wish)
    )
    return [wish] if is_plain else None


def _is_of_the_machine(test: ast.expr) -> bool:
    """Tell whether a test asks only what kind of machine it is."""
    names = [node.id for node in ast.walk(test) if isinstance(node, ast.Name)]
    of_user = any(isinstance(node, ast.Attribute) and node.attr in _OF_THE_USER for node in ast.walk(test))
    return all(name in _OF_THE_MACHINE for name in names) and not of_user
