"""A contract for import-linter: what begins with `_` is imported only from within its room."""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output


class PrivateContract(Contract):
    """Hold the walls between rooms: a room is a package directly below the root."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Find each import of a private module from another room."""
        broken = [
            f"{importer} -> {private}"
            for private in sorted(graph.modules)
            if any(part.startswith("_") and part != "__main__" for part in private.split(".")[1:])
            for importer in sorted(graph.find_modules_that_directly_import(private))
            if importer.split(".")[:2] != private.split(".")[:2]
        ]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name each such import."""
        for line in check.metadata["broken"]:
            output.print_error(line)
