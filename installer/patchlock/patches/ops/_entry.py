"""Ops at a function's entry: disable all of it, or leave it early on a condition; its signature stays as it is."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from patchlock.model.patch import Located, Refusal, Site
from patchlock.model.text_files import Edit, SourceText
from patchlock.patches.ops._blocks import (
    Code,
    code,
    first,
    insertion,
    is_inline,
    parse_code,
    rejection_reason,
)
from patchlock.patches.ops._functions import Definition, check_name, early_return, is_generator, live, unknown
from patchlock.patches.ops.syntax import Module, parse, parse_bare_expression, same

_Change = tuple[tuple[Edit, ...], list[ast.stmt]]
"""Edits, and the body that they give."""


@dataclass(frozen=True, kw_only=True)
class DisableFunction:
    """Replace a function's body, docstring apart, so that nothing of it runs; it stays what it is for its callers.

    Attributes:
        function: `install` or `Loader.install`; in each block the last definition is the one that counts.
        returns: the expression that it returns; for a generator `None`, which then yields nothing.
        message: logged as a warning by each call; "" logs nothing.

    Raises:
        ValueError: a field is not what it should be; one clause.
    """

    function: str
    returns: str = "None"
    message: str = ""

    def __post_init__(self) -> None:
        check_name(self.function)
        _check_expression(self.returns)

    def locate(self, source: SourceText) -> Located:
        """Find the function; a body that does nothing, or only what ours does, is settled."""
        return _located(source, self.function, self._change)

    def _change(self, module: Module, found: Definition) -> _Change | str | None:
        node = found.node
        leave, why = early_return(node, self.returns)
        if why:
            return why
        new = code("\n".join((*self._logging(), leave, *(["yield"] if is_generator(node) else ()))))
        entry = found.body.entry
        done = node.body[entry:]
        if _is_same(done, new.statements) or (self.returns.strip() == "None" and _does_nothing(done)):
            return None
        if missing := unknown(module.tree, found, new.statements, is_kept=False):
            return f"`{missing[0]}` is not known there"
        body = [*node.body[:entry], *new.statements]
        if not done:
            return insertion(module, found.body, entry, new), body
        start, end = first(module, done[0]), module.line_end(module.end(done[-1]))
        if is_inline(module, node.body[0]):
            return (Edit(start=start, end=end, text=new.in_one_line()),), body
        indent = module.source.text[module.line_start(first(module, node.body[0])) : first(module, node.body[0])]
        text = f"{module.newline(start)}{indent}".join(new.text.split("\n"))
        return (Edit(start=start, end=end, text=text),), body

    def _logging(self) -> tuple[str, ...]:
        if not self.message:
            return ()
        return ("import logging", f"logging.getLogger(__name__).warning({self.message!r})")


@dataclass(frozen=True, kw_only=True)
class GuardEntry:
    """Leave a function early on a condition, before it did anything.

    Attributes:
        function: `install` or `Loader.install`; in each block the last definition is the one that counts.
        condition: an expression over the parameters and the names of the file.
        returns: the expression that it then returns; `None` where `raises` is empty too.
        raises: instead, the exception that it then raises.
        imports: statements that bind what the condition needs, put in front of it.

    Raises:
        ValueError: a field is not what it should be; one clause.
    """

    function: str
    condition: str
    returns: str = ""
    raises: str = ""
    imports: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.function)
        for text in (self.condition, self.returns or "None", self.raises or "None"):
            _check_expression(text)
        if self.returns and self.raises:
            raise ValueError("`returns` and `raises` cannot both be")
        for text in self.imports:
            if not all(isinstance(statement, ast.Import | ast.ImportFrom) for statement in code(text).statements):
                raise ValueError(f"`{text}` is not an import")

    def locate(self, source: SourceText) -> Located:
        """Find the function; one whose entry has this guard, among others, is settled."""
        return _located(source, self.function, self._change)

    def _change(self, module: Module, found: Definition) -> _Change | str | None:
        node = found.node
        leave, why = (f"raise {self.raises}", "") if self.raises else early_return(node, self.returns or "None")
        if why:
            return why
        new = code("\n".join((*self.imports, f"if {self.condition}:", f"    {leave}")))
        entry = found.body.entry
        if _has(_guards(node.body[entry:]), new):
            return None
        if missing := unknown(module.tree, found, new.statements, is_kept=True):
            return f"`{missing[0]}` is not known at the entry of `{self.function}`"
        body = [*node.body[:entry], *new.statements, *node.body[entry:]]
        return insertion(module, found.body, entry, new), body


def _located(source: SourceText, name: str, change: Callable[[Module, Definition], _Change | str | None]) -> Located:
    module = parse(source)
    if isinstance(module, Refusal):
        return Located(refusals=(module,))
    found = live(module.tree, name)
    if isinstance(found, Refusal):
        return Located(refusals=(found,))
    edits: list[Edit] = []
    sites: list[Site] = []
    settled: list[Site] = []
    refusals: list[Refusal] = []
    instead: dict[int, object] = {}
    for one in found:
        changed = change(module, one)
        if changed is None:
            settled.append(module.site(one.node))
        elif isinstance(changed, str):
            refusals.append(Refusal.ambiguous(one.node.lineno, changed))
        else:
            sites.append(module.site(one.node))
            edits += changed[0]
            instead[id(one.node.body)] = changed[1]
    if edits and (why := rejection_reason(module, tuple(edits), instead)):
        refusals.append(Refusal.ambiguous(sites[0].line, why))
    if refusals:
        return Located(settled=tuple(settled), refusals=tuple(refusals))
    return Located(edits=tuple(edits), sites=tuple(sites), settled=tuple(settled))


def _check_expression(text: str) -> None:
    if parse_bare_expression(text) is None or parse_code(f"if {text}:\n    raise {text}") is None:
        raise ValueError(f"`{text}` is not a Python expression")


def _is_same(statements: Sequence[ast.stmt], others: Sequence[ast.stmt]) -> bool:
    return len(statements) == len(others) and all(same(a, b) for a, b in zip(statements, others, strict=True))


def _does_nothing(statements: Sequence[ast.stmt]) -> bool:
    """Tell whether nothing stands there but `pass`, `...` and `return`."""
    for statement in statements:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Return(value=None | ast.Constant(value=None)):
                pass
            case _:
                return False
    return True


def _guards(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Give the imports and guards that a body begins with; other patches may have put theirs in front of ours."""
    found: list[ast.stmt] = []
    for statement in statements:
        match statement:
            case ast.Import() | ast.ImportFrom() | ast.If(body=[ast.Return() | ast.Raise()], orelse=[]):
                found.append(statement)
            case _:
                break
    return found


def _has(statements: Sequence[ast.stmt], new: Code) -> bool:
    size = len(new.statements)
    return any(_is_same(statements[at : at + size], new.statements) for at in range(len(statements) - size + 1))
