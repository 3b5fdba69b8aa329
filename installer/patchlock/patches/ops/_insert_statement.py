"""Put statements before or after others that match a pattern, at the top of a file, or into a function."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchlock.model.patch import Located, Refusal, Site
from patchlock.model.text_files import Edit, SourceText
from patchlock.patches.ops import _pattern as patterns
from patchlock.patches.ops._blocks import Block, Code, blocks, code, insertion, parse_code, rejection_reason
from patchlock.patches.ops._functions import check_name, live
from patchlock.patches.ops._likeness import edited_form
from patchlock.patches.ops.syntax import Module, parse, same

_NEWLINE = re.compile(r"\r\n|\r")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, kw_only=True)
class _Spot:
    """Where statements belong."""

    block: Block
    index: int
    """Of the statement that they go before."""
    new: Code
    anchor: ast.AST
    """What the place is told by."""
    reach: range
    """Of the indexes where they count as standing there already."""
    hug_next: bool = False


@dataclass(frozen=True, kw_only=True)
class InsertStatement:
    """Put statements somewhere; the indentation and line ending are those of their neighbours.

    Statements that already stand on the right side of the anchor, in its block and before the next anchor, are settled;
    so are those that stand anywhere in the block that `at` names. Where an edited form of them
    does, the place is refused.

    Attributes:
        statement: one or more lines, with the metavariables of the pattern.
        above: a pattern as in `patches/ops/_pattern.py`: a simple statement, or an expression for every statement that
            has it.
        below: the same; what has a block of its own is passed whole.
        at: `top` of the file, behind its docstring and `__future__`; `start` or `end` of the functions of `within`.
        within: only inside these functions or classes; empty: everywhere.

    Raises:
        ValueError: a field is not what it should be; one clause.
    """

    statement: str
    above: str = ""
    below: str = ""
    at: str = ""
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        code(patterns.with_placeholders(self.statement))
        if sum(map(bool, (self.above, self.below, self.at))) != 1:
            raise ValueError("exactly one of `above`, `below` and `at` must be there")
        if self.at not in {"", "top", "start", "end"}:
            raise ValueError(f'`at` is "{self.at}", and must be "top", "start" or "end"')
        if self.at and bool(self.within) is (self.at == "top"):
            raise ValueError('`at = "top"` has no `within`, "start" and "end" have one')
        for name in self.within:
            check_name(name)
        ones, rests = patterns.metavariables(self.statement)
        known = patterns.metavariables(self.above or self.below)
        for name in sorted((ones - known[0]) | (rests - known[1])):
            raise ValueError(f"${name} of `{self.statement}` is not in the pattern")
        if not self.at:
            _anchor(self.above or self.below)

    def locate(self, source: SourceText) -> Located:
        """Find the places; where nothing behind them would ever run, they are refused."""
        module = parse(source)
        if isinstance(module, Refusal):
            return Located(refusals=(module,))
        try:
            found = list(self._spots(module))
        except RecursionError:
            return Located(refusals=(Refusal.ambiguous(1, "an expression is nested too deeply to be matched"),))
        edits: list[Edit] = []
        sites: list[Site] = []
        settled: list[Site] = []
        refusals = [spot for spot in found if isinstance(spot, Refusal)]
        edits_of_others: list[Refusal] = []
        put: dict[int, list[_Spot]] = {}
        for spot in found:
            if isinstance(spot, Refusal):
                continue
            if _stands(spot):
                settled.append(_site(module, spot))
            elif other := _edited(spot):
                edits_of_others.append(Refusal.ambiguous(other.lineno, _told(spot.new)))
            elif why := self._unreached(spot):
                refusals.append(Refusal.ambiguous(_site(module, spot).line, why))
            else:
                sites.append(_site(module, spot))
                edits += insertion(module, spot.block, spot.index, spot.new, hug_next=spot.hug_next)
                put.setdefault(id(spot.block.statements), []).append(spot)
        unique = tuple(dict.fromkeys(edits))
        if unique and (why := rejection_reason(module, unique, {key: _together(spots) for key, spots in put.items()})):
            refusals.append(Refusal.ambiguous(sites[0].line, why))
        is_all = not sites and not refusals
        refusals += (dataclasses.replace(refusal, is_edit=is_all) for refusal in edits_of_others)
        if refusals:
            return Located(settled=tuple(settled), refusals=tuple(refusals))
        return Located(edits=unique, sites=tuple(sites), settled=tuple(settled))

    def _unreached(self, spot: _Spot) -> str:
        previous = spot.block.statements[spot.index - 1] if spot.index else None
        if isinstance(previous, _LEAVES) and not self.above:
            return "what stands behind this line never runs"
        return ""

    def _spots(self, module: Module) -> Iterator[_Spot | Refusal]:
        if self.at == "top":
            block = next(blocks(module.tree))
            reach = range(len(block.statements))
            yield _Spot(block=block, index=block.entry, new=code(self.statement), anchor=module.tree, reach=reach)
        elif self.at:
            yield from self._in_functions(module)
        else:
            for block in blocks(module.tree):
                if block.is_within(self.within):
                    yield from self._in_block(module, block)

    def _in_functions(self, module: Module) -> Iterator[_Spot | Refusal]:
        for name in self.within:
            found = live(module.tree, name)
            if isinstance(found, Refusal):
                yield found
                continue
            for one in found:
                size = len(one.body.statements)
                index = one.body.entry if self.at == "start" else size
                yield _Spot(block=one.body, index=index, new=code(self.statement), anchor=one.node, reach=range(size))

    def _in_block(self, module: Module, block: Block) -> Iterator[_Spot | Refusal]:
        wanted = _anchor(self.above or self.below)
        matches = [(i, c) for i, s in enumerate(block.statements) if (c := _match(wanted, s)) is not None]
        indexes = [index for index, _ in matches]
        for at, (index, captures) in enumerate(matches):
            try:
                texts = {name: _text(module, capture) for name, capture in captures.items()}
                new = code(patterns.substitute(self.statement, texts, parse_code))
            except ValueError as error:
                yield Refusal.ambiguous(block.statements[index].lineno, str(error))
                continue
            if self.above:
                reach = range(indexes[at - 1] + 1 if at else 0, index)
            else:
                reach = range(index + 1, (*indexes, len(block.statements))[at + 1])
            yield _Spot(
                block=block,
                index=index if self.above else index + 1,
                new=new,
                anchor=block.statements[index],
                reach=reach,
                hug_next=bool(self.above),
            )


def _anchor(text: str) -> ast.stmt:
    """Read the pattern of a statement; an expression stands for every statement that has it.

    Raises:
        ValueError: one clause.
    """
    tree = parse_code(patterns.with_placeholders(text.strip()))
    if tree is None or len(tree.body) != 1:
        raise ValueError(f"`{text}` is not one Python statement")
    statement = tree.body[0]
    if any(isinstance(node, ast.stmt) for node in ast.walk(statement) if node is not statement):
        raise ValueError(f"`{text}` has a block; write an expression of its first line")
    if isinstance(statement, ast.Expr) and patterns.compile(text).is_bare:
        raise ValueError(f"`{text}` matches every statement")
    return statement


def _match(wanted: ast.stmt, statement: ast.stmt) -> patterns.Captures | None:
    if not isinstance(wanted, ast.Expr):
        return patterns.match(wanted, statement)
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        captures = patterns.match(wanted.value, node) if isinstance(node, ast.expr) else None
        if captures is not None:
            return captures
        inner = [child for child in ast.iter_child_nodes(node) if not isinstance(child, _NOT_OWN)]
        stack.extend(inner[::-1])
    return None


# The text of f-strings has no reliable place before Python 3.12.
_NOT_OWN = (ast.stmt, ast.ExceptHandler, ast.match_case, ast.JoinedStr)


def _text(module: Module, capture: patterns.Capture) -> str:
    texts = (module.source.text[start:end] for start, end in capture.ranges(module))
    return _NEWLINE.sub("\n", ", ".join(texts))


def _stands(spot: _Spot) -> bool:
    new, statements = spot.new.statements, spot.block.statements
    return any(
        all(same(a, b) for a, b in zip(new, statements[at : at + len(new)], strict=True))
        for at in spot.reach
        if at + len(new) <= spot.reach.stop
    )


def _edited(spot: _Spot) -> ast.stmt | None:
    """Give the first statement in reach of an edited form of what is to be put there."""
    size, first = len(spot.new.statements), spot.reach.start
    start = spot.index - size if spot.index >= spot.reach.stop else spot.index
    here = range(start - first, start - first + size)
    return edited_form(spot.new.statements, spot.block.statements[first : spot.reach.stop], here)


def _told(new: Code) -> str:
    line, *more = new.text.split("\n")
    return f"`{line}{' …' if more else ''}` stands here in an edited form; write it as the patch has it, or remove it"


def _together(spots: Sequence[_Spot]) -> list[ast.stmt]:
    """Give the statements of a block with all that is put into it."""
    statements = [*spots[0].block.statements]
    for spot in sorted(spots, key=lambda spot: spot.index, reverse=True):
        statements[spot.index : spot.index] = spot.new.statements
    return statements


def _site(module: Module, spot: _Spot) -> Site:
    if isinstance(spot.anchor, ast.stmt):
        return module.site(spot.anchor)
    return Site(line=1, text=module.source.text[: module.line_end(0)].strip())
