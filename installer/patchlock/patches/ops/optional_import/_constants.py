"""What is known of names and conditions while a package is absent; three answers: so, not so, and not known."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from patchlock.patches.ops.optional_import import standin_class

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """A constant."""

    value: object
    line: int = 0
    """Of the handler that bound it where the package is missing; 0: it is always so."""


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """What stands for a name of the package, or a class that derives from it."""

    is_sure: bool = True
    is_derived: bool = False


@dataclass(frozen=True, kw_only=True)
class Unbound:
    """A name that nothing binds where the package is missing."""

    line: int
    """Of the handler that leaves it so."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Code:
    """A function of the file."""

    node: Definition
    owner: Class | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Class:
    """A class of the file."""

    members: Values
    bases: tuple[Class, ...]

    def method(self, name: str) -> Code | None:
        """Find a method, also in the classes above."""
        found = self.members.get(name)
        if isinstance(found, Code):
            return Code(node=found.node, owner=self)
        return next((code for base in self.bases if (code := base.method(name))), None)


@dataclass(frozen=True, kw_only=True)
class Instance:
    """An object of a class of the file."""

    of: Class


Value = Fixed | StandIn | Unbound | Code | Class | Instance
Values = dict[str, Value]
"""What is known of the names that are visible; a name that is not here is not known."""


def joined(ways: Iterable[Values]) -> Values:
    """Give what is known where several ways meet; a stand-in of one way remains a possible one."""
    some = list(ways)
    first = some[0] if some else {}
    known = {name: value for name, value in first.items() if all(way.get(name) == value for way in some)}
    for way in some:
        for name, value in way.items():
            if isinstance(value, StandIn) and name not in known:
                known[name] = dataclasses.replace(value, is_sure=False)
    return known


def value_of(node: ast.expr, values: Values) -> Value | None:
    """Say what an expression gives, as far as that is known."""
    match node:
        case ast.Constant(value=value):
            return Fixed(value=value)
        case ast.Name(id=name):
            return values.get(name)
        case ast.Attribute(value=inner, attr=name):
            match value_of(inner, values):
                case StandIn(is_derived=False) as stand_in:
                    return stand_in
                case Class() as class_:
                    return class_.method(name)
                case Instance(of=class_):
                    return class_.method(name)
        case ast.Subscript(value=inner):
            found = value_of(inner, values)
            return found if isinstance(found, StandIn) and not found.is_derived else None
        case ast.Call(func=function, args=arguments):
            if ast.unparse(function).startswith(standin_class.NAME):
                return StandIn()
            if ast.unparse(function) in {"partial", "functools.partial"} and arguments:
                return value_of(arguments[0], values)
            found = value_of(function, values)
            return Instance(of=found) if isinstance(found, Class) else None
        case ast.Lambda():
            return Code(node=node)
        case _:
            return None
    return None


def truth(test: ast.expr, values: Values, package: str) -> bool | None:
    """Say whether a condition holds while the file is imported and the package is absent; `None`: it is not known."""
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return False
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = truth(operand, values, package)
            return None if inner is None else not inner
        case ast.BoolOp(op=op, values=operands):
            deciding = isinstance(op, ast.Or)
            found = [truth(operand, values, package) for operand in operands]
            if deciding in found:
                return deciding
            return None if None in found else not deciding
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compared(left, op, right, values, package)
        case ast.Call() if _asks_for(test, package):
            return False
        case _:
            match value_of(test, values):
                case Fixed(value=value):
                    return bool(value)
                case StandIn(is_sure=True, is_derived=False):
                    return False
                case _:
                    return None


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr, values: Values, package: str) -> bool | None:
    if {"__name__", "'__main__'"} == {ast.unparse(left), ast.unparse(right)}:
        return isinstance(op, ast.NotEq)
    if isinstance(op, ast.In | ast.NotIn):
        is_asked = isinstance(left, ast.Constant) and left.value == package and ast.unparse(right) == "sys.modules"
        return isinstance(op, ast.NotIn) if is_asked else None
    if not isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        return None
    match [Fixed(value=None) if _asks_for(side, package) else value_of(side, values) for side in (left, right)]:
        case [Fixed(value=a), Fixed(value=b)]:
            is_same = a == b
        case [StandIn(is_sure=True), Fixed()] | [Fixed(), StandIn(is_sure=True)]:
            is_same = False
        case _:
            return None
    return is_same if isinstance(op, ast.Is | ast.Eq) else not is_same


def _asks_for(node: ast.expr, package: str) -> bool:
    """Tell whether a call asks whether the package is there: `find_spec("x")`, `is_x_available()`."""
    if not isinstance(node, ast.Call):
        return False
    function = ast.unparse(node.func).rpartition(".")[2]
    if function.strip("_") in {f"is_{package}_available", f"has_{package}"}:
        return True
    is_told = bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value == package
    return is_told and function in {"find_spec", "find_loader", "_is_package_available", "is_package_available"}
