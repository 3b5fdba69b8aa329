"""The skeleton of a Python file: what of it runs while it is imported and concerns one package; and its execution.

Kept are imports, the headers of classes and functions (bases, decorators, defaults, annotations), plain assignments,
and each statement that mentions the package, also in the bodies of functions. All else is left out, and what it would
have bound is a mock. So the test sees what the package's absence does, and upstream's work is not done.
"""

from __future__ import annotations
import __future__

import ast
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mocks import Mock, Names

Function = ast.FunctionDef | ast.AsyncFunctionDef
_PLAIN = (
    ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.BoolOp, ast.UnaryOp, ast.Compare,
    ast.IfExp, ast.Subscript, ast.expr_context, ast.boolop, ast.unaryop, ast.cmpop,
)  # fmt: skip
_HEADERS = {"field", "dataclass_field", "TypeVar", "NewType", "partial", "namedtuple"}
_LEAVING = {"exit", "quit", "sys.exit", "os._exit"}
_NO_VALUE = {"__init__", "__init_subclass__", "__set_name__", "__post_init__"}


def bound_by(tree: ast.AST, package: str) -> set[str]:
    """Name what imports of the package bind, wherever they stand."""
    bound = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours = [alias for alias in node.names if alias.name.partition(".")[0] == package]
            bound |= {alias.asname or package for alias in ours}
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == package:
            bound |= {alias.asname or alias.name for alias in node.names}
    return bound - {"*"}


