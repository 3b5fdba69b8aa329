"""Ops on the code of Python files: located in the syntax tree, edited as ranges of the text."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patchlock.model.patch import Located
from patchlock.model.text_files import SourceText
from patchlock.patches.ops import _pattern as patterns
from patchlock.patches.ops._expressions import Rule, is_telling, locate
from patchlock.patches.ops._functions import check_name
from patchlock.patches.ops.syntax import same


@dataclass(frozen=True, kw_only=True)
class NeutraliseCall:
    """Replace each call that matches a pattern by a declared value; the function around it keeps its other work.

    Attributes:
        call: a call with metavariables, as in `patches/ops/_pattern.py`.
        returns: the expression that takes its place.
        within: only inside these functions or classes (`install`, `Loader.install`); empty: everywhere.

    Raises:
        ValueError: a field is not what it should be; one clause.
    """

    call: str
    returns: str = "None"
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        call, returns = patterns.compile(self.call), patterns.compile(self.returns)
        if not isinstance(call.tree, ast.Call):  # the value is wrong, not its type
            raise ValueError(f"`{self.call}` is not a call")  # noqa: TRY004
        if returns.ones or returns.rests:
            raise ValueError(f"`{self.returns}` has metavariables, which only a replaced expression can have")
        for name in self.within:
            check_name(name)

    def locate(self, source: SourceText) -> Located:
        """Find the calls; those inside f-strings and those whose value is awaited are refused."""
        call = patterns.compile(self.call)
        returns = patterns.compile(self.returns)
        rule = Rule(wanted=call, text=returns.text, settled=returns, within=self.within, is_call=True)
        return locate(source, rule)


@dataclass(frozen=True, kw_only=True)
class ReplaceExpression:
    """Replace each expression that matches a pattern; the outermost match first, then inside what it captured.

    Attributes:
        pattern: an expression with metavariables, as in `patches/ops/_pattern.py`; it matches where a value is read.
        replacement: an expression with metavariables of the pattern. An occurrence of it is settled, unless it is
            a constant, a dotted name or a list of them, which stand anywhere and say nothing.
        within: only inside these functions or classes (`load`, `Model.load`); empty: everywhere.

    Raises:
        ValueError: a field is not what it should be; one clause.
    """

    pattern: str
    replacement: str
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wanted, replacement = patterns.compile(self.pattern), patterns.compile(self.replacement)
        if wanted.is_bare:
            raise ValueError(f"`{self.pattern}` matches every expression")
        for name in sorted((replacement.ones - wanted.ones) | (replacement.rests - wanted.rests)):
            raise ValueError(f"${name} of `{self.replacement}` is not in `{self.pattern}`")
        if same(wanted.tree, replacement.tree):
            raise ValueError(f"`{self.replacement}` is what the pattern says already")
        settled = is_telling(replacement.tree)
        if (replacement if settled else wanted).match(wanted.tree if settled else replacement.tree) is not None:
            raise ValueError(
                f"all that `{self.pattern}` matches, `{self.replacement}` matches too, so that nobody can tell what is "
                "replaced already"
            )
        for name in self.within:
            check_name(name)

    def locate(self, source: SourceText) -> Located:
        """Find the expressions; those inside f-strings and in case patterns are refused."""
        replacement = patterns.compile(self.replacement)
        settled = replacement if is_telling(replacement.tree) else None
        wanted = patterns.compile(self.pattern)
        return locate(source, Rule(wanted=wanted, text=replacement.text, settled=settled, within=self.within))
