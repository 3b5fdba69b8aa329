"""Which code runs as a program starts, as far as names show what it calls; pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from patchlock.patches import import_graph

Function = ast.FunctionDef | ast.AsyncFunctionDef
_Parameters = frozenset[tuple[str, object]]
"""Names with values."""
_OPEN = object()
"""The value of a parameter that nobody says."""
_UNSURE = ast.Try | ast.TryStar | ast.For | ast.AsyncFor | ast.While | ast.BoolOp | ast.ListComp | ast.GeneratorExp


def functions(modules: Iterable[ast.Module]) -> Mapping[str, Sequence[Function]]:
    """Give the functions of modules, by each name under which they are called; `__init__` by its class's."""
    found: dict[str, list[Function]] = {}
    for module in modules:
        for owner in ast.walk(module):
            for one in owner.body if isinstance(owner, ast.ClassDef | ast.Module) else ():
                if isinstance(one, Function):
                    found.setdefault(one.name, []).append(one)
                if isinstance(one, Function) and isinstance(owner, ast.ClassDef):
                    is_made = one.name == "__init__"
                    found.setdefault(owner.name if is_made else f"{owner.name}.{one.name}", []).append(one)
    return found


def called(call: ast.Call, functions: Mapping[str, Sequence[Function]]) -> Function | None:
    """Give the function that a call is of, by a name that only one has."""
    every = (functions.get(name, ()) for name in names_of(call.func))
    return next((found[0] for found in every if len(found) == 1), None)


def run_at_start(
    started: Iterable[tuple[ast.Module, bool]], functions: Mapping[str, Sequence[Function]], *, is_sure: bool = False
) -> frozenset[ast.AST]:
    """Give the nodes that run as a program starts: of its modules, and of what they call by a name that is theirs.

    Args:
        started: its modules, and of each whether it is the program itself.
        functions: theirs, by name.
        is_sure: leave out what some condition, an end before it, or an error that is caught may keep from running.
    """
    found: set[ast.AST] = set()
    seen: set[tuple[ast.AST, _Parameters]] = set()
    waiting: list[tuple[ast.AST, bool, _Parameters]] = [(*one, frozenset()) for one in started]
    while waiting:
        node, is_program, parameters = waiting.pop()
        if (node, parameters) in seen:
            continue
        if isinstance(node, ast.If) and not is_program and import_graph.is_main(node.test):
            continue
        found.add(node)
        seen.add((node, parameters))
        if isinstance(node, ast.Call) and (one := called(node, functions)):
            body = _up_to_an_end(one.body) if is_sure else one.body
            waiting += [(inner, True, _parameters(one, node)) for inner in body]
        inside: Iterable[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, Function | ast.Lambda) or (is_sure and isinstance(node, _UNSURE)):
            inside = ()
        elif isinstance(node, ast.Try | ast.TryStar):  # what handles an error may never run
            inside = (*node.body, *node.orelse, *node.finalbody)
        elif isinstance(node, ast.If | ast.IfExp | ast.Match):
            inside = _surely_run(node, dict(parameters), is_sure=is_sure)
        waiting += [(child, is_program, parameters) for child in inside]
    return frozenset(found)


