"""The functions of a Python file: what each binds to its names, what it returns and calls; runs nothing."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from patchlock.patches.ops._run_time_pip.install_commands import FIRST_PARAMETER
from patchlock.patches.ops.syntax import Place

Kind = Literal["is", "each", "append", "extend", "prepend"]
Position = tuple[int, int]
Block = tuple[tuple[ast.AST, str], ...]
"""The statements around a place inside a function, outermost first, and which of their blocks holds it."""
_ANYWHERE = (0, 0)

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """One thing that happens to a name."""

    kind: Kind
    """The value itself, an element of it, or something added to it."""
    value: ast.expr
    scope: Function
    at: Position
    """Where it has happened: the end of the statement."""
    block: Block


@dataclasses.dataclass(slots=True, eq=False)
class Function:
    """A function, a lambda or the module itself."""

    node: FunctionNode | ast.Module
    parent: Function | None
    is_method: bool = False
    bindings: dict[str, list[Binding]] = dataclasses.field(default_factory=dict)
    functions: dict[str, Function] = dataclasses.field(default_factory=dict)
    imports: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    """Name → dotted names that it may stand for."""
    parameters: dict[str, str] = dataclasses.field(default_factory=dict)
    """Name → the character that stands for it in texts."""
    returns: list[ast.expr] = dataclasses.field(default_factory=list)
    outside: set[str] = dataclasses.field(default_factory=set)
    """Names declared `global` or `nonlocal`."""
    is_generator: bool = False


@dataclass(frozen=True)
class Call:
    """A call, where it stands, and in which function."""

    node: ast.Call
    place: Place
    scope: Function


@dataclasses.dataclass(slots=True)
class Scopes:
    """All functions and calls of a file."""

    module: Function
    calls: list[Call] = dataclasses.field(default_factory=list)
    methods: dict[str, list[Function]] = dataclasses.field(default_factory=dict)
    classes: set[str] = dataclasses.field(default_factory=set)
    attributes: dict[str, list[Binding]] = dataclasses.field(default_factory=dict)
    """What is assigned in classes and to `self.name`, by name."""
    owners: dict[str, Function] = dataclasses.field(default_factory=dict)
    """Character of a parameter → its function."""
    lambdas: dict[int, Function] = dataclasses.field(default_factory=dict)
    """By `id()` of the node."""
    blocks: dict[int, Block] = dataclasses.field(default_factory=dict)
    """Of each name that is read, by `id()` of the node."""
    awaits: dict[int, Place] = dataclasses.field(default_factory=dict)
    """Of each `await`, by `id()` of the call that is awaited."""

    def function(self, callee: ast.expr, scope: Function) -> Function | None:
        """Find the function of the file that a call reaches, if it is one and clearly so."""
        if isinstance(callee, ast.Name):
            for around in _outwards(scope):
                if callee.id in around.functions:
                    return around.functions[callee.id]
                values = [b.value for b in around.bindings.get(callee.id, ()) if b.kind == "is"]
                if values and isinstance(values[0], ast.Lambda):
                    return self.lambdas.get(id(values[0]))
                if callee.id in around.bindings or callee.id in around.imports or callee.id in around.parameters:
                    return None
        elif isinstance(callee, ast.Attribute) and not self.is_imported(callee.value, scope):
            found = self.methods.get(callee.attr, [])
            return found[0] if len(found) == 1 else None
        return None

    def is_imported(self, node: ast.expr, scope: Function) -> bool:
        """Tell whether an expression begins with the name of an import."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and any(node.id in around.imports for around in _outwards(scope))

    def dotted(self, node: ast.expr, scope: Function, depth: int = 0) -> set[str]:
        """Give every dotted name that an expression may stand for, as the modules themselves have it."""
        match node:
            case ast.Attribute():
                return {f"{name}.{node.attr}" for name in self.dotted(node.value, scope, depth)}
            case ast.Name():
                return self._named(node, scope, depth)
            case ast.Call(func=ast.Name(id="getattr"), args=[base, ast.Constant(value=str(attribute)), *_]):
                return {f"{name}.{attribute}" for name in self.dotted(base, scope, depth)}
            case ast.Call(
                func=ast.Name(id="__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                return {name}
            case ast.Call(func=function, args=[base, *_]) if self._is_plain_partial(node, function, scope, depth):
                return self.dotted(base, scope, depth)
            case ast.Call(func=ast.Name(id=name)):
                return {f"{name}()"}
            case _:
                return set()

    def _is_plain_partial(self, node: ast.Call, function: ast.expr, scope: Function, depth: int) -> bool:
        """Tell whether a call is `functools.partial(function, check=True)`: the function, but for how it runs."""
        given = {keyword.arg for keyword in node.keywords}
        is_named = isinstance(function, ast.Name | ast.Attribute) and depth < 4
        return (
            is_named
            and given.isdisjoint(_SAYS_WHAT_IT_GIVES)
            and "functools.partial" in self.dotted(function, scope, depth + 1)
        )

    def _named(self, node: ast.Name, scope: Function, depth: int) -> set[str]:
        names: set[str] = set()
        for around in _outwards(scope):
            names |= around.imports.get(node.id, set())
            if depth < 4:
                for binding in around.bindings.get(node.id, ()):
                    if binding.kind == "is":
                        names |= self.dotted(binding.value, binding.scope, depth + 1)
            if names or node.id in around.functions:
                return names
        starred = self.module.imports.get("*", set())
        return {node.id, *(f"{module}.{node.id}" for module in starred)}


_SAYS_WHAT_IT_GIVES = frozenset(
    {"text", "universal_newlines", "encoding", "errors", "stdout", "stderr", "capture_output", "args", None}
)
"""Keywords of `subprocess` that decide what a call gives back."""


def _outwards(scope: Function | None) -> Iterator[Function]:
    while scope is not None:
        yield scope
        scope = scope.parent


@dataclass(frozen=True)
class Bound:
    """What a name may stand for where it is read."""

    function: Function
    """The one that binds it."""
    bindings: list[Binding]
    is_parameter: bool


def lookup(node: ast.Name, scope: Function, scopes: Scopes) -> Bound | None:
    """Find what a name may stand for; within one function, only what reaches the place where it is read."""
    for around in _outwards(scope):
        bindings = around.bindings.get(node.id, [])
        if bindings or node.id in around.parameters:
            if around is not scope:
                return Bound(around, bindings, node.id in around.parameters)
            killing, reaching = _reaching(node, bindings, scopes)
            return Bound(around, reaching, node.id in around.parameters and not killing)
    return None


def _reaching(node: ast.Name, bindings: list[Binding], scopes: Scopes) -> tuple[bool, list[Binding]]:
    """Leave out what happens later or in another branch, and what is overwritten for sure."""
    at, block = (node.lineno, node.col_offset), scopes.blocks.get(id(node), ())
    reaching = [b for b in bindings if b.at == _ANYWHERE or (_may_follow(b, at, block))]
    sure = [
        b for b in reaching if _ANYWHERE < b.at <= at and b.kind in {"is", "each"} and block[: len(b.block)] == b.block
    ]
    if not sure:
        return False, reaching
    last = max(sure, key=lambda binding: binding.at)
    is_in_loop = any(isinstance(owner, ast.For | ast.AsyncFor | ast.While) for owner, _ in last.block)
    return True, [b for b in reaching if b.at == _ANYWHERE or last.at <= b.at <= at or (b.at > at and not is_in_loop)]


def _may_follow(binding: Binding, at: Position, block: Block) -> bool:
    """Tell whether a place can come after a binding: not before it, nor in the other branch, unless in a loop."""
    common = [a for a, b in zip(binding.block, block, strict=False) if a == b]
    if any(isinstance(owner, ast.For | ast.AsyncFor | ast.While) for owner, _ in common):
        return True
    if binding.at > at:
        return False
    rest = [*zip(binding.block[len(common) :], block[len(common) :], strict=False)]
    return not (rest and isinstance(rest[0][0][0], ast.If) and rest[0][0][0] is rest[0][1][0])


def read(tree: ast.Module) -> Scopes:
    """Read a file."""
    scopes = Scopes(module=Function(tree, None))
    _walk(scopes, Place(node=tree), _Around(scopes.module))
    return scopes


@dataclass(frozen=True)
class _Around:
    """What is around a node while a file is walked."""

    scope: Function
    class_of: ast.ClassDef | None = None
    block: Block = ()


def _walk(scopes: Scopes, place: Place, around: _Around) -> None:
    node, scope = place.node, around.scope
    if isinstance(node, FunctionNode):
        around = _Around(_function(scopes, node, scope, is_method=around.class_of is not None))
    elif isinstance(node, ast.ClassDef):
        scopes.classes.add(node.name)
        around = dataclasses.replace(around, class_of=node)
    elif isinstance(node, ast.Call):
        scopes.calls.append(Call(node, place, scope))
    elif isinstance(node, ast.Await):
        scopes.awaits[id(node.value)] = place
    elif isinstance(node, ast.Name):
        scopes.blocks[id(node)] = around.block
    _bind(scopes, node, around)
    is_block = isinstance(node, ast.If | ast.For | ast.AsyncFor | ast.While | ast.Try | ast.With | ast.AsyncWith)
    for inner in place.inner():
        if is_block and isinstance(inner.node, ast.stmt | ast.excepthandler):
            _walk(scopes, inner, dataclasses.replace(around, block=(*around.block, (node, inner.field))))
        else:
            _walk(scopes, inner, around)


def _function(scopes: Scopes, node: FunctionNode, parent: Function, *, is_method: bool) -> Function:
    function = Function(node, parent, is_method=is_method)
    arguments = node.args
    names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    for argument in names:
        if argument is not None:
            character = chr(min(FIRST_PARAMETER + len(scopes.owners), 0xFFFFD))
            function.parameters[argument.arg] = character
            scopes.owners[character] = function
    if isinstance(node, ast.Lambda):
        scopes.lambdas[id(node)] = function
        function.returns.append(node.body)
    elif is_method:
        scopes.methods.setdefault(node.name, []).append(function)
    else:
        parent.functions[node.name] = function
    return function


def _bind(scopes: Scopes, node: ast.AST, around: _Around) -> None:
    """Note what a statement or expression does to names."""
    scope = around.scope
    at = (getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0))

    def assign(target: ast.expr, kind: Kind, value: ast.expr, at: Position = at) -> None:
        _assign(scopes, target, Binding(kind, value, scope, at, around.block), around.class_of)

    match node:
        case ast.Import(names=names):
            for alias in names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                scope.imports.setdefault(alias.asname or name, set()).add(name)
        case ast.ImportFrom(names=names):
            module = "." * node.level + (node.module or "")
            for alias in names:
                origin = module if alias.name == "*" else f"{module}.{alias.name}"
                scope.imports.setdefault(alias.asname or alias.name, set()).add(origin)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                assign(target, "is", value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            assign(target, "is", value)
        case ast.AugAssign(target=target, op=ast.Add(), value=value):
            assign(target, "extend", value)
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            assign(target, "each", value, (target.lineno, target.col_offset))
        case ast.comprehension(target=target, iter=value):
            assign(target, "each", value, _ANYWHERE)
        case ast.Call(func=ast.Attribute(value=target, attr="append"), args=[value]):
            assign(target, "append", value)
        case ast.Call(func=ast.Attribute(value=target, attr="extend"), args=[value]):
            assign(target, "extend", value)
        case ast.Call(func=ast.Attribute(value=target, attr="insert"), args=[_, value]):
            assign(target, "prepend", value)
        case ast.Return(value=ast.expr() as value):
            scope.returns.append(value)
        case ast.Yield() | ast.YieldFrom():
            scope.is_generator = True
        case ast.Global(names=outside) | ast.Nonlocal(names=outside):
            scope.outside.update(outside)
        case _:
            pass


def _assign(scopes: Scopes, target: ast.expr, binding: Binding, class_of: ast.ClassDef | None) -> None:
    match target:
        case ast.Name(id=name):
            scope = scopes.module if name in binding.scope.outside else binding.scope
            scope.bindings.setdefault(name, []).append(binding)
            if class_of is not None:
                scopes.attributes.setdefault(name, []).append(binding)
        case ast.Attribute(attr=name, value=ast.Name()):
            scopes.attributes.setdefault(name, []).append(binding)
        case ast.Subscript(value=ast.Name() as container):
            _assign(scopes, container, dataclasses.replace(binding, kind="append"), class_of)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            values = binding.value.elts if isinstance(binding.value, ast.Tuple | ast.List) else []
            is_paired = binding.kind == "is" and len(values) == len(targets)
            for index, inner in enumerate(targets):
                part = dataclasses.replace(binding, value=values[index]) if is_paired else _element(binding)
                _assign(scopes, inner, part, class_of)
        case _:
            pass


def _element(binding: Binding) -> Binding:
    return dataclasses.replace(binding, kind="each")
