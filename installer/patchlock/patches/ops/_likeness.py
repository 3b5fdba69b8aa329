"""Recognise statements that somebody has edited since a patch put them into a file; edits nothing."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from patchlock.patches.ops.syntax import same

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def edited_form(new: Sequence[ast.stmt], statements: Sequence[ast.stmt], here: range) -> ast.stmt | None:
    """Find where other statements stand in an edited form: half or more of what they do is done there, too.

    Only what does something counts: upstream has the same imports, tests and returns for reasons of its own.

    Args:
        new: what is looked for.
        statements: where.
        here: the indexes where it would stand if nobody had edited it; a call tells elsewhere, too.

    Returns:
        The first statement of that form; None where there is none.
    """
    units = [unit for statement in new for unit in _units(statement)]
    found = [(at, statement, unit) for at, statement in enumerate(statements) for unit in _units(statement)]
    akin = [
        [
            (at, statement)
            for at, statement, other in found
            if (at in here or _is_telling(unit)) and _is_akin(unit, other)
        ]
        for unit in units
    ]
    known = [places[0] for places in akin if places]
    return min(known, key=lambda place: place[0])[1] if known and 2 * len(known) >= len(units) else None


def _units(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Give what a statement does, without the tests and loops around it."""
    match statement:
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Raise() | ast.Expr(value=ast.Call() | ast.Await()):
            yield statement
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield statement
        case _:
            for child in ast.iter_child_nodes(statement):
                inner = [child] if isinstance(child, ast.stmt) else getattr(child, "body", [])
                for one in inner if isinstance(inner, list) else []:
                    yield from _units(one)


def _is_telling(unit: ast.stmt) -> bool:
    return isinstance(unit, _Definition) or any(isinstance(node, ast.Call) for node in ast.walk(unit))


def _is_akin(unit: ast.stmt, other: ast.stmt) -> bool:
    """Tell whether two statements do the same to the same thing, if not with all of the same values."""
    if isinstance(unit, _Definition):
        return isinstance(other, _Definition) and unit.name == other.name
    if type(unit) is not type(other) or _targets(unit) != _targets(other):
        return False
    ours, theirs = _value(unit), _value(other)
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(ours, ast.Call) and isinstance(theirs, ast.Call) and same(ours.func, theirs.func):
        return _subject(ours) == _subject(theirs) and _kept(_arguments(ours), _arguments(theirs)) > 1 / 2
    is_statement = isinstance(unit, ast.Expr | ast.Raise)
    return not is_statement and _kept([ours], [theirs]) > 2 / 3


def _targets(unit: ast.stmt) -> list[str]:
    match unit:
        case ast.Assign(targets=targets):
            return [ast.dump(target) for target in targets]
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return [ast.dump(target)]
        case _:
            return []


def _value(unit: ast.stmt) -> ast.expr | None:
    value: object = unit.exc if isinstance(unit, ast.Raise) else getattr(unit, "value", None)
    return value.value if isinstance(value, ast.Await) else value if isinstance(value, ast.expr) else None


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _subject(call: ast.Call) -> str:
    """Give the text that a call begins with, such as the variable that it sets."""
    match call.args:
        case [ast.Constant(value=str() as text), *_]:
            return text
        case _:
            return ""


def _kept(ours: Sequence[ast.expr], theirs: Sequence[ast.expr]) -> float:
    """Say how many of our names are among theirs: 1 for all, and where there are none."""
    names, others = Counter(_names(ours)), Counter(_names(theirs))
    return (names & others).total() / names.total() if names else 1


def _names(expressions: Sequence[ast.expr]) -> Iterator[str]:
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Name | ast.Attribute):
                yield node.id if isinstance(node, ast.Name) else node.attr
