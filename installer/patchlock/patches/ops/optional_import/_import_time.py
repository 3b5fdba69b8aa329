"""What a Python file executes while it is imported without a package, in order; reads trees only.

Conditions whose answer is known are followed one way only, others both ways. Functions of the file are followed where
they are called: by name, by an alias, as a method of an object of a class of the file, as a decorator or constructor.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass

from patchlock.patches.ops.optional_import._constants import (
    Class,
    Code,
    Fixed,
    Instance,
    StandIn,
    Unbound,
    Value,
    Values,
    joined,
    truth,
    value_of,
)
from patchlock.patches.ops.optional_import._except_clauses import MISSING, Handlers, handler_of, is_exit, suppressed
from patchlock.patches.ops.optional_import._names import bound_names, own, stored

Parents = dict[int, tuple[ast.AST, str]]
"""By `id()` of a node: its parent, and the parent's field that holds it."""
_CONSTRUCTORS = ("__new__", "__init__", "__post_init__")
_DEEPEST = 30
"""Calls within calls that are followed."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A statement that is executed while the file is imported."""

    node: ast.stmt
    body: list[ast.stmt]
    """The block that it stands in."""
    guards: tuple[Handlers, ...]
    """The handlers of each `try` whose body it is in, innermost first; those around a call are around what it runs."""
    values: Values
    """What is known just before; it changes as soon as the next step is asked for."""
    nodes: tuple[ast.AST, ...]
    """What the statement itself evaluates, without the statements inside it."""
    parents: Parents
    """Of these nodes."""


def steps(tree: ast.Module, package: str) -> Iterator[Step]:
    """Give the statements that run at import, in the order in which they run; one in a function possibly twice."""
    yield from _Walk(tree, package).block(tree.body, (), {})


_Ends = Generator[Step, None, bool]
"""Steps; and whether the end of the block is not reached."""


