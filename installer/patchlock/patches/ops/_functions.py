"""Find the functions of a file by name: which definition is live, what kind it is, which names it knows."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from patchlock.model.patch import Refusal
from patchlock.patches.ops._blocks import Block, blocks
from patchlock.patches.ops.syntax import last_name

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SEVERAL_IN_ONE = frozenset({"setter", "getter", "deleter", "register"})
_MANAGERS = frozenset({"contextmanager", "asynccontextmanager"})


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A function that a name stands for."""

    node: Function
    name: str
    """Qualified: `Loader.install`; `outer.inner` for a function inside a function."""
    body: Block
    around: tuple[Function, ...]
    """The functions that it stands in, outermost first."""


def check_name(name: str) -> None:
    """Refuse what cannot name a function.

    Raises:
        ValueError: one clause.
    """
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"`{name}` is not the name of a function")


def live(tree: ast.Module, name: str) -> tuple[Definition, ...] | Refusal:
    """Find the definitions that a name stands for when the file has been executed; an overload is none.

    In one block the last definition of a name is the one that counts; the branches of an `if` or `try` have one each.
    A name that is qualified enough to be a definition's whole name means that one; `install` also finds
    `Loader.install`, unless several functions could be meant.
    """
    found = [one for one in _definitions(tree, (), ()) if f".{one.name}".endswith(f".{name}")]
    found = [one for one in found if one.name == name] or found
    names = sorted({one.name for one in found})
    if len(names) > 1:
        line = max(one.node.lineno for one in found)
        told = [*(f"`{other}`" for other in names[:3]), *([f"{len(names) - 3} others"] if len(names) > 3 else ())]
        return Refusal.ambiguous(line, f"`{name}` could be {' or '.join(told)}; write which one")
    last: dict[int, Definition] = {}
    for one in found:
        decorators = _decorators(one.node)
        if decorators & _SEVERAL_IN_ONE:
            return Refusal.ambiguous(one.node.lineno, f"`{name}` is several functions under one name")
        if "overload" not in decorators:
            last[id(_home(tree, one.node))] = one
    return tuple(sorted(last.values(), key=lambda one: one.node.lineno))


def _home(tree: ast.Module, node: Function) -> list[ast.stmt]:
    return next(block.statements for block in blocks(tree) if any(other is node for other in block.statements))


def _definitions(
    owner: ast.Module | ast.stmt | ast.ExceptHandler | ast.match_case,
    scopes: tuple[str, ...],
    around: tuple[Function, ...],
) -> Iterator[Definition]:
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        for member in getattr(owner, field, ()):
            if isinstance(member, Function):
                names = (*scopes, ".".join((*scopes[-1:], member.name)))
                body = Block(owner=member, statements=member.body, scopes=names)
                yield Definition(node=member, name=names[-1], body=body, around=around)
                yield from _definitions(member, names, (*around, member))
            elif isinstance(member, ast.ClassDef):
                yield from _definitions(member, (*scopes, ".".join((*scopes[-1:], member.name))), around)
            elif isinstance(member, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield from _definitions(member, scopes, around)


def _decorators(node: Function) -> set[str]:
    """Name the decorators of a function, those that are called too."""
    names = set()
    for one in node.decorator_list:
        called = one
        while isinstance(called, ast.Call):
            called = called.func
        names.add(last_name(called))
    return names


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Give all nodes, without those inside functions, classes and lambdas, which are given themselves."""
    stack = list(body)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack.extend([*ast.iter_child_nodes(node)][::-1])


def is_generator(node: Function) -> bool:
    """Tell whether a call of the function gives a generator."""
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in own_nodes(node.body))


def early_return(node: Function, value: str) -> tuple[str, str]:
    """Say how a function returns a value before it did anything.

    Returns:
        The statement, and why there is none, a clause; one of both is "".
    """
    is_none = value.strip() == "None"
    if node.name == "__init__" and not is_none:
        return "", "`__init__` can return nothing but None"
    if not is_generator(node):
        return f"return {value}", ""
    if _decorators(node) & _MANAGERS:
        return "", "it is a context manager, which must yield once"
    if not is_none:
        return "", f"it is a generator, whose callers see what it yields, never `{value}`"
    return "return", ""


def unknown(tree: ast.Module, definition: Definition, codes: Sequence[ast.AST], *, is_kept: bool) -> tuple[str, ...]:
    """Name what code at a function's entry uses and nothing binds there; sorted.

    Args:
        tree: of the file.
        definition: the function.
        codes: statements and expressions; what they bind themselves is known.
        is_kept: the function keeps its body, whose own variables have no value at the entry.
    """
    used = {n.id for c in codes for n in ast.walk(c) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    inner = {
        name for c in codes for n in ast.walk(c) for name in (*_bound(n), *([n.arg] if isinstance(n, ast.arg) else ()))
    }
    module = set(_bindings(tree.body))
    module.update(name for n in ast.walk(tree) if isinstance(n, ast.Global) for name in n.names)
    if "*" in module:
        module |= used
    outer = {name for function in definition.around for name in (*_parameters(function), *_bindings(function.body))}
    parameters = set(_parameters(definition.node))
    known = module | outer | set(dir(builtins)) | {"__name__", "__file__"}
    if is_kept:
        shared = {
            name
            for node in own_nodes(definition.node.body)
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }
        known -= set(_bindings(definition.node.body)) - shared
    return tuple(sorted(used - known - parameters - inner))


def _parameters(function: Function) -> Iterator[str]:
    for node in ast.walk(function.args):
        if isinstance(node, ast.arg):
            yield node.arg


def _bindings(body: Iterable[ast.AST]) -> Iterator[str]:
    """Name what statements bind in their own scope."""
    stack = list(body)
    while stack:
        node = stack.pop()
        yield from _bound(node)
        if isinstance(node, _COMPREHENSIONS):
            stack.extend(inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr))
        elif not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))


def _bound(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
            return (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Import(names=aliases):
            return tuple(alias.asname or alias.name.partition(".")[0] for alias in aliases)
        case ast.ImportFrom(names=aliases):
            return tuple(alias.asname or alias.name for alias in aliases)
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return (name,)
        case ast.Global(names=names):
            return tuple(names)
        case _:
            return ()
