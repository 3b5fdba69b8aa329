"""Judge the statements of Python files; shares no code with patchlock."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from histories.judge_calls import lost_definitions
from histories.judge_imports import tree_of


class _OfPython:
    def is_beyond_help(self, path: PurePosixPath, data: bytes) -> bool:
        """Tell whether the file does not parse."""
        return tree_of(data) is None

    def damage(self, path: PurePosixPath, before: bytes, after: bytes) -> tuple[str, ...]:
        """Say whether a function or class is gone, or the file no longer parses."""
        return lost_definitions(before, after)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LacksStatement(_OfPython):
    """No statement of the file has this source as `ast.unparse` gives it."""

    pattern: str

    def violations(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each place."""
        tree = tree_of(data)
        return tuple(
            f"line {node.lineno}: {ast.unparse(node)[:90]}"
            for node in (ast.walk(tree) if tree else ())
            if isinstance(node, ast.stmt) and re.fullmatch(self.pattern, ast.unparse(node))
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class LeavesFirst(_OfPython):
    """Functions of a name ask for something and leave before a condition that is too wide without it."""

    function: str
    condition: str
    """The condition that is too wide, as a regular expression."""
    asks: str
    """What must be asked, in that condition or in one before it that leaves the function."""

    def violations(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each condition that nothing stands before."""
        tree = tree_of(data)
        return tuple(
            f"line {test.lineno}: {ast.unparse(test)[:90]}"
            for node in (ast.walk(tree) if tree else ())
            if isinstance(node, ast.FunctionDef) and node.name == self.function
            for test in self._unasked(node)
        )

    def _unasked(self, function: ast.FunctionDef) -> Iterator[ast.expr]:
        for statement in function.body:
            if not isinstance(statement, ast.If):
                continue
            test = ast.unparse(statement.test)
            if self.asks in test and isinstance(statement.body[-1], ast.Return):
                return
            if re.search(self.condition, test) and self.asks not in test:
                yield statement.test
