"""The op that lets a file be imported without a package: finds the imports, and refuses what no guard can help."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from patchlock.model import Located, OutcomeKind, Refusal
from patchlock.ops.guarding import bound_names, guard, is_only_guarded
from patchlock.ops.import_time import MISSING, Step, handler_of, steps
from patchlock.ops.syntax import Module, parse
from patchlock.ops.unbearable import unbearable
from patchlock.sources import Edit, SourceText


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OptionalImport:
    """Let a file be imported without a package: guard its imports, and let a use of it say what is missing.

    Imports inside functions, under `TYPE_CHECKING`, under `if __name__ == "__main__"` and in a `try` that ends an
    `ImportError` are left alone. A file that uses the package at import as no stand-in can bear is refused as a whole.

    Attributes:
        package: the top-level package as it is imported (`deepspeed`, not `deepspeed.ops`).
        message: added to the error that a use of the package raises (`training needs it`), or "".

    Raises:
        ValueError: a field is not what it should be; one clause.
    """

    package: str
    message: str = ""

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
        imports = [step for step in steps(module.tree.body) if bound_names(step.node, self.package)]
        guarded = [step for step in imports if handler_of(step.guards, MISSING)[1]]
        wanted = [step for step in imports if step not in guarded]
        settled = tuple(module.site(step.node) for step in guarded)
        refusals = tuple(self._required(module.tree, wanted))
        if refusals or not wanted:
            return Located(settled=settled, refusals=refusals)
        found = tuple(guard(module, wanted, self.package, self.message))
        edits = tuple(edit for edit in found if isinstance(edit, Edit))
        refusals = tuple(refusal for refusal in found if isinstance(refusal, Refusal)) or _unproved(module, edits)
        if refusals:
            return Located(settled=settled, refusals=refusals)
        return Located(edits=edits, sites=tuple(module.site(step.node) for step in wanted), settled=settled)

    def _required(self, tree: ast.Module, wanted: list[Step]) -> Iterator[Refusal]:
        """Say where the package is needed for the import itself."""
        for step in wanted:
            handler, _ = handler_of(step.guards, MISSING)
            if handler:
                yield _required_at(handler.lineno, f"its handler raises again where {self.package} is missing")
            if ("*", "*") in bound_names(step.node, self.package):
                yield _required_at(step.node.lineno, f"`{ast.unparse(step.node)}` does not say what it binds")
        names = {name for step in wanted for name, _ in bound_names(step.node, self.package)}
        for node, why in unbearable(tree, names):
            yield _required_at(node.lineno, why)


def _required_at(line: int, why: str) -> Refusal:
    return Refusal(line=line, kind=OutcomeKind.REQUIRED_AT_IMPORT, why=why)


def _unproved(module: Module, edits: tuple[Edit, ...]) -> tuple[Refusal, ...]:
    if is_only_guarded(module, edits):
        return ()
    why = "guarding its imports would change something else in the file"
    return (Refusal(line=1, kind=OutcomeKind.AMBIGUOUS, why=why),)
