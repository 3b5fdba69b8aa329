"""Read from a `setup.py` what its build requires; it is never run. Pure.

Older sdists say this nowhere else: `setup_requires` is an argument of the call, and what the script itself imports was
expected to be installed already.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

_SETUP = ("setup", "setuptools.setup")
_SETUP_REQUIRES = "setup_requires"
_HELPERS = {
    "Cython": "cython",
    "cffi": "cffi",
    "numpy": "numpy",
    "numpy.distutils": "setuptools<74",  # 75.9 to 77.0 fail with numpy 2.2.3; 74.0 removed distutils.msvccompiler
    "packaging": "packaging",
    "pkg_resources": "setuptools<82",  # the first that has no pkg_resources
    "pybind11": "pybind11",
    "setuptools_rust": "setuptools-rust",
    "setuptools_scm": "setuptools-scm",
    "skbuild": "scikit-build",
}
"""Modules that a `setup.py` imports to build with → what brings them. Without torch: an extension has to be built
against the torch of the lock, and not against any."""
_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit"})
_CHANGES = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault"})


def parse(source: bytes) -> ast.Module | None:
    """Parse a script; None where this Python cannot."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def asks_for(script: ast.Module) -> tuple[str, ...] | None:
    """Read what `setup_requires` comes to, in its order; None where only running the script would tell."""
    calls = [node for node in ast.walk(script) if isinstance(node, ast.Call) and ast.unparse(node.func) in _SETUP]
    values = [one.value for call in calls for one in call.keywords if one.arg == _SETUP_REQUIRES]
    if not values:
        mentions = any(isinstance(node, ast.Constant) and node.value == _SETUP_REQUIRES for node in ast.walk(script))
        return None if mentions else ()  # a key of what is handed over with two stars
    found = [_strings(value, script, ()) for value in values]
    return None if None in found else tuple(dict.fromkeys(one for strings in found for one in strings or ()))


def imports(script: ast.Module) -> tuple[str, ...]:
    """Name what the script imports at its top to build with, as requirements; what it can do without is left out."""
    parts = [module.split(".") for module in _imported(script.body)]
    names = (".".join(part[:length]) for part in parts for length in range(1, len(part) + 1))
    return tuple(dict.fromkeys(_HELPERS[name] for name in names if name in _HELPERS))


def _imported(statements: Iterable[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.Try(body=body, handlers=handlers) if all(map(_ends_the_build, handlers)):
                yield from _imported(body)
            case _:
                pass


def _ends_the_build(handler: ast.ExceptHandler) -> bool:
    called = (ast.unparse(node.func) for node in ast.walk(handler) if isinstance(node, ast.Call))
    return any(isinstance(node, ast.Raise) for node in ast.walk(handler)) or not _EXITS.isdisjoint(called)


def _strings(node: ast.expr, script: ast.Module, seen: tuple[str, ...]) -> list[str] | None:
    """Evaluate a list of strings that stands in the script; None where it is computed, or changed on the way."""
    match node:
        case ast.Constant(value=str(text)):
            return [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            found = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            return found if len(found) == len(items) else None
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _strings(left, script, seen), _strings(right, script, seen)
            return first + second if first is not None and second is not None else None
        case ast.Name(id=name) if name not in seen:
            value = _assigned(name, script)
            is_kept = value is not None and not _is_changed(ast.unparse(node), script)
            return _strings(value, script, (*seen, name)) if value is not None and is_kept else None
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
            table = _assigned(name, script)
            if not isinstance(table, ast.Dict) or _is_changed(name, script) or _is_changed(ast.unparse(node), script):
                return None
            values = [v for k, v in zip(table.keys, table.values, strict=True) if _is_text(k, key)]
            return _strings(values[0], script, seen) if len(values) == 1 else None
        case _:
            return None


def _is_text(node: ast.expr | None, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _assigned(name: str, script: ast.Module) -> ast.expr | None:
    """Give what a name is assigned, where that happens once, at the top of the script."""
    stored = [
        node
        for node in ast.walk(script)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store | ast.Del)
    ]
    values = [
        statement.value
        for statement in script.body
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name) and target.id == name
    ]
    return values[0] if len(values) == len(stored) == 1 else None


def _is_changed(place: str, script: ast.Module) -> bool:
    """Tell whether something is added to or taken from a list or table after it was assigned."""
    for node in ast.walk(script):
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if attr in _CHANGES:
                if ast.unparse(owner) == place:
                    return True
            case ast.AugAssign(target=target) if ast.unparse(target) == place:
                return True
            case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()) if ast.unparse(owner) == place:
                return True
            case _:
                pass
    return False
