"""What the functions and calls of a patched Python file must do, read from its syntax tree; shares no code with ops."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.patches.postconditions._python import _aliases, _calls, _check_name, _names, _tree

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LOGGING = frozenset({"debug", "info", "warning", "warn", "error", "print"})
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, kw_only=True)
class Disabled:
    """A function does nothing but return a value, after a line in the log at most.

    Attributes:
        function: `install` or `Loader.install`; each definition that may be the live one counts.
        returns: the expression that it returns.
    """

    function: str
    returns: str = "None"

    def __post_init__(self) -> None:
        _check_name(self.function)
        _expression(self.returns)

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each definition that does more."""
        tree = _tree(path, data)
        if isinstance(tree, str):
            return (tree,)
        found = _live(tree, self.function)
        does_more = [node for node in found if not self._is_disabled(node)]
        missing = () if found else (f"it has no function {self.function}",)
        return missing + tuple(
            f"line {node.lineno}: {self.function} does more than return {self.returns}" for node in does_more
        )

    def _is_disabled(self, node: _Function) -> bool:
        is_none = self.returns.strip() == "None"
        for statement in _behind_docstring(node):
            match statement:
                case ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                    pass
                case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))) if name in _LOGGING:
                    pass
                case ast.Return(value=value):
                    return (is_none and value is None) or (value is not None and _is_same(value, self.returns))
                case _:
                    return False
        return is_none


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A function leaves on a condition before it does anything but import, or leave on another one.

    Attributes:
        function: `install` or `Loader.install`; each definition that may be the live one counts.
        condition: the expression.
    """

    function: str
    condition: str

    def __post_init__(self) -> None:
        _check_name(self.function)
        _expression(self.condition)

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each definition that goes on."""
        tree = _tree(path, data)
        if isinstance(tree, str):
            return (tree,)
        found = _live(tree, self.function)
        missing = () if found else (f"it has no function {self.function}",)
        return missing + tuple(
            f"line {node.lineno}: {self.function} does not begin with `if {self.condition}`"
            for node in found
            if not self._is_guarded(node)
        )

    def _is_guarded(self, node: _Function) -> bool:
        for statement in _behind_docstring(node):
            if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return | ast.Raise):
                if _is_same(statement.test, self.condition):
                    return True
            elif not isinstance(statement, ast.Import | ast.ImportFrom):
                return False
        return False


@dataclass(frozen=True, kw_only=True)
class Argument:
    """Every live call of a function passes a keyword argument with this value, and there is such a call.

    Attributes:
        callee: dotted name as the function's own module has it; `*.load_checkpoint` is a method of anything.
        argument: the keyword.
        value: the expression; "": the argument must not be passed.
        keep: another value is as good; only that it is passed counts.
        position: where it may stand without its keyword, counted from 0; -1: nowhere.
    """

    callee: str
    argument: str
    value: str = ""
    keep: bool = False
    position: int = -1

    def __post_init__(self) -> None:
        _check_name(self.callee.removeprefix("*."))
        if self.value:
            _expression(self.value)

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each call that passes something else."""
        tree = _tree(path, data)
        if isinstance(tree, str):
            return (tree,)
        aliases = _aliases(tree)
        calls = [call for call, _ in _calls(tree.body, {}) if _is_called(call, self.callee, aliases)]
        wanted = f"{self.argument}={self.value}" if self.value else f"no {self.argument}"
        wrong = sorted(call.lineno for call in calls if not self._is_right(call))
        missing = () if calls else (f"it never calls {self.callee}",)
        return missing + tuple(f"line {line}: it calls {self.callee} without {wanted}" for line in wrong)

    def _is_right(self, call: ast.Call) -> bool:
        passed = [keyword.value for keyword in call.keywords if keyword.arg == self.argument]
        passed += call.args[self.position : self.position + 1] if self.position >= 0 else []
        unpacked = [keyword.value for keyword in call.keywords if keyword.arg is None]
        unpacked += [item for item in call.args[: self.position + 1] if isinstance(item, ast.Starred)]
        if not self.value:
            return not passed and not any(self._may_hold(node) for node in unpacked)
        return len(passed) == 1 and (self.keep or _is_same(passed[0], self.value))

    def _may_hold(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Dict):
            return True
        return any(not isinstance(key, ast.Constant) or key.value == self.argument for key in node.keys)


@dataclass(frozen=True, kw_only=True)
class HasStatement:
    """Statements stand somewhere, one behind the other; beside each live call of a function, if one is named.

    Attributes:
        statement: one or more lines.
        after: a callee as in `calls`: behind each statement that calls it, in its block and before the next such one.
        before: the same, in front of it.
        within: only inside these functions (`load`, `Model.load`); empty: anywhere.
    """

    statement: str
    after: str = ""
    before: str = ""
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            empty = not ast.parse(self.statement).body
        except (SyntaxError, ValueError) as error:
            raise ValueError(f"`{self.statement}` is not Python code") from error
        if empty:
            raise ValueError("`statement` is empty")
        if self.after and self.before:
            raise ValueError("`after` and `before` cannot both be")
        for name in (self.after.removeprefix("*."), self.before.removeprefix("*."), *self.within):
            if name:
                _check_name(name)

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say that it is missing, or which line of it, or beside which call."""
        tree = _tree(path, data)
        if isinstance(tree, str):
            return (tree,)
        blocks = list(_live_blocks(tree.body, (), self.within))
        callee = self.after or self.before
        if not callee:
            return () if any(self._stands(block) for block in blocks) else (self._difference(blocks),)
        problems = []
        aliases = _aliases(tree)
        is_called = False
        for block in blocks:
            at = [i for i, node in enumerate(block) if any(_is_called(c, callee, aliases) for c in _own_calls(node))]
            is_called |= bool(at)
            for n, index in enumerate(at):
                beside = block[index + 1 : (*at, len(block))[n + 1]] if self.after else block[(-1, *at)[n] + 1 : index]
                if not self._stands(beside):
                    side = "behind" if self.after else "in front of"
                    what = self._difference([beside])
                    problems.append(f"line {block[index].lineno}: {what} {side} the call of {callee}")
        return tuple(problems) if is_called else (f"it never calls {callee}",)

    def _stands(self, block: Sequence[ast.stmt]) -> bool:
        wanted = [ast.dump(node) for node in ast.parse(self.statement).body]
        dumped = [ast.dump(node) for node in block]
        return any(dumped[at : at + len(wanted)] == wanted for at in range(len(dumped)))

    def _difference(self, blocks: Iterable[Sequence[ast.stmt]]) -> str:
        """Say where statements that do not stand differ from what comes nearest to them."""
        wanted = ast.parse(self.statement).body
        lines = _unparsed(wanted)
        best, other = 0, ""
        for block in blocks:
            for at in (at for at, node in enumerate(block) if type(node) is type(wanted[0])):
                there = _unparsed(block[at : at + len(wanted)])
                pairs = zip(lines, there, strict=False)
                count = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
                if count > best:
                    best, other = count, next(iter(there[count:]), "")
        if not best:
            return f"`{lines[0]}` is missing"
        if best == len(lines):
            return f"`{other.strip()}` follows `{lines[-1].strip()}`"
        return f"`{lines[best].strip()}` does not follow `{lines[best - 1].strip()}`"


