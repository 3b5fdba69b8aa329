"""Contracts for import-linter: what begins with `_` stays in its room, and `_children` import nothing of patchlock."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output

ROOT = "patchlock"


class _ImportContract(Contract):
    """Tell each import that is wrong."""

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name each such import."""
        for line in check.metadata["broken"]:
            output.print_error(line)


class PrivateContract(_ImportContract):
    """Hold the walls between rooms: a room is a package directly below the root."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Find each import of a private module, and of a private name, from another room."""
        imports = set(_imports(graph))
        imports |= {(module, name) for module in _ours(graph) for name in _imported_names(module)}
        broken = [
            f"{importer} -> {imported}"
            for importer, imported in sorted(imports)
            if any(part.startswith("_") and not part.startswith("__") for part in imported.split("."))
            and importer.split(".")[:2] != imported.split(".")[:2]
        ]
        return ContractCheck(kept=not broken, metadata={"broken": broken})


class StandaloneContract(_ImportContract):
    """Keep programs that may run under another Python free of the package."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Find each import of the package, or of any of its modules, from below a `_children`.

        What lies there as a package of its own may import its parts: a program takes it along.
        """
        broken = [
            f"{importer} -> {imported}"
            for importer, imported in sorted(_imports(graph))
            if (own := _program(importer)) and _program(imported) != own
        ]
        return ContractCheck(kept=not broken, metadata={"broken": broken})


def _program(module: str) -> str:
    """Give the program or package below a `_children` that a module is or belongs to; "" where it is none."""
    parts = module.split(".")
    return ".".join(parts[: parts.index("_children") + 2]) if "_children" in parts[:-1] else ""


def _ours(graph: ImportGraph) -> list[str]:
    return [module for module in graph.modules if module.partition(".")[0] == ROOT]


def _imports(graph: ImportGraph) -> Iterator[tuple[str, str]]:
    """Pair each module of ours with each that it imports."""
    for module in _ours(graph):
        for importer in graph.find_modules_that_directly_import(module):
            yield importer, module


def _imported_names(module: str) -> Iterator[str]:
    """Give what a module takes out of ours by `from … import …`; the graph knows modules alone."""
    spec = find_spec(ROOT)
    assert spec is not None
    (root,) = spec.submodule_search_locations or ()
    place = Path(root).joinpath(*module.split(".")[1:])
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == ROOT:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
