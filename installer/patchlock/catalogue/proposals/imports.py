"""Which modules the Python files of a tree import, and where; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.proposals.findings import Files, Finding, excerpt
from patchlock.patches.import_graph import Trees

_FAILED = re.compile(r"\b(?:ImportError|ModuleNotFoundError|Exception|BaseException)\b")


@dataclass(frozen=True, kw_only=True)
class Import:
    """One absolute import."""

    module: str
    """Dotted."""
    found: Finding
    is_optional: bool = False
    """The file goes on where it fails."""
    is_late: bool = False
    """It stands in a function."""

    @property
    def top(self) -> str:
        """Name the top-level package."""
        return self.module.partition(".")[0]


class Imports:
    """The absolute imports of Python files, wherever in a file they stand; a file of Python 2 has none.

    A file is parsed when what is asked for may stand in it.

    Args:
        files: of the tree.
        trees: of its Python files, where they are wanted for more.
    """

    def __init__(self, files: Files, trees: Trees | None = None) -> None:
        self.trees = trees if trees is not None else Trees(files)
        paths = (path for path in files if path.suffix == ".py" and b"import" in files[path])
        self._paths = sorted(paths, key=lambda path: path.parts)
        self._files = files
        self._known: dict[PurePosixPath, tuple[Import, ...]] = {}

    def of(self, tops: Collection[str]) -> tuple[Import, ...]:
        """List the imports of some top-level packages, by path and line."""
        words = [top.encode() for top in tops]
        paths = (path for path in self._paths if any(word in self._files[path] for word in words))
        return tuple(one for path in paths for one in self._in(path) if one.top in tops)

    def all(self) -> tuple[Import, ...]:
        """List all imports, by path and line; this parses every file."""
        return tuple(one for path in self._paths for one in self._in(path))

    def _in(self, path: PurePosixPath) -> tuple[Import, ...]:
        if path not in self._known:
            self._known[path] = tuple(_of(path, self.trees.of(path)))
        return self._known[path]


def _of(path: PurePosixPath, module: ast.Module | None) -> Iterator[Import]:
    for node, is_optional, is_late in _statements(module.body) if module is not None else ():
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        else:
            continue
        for name in names:
            place = Finding(path=path, line=node.lineno, text=excerpt(_text(node)))
            yield Import(module=name, found=place, is_optional=is_optional, is_late=is_late)


def _text(node: ast.Import | ast.ImportFrom) -> str:
    names = ", ".join(f"{one.name} as {one.asname}" if one.asname else one.name for one in node.names)
    return f"from {node.module} import {names}" if isinstance(node, ast.ImportFrom) else f"import {names}"


def _statements(body: Sequence[ast.AST]) -> Iterator[tuple[ast.AST, bool, bool]]:
    """Give the statements of some statements, whether a failed import among them is caught, and is in a function.

    An expression has no import in it.
    """
    waiting = [(node, False, False) for node in body]
    for node, is_caught, is_late in waiting:
        yield node, is_caught, is_late
        late = is_late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            caught = is_caught or (name == "body" and _catches(node))
            waiting += [(one, caught, late) for one in getattr(node, name, ())]


def _catches(node: ast.AST) -> bool:
    """Tell whether a failed import in the body of a statement is caught."""
    if isinstance(node, ast.With):
        calls = [one.context_expr for one in node.items if isinstance(one.context_expr, ast.Call)]
        return any("suppress" in ast.unparse(one.func) and _FAILED.search(ast.unparse(one)) for one in calls)
    handlers = node.handlers if isinstance(node, ast.Try) else []
    return any(one.type is None or _FAILED.search(ast.unparse(one.type)) for one in handlers)
