"""Judge Python files for installs at run time and for device literals; shares no code with patchlock."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from histories.judge_imports import tree_of

_STARTS = re.compile(r"^(subprocess\.)?(run|call|check_call|check_output|Popen|getoutput)$|^os\.(system|popen)$")
_PIP_API = re.compile(r"^(pip|pip\._internal|pipmain|pip_main)(\.main|\.cli\.main\.main)?$")
_INSTALL = re.compile(r"\b(pip3?|conda|mamba)\b.*\binstall\b", re.DOTALL)
_ASKS = re.compile(r"^(?!not ).*(is_cuda|cuda\.is_available|cuda\.device_count)")
_CUDA = re.compile(r"^cuda(:\d+)?$")
_CHOSEN = re.compile(r"(?:^|\band )\(*(?:str\()?(?:\w+\.)*?(\w+)(?:\.type)?\)? == 'cuda'")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoRunTimeInstall:
    """P3: no live call starts pip, conda or a helper of the file with a command that installs."""

    mentions: str = ""
    """Only commands that say this too."""

    def violations(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each call."""
        tree = tree_of(data)
        if tree is None:
            return ()
        helpers = _helpers(tree)
        found = []
        for call, values in _live_calls(tree.body, {}):
            name = ast.unparse(call.func)
            if not (_STARTS.match(name) or _PIP_API.match(name) or name in helpers):
                continue
            told = " ".join(_strings(call, values))
            told = f"pip {told}" if _PIP_API.match(name) else told
            if _INSTALL.search(told) and self.mentions in told:
                found.append(f"line {call.lineno}: {ast.unparse(call)[:90]}")
        return tuple(found)

    def is_beyond_help(self, path: PurePosixPath, data: bytes) -> bool:
        """Tell whether the file does not parse."""
        return tree_of(data) is None

    def damage(self, path: PurePosixPath, before: bytes, after: bytes) -> tuple[str, ...]:
        """Say whether a function or class is gone, or the file no longer parses."""
        return lost_definitions(before, after)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoDeviceLiteral:
    """P6: no `.cuda()`, `torch.device("cuda")`, `.to("cuda")`, `device="cuda"` as argument or default.

    What is compared with something, or runs only where the condition around it found CUDA, asks for nothing; nor does
    what runs only where a name is "cuda", if nothing in the file makes it so.
    """

    def violations(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each place."""
        tree = tree_of(data)
        if tree is None:
            return ()
        given: frozenset[str] = frozenset()
        while (found := given.union(*(_given(node) for node in _unasked(tree, given)))) != given:
            given = found
        return tuple(f"line {node.lineno}: {what}" for node in _unasked(tree, given) for what in _device(node))

    def is_beyond_help(self, path: PurePosixPath, data: bytes) -> bool:
        """Tell whether the file does not parse."""
        return tree_of(data) is None

    def damage(self, path: PurePosixPath, before: bytes, after: bytes) -> tuple[str, ...]:
        """Say whether a function or class is gone, or the file no longer parses."""
        return lost_definitions(before, after)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lacks:
    """No expression of the file, docstrings apart, has this source as `ast.unparse` gives it."""

    pattern: str
    within: str = ""
    """Only in functions of this name."""
    is_test: bool = False
    """Only whole conditions of `if` statements."""

    def violations(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each place."""
        tree = tree_of(data)
        if tree is None:
            return ()
        roots = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == self.within]
        wanted = re.compile(self.pattern)
        return tuple(
            f"line {node.lineno}: {ast.unparse(node)[:90]}"
            for root in (roots if self.within else [tree])
            for outer in ast.walk(root)
            for node in ([outer.test] if self.is_test and isinstance(outer, ast.If) else [outer])
            if isinstance(node, ast.expr)
            and (node is not outer or not self.is_test)
            and wanted.fullmatch(ast.unparse(node))
        )

    def is_beyond_help(self, path: PurePosixPath, data: bytes) -> bool:
        """Tell whether the file does not parse."""
        return tree_of(data) is None

    def damage(self, path: PurePosixPath, before: bytes, after: bytes) -> tuple[str, ...]:
        """Say whether a function or class is gone, or the file no longer parses."""
        return lost_definitions(before, after)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LacksImport:
    """The file imports nothing of a module."""

    module: str

    def violations(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each import."""
        tree = tree_of(data)
        found = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))] if tree else []
        return tuple(
            f"line {node.lineno}: {ast.unparse(node)}"
            for node in found
            for name in [*(alias.name for alias in node.names), getattr(node, "module", None) or ""]
            if name.split(".")[0] == self.module
        )

    def is_beyond_help(self, path: PurePosixPath, data: bytes) -> bool:
        """Tell whether the file does not parse."""
        return tree_of(data) is None

    def damage(self, path: PurePosixPath, before: bytes, after: bytes) -> tuple[str, ...]:
        """Say whether a function or class is gone, or the file no longer parses."""
        return lost_definitions(before, after)


def _unasked(tree: ast.Module, given: frozenset[str]) -> Iterator[ast.AST]:
    """Give the nodes that no condition on CUDA guards.

    Args:
        tree: the file.
        given: names that may be "cuda"; what runs only where another name is, is guarded.
    """
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        yield node
        for field, value in ast.iter_fields(node):
            is_asked = (
                isinstance(node, (ast.If, ast.IfExp)) and field == "body" and _is_guard(ast.unparse(node.test), given)
            )
            if is_asked or isinstance(node, ast.Compare):
                continue
            stack += [child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)]


def _is_guard(test: str, given: frozenset[str]) -> bool:
    if _ASKS.search(test):
        return True
    chosen = None if " or " in test else _CHOSEN.search(test)
    return chosen is not None and chosen[1] not in given


def _given(node: ast.AST) -> Iterator[str]:
    """Name what a statement or a default value makes a CUDA device."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        pairs = [(ast.unparse(target).split(".")[-1], node.value) for target in targets]
    elif isinstance(node, ast.arguments):
        names = [argument.arg for argument in (*node.posonlyargs, *node.args)]
        pairs = list(zip(names[len(names) - len(node.defaults) :], node.defaults, strict=True))
        pairs += [(a.arg, d) for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True) if d]
    else:
        return
    for name, value in pairs:
        if any(_is_cuda(child) for child in ast.walk(value) if isinstance(child, ast.expr)):
            yield name


