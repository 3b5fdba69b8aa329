"""What must hold in a patched Python file, read from its syntax tree; shares no code with the ops, and runs nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.patches.postconditions._imported import unguarded_imports
from patchlock.patches.postconditions._newer_python import parse
from patchlock.patches.postconditions._notebook import code_of

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Variables = Mapping[str, list[ast.expr]]
"""What is assigned to each name."""


@dataclass(frozen=True, kw_only=True)
class ImportsWithout:
    """The file can be imported where a package is not installed, as far as its own imports go.

    Every import of the package that runs then, also in functions of the file that are called then, is in a `try` whose
    handler ends the `ImportError` and binds each name that the import would have bound.

    Attributes:
        package: the top-level package as it is imported.
    """

    package: str

    def __post_init__(self) -> None:
        if not self.package.isidentifier():
            raise ValueError(f"`{self.package}` is not the name of a top-level package")

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each import that would fail, or leave a name unbound."""
        tree = _tree(path, data)
        if isinstance(tree, str):
            return (tree,)
        try:
            return unguarded_imports(tree, self.package)
        except RecursionError:
            return ("it is nested too deeply to be checked",)


@dataclass(frozen=True, kw_only=True)
class NoCall:
    """No live call of a function is left, whatever the file calls it.

    Code behind a `return` or under `if False` is not live.

    Attributes:
        callee: dotted name as the function's own module has it (`subprocess.check_call`).
        mentions: only calls with an argument whose source, local variables included, has all of these texts.
    """

    callee: str
    mentions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_name(self.callee)

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each call."""
        tree = _tree(path, data)
        if isinstance(tree, str):
            return (tree,)
        mentioning = f" with {', '.join(self.mentions)}" if self.mentions else ""
        aliases = _aliases(tree)
        lines = [
            call.lineno
            for call, variables in _calls(tree.body, _assigned(tree.body))
            if self.callee in _names(call.func, aliases)
            and (not self.mentions or any(self._is_told_of(item, variables) for item in _arguments(call)))
        ]
        return tuple(f"line {line}: it calls {self.callee}{mentioning}" for line in sorted(lines))

    def _is_told_of(self, argument: ast.expr, variables: _Variables) -> bool:
        names = [node.id for node in ast.walk(argument) if isinstance(node, ast.Name)]
        told = "\n".join(map(_source, [argument, *(value for name in names for value in variables.get(name, ()))]))
        return all(text in told or text.replace('"', "'") in told for text in self.mentions)


@dataclass(frozen=True, kw_only=True)
class Calls:
    """At least one live call of a function is there.

    Attributes:
        callee: dotted name as the function's own module has it; `*.get_providers` is a method of anything.
    """

    callee: str

    def __post_init__(self) -> None:
        _check_name(self.callee.removeprefix("*."))

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say that there is none."""
        tree = _tree(path, data)
        if isinstance(tree, str):
            return (tree,)
        aliases = _aliases(tree)
        if any(self._is_called(call.func, aliases) for call, _ in _calls(tree.body, {})):
            return ()
        return (f"it never calls {self.callee}",)

    def _is_called(self, function: ast.expr, aliases: Mapping[str, set[str]]) -> bool:
        if not self.callee.startswith("*."):
            return self.callee in _names(function, aliases)
        for name in reversed(self.callee.removeprefix("*.").split(".")):
            if not isinstance(function, ast.Attribute) or function.attr != name:
                return False
            function = function.value
        return True


