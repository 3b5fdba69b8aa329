"""The op that lets a file be imported without a package: finds the imports, and refuses what no guard can help."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from patchlock.model.patch import Located, OutcomeKind, Refusal
from patchlock.model.text_files import Edit, SourceText
from patchlock.patches.ops.optional_import._constants import truth
from patchlock.patches.ops.optional_import._except_clauses import MISSING, handler_of, only_gives_up
from patchlock.patches.ops.optional_import._guards import guard, is_only_guarded
from patchlock.patches.ops.optional_import._import_time import Step, steps
from patchlock.patches.ops.optional_import._names import bound_names
from patchlock.patches.ops.optional_import._unsupported_uses import unsupported_uses
from patchlock.patches.ops.syntax import Module, parse


@dataclass(frozen=True, kw_only=True)
class OptionalImport:
    """Let a file be imported without a package: guard its imports, and let a use of it say what is missing.

    Imports inside functions, under `TYPE_CHECKING`, under `if __name__ == "__main__"` and in a `try` that ends an
    `ImportError` are left alone. A file that uses the package at import as no stand-in can bear is refused as a whole.

    Attributes:
        package: the top-level package as it is imported (`deepspeed`, not `deepspeed.ops`).
        message: added to the error that a use of the package raises (`training needs it`), or "".
        broken: also where the package is there and its import ends in another error.

    Raises:
        ValueError: a field is not what it should be; one clause.
    """

    package: str
    message: str = ""
    broken: bool = False

    def __post_init__(self) -> None:
        if not self.package.isidentifier():
            raise ValueError(f"`{self.package}` is not the name of a top-level package")
        if len(self.message.splitlines()) > 1:
            raise ValueError("`message` has more than one line")

    def locate(self, source: SourceText) -> Located:
        """Find the imports that run when the file is imported; either all of them are edited or none."""
        module = parse(source)
        if isinstance(module, Refusal):
            return Located(refusals=(module,))
        try:
            wanted, refusals = self._wanted(module.tree)
        except RecursionError:
            why = "it is nested too deeply to be followed"
            return Located(refusals=(Refusal(line=1, kind=OutcomeKind.AMBIGUOUS, why=why),))
        ours = {id(step.node) for step in wanted}
        imports = _outside_functions(module.tree.body, self.package)
        settled = tuple(module.site(node) for node in imports if id(node) not in ours)
        if refusals or not wanted:
            return Located(settled=settled, refusals=refusals)
        error = "Exception" if self.broken else "ImportError"
        found = tuple(guard(module, wanted, self.package, self.message, error))
        edits = tuple(edit for edit in found if isinstance(edit, Edit))
        refusals = tuple(refusal for refusal in found if isinstance(refusal, Refusal)) or _unproved(module, edits)
        if refusals:
            return Located(settled=settled, refusals=refusals)
        return Located(edits=edits, sites=tuple(module.site(step.node) for step in wanted), settled=settled)

    def _wanted(self, tree: ast.Module) -> tuple[list[Step], tuple[Refusal, ...]]:
        """Give the imports that need a guard, by line, and say where the package is needed for the import itself."""
        wanted: dict[int, Step] = {}
        refusals: dict[tuple[int, str], Refusal] = {}
        for step in steps(tree, self.package):
            found = list(unsupported_uses(step, self.package))
            names = bound_names(step.node, self.package)
            handler, is_ended = handler_of(step.guards, MISSING)
            if names and not is_ended:
                wanted[id(step.node)] = step
                if handler and not only_gives_up(handler):
                    found.append((handler.lineno, f"its handler raises again where {self.package} is missing"))
                if ("*", "*") in names:
                    found.append((step.node.lineno, f"`{ast.unparse(step.node)}` does not say what it binds"))
            refusals |= {(line, why): _required_at(line, why) for line, why in found}
        in_order = sorted(wanted.values(), key=lambda step: (step.node.lineno, step.node.col_offset))
        return in_order, tuple(refusals[key] for key in sorted(refusals))


def _required_at(line: int, why: str) -> Refusal:
    return Refusal(line=line, kind=OutcomeKind.REQUIRED_AT_IMPORT, why=why)


def _unproved(module: Module, edits: tuple[Edit, ...]) -> tuple[Refusal, ...]:
    if is_only_guarded(module, edits):
        return ()
    why = "guarding its imports would change something else in the file"
    return (Refusal(line=1, kind=OutcomeKind.AMBIGUOUS, why=why),)


def _outside_functions(body: Iterable[ast.stmt], package: str) -> Iterator[ast.stmt]:
    """Give the imports of a package that run when the file is imported, also where its absence keeps them from it."""
    for node in body:
        if bound_names(node, package):
            yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        known = truth(node.test, {}, "") if isinstance(node, ast.If) else None
        for field in ("body", "handlers", "cases", "orelse", "finalbody"):
            block = getattr(node, field, [])
            if not isinstance(block, list) or known is (field == "orelse"):
                continue
            for inner in block:
                yield from _outside_functions([inner] if isinstance(inner, ast.stmt) else inner.body, package)
