"""Which code of a program may run, as far as the names that its files mention show it; pure.

A function counts as soon as code that counts mentions its name, whatever is called so, or something else may call it: a
decorator, Python, or a library that its class inherits from. A file counts as soon as code that counts imports it. What
counts may still never run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TypeGuard

from patchlock.patches import import_graph
from patchlock.patches.import_graph import OwnModules, Trees, is_main

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LEAVES = ast.Return | ast.Raise | ast.Continue | ast.Break
_PLAIN = frozenset(
    {
        *("staticmethod", "classmethod", "property", "cached_property", "cache", "lru_cache", "override"),
        *("no_grad", "inference_mode", "enable_grad"),
    }
)
"""Decorators that give nobody the function."""
_GENERIC = frozenset({"dict", "list", "tuple", "set", "Dict", "List", "Tuple", "Set"})


def idle_lines(
    trees: Trees,
    started: Sequence[PurePosixPath],
    command: Sequence[str],
    python_path: str = "",
    never: Callable[[PurePosixPath], Collection[ast.AST]] = lambda _: (),
) -> Mapping[PurePosixPath, frozenset[int]]:
    """List the files to which a program may come, each with the lines to which it does not.

    Args:
        trees: of the app.
        started: the files that it runs as it starts, in order: packages around it, itself, what it imports.
        command: with which it is started.
        python_path: its PYTHONPATH.
        never: gives the statements and expressions of a file that are known not to run.
    """
    program = import_graph.program(started, command)
    walk = _Walk(trees, import_graph.own_modules(trees, program or PurePosixPath(), command, python_path), never)
    for word in command:
        walk.mentioned.update(name for part in word.split() for name in part.replace("(", ".").split("."))
    for path in started:
        walk.enter(path, is_program=path == program)
    walk.follow()
    return {path: frozenset(lines) for path, lines in walk.idle_lines().items()}


class _Walk:
    def __init__(self, trees: Trees, own: OwnModules, never: Callable[[PurePosixPath], Collection[ast.AST]]) -> None:
        self.mentioned: set[str] = set()
        self._trees, self._own, self._never = trees, own, never
        self._skipped: set[ast.AST] = set()
        self._own_calls: set[str] = set()
        """Methods that the app itself calls in what does not run: no library calls them."""
        self._come: set[PurePosixPath] = set()
        self._coming: list[PurePosixPath] = []
        self._renamed: dict[str, set[str]] = {}
        self._waiting: list[tuple[PurePosixPath, _Function | ast.ClassDef, ast.ClassDef | None]] = []
        self._dead: list[tuple[PurePosixPath, Sequence[ast.stmt]]] = []
        self._bases: dict[str, list[str]] = {}

    def enter(self, path: PurePosixPath, *, is_program: bool = False) -> None:
        """Run a file, once."""
        module = self._trees.of(path) if path not in self._come else None
        self._come.add(path)
        if module is not None:
            never = self._never(path)
            self._skipped.update(never)
            inside = (node for one in never for node in ast.walk(one) if isinstance(node, ast.Call))
            self._own_calls.update(one.func.attr for one in inside if isinstance(one.func, ast.Attribute))
            self._dead += [(path, [one]) for one in never if isinstance(one, ast.stmt)]
            classes = (node for node in ast.walk(module) if isinstance(node, ast.ClassDef))
            self._bases |= {node.name: [_last_name(base) for base in node.bases] for node in classes}
            self.run(path, module.body, is_program=is_program)

    def run(self, path: PurePosixPath, body: Sequence[ast.stmt], *, is_program: bool = False) -> None:
        """Note what statements mention that run, and the functions and classes that they define."""
        blocks = [body]
        while blocks:
            block = blocks.pop()
            for index, node in enumerate(block):
                if node in self._skipped:
                    continue
                if isinstance(node, ast.If) and (_is_for_types(node.test) or (is_main(node.test) and not is_program)):
                    self._dead.append((path, node.body))
                    blocks.append(node.orelse)
                    continue
                blocks += self._read(path, node)
                if isinstance(node, _LEAVES):
                    self._dead.append((path, block[index + 1 :]))
                    break

    def _read(self, path: PurePosixPath, node: ast.stmt) -> list[list[ast.stmt]]:
        """Note what a statement mentions; gives the blocks below it, which run too."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._waiting.append((path, node, None))
                self._mention(node.decorator_list, [node.args])
                return []
            case ast.ClassDef():
                self._waiting.append((path, node, None))
                functions = [*_functions(node)]
                for one in functions:
                    self._mention(one.decorator_list, [one.args])
                self._mention(node.decorator_list)
                return [[one for one in node.body if one not in functions]]
            case ast.Import() | ast.ImportFrom():
                for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                    self._renamed.setdefault(alias.asname or alias.name, set()).add(alias.name)
                self._coming += [one for name in self._own.names(path, node) for one in self._own.files(name)]
                return []
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                return []
            case _:
                return self._mention([node])

    def _mention(self, *nodes: Sequence[ast.AST]) -> list[list[ast.stmt]]:
        """Note the names and the words in nodes; gives the blocks in them."""
        blocks: list[list[ast.stmt]] = []
        waiting = [one for every in nodes for one in every]
        while waiting:
            node = waiting.pop()
            if node in self._skipped:
                continue
            name = str(node.value) if isinstance(node, ast.Constant) else _last_name(node)
            self.mentioned |= {name} if name.isidentifier() else set()
            for _, value in ast.iter_fields(node):
                inside = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, ast.AST)]
                if isinstance(node, ast.Call):  # `defaultdict(dict[str, Net])` makes no Net
                    inside = [one.value if _is_generic(one) else one for one in inside]
                if inside and isinstance(inside[0], ast.stmt):
                    blocks.append(value)
                else:
                    waiting += inside
        return blocks

    def follow(self) -> None:
        """Run what is mentioned and what is imported, until nothing more is."""
        is_more = True
        while is_more:
            known = len(self.mentioned), len(self._come)
            while self._coming:
                self.enter(self._coming.pop())
            self.mentioned |= {name for one in self.mentioned for name in self._renamed.get(one, ())}
            waiting, self._waiting = self._waiting, []
            running: list[tuple[PurePosixPath, _Function | ast.ClassDef, ast.ClassDef | None]] = []
            for one in waiting:
                (running if self._runs(*one[1:]) else self._waiting).append(one)
            for path, node, _ in running:
                if isinstance(node, _Function):
                    self.run(path, node.body)
                    continue
                self._mention(node.bases, node.keywords)
                self._waiting += [(path, one, node) for one in node.body if isinstance(one, _Function)]
            is_more = bool(running) or known != (len(self.mentioned), len(self._come))

    def _runs(self, node: _Function | ast.ClassDef, owner: ast.ClassDef | None) -> bool:
        if any(_last_name(one) not in _PLAIN for one in node.decorator_list) or node.name in self.mentioned:
            return True
        is_own = node.name in self._own_calls and node.name != "forward"
        return owner is not None and (node.name.startswith("__") or (self._is_of_others(owner.name) and not is_own))

    def _is_of_others(self, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """Tell whether a class inherits from one of a library, which may call its methods."""
        if name == "object" or name in seen:
            return False
        return name not in self._bases or any(self._is_of_others(one, seen | {name}) for one in self._bases[name])

    def idle_lines(self) -> Mapping[PurePosixPath, set[int]]:
        """Give the lines of what was never run, by files that were."""
        found: dict[PurePosixPath, set[int]] = {path: set() for path in self._come}
        for path, node, _ in self._waiting:
            for one in _functions(node):
                found[path].update(lines_of(one.body))
        for path, body in self._dead:
            found[path].update(lines_of(body))
        return found


def _functions(node: _Function | ast.ClassDef) -> Iterator[_Function]:
    if isinstance(node, ast.ClassDef):
        yield from (one for one in node.body if isinstance(one, _Function))
    else:
        yield node


def _is_generic(node: ast.AST) -> TypeGuard[ast.Subscript]:
    return isinstance(node, ast.Subscript) and _last_name(node) in _GENERIC


def _is_for_types(test: ast.expr) -> bool:
    """Tell whether only a type checker finds it true."""
    return _last_name(test) == "TYPE_CHECKING"


def lines_of(block: Sequence[ast.stmt | ast.expr]) -> range:
    """Give the lines of statements that follow each other."""
    return range(block[0].lineno, (block[-1].end_lineno or block[-1].lineno) + 1) if block else range(0)


def _last_name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function) | ast.Subscript(value=function):
            return _last_name(function)
        case _:
            return ""