@dataclass(frozen=True, kw_only=True)
class NoString:
    """No string of the file, docstrings apart, is equal to a value."""

    value: str

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each string."""
        tree = _tree(path, data)
        if isinstance(tree, str):
            return (tree,)
        ignored = {id(part) for node in ast.walk(tree) for part in _text_parts(node)}
        lines = [
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.expr) and id(node) not in ignored and _string(node) == self.value
        ]
        return tuple(f"line {line}: it has the string {self.value!r}" for line in sorted(lines))


def _check_name(callee: str) -> None:
    if not all(part.isidentifier() for part in callee.split(".")):
        raise ValueError(f"`{callee}` is not the dotted name of a function")


def _tree(path: PurePosixPath, data: bytes) -> ast.Module | str:
    """Parse as Python itself would; the answer is a clause where it cannot."""
    try:
        return parse(code_of(data) if path.suffix == ".ipynb" else data, str(path))
    except SyntaxError as error:
        return f"line {error.lineno or 1}: it does not parse: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"it does not parse: {error}"


def _string(node: ast.expr) -> str | None:
    """Give the value of a string, or of an f-string that has nothing to fill in."""
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
        return None if None in parts else "".join(map(str, parts))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _text_parts(node: ast.AST) -> list[ast.expr]:
    """Give what is inside a node and no string of its own: the docstring, and the text of an f-string."""
    if isinstance(node, ast.JoinedStr):
        return [part for part in node.values if isinstance(part, ast.Constant)]
    if isinstance(node, ast.FormattedValue):
        return [node.format_spec] if node.format_spec else []
    if isinstance(node, ast.Module | _Function | ast.ClassDef) and node.body and isinstance(node.body[0], ast.Expr):
        return [node.body[0].value]
    return []


def _calls(body: list[ast.stmt], variables: _Variables) -> Iterator[tuple[ast.Call, _Variables]]:
    """Give the live calls, each with what the variables in sight are assigned."""
    for statement in body:
        blocks: list[tuple[ast.AST, list[ast.stmt]]] = []
        nodes: list[ast.AST] = [statement]
        for node in nodes:  # grows while it is read; blocks are put aside
            for field, value in ast.iter_fields(node):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    is_dead = isinstance(node, ast.If | ast.While) and _constant(node.test) is (field != "body")
                    blocks += [] if is_dead else [(node, value)]
                else:
                    nodes += [child for child in _listed(value) if isinstance(child, ast.AST)]
        yield from ((node, variables) for node in nodes if isinstance(node, ast.Call))
        for owner, block in blocks:
            yield from _calls(block, {**variables, **_assigned(block)} if isinstance(owner, _Function) else variables)
        if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
            return


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _constant(test: ast.expr) -> bool | None:
    return bool(test.value) if isinstance(test, ast.Constant) else None


def _assigned(body: list[ast.stmt]) -> dict[str, list[ast.expr]]:
    """Give all that is assigned to each plain name, functions inside left out."""
    values: dict[str, list[ast.expr]] = {}
    nodes: list[ast.AST] = [*body]
    for node in nodes:  # grows while it is read
        nodes += [] if isinstance(node, _Function) else ast.iter_child_nodes(node)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, []).append(node.value)
    return values


def _source(node: ast.expr) -> str:
    """Give an expression as code, with single quotes; of one that is nested too deeply, only its literals."""
    try:
        return ast.unparse(node)
    except RecursionError:
        return " ".join(repr(inner.value) for inner in ast.walk(node) if isinstance(inner, ast.Constant))


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _aliases(tree: ast.Module) -> dict[str, set[str]]:
    """Give the dotted names that an imported or assigned name of the file may stand for."""
    aliases: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                aliases.setdefault(alias.asname or alias.name.partition(".")[0], set()).add(alias.name)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                origin = "." * node.level + (node.module or "")
                aliases.setdefault(alias.asname or alias.name, set()).add(f"{origin}.{alias.name}")
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    aliases.setdefault(target.id, set()).update(_names(node.value, aliases))
    return aliases


def _names(node: ast.expr, aliases: Mapping[str, set[str]]) -> set[str]:
    """Give every dotted name that `a.b.c` may stand for; none for another expression."""
    if isinstance(node, ast.Attribute):
        return {f"{name}.{node.attr}" for name in _names(node.value, aliases)}
    return {node.id, *aliases.get(node.id, ())} if isinstance(node, ast.Name) else set()
