"""Which imports of a package run while a Python file is imported, with nothing to end their `ImportError`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Try = ast.Try | ast.TryStar
_ENDS_IMPORT_ERROR = {"ModuleNotFoundError", "ImportError", "Exception", "BaseException"}
_LATER = "(in a function)"
_LEAVES = {"exit", "quit", "sys.exit", "os._exit"}


def unguarded_imports(tree: ast.Module, package: str) -> tuple[str, ...]:
    """Name each import that would fail without the package, or leave a name unbound; one clause each, by line.

    Functions of the file that are called by name or decorate something are followed, constructors too. Code under
    `TYPE_CHECKING` and under `if __name__ == "__main__"` does not run at import, nor what asks a flag that only a
    handler sets (`HAS_DEEPSPEED = False`) or whether the package is there. A name may stay unbound where every read of
    it stands under a condition on something that the handler binds, or in a function, if the handler sets a flag.

    Raises:
        RecursionError: the file is nested too deeply.
    """
    visitor = _Visitor(tree, package)
    visitor.visit(tree)
    return tuple(f"line {line}: {what}" for line, what in sorted(visitor.problems))


class _Visitor(ast.NodeVisitor):
    """Goes through a file in the order in which Python runs it."""

    def __init__(self, tree: ast.Module, package: str) -> None:
        self.package = package
        self.problems: set[tuple[int, str]] = set()
        self._reads = _reads(tree)
        self._tree = tree
        self._false: set[str] = set()
        """Names that are false, or None, for sure where the package is missing."""
        self._bound = {*dir(builtins)}
        """Names that are bound so far; `*` where a star import may have bound any."""
        self._tries: list[tuple[_Try, int]] = []
        """Each `try` whose body runs, with the depth of calls."""
        self._functions: dict[str, list[_Function]] = {}
        """By dotted name, as far as they are defined."""
        self._class = ""
        self._depth = 0
        """How many functions of the file are running."""
        self._entered: set[tuple[int, tuple[int, ...]]] = set()
        """Each function that was gone through, with the `try` statements around its call."""

    def visit(self, node: ast.AST) -> None:
        """Go through a statement by its kind, and through an expression without recursion: chains can be long."""
        if not isinstance(node, ast.expr):
            super().visit(node)
            return
        for inner in _evaluated(node):
            if isinstance(inner, ast.Call):
                self._call(inner)
            elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                self._bind(inner.id)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            if self._is_ours(alias.name):
                self._check(node.lineno, {name})
            self._bind(name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        names = {alias.asname or alias.name for alias in node.names}
        if not node.level and self._is_ours(node.module or ""):
            self._check(node.lineno, names)
        self._bind(*names)

    def visit_FunctionDef(self, node: _Function) -> None:
        self._functions.setdefault(f"{self._class}{node.name}", []).append(node)
        self._bind(node.name)
        for decorator in node.decorator_list:
            self.visit(decorator)
            self._enter(ast.unparse(decorator))
        self.visit(node.args)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815, named by ast.NodeVisitor

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind(node.name)
        outer, self._class = self._class, f"{self._class}{node.name}."
        self.generic_visit(node)
        self._class = outer
        for decorator in node.decorator_list:
            self._enter(ast.unparse(decorator))

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, ast.Name) and self._is_asked(node.value):
                self._learn(node, target.id)
            if isinstance(target, ast.Name) and isinstance(node.value, ast.Name | ast.Attribute):
                self._functions.setdefault(target.id, []).extend(self._functions.get(ast.unparse(node.value), []))

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        runs = self._holds(node.test)
        for branch, is_body in ((node.body, True), (node.orelse, False)):
            if runs in {None, is_body}:
                self._visit_all(branch)

    def _holds(self, test: ast.expr) -> bool | None:
        """Tell which branch runs: the body (True), the other (False), or either (None)."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self._holds(operand)
                return None if inner is None else not inner
            case ast.BoolOp(op=ast.And(), values=values) if any(self._holds(value) is False for value in values):
                return False
            case ast.Name(id=name) if name in self._false:
                return False
            case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return False if _asks(left, self.package) else None
            case ast.Call() if _asks(test, self.package):
                return False
            case ast.Call() | ast.BoolOp():
                return None
            case _:
                return _runs_at_import(test)

    def _is_asked(self, value: ast.expr) -> bool:
        return isinstance(value, ast.Call | ast.Compare) and self._holds(value) is False

    def _learn(self, where: ast.AST, name: str) -> None:
        """Believe that a name is false if nothing else in the file gives it another value."""
        around = {id(node) for node in ast.walk(where)}
        values = [
            (node, node.value if isinstance(node, ast.Assign) else None)
            for node in ast.walk(self._tree)
            if id(node) not in around and isinstance(node, ast.stmt) and name in _stored(node)
        ]
        if all(isinstance(value, ast.Constant) and not value.value for _, value in values):
            self._false.add(name)

    def visit_Try(self, node: _Try) -> None:
        self._tries.append((node, self._depth))
        self._visit_all(node.body)
        self._tries.pop()
        for handler in node.handlers:
            self._visit_all(handler.body)
        is_skipped = any(_ends(handler) for handler in node.handlers) and any(map(self._imports_ours, node.body))
        self._visit_all([*([] if is_skipped else node.orelse), *node.finalbody])

    visit_TryStar = visit_Try  # noqa: N815, named by ast.NodeVisitor

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.visit(item)
        suppressed = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
        suppressed = [call for call in suppressed if ast.unparse(call.func) in {"suppress", "contextlib.suppress"}]
        for call in suppressed:
            handler = ast.ExceptHandler(type=ast.Tuple(elts=call.args), body=[ast.Pass()], lineno=call.lineno)
            self._tries.append(
                (ast.Try(body=node.body, handlers=[handler], orelse=[], finalbody=[], lineno=node.lineno), self._depth)
            )
        self._visit_all(node.body)
        self._tries = self._tries[: len(self._tries) - len(suppressed)]

    visit_AsyncWith = visit_With  # noqa: N815, named by ast.NodeVisitor

    def _imports_ours(self, node: ast.stmt) -> bool:
        match node:
            case ast.Import(names=names):
                return any(self._is_ours(alias.name) for alias in names)
            case ast.ImportFrom(module=module, level=0):
                return self._is_ours(module or "")
            case _:
                return False

    def _visit_all(self, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            self.visit(node)

    def _bind(self, *names: str) -> None:
        if not self._depth:
            self._bound.update(names)

    def _is_ours(self, module: str) -> bool:
        return module.partition(".")[0] == self.package

    def _call(self, node: ast.Call) -> None:
        function = ast.unparse(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else ""
        if function in {"__import__", "import_module", "importlib.import_module"} and node.args:
            module = node.args[0]
            if isinstance(module, ast.Constant) and self._is_ours(str(module.value)):
                self._check(node.lineno, set())
        self._enter(function)

    def _enter(self, function: str) -> None:
        """Go through a function that is called, or through the constructors of a class."""
        constructors = [f"{function}.{name}" for name in ("__new__", "__init__", "__post_init__")]
        around = tuple(id(try_) for try_, _ in self._tries)
        for definition in [body for name in (function, *constructors) for body in self._functions.get(name, [])]:
            if (id(definition), around) not in self._entered:
                self._entered.add((id(definition), around))
                outer, self._class = self._class, ""
                self._depth += 1
                self._visit_all(definition.body)
                self._depth -= 1
                self._class = outer

    def _check(self, line: int, names: set[str]) -> None:
        """Judge one import by the `try` statements around it, innermost first."""
        what = f"it imports {self.package} when it is imported itself, and nothing ends the ImportError"
        for try_, depth in reversed(self._tries):
            handler = next((handler for handler in try_.handlers if _ends(handler)), None)
            if handler is None:
                continue
            if _raises(handler):
                what = f"it imports {self.package}, and the handler in line {handler.lineno} raises again"
                continue
            set_inside = {name for inner in [*try_.body, *try_.orelse] for name in _stored(inner)}
            for name in _flags(handler) | (set_inside - _bound_by(handler)):
                self._learn(try_, name)
            if depth == self._depth:
                self._check_handler(line, try_, handler, names)
            return
        self.problems.add((line, what))

    def _check_handler(self, line: int, try_: _Try, handler: ast.ExceptHandler, names: set[str]) -> None:
        flags = _bound_by(handler)
        bound = self._bound | flags
        enough = flags | self._false | {_beside(try_)} | ({_LATER} if _flags(handler) else set())
        if any(isinstance(node, ast.Return) for node in _inside(handler)):
            return
        unbound = sorted(n for n in names - bound if not all(asked & enough for asked in self._reads.get(n, [])))
        if unbound:
            listed = ", ".join(unbound)
            self.problems.add((line, f"the handler in line {handler.lineno} does not bind {listed}"))
        known = {*bound, str(handler.name), "__name__", "__file__"}
        used = {node.id for node in _inside(handler) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        if not self._depth and "*" not in bound and (unknown := used - known):
            listed = ", ".join(sorted(unknown))
            self.problems.add((line, f"the handler in line {handler.lineno} uses {listed}, which is not defined there"))


def _evaluated(expression: ast.expr) -> Iterator[ast.AST]:
    """Give the nodes that an expression evaluates; the bodies of lambdas are not."""
    stack: list[ast.AST] = [expression]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(ast.iter_child_nodes(node.args if isinstance(node, ast.Lambda) else node))


def _reads(tree: ast.Module) -> dict[str, list[set[str]]]:
    """Give each read of each name: the names that are asked by the conditions around it, and whether it runs later."""
    reads: dict[str, list[set[str]]] = {}
    stack: list[tuple[ast.AST, set[str]]] = [(tree, set())]
    while stack:
        node, asked = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            reads.setdefault(node.id, []).append(asked)
        if isinstance(node, ast.If | ast.IfExp | ast.BoolOp):
            condition = node if isinstance(node, ast.BoolOp) else node.test
            asked = asked | {inner.id for inner in ast.walk(condition) if isinstance(inner, ast.Name)}
        inside: set[str] = set()
        if isinstance(node, _Function):
            inside = {_LATER}
        elif isinstance(node, _Try | ast.With | ast.AsyncWith):
            inside = {_beside(node)}
        block = [*node.body, *getattr(node, "orelse", [])] if inside else []  # type: ignore[attr-defined]
        stack += [(child, asked | inside if child in block else asked) for child in ast.iter_child_nodes(node)]
    return reads


def _beside(node: ast.stmt) -> str:
    """Name the body of a `try`, of which nothing runs behind an import that fails."""
    return f"(in the body of line {node.lineno})"


def _runs_at_import(test: ast.expr) -> bool | None:
    source = ast.unparse(test)
    if source in {"TYPE_CHECKING", "typing.TYPE_CHECKING", "t.TYPE_CHECKING", "False", "0"}:
        return False
    return False if source in {"__name__ == '__main__'", "'__main__' == __name__"} else None


def _asks(node: ast.expr, package: str) -> bool:
    """Tell whether an expression asks whether the package is there; the answer is None or False."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        return False
    function = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    match node.args:
        case [ast.Constant(value=asked)]:
            return asked == package and function in {"find_spec", "find_loader", "_is_package_available"}
        case _:
            return function == f"is_{package}_available"


def _flags(handler: ast.ExceptHandler) -> set[str]:
    """Name what a handler sets to a constant that is false."""
    return {
        name
        for node in handler.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and not node.value.value
        for name in _stored(node)
    }


def _stored(statement: ast.stmt) -> set[str]:
    """Name what a statement binds by itself, and what functions may bind from inside."""
    stack: list[ast.AST] = [statement]
    names: set[str] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Global):
            names.update(node.names)
        stack += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    return names


def _ends(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(type_).rpartition(".")[2] in _ENDS_IMPORT_ERROR for type_ in types)


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(
        isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and ast.unparse(node.func) in _LEAVES)
        for node in _inside(handler)
    )


def _bound_by(handler: ast.ExceptHandler) -> set[str]:
    bound = set()
    for node in _inside(handler):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.alias):
            bound.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, _Function | ast.ClassDef):
            bound.add(node.name)
    return bound


def _inside(handler: ast.ExceptHandler) -> Iterator[ast.AST]:
    """Give the nodes that run with a handler; the bodies of functions do not."""
    stack: list[ast.AST] = [*handler.body]
    while stack:
        node = stack.pop()
        yield node
        stack += [] if isinstance(node, _Function | ast.Lambda | ast.ClassDef) else ast.iter_child_nodes(node)
