"""Compare two syntax trees: which expressions were replaced, which statements added, which functions cut short.

A removed statement is left to a diff: what an op would leave in its place is not what the user commits.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Replaced:
    """An expression became another one."""

    levels: tuple[tuple[ast.expr, ast.expr], ...]
    """The pair, then each pair of expressions around it, outwards."""
    scope: str
    """`function`, `Class.method` or ""."""


@dataclass(frozen=True, kw_only=True)
class Returned:
    """A function returns at once now."""

    name: str
    """`function` or `Class.method`."""
    value: ast.expr | None


@dataclass(frozen=True, kw_only=True)
class Inserted:
    """Statements stand where there were none."""

    statements: tuple[ast.stmt, ...]
    below: ast.stmt | None
    """The one before them; None: they are the first of their block."""
    above: ast.stmt | None
    """The one behind them; None: they are the last."""
    scope: str


@dataclass(frozen=True, kw_only=True)
class Unknown:
    """Something else changed."""


Change = Replaced | Returned | Inserted | Unknown


def compare(before: ast.Module, after: ast.Module) -> Iterator[Change]:
    """Give the changes from one file to another, in source order."""
    yield from _blocks(before.body, after.body, "")


def _blocks(old: Sequence[ast.stmt], new: Sequence[ast.stmt], scope: str) -> Iterator[Change]:
    matcher = difflib.SequenceMatcher(None, [_code(s) for s in old], [_code(s) for s in new], autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "insert":
            yield _inserted(old, i, new[k:m], scope)
        elif tag != "equal":
            yield from _unequal(old[i:j], new[k:m], scope)


def _inserted(old: Sequence[ast.stmt], at: int, new: Sequence[ast.stmt], scope: str) -> Inserted:
    below, above = (old[at - 1] if at else None), (old[at] if at < len(old) else None)
    return Inserted(statements=tuple(new), below=below, above=above, scope=scope)


def _unequal(old: Sequence[ast.stmt], new: Sequence[ast.stmt], scope: str) -> Iterator[Change]:
    if len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            yield from _statements(one, other, scope)
        return
    matcher = difflib.SequenceMatcher(None, [_kind(s) for s in old], [_kind(s) for s in new], autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal" or j - i == m - k:
            for one, other in zip(old[i:j], new[k:m], strict=True):
                yield from _statements(one, other, scope)
        else:
            yield _inserted(old, i, new[k:m], scope) if tag == "insert" else Unknown()


def _statements(old: ast.stmt, new: ast.stmt, scope: str) -> Iterator[Change]:
    if _code(old) == _code(new):
        return
    if type(old) is not type(new):
        yield Unknown()
        return
    if isinstance(old, _Function | ast.ClassDef) and isinstance(new, _Function | ast.ClassDef):
        name = ".".join([*scope.split(".")[-1:], old.name]).strip(".")
        cut = _cut_short(old, new) if isinstance(old, _Function) and isinstance(new, _Function) else None
        if cut is not None:
            yield Returned(name=name, value=cut.value)
            return
        yield from _fields(old, new, scope, name)
        return
    yield from _fields(old, new, scope, scope)


def _fields(old: ast.AST, new: ast.AST, scope: str, inner: str) -> Iterator[Change]:
    """Compare field by field; `inner` is the scope of the body."""
    for field in old._fields:
        one, other = getattr(old, field, None), getattr(new, field, None)
        if isinstance(one, ast.expr) and isinstance(other, ast.expr):
            yield from _expressions(one, other, (), scope)
        elif isinstance(one, ast.AST) and isinstance(other, ast.AST) and type(one) is type(other):
            yield from _fields(one, other, scope, inner)
        elif isinstance(one, list) and isinstance(other, list):
            if all(isinstance(item, ast.stmt) for item in [*one, *other]):
                yield from _blocks(one, other, inner if field == "body" else scope)
            elif len(one) == len(other):
                for left, right in zip(one, other, strict=True):
                    yield from _items(left, right, scope, inner)
            else:
                yield Unknown()
        elif one != other:
            yield Unknown()


def _items(old: object, new: object, scope: str, inner: str) -> Iterator[Change]:
    if isinstance(old, ast.expr) and isinstance(new, ast.expr):
        yield from _expressions(old, new, (), scope)
    elif isinstance(old, ast.AST) and isinstance(new, ast.AST) and type(old) is type(new):
        yield from _fields(old, new, scope, inner)
    elif old != new:
        yield Unknown()


def _expressions(
    old: ast.expr, new: ast.expr, around: tuple[tuple[ast.expr, ast.expr], ...], scope: str
) -> Iterator[Change]:
    if _code(old) == _code(new):
        return
    pairs = _children(old, new)
    here = ((old, new), *around)
    if pairs is None:
        yield Replaced(levels=here, scope=scope)
        return
    for one, other in pairs:
        yield from _expressions(one, other, here, scope)


def _children(old: ast.expr, new: ast.expr) -> list[tuple[ast.expr, ast.expr]] | None:
    """Pair the expressions inside two of the same shape; `None` where they differ themselves."""
    if type(old) is not type(new) or isinstance(old, ast.JoinedStr | ast.Lambda | ast.Constant | ast.Name):
        return None
    if isinstance(old, ast.Call) and isinstance(new, ast.Call) and _code(old.func) != _code(new.func):
        same_arguments = [_code(a) for a in (*old.args, *old.keywords)] == [
            _code(a) for a in (*new.args, *new.keywords)
        ]
        return [(old.func, new.func)] if same_arguments else None
    pairs: list[tuple[ast.expr, ast.expr]] = []
    todo: list[tuple[object, object]] = [(getattr(old, f, None), getattr(new, f, None)) for f in old._fields]
    while todo:
        one, other = todo.pop(0)
        if isinstance(one, ast.expr) and isinstance(other, ast.expr):
            pairs.append((one, other))
        elif isinstance(one, ast.AST) and isinstance(other, ast.AST) and type(one) is type(other):
            todo += [(getattr(one, f, None), getattr(other, f, None)) for f in one._fields]
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            todo += zip(one, other, strict=True)
        elif one != other:
            return None
    return pairs


def _cut_short(old: _Function, new: _Function) -> ast.Return | None:
    """Find the `return` with which a function begins now, where nothing else but what is behind it changed."""
    body, former = _without_docstring(new.body), _without_docstring(old.body)
    if not body or not isinstance(body[0], ast.Return) or (former and isinstance(former[0], ast.Return)):
        return None
    rest = [_code(statement) for statement in body[1:]]
    known = [_code(statement) for statement in former]
    is_kept = rest == known or (not rest and _code(body[0]) not in known)
    head_of_old, head_of_new = (ast.unparse(_header(function)) for function in (old, new))
    return body[0] if is_kept and head_of_old == head_of_new else None


def _header(function: _Function) -> _Function:
    kind = type(function)
    return kind(
        name=function.name,
        args=function.args,
        body=[ast.Pass()],
        decorator_list=function.decorator_list,
        returns=function.returns,
        lineno=1,
    )


def _without_docstring(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    first = body[0] if body else None
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_docstring else body


def _code(node: ast.AST) -> str:
    return ast.dump(node)


def _kind(node: ast.stmt) -> str:
    """Name a statement by what stays when its inside changes."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return f"{type(node).__name__} {name}"
        case ast.Assign(targets=targets):
            return f"Assign {' '.join(map(_code, targets))}"
        case ast.Expr(value=ast.Call(func=function)):
            return f"Call {_code(function)}"
        case _:
            return type(node).__name__
