"""Tell half precision in which something is stored from half precision in which it is computed; edits nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import lru_cache

from patchlock.patches.ops.syntax import last_name, nodes_of

_STORES = re.compile(r"numpy|tobytes|tofile|state_dict|save\w*|dumps?")
"""Functions and methods that keep what they get in its type; none of `torch.jit`, which saves what computes."""
_SAME = frozenset({"clone", "contiguous", "data", "detach", "flatten", "reshape", "squeeze", "unsqueeze", "view", "T"})
"""Methods and attributes that give the same numbers on the same device."""
_MAPPINGS = frozenset({"dict", "OrderedDict"})
_COLLECTION = ast.Dict | ast.DictComp | ast.List | ast.ListComp | ast.Tuple
_LOOP = ast.For | ast.AsyncFor | ast.While
_SCOPE = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def is_stored(tree: ast.Module, half: ast.Attribute) -> bool:
    """Tell whether `x.half` of `x.half()`, or `torch.float16`, says how something is stored, and not how to compute.

    It is stored if it goes into an array, a file, or what is made of a `state_dict()`, or if `.cpu()` stands before or
    behind it and nothing moves it on. A literal `"cpu"` says nothing: it may have been `"cuda"`.
    """
    parents = _parents_of(tree)
    call = parents[half]
    values = _Values(tree, parents)
    if isinstance(call, ast.Call) and call.func is half:
        return values.is_stored(call, is_on_cpu=_has_cpu(half.value))
    return values.is_type_of_stored(half)


class _Values:
    """What becomes of values in a file."""

    def __init__(self, tree: ast.Module, parents: dict[ast.AST, ast.AST]) -> None:
        self._tree = tree
        self._parents = parents
        self._open: set[ast.AST] = set()

    def is_type_of_stored(self, node: ast.AST) -> bool:
        """Follow a type, by its name too, to all that is converted to it."""
        parent = self._parents[node]
        match parent:
            case ast.IfExp(test=test) if test is not node:
                return self.is_type_of_stored(parent)
            case ast.Assign(targets=[ast.Name(id=name)]):
                uses = self._uses(parent, name, self.is_type_of_stored)
                return bool(uses) and all(uses)
            case ast.keyword():
                call = self._parents[parent]
            case _:
                call = parent
        match call:
            case ast.Call(func=ast.Attribute(value=value, attr="to" | "type") as function) if function is not node:
                return not _may_move(call, node) and self.is_stored(call, is_on_cpu=_has_cpu(value))
            case _:
                return False

    def is_stored(self, node: ast.AST, *, is_on_cpu: bool) -> bool:
        """Follow a value outwards."""
        parent = self._parents[node]
        match parent:
            case ast.Attribute(attr=name):
                call = self._parents[parent]
                if isinstance(call, ast.Call) and call.func is parent:
                    return self._is_stored_by(call, name, is_on_cpu=is_on_cpu)
                return self.is_stored(parent, is_on_cpu=is_on_cpu) if name in _SAME else is_on_cpu
            case ast.Call(func=function) if function is not node:
                if last_name(function) in _MAPPINGS:
                    return self.is_stored(parent, is_on_cpu=is_on_cpu)
                return is_on_cpu or _stores(function)
            case ast.DictComp(value=value, generators=generators) if value is node:
                is_state = any(_has_state(generator.iter) for generator in generators)
                return is_state or self.is_stored(parent, is_on_cpu=is_on_cpu)
            case ast.Dict() | ast.List() | ast.ListComp() | ast.Tuple() | ast.keyword() | ast.IfExp() | ast.Subscript():
                return self.is_stored(parent, is_on_cpu=is_on_cpu)
            case ast.Assign(targets=[target]):
                return self._is_stored_as(parent, target, is_on_cpu=is_on_cpu)
            case _:
                return is_on_cpu and not isinstance(parent, ast.Expr)

    def _is_stored_by(self, call: ast.Call, method: str, *, is_on_cpu: bool) -> bool:
        if _STORES.fullmatch(method):
            return True
        if method == "cuda" or (method == "to" and _may_move(call)):
            return False
        is_same = method in _SAME | {"cpu", "to"}
        return self.is_stored(call, is_on_cpu=is_on_cpu or method == "cpu") if is_same else is_on_cpu

    def _is_stored_as(self, statement: ast.Assign, target: ast.expr, *, is_on_cpu: bool) -> bool:
        """Follow a value by its name: a collection if any use of it stores it, a tensor or a model if all do."""
        root = target
        while isinstance(root, ast.Subscript):
            root = root.value
        loop = self._parents[statement]
        if root is not target and isinstance(loop, ast.For) and _has_state(loop.iter):
            return True
        if is_on_cpu:
            return not any(_is_moved(node, ast.unparse(root)) for node in nodes_of(self._tree))
        if not isinstance(root, ast.Name):
            return False
        uses = self._uses(statement, root.id, lambda use: self.is_stored(use, is_on_cpu=False))
        value = statement.value
        is_mapping = isinstance(value, ast.Call) and last_name(value.func) in _MAPPINGS
        is_collection = root is not target or is_mapping or isinstance(value, _COLLECTION)
        return any(uses) if is_collection else bool(uses) and all(uses)

    def _uses(self, statement: ast.Assign, name: str, judge: Callable[[ast.AST], bool]) -> list[bool]:
        """Judge what a function does with a name after, or around in a loop, a statement that gives it a value."""
        if statement in self._open:
            return []
        scope: ast.AST = statement
        first = statement.lineno
        while scope is not self._tree and not isinstance(scope, _SCOPE):
            scope = self._parents[scope]
            first = scope.lineno if isinstance(scope, _LOOP) else first
        own = set(ast.walk(statement))
        names = [node for node in nodes_of(scope) if isinstance(node, ast.Name) and node.id == name and node not in own]
        self._open.add(statement)
        answers = [judge(node) for node in names if isinstance(node.ctx, ast.Load) and node.lineno >= first]
        self._open.discard(statement)
        return answers


@lru_cache(maxsize=4)
def _parents_of(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    return {child: node for node in nodes_of(tree) for child in ast.iter_child_nodes(node)}


def _stores(function: ast.expr) -> bool:
    is_program = isinstance(function, ast.Attribute) and last_name(function.value) == "jit"
    return bool(_STORES.fullmatch(last_name(function))) and not is_program


def _has_cpu(node: ast.AST) -> bool:
    """Tell whether `.cpu()` is called before a method, with nothing behind it that may move the value."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=name)):
            return name == "cpu" or (name in _SAME and _has_cpu(value))
        case ast.Attribute(value=value):
            return _has_cpu(value)
        case _:
            return False


def _may_move(call: ast.Call, kind: ast.AST | None = None) -> bool:
    """Tell whether `x.to(…)` names more than a type, this one, and the CPU."""
    given = [value for value in (*call.args, *(keyword.value for keyword in call.keywords)) if value is not kind]
    return not all(isinstance(value, ast.Constant) and value.value in {"cpu", True, False} for value in given)


def _is_moved(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="to" | "cuda")):
            return ast.unparse(value) == name
        case _:
            return False


def _has_state(node: ast.expr) -> bool:
    return any(isinstance(inner, ast.Call) and last_name(inner.func) == "state_dict" for inner in nodes_of(node))