def _device(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if name == "cuda" and isinstance(node.func, ast.Attribute):
            yield f"{ast.unparse(node)[:60]}"
        if name in {"device", "to"} and any(_is_cuda(argument) for argument in node.args[:1]):
            yield f"{ast.unparse(node)[:60]}"
        for keyword in node.keywords:
            if keyword.arg in {"device", "map_location"} and _is_cuda(keyword.value):
                yield f"{keyword.arg}={ast.unparse(keyword.value)}"
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        defaults = [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]
        if any(_is_cuda(default) for default in defaults):
            yield "a default value"


def _is_cuda(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_CUDA.match(node.value))


def _helpers(tree: ast.Module) -> set[str]:
    """Name the functions that hand a parameter to a call which starts a program."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            parameters = {argument.arg for argument in (*node.args.posonlyargs, *node.args.args)}
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and _STARTS.match(ast.unparse(call.func)):
                    names = {n.id for a in call.args for n in ast.walk(a) if isinstance(n, ast.Name)}
                    found |= {node.name} if names & parameters else set()
    return found


_Values = dict[str, list[ast.expr]]


def _live_calls(body: list[ast.stmt], values: _Values) -> Iterator[tuple[ast.Call, _Values]]:
    """Give the calls that can run, each with what local names were assigned so far."""
    values = {**values}
    for node in body:
        inner: list[list[ast.stmt]] = []
        stack: list[ast.AST] = [node]
        while stack:
            at = stack.pop()
            if isinstance(at, ast.Call):
                yield at, values
            for field, value in ast.iter_fields(at):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    is_dead = isinstance(at, ast.If) and ast.unparse(at.test) in {"False", "0"} and field == "body"
                    inner += [] if is_dead else [value]
                else:
                    stack += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, ast.AST)]
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, []).append(node.value)
        for block in inner:
            yield from _live_calls(block, values)
        if isinstance(node, (ast.Return, ast.Raise)):
            return


def _strings(call: ast.Call, values: _Values) -> Iterator[str]:
    """Give the string constants of a call's arguments, local names resolved once, in source order."""
    seen: set[str] = set()
    queue: list[ast.AST] = [*call.args, *(keyword.value for keyword in call.keywords)]
    while queue:
        node = queue.pop(0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            queue[:0] = values.get(node.id, [])[-3:]
        else:
            queue[:0] = list(ast.iter_child_nodes(node))


def lost_definitions(before: bytes, after: bytes) -> tuple[str, ...]:
    """Say whether a function or class is gone, or the file no longer parses."""
    if before == after:
        return ()
    old, new = tree_of(before), tree_of(after)
    if old is None or new is None:
        return ("it was changed and does not parse",)
    names = [
        sorted(n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)))
        for tree in (old, new)
    ]
    lost = set(names[0]) - set(names[1])
    return (f"{', '.join(sorted(lost))} is gone",) if lost else ()
