"""Which uses of a package, while a file is imported, no stand-in for the package can bear."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from patchlock.patches.ops.optional_import import standin_class
from patchlock.patches.ops.optional_import._constants import Fixed, StandIn, Unbound
from patchlock.patches.ops.optional_import._except_clauses import MISSING, handler_of
from patchlock.patches.ops.optional_import._import_time import Parents, Step
from patchlock.patches.ops.syntax import parse_bare_expression

_REFUSED = MISSING - {"ModuleNotFoundError"}
"""Handlers of these catch the error that a stand-in raises."""
_WRONG_USE = frozenset({"Exception", "BaseException", "TypeError"})
_NO_NAME = frozenset({"Exception", "BaseException", "NameError"})
_NO_ATTRIBUTE = frozenset({"Exception", "BaseException", "AttributeError", "TypeError"})


_NEED_A_VALUE = frozenset(
    {
        *("abs", "all", "any", "dict", "enumerate", "float", "frozenset", "int", "iter", "len", "list", "map", "max"),
        *("min", "next", "open", "range", "reversed", "round", "set", "sorted", "sum", "tuple", "zip"),
    }
)
"""Functions of Python's own that ask more of an argument than a stand-in has."""
_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})


def unsupported_uses(step: Step, package: str) -> Iterator[tuple[int, str]]:
    """Say what a statement does that fails where the package is missing, whatever stands for it: line and a clause."""
    if isinstance(step.node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _registered(step.node, step)
    for node in step.nodes:
        if isinstance(node, ast.Call):
            yield from _hidden_import(node, step, package)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            chain = _chain(node, step.parents)
            why, errors = _trouble(node, chain, step)
            if why and not handler_of(step.guards, errors)[1]:
                yield chain.lineno, f"`{ast.unparse(chain)}` {why} while the file is imported"


def _trouble(name: ast.Name, chain: ast.expr, step: Step) -> tuple[str, frozenset[str]]:
    """Say what is wrong with a use of a name, and which errors a handler would have to catch."""
    parent, field = step.parents[id(chain)]
    match step.values.get(name.id):
        case StandIn(is_derived=True):
            return _why_derived(chain, step.parents), _REFUSED
        case StandIn() if isinstance(chain, ast.Attribute) and chain.attr == standin_class.AS_CLASS:
            return "", frozenset()
        case StandIn():
            why = _why(chain, parent, field, step.parents)
            return why, _REFUSED if why == "is called" else _WRONG_USE
        case Unbound(line=line):
            return f"is read, which the handler in line {line} does not bind,", _NO_NAME
        case Fixed(value=None, line=line) if line and (chain is not name or _needs_value(parent, field)):
            return f"is used, which the handler in line {line} sets to None,", _NO_ATTRIBUTE
        case _:
            return "", frozenset()


def _registered(function: ast.FunctionDef | ast.AsyncFunctionDef, step: Step) -> Iterator[tuple[int, str]]:
    """`@f.register` of a generic function reads the annotation of the first argument, even where no other is read."""
    if not any(
        isinstance(decorator, ast.Attribute) and decorator.attr == "register" for decorator in function.decorator_list
    ):
        return
    arguments = [*function.args.posonlyargs, *function.args.args]
    annotation = next((argument.annotation for argument in arguments if argument.annotation), None)
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = parse_bare_expression(annotation.value)
    if annotation is None:
        return
    for node in ast.walk(annotation):
        is_standin = isinstance(node, ast.Name) and isinstance(step.values.get(node.id), StandIn)
        if is_standin and not handler_of(step.guards, _WRONG_USE)[1]:
            yield function.lineno, f"`{ast.unparse(annotation)}` is given to `register` while the file is imported"
            return


def _needs_value(parent: ast.AST, field: str) -> bool:
    """Tell whether `None` cannot stand there: a base class, a function that is called, a decorator."""
    return (isinstance(parent, ast.Call) and field == "func") or field in {"bases", "decorator_list"}


def _hidden_import(call: ast.Call, step: Step, package: str) -> Iterator[tuple[int, str]]:
    """Find imports that are calls, which no guard of ours is for."""
    function = ast.unparse(call.func).removeprefix("builtins.")
    match call.args:
        case [ast.Constant(value=str(text)), *_]:
            if function in _IMPORTERS:
                is_ours = text.partition(".")[0] == package
            else:
                is_ours = function in {"exec", "eval"} and _is_imported_by(text, package)
            if is_ours and not handler_of(step.guards, MISSING)[1]:
                yield call.lineno, f"`{ast.unparse(call)}` imports it while the file is imported"
        case _:
            pass


_IMPORTERS = frozenset({"__import__", "import_module", "importlib.import_module"})


def _is_imported_by(text: str, package: str) -> bool:
    return re.search(rf"\b(?:import|from|import_module\(['\"]|__import__\(['\"])\s*{package}\b", text) is not None


def _chain(name: ast.Name, parents: Parents) -> ast.expr:
    """Give the longest `a.b[c].d` that begins with a name."""
    node: ast.expr = name
    while True:
        parent, field = parents[id(node)]
        if not isinstance(parent, ast.Attribute | ast.Subscript) or field != "value":
            return node
        node = parent


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
        case ast.Call(func=ast.Name(id=function)), "args" if function in _NEED_A_VALUE:
            return f"is given to `{function}`"
        case ast.Call(func=ast.Attribute(attr="register")), "args" if parents[id(parent)][1] == "decorator_list":
            return "is given to `register`"
        case ast.MatchClass(), "cls":
            return "is the class of a pattern"
        case ast.ClassDef() as class_, "bases" if _is_enumeration(class_):
            return "is the base of an enumeration"
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


def _is_enumeration(class_: ast.ClassDef) -> bool:
    """Tell whether a class has members whose values the stand-in, as a mixed-in type, would have to make."""
    is_enum = any(ast.unparse(base).split(".")[-1] in _ENUMS for base in class_.bases)
    return is_enum and any(isinstance(node, ast.Assign | ast.AnnAssign) for node in class_.body)


def _is_real_only(name: str) -> bool:
    return name.startswith("__") and name not in {"__version__", "__doc__", "__class__"}


def _is_compared(node: ast.AST, parents: Parents) -> bool:
    while id(node) in parents:
        node = parents[id(node)][0]
        if isinstance(node, ast.Compare):
            return True
    return False