@dataclass(frozen=True, kw_only=True)
class HasExpression:
    """An expression stands somewhere, by itself or as a part of another one, whatever is around it.

    Attributes:
        expression: in any layout.
        within: only inside these functions (`load`, `Model.load`); empty: anywhere.
    """

    expression: str
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _expression(self.expression)
        for name in self.within:
            _check_name(name)

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say that it is missing."""
        tree = _tree(path, data)
        if isinstance(tree, str):
            return (tree,)
        wanted = ast.dump(_expression(self.expression))
        blocks = _live_blocks(tree.body, (), self.within)
        nodes = (node for block in blocks for statement in block for node in _own_nodes(statement))
        where = f" in {' and '.join(self.within)}" if self.within else ""
        if any(ast.dump(node) == wanted for node in nodes if isinstance(node, ast.expr)):
            return ()
        return (f"`{self.expression}` is missing{where}",)


def _unparsed(statements: Sequence[ast.stmt]) -> list[str]:
    return [line for node in statements for line in ast.unparse(node).splitlines()]


def _expression(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"`{text}` is not a Python expression") from error


def _is_same(node: ast.expr, text: str) -> bool:
    return ast.dump(node) == ast.dump(_expression(text))


def _behind_docstring(node: _Function) -> list[ast.stmt]:
    return node.body[ast.get_docstring(node, clean=False) is not None :]


def _live(tree: ast.Module, name: str) -> list[_Function]:
    """Find the definitions that a name may stand for: in each block the last one that is no overload."""
    last: dict[tuple[int, str], _Function] = {}
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        owner, prefix = stack.pop()
        for field, value in ast.iter_fields(owner):
            for node in value if isinstance(value, list) else ():
                own = f"{prefix}{node.name}." if isinstance(node, _Function | ast.ClassDef) else prefix
                if isinstance(node, _Function) and not any("overload" in ast.dump(d) for d in node.decorator_list):
                    last[id(owner), f"{field} {own[:-1]}"] = node
                if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
                    stack.append((node, own))
    found = [(key.partition(" ")[2], node) for (_, key), node in last.items()]
    exact = [node for key, node in found if key == name]
    return sorted(exact or [n for key, n in found if key.endswith(f".{name}")], key=lambda node: node.lineno)


def _is_called(call: ast.Call, callee: str, aliases: Mapping[str, set[str]]) -> bool:
    if not callee.startswith("*."):
        return callee in _names(call.func, aliases)
    function: ast.expr = call.func
    for name in reversed(callee.removeprefix("*.").split(".")):
        if not isinstance(function, ast.Attribute) or function.attr != name:
            return False
        function = function.value
    return True


def _own_calls(statement: ast.stmt) -> Iterator[ast.Call]:
    return (node for node in _own_nodes(statement) if isinstance(node, ast.Call))


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Give a statement and what is in it, without the blocks below it."""
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        yield node
        stack += [
            c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.stmt | ast.ExceptHandler | ast.match_case)
        ]


def _live_blocks(body: list[ast.stmt], scopes: tuple[str, ...], within: tuple[str, ...]) -> Iterator[list[ast.stmt]]:
    """Give each block as far as it runs: up to what leaves it."""
    end = next((i for i, node in enumerate(body) if isinstance(node, _LEAVES)), len(body))
    body = body[: end + 1]
    if not within or any(f".{scope}".endswith(f".{name}") for scope in scopes for name in within):
        yield body
    for node in body:
        inner = (*scopes, ".".join((*scopes[-1:], node.name))) if isinstance(node, _Function | ast.ClassDef) else scopes
        for owner in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(owner, field, None)
                if isinstance(block, list) and block:
                    yield from _live_blocks(block, inner, within)
