"""Which modules the Python files of a tree import, and where; pure."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.proposals.findings import Files, Finding, excerpt
from patchlock.patches.import_graph import Trees


@dataclass(frozen=True, kw_only=True)
class Import:
    """One absolute import."""

    module: str
    """Dotted."""
    found: Finding

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
        self._trees = trees if trees is not None else Trees(files)
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
            self._known[path] = tuple(_of(path, self._trees.of(path)))
        return self._known[path]


def _of(path: PurePosixPath, module: ast.Module | None) -> Iterator[Import]:
    for node in _statements(module.body) if module is not None else ():
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        else:
            continue
        for name in names:
            yield Import(module=name, found=Finding(path=path, line=node.lineno, text=excerpt(_text(node))))


def _text(node: ast.Import | ast.ImportFrom) -> str:
    names = ", ".join(f"{one.name} as {one.asname}" if one.asname else one.name for one in node.names)
    return f"from {node.module} import {names}" if isinstance(node, ast.ImportFrom) else f"import {names}"


def _statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Give the statements of some statements: an expression has no import in it."""
    waiting = list(body)
    for node in waiting:
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, name, ())
