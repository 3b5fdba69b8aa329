"""What a call that installs leaves behind for its callers: expressions that need no import and install nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patchlock.patches.ops._run_time_pip.scopes import Call, Function, Scopes
from patchlock.patches.ops._run_time_pip.subprocess_calls import kind_of
from patchlock.patches.ops.syntax import Module, Place, last_name

_IDLE = '__import__("sys").executable, "-c", ""'
"""A program that does nothing."""
_PLAIN = {
    "status": "0",
    "text": '""',
    "pair": '(0, "")',
    "stream": '__import__("io").StringIO()',
    "globals": "{}",
    "list": "[]",
    "nothing": "None",
    "end": '__import__("sys").exit(0)',
}
_OF_STREAMS = ("stdin", "stdout", "stderr", "text", "universal_newlines", "encoding", "errors", "bufsize")
_STATUS = frozenset({"returncode", "wait", "poll"})
_WRITTEN = frozenset(
    {"stdout", "stderr", "read", "decode", "strip", "rstrip", "join", "readline", "output", "getvalue"}
)
_ANNOTATED = {"str": '""', "bool": "True", "int": "0", "bytes": 'b""', "None": "None", "list": "[]", "dict": "{}"}
_COMPLETED = '__import__("subprocess").CompletedProcess([], 0, "", "")'


def of_executor(kind: str, call: Call, module: Module) -> str:
    """Write the value that the callers of an executor bear."""
    keywords, is_complete = _keywords(call)
    empty = '""' if any(_is_on(keywords.get(name)) for name in ("text", "universal_newlines", "encoding")) else 'b""'
    if kind == "output":
        return empty
    if kind == "completed":
        captured = _is_on(keywords.get("capture_output"))
        streams = [
            empty if captured or name in keywords or not is_complete else "None" for name in ("stdout", "stderr")
        ]
        return f'__import__("subprocess").CompletedProcess([], 0, {", ".join(streams)})'
    if kind in {"process", "task"}:
        kept = [f"{name}={module.segment(keywords[name])}" for name in _OF_STREAMS if name in keywords]
        kept = kept if is_complete else ["stdout=-1", "stderr=-1", "text=True"]
        if kind == "task":
            return f'__import__("asyncio").create_subprocess_exec({", ".join((_IDLE, *kept))})'
        return f'__import__("subprocess").Popen({", ".join((f"[{_IDLE}]", *kept))})'
    return _PLAIN[kind]


def of_function(function: Function, scopes: Scopes, module: Module, depth: int = 0) -> str:
    """Write a value like those that a function of the file returns; "" where that cannot be told."""
    if function.is_generator:
        return "iter(())"
    if not isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or depth > 4:
        return ""
    annotation = getattr(function.node, "returns", None)
    if annotation is not None and ast.unparse(annotation).partition("[")[0] in _ANNOTATED:
        return _ANNOTATED[ast.unparse(annotation).partition("[")[0]]
    values = [_of_value(value, function, scopes, module, depth) for value in function.returns]
    told = sorted(filter(None, values), key=lambda value: value == "None")
    return told[0] if told else "" if values else "None"


def _of_value(node: ast.expr, function: Function, scopes: Scopes, module: Module, depth: int) -> str:
    def inner(value: ast.expr) -> str:
        return _of_value(value, function, scopes, module, depth + 1)

    if depth > 6:
        return ""
    match node:
        case ast.Constant(value=bool()) | ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return "True"
        case ast.Constant(value=None):
            return "None"
        case ast.Constant(value=int()) | ast.Attribute(attr="returncode"):
            return "0"
        case ast.Constant(value=str()) | ast.JoinedStr():
            return '""'
        case ast.Constant(value=bytes()):
            return 'b""'
        case ast.Await(value=value):
            return inner(value)
        case ast.Attribute(attr=name) if name in _WRITTEN:
            return '""'
        case ast.BoolOp(values=values):
            return next(filter(None, map(inner, values)), "")
        case ast.IfExp(body=body, orelse=orelse):
            return inner(body) or inner(orelse)
        case ast.Tuple(elts=elements):
            return f"({', '.join(inner(element) or 'None' for element in elements)},)"
        case ast.List() | ast.ListComp():
            return "[]"
        case ast.Dict() | ast.DictComp():
            return "{}"
        case ast.Name(id=name):
            bound = [b.value for b in function.bindings.get(name, ()) if b.kind == "is"]
            return next(filter(None, map(inner, bound)), "")
        case ast.Call():
            return _of_call(Call(node, Place(node=node), function), scopes, module, depth)
        case _:
            return ""


def _of_call(call: Call, scopes: Scopes, module: Module, depth: int) -> str:
    _, kind = kind_of(call, scopes)
    if kind:
        return of_executor(kind, call, module)
    function = scopes.function(call.node.func, call.scope)
    if function is not None:
        return of_function(function, scopes, module, depth + 1)
    name = last_name(call.node.func)
    if name == "communicate":
        return '("", "")'
    return "0" if name in _STATUS else '""' if name in _WRITTEN else ""


def by_use(place: Place, scope: Function) -> str:
    """Write a value that a use of a function from elsewhere bears; "" where that cannot be told."""
    if isinstance(place.parent, ast.Assign) and all(isinstance(target, ast.Name) for target in place.parent.targets):
        names = {target.id for target in place.parent.targets if isinstance(target, ast.Name)}
        return next(filter(None, _uses(names, scope)), "None")
    return _by_parent(place.parent, place.node) if place.parent is not None else ""


def _uses(names: set[str], scope: Function) -> Iterator[str]:
    for node in ast.walk(scope.node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Name) and child.id in names and isinstance(child.ctx, ast.Load):
                yield _by_parent(node, child)


def _by_parent(parent: ast.AST, node: ast.AST) -> str:
    match parent:
        case ast.Attribute(attr="returncode" | "stdout" | "stderr" | "args" | "check_returncode"):
            return _COMPLETED
        case ast.Attribute(attr=name) if name in _WRITTEN | {"split", "splitlines", "lower"}:
            return '""'
        case ast.Compare(left=left, comparators=[ast.Constant(value=value)]) if left is node:
            return repr(value)
        case ast.If() | ast.While() | ast.UnaryOp(op=ast.Not()) | ast.BoolOp() | ast.IfExp() | ast.Assert():
            return "True"
        case ast.For() | ast.YieldFrom() | ast.comprehension():
            return "iter(())"
        case _:
            return ""


def _keywords(call: Call) -> tuple[dict[str, ast.expr], bool]:
    """Give the keyword arguments of a call, also those of a local dictionary; and whether these are all."""
    found: dict[str, ast.expr] = {}
    is_complete = True
    for keyword in call.node.keywords:
        if keyword.arg is not None:
            found[keyword.arg] = keyword.value
            continue
        is_complete = False
        value = keyword.value
        bound = call.scope.bindings.get(value.id, ()) if isinstance(value, ast.Name) else ()
        for display in (value, *(binding.value for binding in bound)):
            if isinstance(display, ast.Dict):
                found |= dict(_named(display))
    return found, is_complete


def _named(display: ast.Dict) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(display.keys, display.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value, value


def _is_on(node: ast.expr | None) -> bool:
    return node is not None and not (isinstance(node, ast.Constant) and not node.value)