def _up_to_an_end(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """Give the statements up to the first that may end their function."""
    last = next((at for at, one in enumerate(body) if import_graph.may_return(one)), len(body))
    return body[: last + 1]


def _surely_run(
    node: ast.If | ast.IfExp | ast.Match, parameters: Mapping[str, object], *, is_sure: bool
) -> Iterable[ast.AST]:
    """Give what runs of a choice: of one that is open its question, unless it is a statement and hangs on no parameter.

    Most statements that hang on none ask whether a file is there.
    """
    test = node.subject if isinstance(node, ast.Match) else node.test
    if not isinstance(node, ast.Match) and (answer := _answer(test, parameters)) is not None:
        chosen = node.body if answer else node.orelse
        return (test, *(chosen if isinstance(chosen, list) else (chosen,)))
    if isinstance(node, ast.If) and import_graph.is_main(test):
        return node.body
    is_open = is_sure or isinstance(node, ast.IfExp) or not parameters.keys().isdisjoint(_chooses_by(test))
    return (test,) if is_open else ast.iter_child_nodes(node)


def _answer(test: ast.expr, parameters: Mapping[str, object]) -> bool | None:
    """Answer a condition about parameters; None where it asks for more."""
    match test:
        case ast.Name(id=name) if parameters.get(name, _OPEN) is not _OPEN:
            return bool(parameters[name])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            answer = _answer(operand, parameters)
            return None if answer is None else not answer
        case ast.Compare(
            left=ast.Name(id=name),
            ops=[ast.Eq() | ast.Is() | ast.NotEq() | ast.IsNot() as how],
            comparators=[ast.Constant(value=value)],
        ) if parameters.get(name, _OPEN) is not _OPEN:
            return (parameters[name] == value) is isinstance(how, ast.Eq | ast.Is)
        case ast.BoolOp(op=how, values=values):
            answers = {_answer(one, parameters) for one in values}
            ending = isinstance(how, ast.Or)
            return ending if ending in answers else None if None in answers else not ending
        case _:
            return None


def _parameters(function: Function, call: ast.Call) -> _Parameters:
    """Give the parameters of a function with what a call, or else their defaults, say that they are."""
    every = function.args
    names = {one.arg for one in (*every.posonlyargs, *every.args, *every.kwonlyargs)} - {"self", "cls"}
    given = {name: one for name, defaults in values([every]).items() for one in defaults}
    given |= dict(arguments(call, function))
    inside = [node for one in function.body for node in ast.walk(one)]
    changed = {one.id for one in inside if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    is_put_together = any(isinstance(one, ast.Starred) for one in call.args) or any(not k.arg for k in call.keywords)
    said = {name: one.value for name, one in given.items() if isinstance(one, ast.Constant) and name not in changed}
    return frozenset((name, _OPEN if is_put_together else said.get(name, _OPEN)) for name in names)


def _chooses_by(test: ast.expr) -> Iterator[str]:
    """Give the names on whose values a condition depends, but not those that it asks a call about."""
    if isinstance(test, ast.Name):
        yield test.id
    for child in () if isinstance(test, ast.Call) else ast.iter_child_nodes(test):
        yield from _chooses_by(child) if isinstance(child, ast.expr) else ()


def names_of(function: ast.expr) -> tuple[str, ...]:
    """Give the names under which what a call is of may be known, the longest first."""
    match function:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return (f"{owner}.{name}", name)
        case ast.Attribute(attr=name):
            return (name,)
        case _:
            return ()


def values(nodes: Iterable[ast.AST]) -> dict[str, list[ast.AST]]:
    """Give the values that names are given in nodes, also as defaults of arguments."""
    values: dict[str, list[ast.AST]] = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                _keep(values, targets, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                _keep(values, [target], value)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                _keep(values, [target], value)
            case ast.arguments(args=args, defaults=defaults, kwonlyargs=more, kw_defaults=others):
                for one, default in [*zip(args[::-1], defaults[::-1], strict=False), *zip(more, others, strict=True)]:
                    values.setdefault(one.arg, []).extend([default] if default else [])
            case _:
                pass
    return values


def _keep(values: dict[str, list[ast.AST]], targets: Iterable[ast.expr], value: ast.expr) -> None:
    for name in {name_of(node) for target in targets for node in ast.walk(target)} - {"", "self", "cls"}:
        values.setdefault(name, []).append(value)


def name_of(node: ast.AST) -> str:
    """Give the last name of a name or an attribute; "" for anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def arguments(call: ast.Call, function: Function) -> Iterator[tuple[str, ast.expr]]:
    """Give the arguments of a call with the names of a function's parameters."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args) if one.arg not in {"self", "cls"}]
    yield from zip(names, call.args, strict=False)
    yield from ((one.arg or "", one.value) for one in call.keywords)