class _Walk:
    def __init__(self, tree: ast.Module, package: str) -> None:
        self._package = package
        self._open = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
        """Names that functions may bind, of which nothing is ever known."""
        futures = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
        self._is_lazy = any(alias.name == "annotations" for node in futures for alias in node.names)
        self._running: list[int] = []
        self._possible: list[list[Values]] = []
        """For each `try` around that would end it: what is known where the package may be found missing."""
        self._followed: set[tuple[int, tuple[int, ...]]] = set()
        self._handling = 0
        """Line of the handler that runs because the package is missing."""

    def block(self, body: list[ast.stmt], guards: tuple[Handlers, ...], values: Values) -> _Ends:
        """Go through a block; `values` becomes what is known at its end."""
        for node in body:
            parents: Parents = {}
            nodes = tuple(self._evaluated(node, parents, values))
            yield Step(node=node, body=body, guards=guards, values=values, nodes=nodes, parents=parents)
            yield from self._calls(nodes, parents, guards, values)
            if (yield from self._statement(node, guards, values)):
                return True
        return False

    def _statement(self, node: ast.stmt, guards: tuple[Handlers, ...], values: Values) -> _Ends:
        match node:
            case ast.Import() | ast.ImportFrom():
                return self._import(node, guards, values)
            case ast.Try() | ast.TryStar():
                return (yield from self._try(node, tuple(node.handlers), guards, values))
            case ast.With() | ast.AsyncWith():
                handlers = suppressed(node.items)
                _forget(values, (item.optional_vars for item in node.items))
                if handlers:
                    return (yield from self._try(node, handlers, guards, values))
                return (yield from self.block(node.body, guards, values))
            case ast.If():
                known = truth(node.test, values, self._package)
                blocks = [node.body] * (known is not False) + [node.orelse] * (known is not True)
                return (yield from self._branches(blocks, guards, values))
            case ast.For() | ast.AsyncFor() | ast.While():
                _forget(values, [node])
                if isinstance(node, ast.While) and truth(node.test, values, self._package) is False:
                    return (yield from self.block(node.orelse, guards, values))
                yield from self._branches([node.body, []], guards, values)
                return (yield from self.block(node.orelse, guards, values)) if node.orelse else False
            case ast.Match():
                return (yield from self._branches([*(case.body for case in node.cases), []], guards, values))
            case ast.ClassDef():
                yield from self._class(node, guards, values)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                values[node.name] = Code(node=node)
            case ast.Return() | ast.Break() | ast.Continue():
                return True
            case _:
                self._bind(node, values)
                return is_exit(node)
        return False

    def _import(self, node: ast.Import | ast.ImportFrom, guards: tuple[Handlers, ...], values: Values) -> bool:
        ours = bound_names(node, self._package)
        for alias in node.names:
            values.pop(alias.asname or alias.name.partition(".")[0], None)
        if ours and handler_of(guards, MISSING)[1]:
            raise _MissingError
        values |= {name: StandIn() for name, _ in ours if name != "*" and name not in self._open}
        return False

    def _bind(self, node: ast.stmt, values: Values) -> None:
        """Learn what a simple statement binds."""
        known = self._given(node.value, values) if isinstance(node, ast.Assign | ast.AnnAssign) and node.value else None
        _forget(values, [node])
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if known is not None and isinstance(target, ast.Name) and target.id not in self._open:
                values[target.id] = known

    def _given(self, expression: ast.expr, values: Values) -> Value | None:
        known = value_of(expression, values)
        if known is None and (answer := truth(expression, values, self._package)) is not None:
            known = Fixed(value=answer)
        is_handler = isinstance(known, Fixed) and not self._running
        return dataclasses.replace(known, line=self._handling) if is_handler and isinstance(known, Fixed) else known

    def _branches(self, blocks: list[list[ast.stmt]], guards: tuple[Handlers, ...], values: Values) -> _Ends:
        """Go through blocks of which one runs; where the package is missed in some, the others go on."""
        ends: list[Values] = []
        missed: list[Values] = []
        for block in blocks:
            way = dict(values)
            try:
                if not (yield from self.block(block, guards, way)):
                    ends.append(way)
            except _MissingError:
                missed.append(way)
        if len(missed) == len(blocks):
            raise _MissingError
        if missed:
            self._possible[-1] += missed
        _become(values, joined(ends))
        return not ends

    def _try(
        self,
        node: ast.Try | ast.TryStar | ast.With | ast.AsyncWith,
        handlers: Handlers,
        guards: tuple[Handlers, ...],
        values: Values,
    ) -> _Ends:
        body: list[ast.stmt] = node.body
        orelse: list[ast.stmt] = getattr(node, "orelse", [])
        final: list[ast.stmt] = getattr(node, "finalbody", [])
        ours = handler_of([handlers], MISSING)[0]
        before, way = dict(values), dict(values)
        ends: list[Values] = []
        missed: list[Values] = []
        self._possible += [missed] if ours else []
        try:
            if not (yield from self.block(body, (handlers, *guards), way)) and not (
                yield from self.block(orelse, guards, way)
            ):
                ends.append(way)
            others = [handler for handler in handlers if handler is not ours or not missed]
        except _MissingError:
            if ours is None:
                yield from self.block(final, guards, way)
                raise
            missed.append(way)
            others = []
        finally:
            self._possible = self._possible[:-1] if ours else self._possible
        for handler in others:
            at_error = dict(before)
            _forget(at_error, body)
            if not (yield from self.block(handler.body, guards, at_error)):
                ends.append(at_error)
        if ours and missed:
            yield from self._handler(ours, body, joined(missed), guards, ends)
        _become(values, joined(ends))
        return (yield from self.block(final, guards, values)) or not ends

    def _handler(
        self,
        handler: ast.ExceptHandler,
        body: list[ast.stmt],
        values: Values,
        guards: tuple[Handlers, ...],
        ends: list[Values],
    ) -> Generator[Step, None, None]:
        """Go through the handler that runs because the package is missing."""
        inner = [inner for node in body for inner in ast.walk(node) if isinstance(inner, ast.stmt)]
        names = {name for node in inner for name, _ in bound_names(node, self._package)}
        values |= {name: Unbound(line=handler.lineno) for name in names - values.keys()}
        outer, self._handling = self._handling, handler.lineno
        if not (yield from self.block(handler.body, guards, values)):
            ends.append(values)
        self._handling = outer

    # --- classes and functions of the file

    def _class(self, node: ast.ClassDef, guards: tuple[Handlers, ...], values: Values) -> Generator[Step, None, None]:
        inside = dict(values)
        yield from self.block(node.body, guards, inside)
        bases = [value_of(base, values) for base in node.bases]
        if any(isinstance(base, StandIn) for base in bases):
            values[node.name] = StandIn(is_derived=True)
            return
        members = {name: value for name, value in inside.items() if values.get(name) is not value}
        values[node.name] = Class(members=members, bases=tuple(base for base in bases if isinstance(base, Class)))

    def _calls(
        self,
        nodes: tuple[ast.AST, ...],
        parents: Parents,
        guards: tuple[Handlers, ...],
        values: Values,
    ) -> Generator[Step, None, None]:
        """Follow what a statement calls."""
        for inner in reversed(nodes):
            is_decorator = parents[id(inner)][1] == "decorator_list"
            if isinstance(inner, ast.Call):
                for code in _codes(value_of(inner.func, values)):
                    yield from self._enter(code, guards, values, is_decorated=is_decorator)
            elif is_decorator and isinstance(inner, ast.expr):
                for code in _codes(value_of(inner, values)):
                    yield from self._enter(code, guards, values)

    def _enter(
        self, code: Code, guards: tuple[Handlers, ...], values: Values, *, is_decorated: bool = False
    ) -> Generator[Step, None, None]:
        """Follow a call into a function; of a decorator with arguments, also the function that it gives."""
        node = code.node
        entry = (id(node), tuple(map(id, guards)))
        if isinstance(node, ast.AsyncFunctionDef) or entry in self._followed or len(self._running) > _DEEPEST:
            return
        body: list[ast.stmt] = (
            [ast.copy_location(ast.Expr(value=node.body), node)] if isinstance(node, ast.Lambda) else node.body
        )
        if any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in own(body)):
            return
        self._followed.add(entry)
        inside = dict(values)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for name in [*(argument.arg for argument in arguments), *stored(body)]:
            inside.pop(name, None)
        if code.owner and arguments:
            is_class = arguments[0].arg in {"cls", "mcs"}
            inside[arguments[0].arg] = code.owner if is_class else Instance(of=code.owner)
        self._running.append(id(node))
        try:
            yield from self.block(body, guards, inside)
        finally:
            self._running.pop()
        returned = [
            inner.value for inner in body if isinstance(inner, ast.Return) and isinstance(inner.value, ast.Name)
        ]
        for given in returned if is_decorated else ():
            for found in _codes(inside.get(given.id)):
                yield from self._enter(found, guards, inside)

    def _evaluated(self, statement: ast.stmt, parents: Parents, values: Values) -> Iterator[ast.AST]:
        """Give the nodes that a statement itself evaluates, outer ones first; fill in their parents."""
        stack: list[ast.AST] = [statement]
        while stack:
            parent = stack.pop()
            for node, field in self._inner(parent, values):
                parents[id(node)] = (parent, field)
                stack.append(node)
                yield node

    def _inner(self, parent: ast.AST, values: Values) -> Iterator[tuple[ast.AST, str]]:
        """Give the parts of a node that are evaluated: no statements, bodies of lambdas, or ways that are not taken."""
        for field, value in ast.iter_fields(parent):
            if (isinstance(parent, ast.Lambda) and field == "body") or self._is_never(parent, field):
                continue
            if isinstance(parent, ast.IfExp) and field != "test":
                known = truth(parent.test, values, self._package)
                if known is not None and known is not (field == "body"):
                    continue
            for node in value if isinstance(value, list) else (value,):
                if isinstance(node, ast.AST) and not isinstance(node, ast.stmt | ast.ExceptHandler):
                    yield node, field
                if isinstance(node, ast.expr) and self._decides(node, parent, values):
                    break

    def _decides(self, operand: ast.expr, parent: ast.AST, values: Values) -> bool:
        """Tell whether the operands behind this one are not evaluated."""
        is_or = isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.Or)
        return isinstance(parent, ast.BoolOp) and truth(operand, values, self._package) is is_or

    def _is_never(self, parent: ast.AST, field: str) -> bool:
        """Tell whether an annotation is not evaluated: all of a file that says so, and those of local names."""
        is_local = bool(self._running) and isinstance(parent, ast.AnnAssign)
        return field in {"annotation", "returns"} and (self._is_lazy or is_local)


class _MissingError(Exception):
    """The package is missing, and a `try` ends that."""


def _codes(value: object) -> Iterator[Code]:
    """Give what a call of a value runs."""
    if isinstance(value, Code):
        yield value
    if isinstance(value, Class):
        yield from (code for name in _CONSTRUCTORS if (code := value.method(name)))


def _forget(values: Values, nodes: Iterable[ast.AST | None]) -> None:
    for name in stored(node for node in nodes if node):
        values.pop(name, None)


def _become(values: Values, other: Values) -> None:
    values.clear()
    values |= other
