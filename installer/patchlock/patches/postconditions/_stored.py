"""Which half precision is that of something stored, read from the calls around it; runs nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from patchlock.patches.postconditions._without_cuda import Around, device_in, name_of

_KEEPS = re.compile(r"numpy|tobytes|tofile|state_dict|save\w*|dumps?")
_GIVES_ON = re.compile(
    r"half|type|to|cpu|clone|contiguous|detach|flatten|reshape|(un)?squeeze|view|dict|OrderedDict|items|values"
)
_COLLECTIONS = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Tuple, ast.Subscript)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def is_kept(place: Around, tree: ast.Module) -> bool:
    """Tell whether half precision is asked for where a value goes into an array, a file or a copy of a state.

    Where upstream itself has the value on the CPU, by `.cpu()`, and does not move it from there, that is as good.
    """
    return _is_kept(place.node, (*place.parents, tree), frozenset())


def _is_kept(node: ast.AST, parents: tuple[ast.AST, ...], known: frozenset[ast.AST]) -> bool:
    """Follow a value through the calls of its statement, and from there by the name that it gets."""
    count = next(index for index, one in enumerate(parents) if isinstance(one, ast.stmt))
    statement, outer = parents[count], parents[count + 1 :]
    is_on_cpu = False
    for call in (one for one in (node, *parents[:count]) if isinstance(one, ast.Call)):
        name = name_of(call.func).split(".")[-1]
        if _KEEPS.fullmatch(name) and ".jit." not in name_of(call.func):
            return True
        if not _GIVES_ON.fullmatch(name):
            return is_on_cpu
        if name == "to" and not all(_is_of_cpu(one, node) for one in (*call.args, *(k.value for k in call.keywords))):
            return False
        is_on_cpu |= any(name_of(one.func).endswith(".cpu") for one in ast.walk(call) if isinstance(one, ast.Call))
    iterated = [one.iter for display in parents[:count] for one in getattr(display, "generators", [])]
    iterated += [outer[0].iter] if isinstance(outer[0], ast.For) else []
    if any("state_dict()" in ast.unparse(one) for one in iterated):
        return True
    if not isinstance(statement, ast.Assign) or statement in known:
        return is_on_cpu and not isinstance(statement, ast.Expr)
    target = statement.targets[0]
    while isinstance(target, ast.Subscript):
        target = target.value
    text = ast.unparse(target)
    if is_on_cpu:
        moves = [ast.unparse(one.func) for one in ast.walk(parents[-1]) if isinstance(one, ast.Call)]
        return not {f"{text}.to", f"{text}.cuda"} & {*moves}
    uses = [_is_kept(*use, known | {statement}) for use in _uses(statement, outer, text)]
    is_collection = any(isinstance(one, _COLLECTIONS) for one in (statement.targets[0], statement.value))
    return any(uses) if is_collection or _is_mapping(statement.value) else bool(uses) and all(uses)


def _is_mapping(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and name_of(value.func).split(".")[-1] in {"dict", "OrderedDict"}


def _is_of_cpu(value: ast.expr, kind: ast.AST) -> bool:
    """Tell whether an argument of `x.to(…)` is the type that is looked at, or names no other device than the CPU."""
    is_plain = isinstance(value, ast.Constant) and (device_in(value) == "cpu" or isinstance(value.value, bool))
    return is_plain or any(one is kind for one in ast.walk(value))


def _uses(
    statement: ast.Assign, outer: tuple[ast.AST, ...], name: str
) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    """Give where a name is read behind its statement, or in the loop around it, with the nodes around that."""
    at = next((index for index, one in enumerate(outer) if isinstance(one, _SCOPES)), len(outer) - 1)
    first = min([statement.lineno, *(one.lineno for one in outer[:at] if isinstance(one, ast.For | ast.While))])
    nodes = [(outer[at], outer[at + 1 :])]
    for node, parents in nodes:
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) and node.lineno >= first:
            yield node, parents
        nodes += [(one, (node, *parents)) for one in ast.iter_child_nodes(node) if one is not statement]
