"""Which modules the Python files of a tree import, and where; pure."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.proposals.findings import Files, Finding
from patchlock.model.text_files import Undecodable, decode


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


def tree(path: PurePosixPath, data: bytes) -> ast.Module | None:
    """Parse a Python file; None where it cannot be parsed."""
    source = decode(path, data)
    if isinstance(source, Undecodable):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _of(path: PurePosixPath, data: bytes) -> Iterator[Import]:
    if b"import" not in data or (module := tree(path, data)) is None:
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
