"""Judge whether a Python file can be imported without a package, by its syntax tree; shares no code with patchlock."""

from __future__ import annotations

import ast
import dataclasses
import re
import warnings
from collections.abc import Iterator
from pathlib import PurePosixPath

_CATCHES = re.compile(r"\b(ModuleNotFoundError|ImportError|Exception|BaseException)\b")
_AVAILABLE = re.compile(r"avail|find_spec|installed|has_|_ok\b|importable", re.IGNORECASE)
_NEVER = re.compile(r"TYPE_CHECKING$|^__name__ == '__main__'|^False$|^0$")
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def tree_of(data: bytes) -> ast.Module | None:
    """Parse as Python does; None where it does not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return None


@dataclasses.dataclass(frozen=True)
class _Run:
    """A statement that runs at import, and the `try` statements around it, innermost last."""

    node: ast.stmt
    tries: tuple[ast.Try, ...]
    asked: bool
    """Some `if` around it asks whether a package is there."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportsWithout:
    """P2: nothing at import needs the package; the code is otherwise the same as before."""

    package: str

    def violations(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say which statement at import needs the package."""
        if self.package in path.parts[:-1]:
            return ()  # a copy of the package itself
        tree = tree_of(data)
        return tuple(self._violations(tree)) if tree else ()

    def _violations(self, tree: ast.Module) -> Iterator[str]:
        functions = {node.name: node for node in tree.body if isinstance(node, _FUNCTION)}
        empty: set[str] = set()
        for run in _runs(tree.body, functions):
            names = self._bound(run.node)
            if names and not run.asked:
                handlers = [_handler(t) for t in run.tries]
                ending = [handler for handler in handlers if handler and not _leaves(handler)]
                if not ending:
                    what = "an import that nothing guards" if not any(handlers) else "a handler that raises again"
                    yield f"line {run.node.lineno}: {what}"
                    continue
                bound = {n.id for n in ast.walk(ending[-1]) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
                bound |= {n.name for n in ast.walk(ending[-1]) if isinstance(n, (ast.ClassDef, *_FUNCTION))}
                bound |= {
                    a.asname or a.name for n in ast.walk(ending[-1]) if isinstance(n, ast.ImportFrom) for a in n.names
                }
                nones = {
                    target.id
                    for n in ast.walk(ending[-1])
                    if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant) and n.value.value is None
                    for target in n.targets
                    if isinstance(target, ast.Name)
                }
                empty |= (names - bound) | (names & nones)
            elif empty and not run.asked and not run.tries:
                yield from (f"line {node.lineno}: reads {node.id}, which is unset" for node in _reads(run.node, empty))

    def _bound(self, node: ast.stmt) -> set[str]:
        if isinstance(node, ast.Import):
            ours = [alias for alias in node.names if alias.name.split(".")[0] == self.package]
            return {alias.asname or self.package for alias in ours}
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == self.package:
            return {alias.asname or alias.name for alias in node.names}
        return set()

    def is_beyond_help(self, path: PurePosixPath, data: bytes) -> bool:
        """Tell whether the file does not parse, or calls or computes with the package while it is imported."""
        tree = tree_of(data)
        if tree is None:
            return True
        functions = {node.name: node for node in tree.body if isinstance(node, _FUNCTION)}
        names: set[str] = set()
        for run in _runs(tree.body, functions):
            bound = self._bound(run.node)
            names |= bound
            if "*" in bound or (bound and any(handler and _leaves(handler) for handler in map(_handler, run.tries))):
                return True
            if any(_uses(node, names) for node in _own(run.node)):
                return True
            if isinstance(run.node, ast.Assign) and _root(run.node.value) in names:
                names |= {target.id for target in run.node.targets if isinstance(target, ast.Name)}
        return False

    def damage(self, path: PurePosixPath, before: bytes, after: bytes) -> tuple[str, ...]:
        """Say whether the code is another one once the guards are taken out again."""
        old, new = tree_of(before), tree_of(after)
        if old is None or new is None:
            return () if before == after else ("it was changed and does not parse",)
        same = _plain(old) == _plain(new)
        return () if same else ("without its guards it is other code than before",)


def _runs(
    body: list[ast.stmt],
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef],
    tries: tuple[ast.Try, ...] = (),
    asked: bool = False,
    entered: set[tuple[object, ...]] | None = None,
) -> Iterator[_Run]:
    """Give what runs at import; a function that is called there is gone through once for each kind of place."""
    entered = set() if entered is None else entered
    for node in body:
        yield _Run(node, tries, asked)
        for name in sorted(_called(node) & functions.keys()):
            key = (name, asked, *map(id, tries))
            if key not in entered:
                entered.add(key)
                yield from _runs(functions[name].body, functions, tries, asked, entered)
        if isinstance(node, ast.If):
            test = ast.unparse(node.test)
            about = asked or bool(_AVAILABLE.search(test))
            if not _NEVER.search(test):
                yield from _runs(node.body, functions, tries, about, entered)
            yield from _runs(node.orelse, functions, tries, about, entered)
        elif isinstance(node, ast.Try):
            yield from _runs(node.body, functions, (*tries, node), asked, entered)
            for block in (*(handler.body for handler in node.handlers), node.orelse, node.finalbody):
                yield from _runs(block, functions, tries, asked, entered)
        elif not isinstance(node, _FUNCTION):
            blocks = [getattr(node, field, []) for field in ("body", "orelse")]
            for block in [*blocks, *(case.body for case in getattr(node, "cases", []))]:
                yield from _runs(block, functions, tries, asked, entered)


def _own(node: ast.stmt) -> Iterator[ast.AST]:
    """Give the expressions that a statement itself evaluates."""
    stack: list[ast.AST] = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    while stack:
        inner = stack.pop()
        yield inner
        if not isinstance(inner, (ast.Lambda, ast.ExceptHandler, ast.match_case)):
            stack += [child for child in ast.iter_child_nodes(inner) if not isinstance(child, ast.stmt)]


def _called(node: ast.stmt) -> set[str]:
    return {n.func.id for n in _own(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}


def _reads(node: ast.stmt, names: set[str]) -> Iterator[ast.Name]:
    return (n for n in _own(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in names)


def _uses(node: ast.AST, names: set[str]) -> bool:
    """Tell whether a node calls, compares, or computes with something of these names."""
    match node:
        case ast.Call():
            return _root(node.func) in names
        case ast.Compare():
            return any(_root(part) in names for part in (node.left, *node.comparators))
        case ast.BinOp() | ast.Starred() | ast.withitem():
            return any(_root(part) in names for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
        case _:
            return False


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _handler(node: ast.Try) -> ast.ExceptHandler | None:
    return next((h for h in node.handlers if h.type is None or _CATCHES.search(ast.unparse(h.type))), None)


def _leaves(handler: ast.ExceptHandler) -> bool:
    return any(
        isinstance(n, ast.Raise) or (isinstance(n, ast.Call) and ast.unparse(n.func) in {"exit", "quit", "sys.exit"})
        for n in ast.walk(handler)
    )


class _Unguard(ast.NodeTransformer):
    def visit_Try(self, node: ast.Try) -> object:
        self.generic_visit(node)
        bodies = [ast.unparse(handler) for handler in node.handlers]
        return node.body if len(bodies) == 1 and "_PatchlockAbsent" in bodies[0] else node

    def visit_ClassDef(self, node: ast.ClassDef) -> object:
        self.generic_visit(node)
        return None if node.name == "_PatchlockAbsent" else node

    def visit_Import(self, node: ast.Import) -> object:
        return [ast.Import(names=[alias]) for alias in node.names]


def _plain(tree: ast.Module) -> str:
    return ast.dump(_Unguard().visit(tree))
