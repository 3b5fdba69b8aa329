"""Walk a file and tell of each node what stands around it, and whether it runs without CUDA; edits nothing."""

from __future__ import annotations

import ast
import bisect
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from patchlock.model.text_files import line_starts
from patchlock.patches.ops._device.guards import Guards, ends
from patchlock.patches.ops.syntax import last_name

_Test = ast.If | ast.IfExp | ast.While
_WORDS = frozenset({"cuda", "cpu", "gpu", "nccl", "half", "float16", "fp16", "provider"})


class Spot(NamedTuple):
    """A node and what stands around it; a named tuple, as one is made for each node of each file."""

    node: ast.AST
    field: str = ""
    """The field of the node around it that holds it."""
    around: Spot | None = None
    is_dead: bool = False
    """It never runs where CUDA is absent."""
    is_unchosen: bool = False
    """It never runs where another device is chosen, whether CUDA is there or not."""
    is_caught: bool = False
    """Whatever it raises is caught."""

    @property
    def parent(self) -> ast.AST | None:
        """The node around it."""
        return self.around.node if self.around else None

    @property
    def function(self) -> ast.AST | None:
        """The innermost function around the node; None for the file's own code."""
        around = self.around
        while around and not isinstance(around.node, ast.FunctionDef | ast.AsyncFunctionDef):
            around = around.around
        return around.node if around else None


class Lines:
    """The lines of a file on which something can be to be decided; all that stands on others need not be visited."""

    def __init__(self, text: str, words: Iterable[str]) -> None:
        """Look for what names a device, and for these words, without their case."""
        self._before = _counted(text, frozenset(words))

    def touch(self, node: ast.AST) -> bool:
        """Tell whether a node stands on one of the lines; a node that has no place of its own may."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            case ast.stmt() | ast.expr():
                first = node.lineno
            case _:
                return True
        last = node.end_lineno or node.lineno
        return self._before[min(last, len(self._before) - 1)] > self._before[first - 1]


@lru_cache(maxsize=16)
def _counted(text: str, words: frozenset[str]) -> tuple[int, ...]:
    """Count the lines with one of the words before each line; a file is looked at for several devices."""
    lower = text.lower()
    starts = line_starts(lower)
    found = [False] * len(starts)
    for word in _WORDS | {word.lower() for word in words}:
        at = lower.find(word)
        while at >= 0:
            line = bisect.bisect_right(starts, at) - 1
            found[line] = True
            at = lower.find(word, starts[line + 1]) if line + 1 < len(starts) else -1
    return (0, *itertools.accumulate(found))


@dataclass(frozen=True, kw_only=True)
class Walk:
    """A walk with what is known of tests."""

    absent: Guards
    unchosen: Guards
    lines: Lines | None
    """None for all of them."""

    def spots(self, tree: ast.Module) -> Iterator[Spot]:
        """Give each node on the lines, parents first, in source order.

        Raises:
            RecursionError: the file is nested too deeply.
        """
        yield from self._visit(Spot(node=tree))

    def _visit(self, spot: Spot) -> Iterator[Spot]:
        yield spot
        node = spot.node
        known = spot
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, ast.AST):
                if not isinstance(value, ast.expr_context) and self._touches(value):
                    yield from self._visit(_inside(spot, self._narrowed(node, field, spot), value, field))
                continue
            if not isinstance(value, list):
                continue
            known = self._narrowed(node, field, spot)
            for item in value:
                if isinstance(item, ast.AST):
                    if self._touches(item):
                        yield from self._visit(_inside(spot, known, item, field))
                    known = self._after(node, item, known)

    def _touches(self, node: ast.AST) -> bool:
        return self.lines is None or self.lines.touch(node)

    def _narrowed(self, node: ast.AST, field: str, spot: Spot) -> Spot:
        """Say what is known inside one field of a node."""
        if isinstance(node, _Test) and field in {"body", "orelse"}:
            return self._given(spot, node.test, field == "body")
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) and field != "generators":
            for test in (test for generator in node.generators for test in generator.ifs):
                spot = self._given(spot, test, truth=True)
            return self._for_each(spot, [generator.iter for generator in node.generators])
        if isinstance(node, ast.For) and field == "body":
            return self._for_each(spot, [node.iter])
        if isinstance(node, ast.Try) and field == "body" and any(map(_catches_all, node.handlers)):
            return spot._replace(is_caught=True)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and field == "body":
            return spot._replace(is_caught=False)
        return spot

    def _after(self, node: ast.AST, item: ast.AST, known: Spot) -> Spot:
        """Say what is known behind one item of a list: a statement, or an operand of `and` and `or`."""
        if isinstance(node, ast.BoolOp) and isinstance(item, ast.expr):
            return self._given(known, item, isinstance(node.op, ast.And))
        if isinstance(item, ast.Assert):
            return self._given(known, item.test, truth=True)
        if isinstance(item, ast.If):
            if ends(item.body):
                known = self._given(known, item.test, truth=False)
            if ends(item.orelse):
                known = self._given(known, item.test, truth=True)
        return known

    def _for_each(self, spot: Spot, iterables: list[ast.expr]) -> Spot:
        """Say what is known inside a loop: nothing runs once for each of no devices."""
        for iterable in iterables:
            match iterable:
                case ast.Call(func=ast.Name(id="range"), args=[count]) if self.absent.counted(count):
                    return spot._replace(is_dead=True)
                case _:
                    pass
        return spot

    def _given(self, spot: Spot, test: ast.expr, truth: bool) -> Spot:
        return spot._replace(
            is_dead=spot.is_dead or self.absent.rules_out(test, truth),
            is_unchosen=spot.is_unchosen or self.unchosen.rules_out(test, truth),
        )


def _inside(spot: Spot, known: Spot, node: ast.AST, field: str) -> Spot:
    return Spot(
        node=node,
        field=field,
        around=spot,
        is_dead=known.is_dead,
        is_unchosen=known.is_unchosen,
        is_caught=known.is_caught,
    )


def _catches_all(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler catches what PyTorch raises in a build with CUDA, and in one without."""
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {last_name(kind) for kind in types if kind is not None}
    is_all = (
        handler.type is None or names & {"Exception", "BaseException"} or names >= {"AssertionError", "RuntimeError"}
    )
    return bool(is_all) and not any(isinstance(node, ast.Raise) for node in ast.walk(handler))
