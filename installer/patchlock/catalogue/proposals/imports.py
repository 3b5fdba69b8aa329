"""Which modules the Python files of a tree import, and where; pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.proposals.findings import Files, Finding
from patchlock.patches import import_graph


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


def read(files: Files) -> tuple[Import, ...]:
    """List all absolute imports of the Python files, wherever in a file they stand; a file of Python 2 has none."""
    return tuple(one for path in sorted(files) if path.suffix == ".py" for one in _of(path, files[path]))


def _of(path: PurePosixPath, data: bytes) -> Iterator[Import]:
    if b"import" not in data or (module := import_graph.tree(path, data)) is None:
        return
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        else:
            continue
        for name in names:
            yield Import(module=name, found=Finding(path=path, line=node.lineno, text=ast.unparse(node)[:100]))
