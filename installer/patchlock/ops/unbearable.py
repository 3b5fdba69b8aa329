"""Which uses of a package, while a file is imported, no stand-in for the package can bear."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from patchlock.ops.import_time import MISSING, Parents, handler_of, own_nodes, steps

_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_REFUSED = MISSING - {"ModuleNotFoundError"}
"""Handlers of these catch the error that a stand-in raises."""
_WRONG_USE = frozenset({"Exception", "BaseException", "TypeError"})


def unbearable(tree: ast.Module, bound: Iterable[str]) -> tuple[tuple[ast.expr, str], ...]:
    """Find the uses at import that a stand-in cannot bear, each with its reason, a clause.

    Functions of the file that are called at import by their plain name are followed; calls through attributes are not.

    Args:
        tree: of the file.
        bound: names that will be bound to stand-ins.
    """
    stubs, derived = set(bound), set[str]()
    functions = _functions(tree)
    followed = set[int]()
    found: dict[int, tuple[ast.expr, str]] = {}
    queue = list(steps(tree.body))
    for step in queue:  # grows while it is read
        parents: Parents = {}
        for node in own_nodes(step.node, parents):
            for function in _called(node, parents, functions):
                if id(function) not in followed:
                    followed.add(id(function))
                    queue.extend(steps(function.body, step.guards))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in stubs | derived:
                chain = _chain(node, parents)
                why = _why(chain, *parents[id(chain)], parents) if node.id in stubs else _why_derived(chain, parents)
                over = handler_of(step.guards, _REFUSED if why == "is called" else _WRONG_USE)[1]
                if why and not over:
                    found[id(chain)] = (chain, f"`{ast.unparse(chain)}` {why} while the file is imported")
        _follow_names(step.node, stubs, derived)
    return tuple(sorted(found.values(), key=lambda item: (item[0].lineno, item[0].col_offset)))


def _functions(tree: ast.Module) -> dict[str, list[_Definition]]:
    """Give what a call of each plain name runs: a function's body, or the constructors of a class."""
    functions: dict[str, list[_Definition]] = {}
    for step in steps(tree.body):
        if isinstance(step.node, _Definition):
            functions.setdefault(step.node.name, []).append(step.node)
        if isinstance(step.node, ast.ClassDef):
            methods = [node for node in step.node.body if isinstance(node, _Definition)]
            constructors = [method for method in methods if method.name in {"__new__", "__init__", "__post_init__"}]
            functions.setdefault(step.node.name, []).extend(constructors)
    return functions


def _called(node: ast.AST, parents: Parents, functions: dict[str, list[_Definition]]) -> list[_Definition]:
    if not isinstance(node, ast.Name):
        return []
    parent, field = parents[id(node)]
    is_called = (isinstance(parent, ast.Call) and field == "func") or field == "decorator_list"
    return functions.get(node.id, []) if is_called else []


def _chain(name: ast.Name, parents: Parents) -> ast.expr:
    """Give the longest `a.b[c].d` that begins with a name."""
    node: ast.expr = name
    while True:
        parent, field = parents[id(node)]
        if not isinstance(parent, ast.Attribute | ast.Subscript) or field != "value":
            return node
        node = parent


def _follow_names(statement: ast.stmt, stubs: set[str], derived: set[str]) -> None:
    """Learn which names a statement makes stand-ins, and which classes it derives from one."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=value) if _root(value) in stubs:
            stubs.add(target)
        case ast.ClassDef(name=name, bases=bases) if any(_root(base) in stubs | derived for base in bases):
            derived.add(name)
        case _:
            pass


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _why_derived(chain: ast.expr, parents: Parents) -> str:
    parent, field = parents[id(chain)]
    return "is called" if isinstance(chain, ast.Name) and isinstance(parent, ast.Call) and field == "func" else ""


def _why(chain: ast.expr, parent: ast.AST, field: str, parents: Parents) -> str:
    """Say what is done with a stand-in that it cannot bear, or ""."""
    if isinstance(getattr(chain, "ctx", None), ast.Store | ast.Del) and not (
        isinstance(chain, ast.Attribute) and isinstance(parent, ast.Assign | ast.AnnAssign)
    ):
        return "is changed"
    if isinstance(chain, ast.Attribute) and chain.attr == "__version__" and _is_compared(chain, parents):
        return "is compared"
    if any(isinstance(node, ast.Attribute) and _is_real_only(node.attr) for node in ast.walk(chain)):
        return "is read"
    match parent, field:
        case ast.Call(), "func":
            return "is called"
        case ast.Compare(ops=ops), _:
            return "" if all(isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq) for op in ops) else "is compared"
        case (ast.BinOp(op=ast.BitOr()), _) | (ast.UnaryOp(op=ast.Not()), _):
            return ""
        case ((ast.BinOp() | ast.UnaryOp() | ast.AugAssign()), _):
            return "is computed with"
        case ((ast.For() | ast.AsyncFor() | ast.comprehension()), "iter"):
            return "is iterated over"
        case (ast.Starred(), _) | (ast.keyword(arg=None), _) | (ast.YieldFrom(), _):
            return "is unpacked"
        case ast.Assign(targets=targets), "value" if any(isinstance(t, ast.Tuple | ast.List) for t in targets):
            return "is unpacked"
        case ast.Dict(keys=keys, values=values), "values" if keys[values.index(chain)] is None:
            return "is unpacked"
        case ast.keyword(), _ if isinstance(parents[id(parent)][0], ast.ClassDef):
            return "is a metaclass or an argument of a class"
        case ast.ClassDef(keywords=keywords), "bases" if any(keyword.arg != "metaclass" for keyword in keywords):
            return "is the base of a class with arguments"
        case ast.withitem(), _:
            return "is entered by a `with`"
        case ((ast.Await() | ast.Raise() | ast.Delete()), _):
            return "is awaited, raised or deleted"
        case _:
            return ""


def _is_real_only(name: str) -> bool:
    return name.startswith("__") and name not in {"__version__", "__doc__", "__class__"}


def _is_compared(node: ast.AST, parents: Parents) -> bool:
    while id(node) in parents:
        node = parents[id(node)][0]
        if isinstance(node, ast.Compare):
            return True
    return False