class Skeleton:
    """Cuts a tree down to what concerns a package."""

    def __init__(self, tree: ast.Module, package: str, own: str) -> None:
        """Find what concerns the package.

        Args:
            tree: of the file.
            package: the one of interest.
            own: the class that the op puts in, which is kept whole.
        """
        self.package, self.own = package, own
        self.bound = bound_by(tree, package)
        self.names = set(self.bound)
        binders = [(binds, names) for binds, names in self._binders(tree) if binds]
        while True:
            found = {name for binds, names in binders if names & self.names or self.package in names for name in binds}
            if found <= self.names:
                break
            self.names |= found
        self.body = self._reduce(tree.body, inside=False, hot=False)

    def _binders(self, tree: ast.Module) -> list[tuple[set[str], set[str]]]:
        """Give what each statement binds, and the names that it mentions; the package's name where it is asked for."""
        found: list[tuple[set[str], set[str]]] = []

        def collect(node: ast.AST) -> set[str]:
            if isinstance(node, ast.Name):
                return {node.id}
            names: set[str] = set()
            for field in node._fields:
                value = getattr(node, field, None)
                for child in value if type(value) is list else (value,):
                    if isinstance(child, ast.AST) and child._fields:
                        names |= collect(child)
            if isinstance(node, ast.Import | ast.ImportFrom | ast.Call) and self._is_ours(node):
                names.add(self.package)
            if isinstance(node, Function | ast.ClassDef):
                found.append(({node.name}, names))
            elif isinstance(node, ast.Assign):
                value = collect(node.value)
                targets = {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
                found.append((targets, value))
            elif isinstance(node, ast.ImportFrom):
                found.append(({a.asname or a.name for a in node.names if self.package in a.name}, {self.package}))
            return names

        collect(tree)
        return found

    def _mentions(self, *nodes: ast.AST | None) -> bool:
        return any(self._is_ours(inner) for node in nodes if node for inner in ast.walk(node))

    def _is_ours(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self.names
            case ast.Import(names=names):
                return any(alias.name.partition(".")[0] == self.package for alias in names)
            case ast.ImportFrom(module=module, level=0):
                return (module or "").partition(".")[0] == self.package
            case ast.Call(args=[ast.Constant(value=str(text)), *_], func=function):
                if ast.unparse(function) in {"exec", "eval"}:
                    return self.package in text
                return text.partition(".")[0].replace("-", "_") == self.package and not text.endswith(" ")
            case _:
                return False

    def _reduce(self, body: Iterable[ast.stmt], *, inside: bool, hot: bool) -> list[ast.stmt]:
        return [kept for node in body for kept in self._kept(node, inside, hot)]

    def _block(self, body: Iterable[ast.stmt], inside: bool, hot: bool) -> list[ast.stmt]:
        return self._reduce(body, inside=inside, hot=hot) or [ast.Pass()]

    def _kept(self, node: ast.stmt, inside: bool, hot: bool) -> Iterator[ast.stmt]:
        match node:
            case ast.Import() | ast.ImportFrom():
                if not inside or self._mentions(node):
                    yield node
            case ast.ClassDef(name=self.own):
                yield node
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if not inside or self._mentions(node):
                    result = [] if node.name in _NO_VALUE else [ast.Return(value=_mock())]
                    node.body = [*self._reduce(node.body, inside=True, hot=False), *result] or [ast.Pass()]
                    yield node
            case ast.ClassDef():
                if not inside or self._mentions(node):
                    node.body = self._block(node.body, inside, hot)
                    yield node
            case ast.If():
                hot = hot or self._mentions(node.test) or _is_plain(node.test)
                yield from self._compound(node, (node.test,), inside, hot)
            case ast.For() | ast.AsyncFor():
                yield from self._compound(node, (node.iter,), inside, hot)
            case ast.While():
                once = ast.If(test=node.test, body=node.body, orelse=[])
                target = ast.Name(id="_once", ctx=ast.Store())
                yield from self._kept(
                    ast.For(target=target, iter=_mock(), body=[once], orelse=[]),
                    inside, hot,
                )  # fmt: skip
            case ast.With() | ast.AsyncWith():
                yield from self._compound(node, node.items, inside, hot)
            case ast.Try() | ast.TryStar():
                is_ours = self._mentions(*node.body)
                for handler in node.handlers:
                    handler.body = self._block(handler.body, inside, hot or is_ours)
                yield from self._compound(node, (), inside, hot, extra=is_ours)
            case _:
                yield from self._simple(node, inside, hot)

    def _compound(
        self, node: Any, heads: Iterable[ast.AST], inside: bool, hot: bool, extra: bool = False
    ) -> Iterator[ast.stmt]:
        is_kept = extra or self._mentions(*heads)
        for field in ("body", "orelse", "finalbody"):
            if hasattr(node, field):
                reduced = self._reduce(getattr(node, field), inside=inside, hot=hot)
                is_kept = is_kept or any(
                    not isinstance(inner, ast.Break | ast.Continue | ast.Return) for inner in reduced
                )
                is_kept = is_kept or (hot and bool(reduced))
                setattr(node, field, reduced or ([ast.Pass()] if field == "body" else []))
        if is_kept and isinstance(node, ast.Try | ast.TryStar) and not (node.handlers or node.finalbody):
            node.finalbody = [ast.Pass()]
        if is_kept:
            yield node

    def _simple(self, node: ast.stmt, inside: bool, hot: bool) -> Iterator[ast.stmt]:
        match node:
            case ast.AnnAssign() if not inside:
                if node.value is not None and not (self._mentions(node.value) or _is_plain(node.value)):
                    node.value = _mock()
                yield node
            case ast.Return(value=value):
                if value is not None and not self._mentions(value) and not isinstance(value, ast.Constant):
                    node.value = _mock()
                yield node
            case ast.Raise() | ast.Expr(value=ast.Call()) if hot and _leaves(node):
                yield node
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) if _is_plain(value):
                if not inside or self._mentions(node) or isinstance(value, ast.Constant):
                    yield node
            case ast.Break() | ast.Continue() | ast.Global() | ast.Nonlocal() | ast.Pass():
                yield node
            case _ if self._mentions(node):
                yield node


def _mock() -> ast.expr:
    return ast.Name(id="_mock_", ctx=ast.Load())


def _leaves(node: ast.stmt) -> bool:
    return not isinstance(node, ast.Expr) or (
        isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in _LEAVING
    )


def _is_plain(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return (
            isinstance(value.func, ast.Name | ast.Attribute) and ast.unparse(value.func).rpartition(".")[2] in _HEADERS
        )
    return all(isinstance(node, _PLAIN) for node in ast.walk(value))


class Prepared:
    """A file's skeleton, to be executed with the package blocked and with it there."""

    def __init__(self, text: str, package: str, own: str) -> None:
        """Cut a file down.

        Args:
            text: the file.
            package: the one of interest.
            own: the class that the op puts in.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            features = [
                alias.name
                for node in tree.body
                if isinstance(node, ast.ImportFrom) and node.module == "__future__"
                for alias in node.names
            ]
            flags = sum(getattr(__future__, name).compiler_flag for name in features)
            self._skeleton = Skeleton(tree, package, own)
            self._statements = [(node, _compiled(node, flags)) for node in self._skeleton.body]
        self._package, self._own = package, own

    def errors(self, present: Callable[[str], Any] | None) -> tuple[dict[str, int], dict[str, Any]]:
        """Execute each statement by itself, so that a poor mock hides nothing behind it.

        Args:
            present: gives what stands for the package; None where it is blocked.

        Returns:
            Each error with its line, and the names that the file then has.
        """
        names: dict[str, Any] = {"__name__": "skeleton", "__file__": "skeleton.py", "_mock_": Mock("left out")}
        sys.modules["skeleton"] = types.ModuleType("skeleton")  # dataclasses asks for it

        def run(code: Any, *scopes: Any) -> None:
            if isinstance(code, str):
                reduced = Skeleton(ast.parse(code), self._package, self._own).body
                exec(
                    compile(ast.fix_missing_locations(ast.Module(body=reduced, type_ignores=[])), "exec", "exec"), names
                )

        names["__builtins__"] = Names(self._package, present, self._skeleton.bound, run)
        found: dict[str, int] = {}
        for node, code in self._statements:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    exec(code, names)
            except (Exception, SystemExit) as error:
                found.setdefault(
                    f"{type(error).__name__}: {re.sub('0x[0-9a-f]+', '0x', str(error))}", _line(error, node)
                )
        return found, names


def _compiled(node: ast.stmt, flags: int) -> types.CodeType:
    module = ast.fix_missing_locations(ast.Module(body=[node], type_ignores=[]))
    code: types.CodeType = compile(module, "skeleton", "exec", flags=flags, dont_inherit=True)
    return code


def _line(error: BaseException, node: ast.stmt) -> int:
    line, trace = node.lineno, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == "skeleton":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
