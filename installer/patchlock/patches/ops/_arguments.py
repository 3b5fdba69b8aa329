"""Give a keyword argument of calls a value, or take it away, in the style of each call."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from patchlock.model.patch import Located, Refusal, Site
from patchlock.model.text_files import Edit, SourceText
from patchlock.patches.ops import _pattern as patterns
from patchlock.patches.ops._blocks import rejection_reason
from patchlock.patches.ops._functions import check_name
from patchlock.patches.ops.syntax import (
    Module,
    Place,
    item_ranges,
    items_of,
    parse,
    parse_bare_expression,
    parse_expression,
    same,
)

_COMMA = re.compile(r"(?:\s|#[^\r\n]*+|\\\r?\n)*+,")
_MULTI = re.compile(r"[\r\n#]")
_ANYWHERE = -1


@dataclass(frozen=True, kw_only=True)
class SetArgument:
    """Give every call of a function a keyword argument with this value, or none with `remove`.

    Attributes:
        call: a pattern as in `patches/ops/_pattern.py`, of the whole call (`load($a, $*rest)`) or of what is called
            (`WhisperModel`, `$x.load_checkpoint`).
        argument: the keyword.
        value: the expression; "" with `remove`.
        remove: take the argument away.
        keep: a value that a call passes already stays, whatever it is.
        position: where it stands when it is passed without its keyword, counted from 0; -1: it never is.
        within: only inside these functions or classes (`load`, `Model.load`); empty: everywhere.

    Raises:
        ValueError: a field is not what it should be; one clause.
    """

    call: str
    argument: str
    value: str = ""
    remove: bool = False
    keep: bool = False
    position: int = _ANYWHERE
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if patterns.compile(self.call).is_bare:
            raise ValueError(f"`{self.call}` matches every call")
        if not self.argument.isidentifier():
            raise ValueError(f"`{self.argument}` is not the name of an argument")
        if self.remove is bool(self.value):
            raise ValueError("either `value` or `remove = true` must be there")
        if self.remove and self.keep:
            raise ValueError("`keep` and `remove` contradict each other")
        if self.value and (parse_bare_expression(self.value) is None or patterns.metavariables(self.value)[0]):
            raise ValueError(f"`{self.value}` is not a Python expression")
        if self.position < _ANYWHERE:
            raise ValueError(f"`position` is {self.position}, and counts from 0")
        for name in self.within:
            check_name(name)

    def locate(self, source: SourceText) -> Located:
        """Find the calls; where the argument may come through `*args` or `**kwargs`, they are refused."""
        module = parse(source)
        if isinstance(module, Refusal):
            return Located(refusals=(module,))
        try:
            return self._located(module)
        except RecursionError:
            return Located(refusals=(Refusal.ambiguous(1, "an expression is nested too deeply to be matched"),))

    def _located(self, module: Module) -> Located:
        edits: list[Edit] = []
        sites: list[Site] = []
        settled: list[Site] = []
        refusals: list[Refusal] = []
        instead: dict[int, object] = {}
        stack = [Place(node=module.tree)]
        wanted = patterns.compile(self.call).tree
        while stack:
            place = stack.pop()
            node = place.node
            inner = [*place.inner()]
            if isinstance(node, ast.Call) and place.is_within(self.within) and _is_wanted(wanted, node):
                old = self._passed(node)
                if why := self._doubt(node, old):
                    refusals.append(Refusal.ambiguous(node.lineno, why))
                elif self._is_settled(old):
                    settled.append(module.site(node))
                elif place.barrier:
                    refusals.append(Refusal.ambiguous(node.lineno, place.barrier))
                else:
                    sites.append(module.site(node))
                    edits += self._edits(module, node, old)
                    instead[id(node)] = self._changed(node, old)
                    inner = [one for one in inner if one.node is not old]
            stack.extend(inner[::-1])
        if edits and (why := rejection_reason(module, tuple(edits), instead)):
            refusals.append(Refusal.ambiguous(sites[0].line, why))
        if refusals:
            return Located(settled=tuple(settled), refusals=tuple(refusals))
        return Located(edits=tuple(edits), sites=tuple(sites), settled=tuple(settled))

    def _passed(self, call: ast.Call) -> ast.keyword | ast.expr | None:
        """Find the argument as the call has it."""
        keyword = next((keyword for keyword in call.keywords if keyword.arg == self.argument), None)
        if keyword is not None or self.position == _ANYWHERE or len(call.args) <= self.position:
            return keyword
        return call.args[self.position]

    def _doubt(self, call: ast.Call, old: ast.keyword | ast.expr | None) -> str:
        """Say why nobody can tell what the call passes, or ""."""
        if isinstance(old, ast.keyword) and not self.remove:
            return ""
        if self.position != _ANYWHERE and any(isinstance(a, ast.Starred) for a in call.args[: self.position + 1]):
            return f"`{self.argument}` may come through the starred argument"
        if old is not None and not isinstance(old, ast.keyword):
            is_last = call.args[-1] is old
            return "" if is_last or not self.remove else f"`{self.argument}` is passed without its name, before others"
        for keyword in call.keywords:
            if keyword.arg is None and not _lacks(keyword.value, self.argument):
                return f"`{self.argument}` may come through `**{ast.unparse(keyword.value)}`"
        return ""

    def _is_settled(self, old: ast.keyword | ast.expr | None) -> bool:
        if self.remove or old is None:
            return self.remove and old is None
        if self.keep:
            return True
        value = parse_expression(self.value)
        return value is not None and same(_value(old), value)

    def _changed(self, call: ast.Call, old: ast.keyword | ast.expr | None) -> ast.Call:
        """Give the call as it is meant to be."""
        value = parse_expression(self.value)
        new = None if value is None else ast.keyword(arg=self.argument, value=value)
        keywords = [new if k is old and new else k for k in call.keywords if not (k is old and self.remove)]
        args = [value if a is old and value else a for a in call.args if not (a is old and self.remove)]
        if old is None and new:
            keywords.append(new)
        return ast.Call(func=call.func, args=args, keywords=keywords)

    def _edits(self, module: Module, call: ast.Call, old: ast.keyword | ast.expr | None) -> tuple[Edit, ...]:
        if old is None:
            return _added(module, call, f"{self.argument}={self._text()}")
        if self.remove:
            return (_removed(module, call, old),)
        value = _value(old)
        return (Edit(start=module.start(value), end=module.end(value), text=self._text()),)

    def _text(self) -> str:
        alone, meant = parse_expression(f"f(a={self.value})"), parse_expression(self.value)
        keywords = alone.keywords if isinstance(alone, ast.Call) else []
        is_bare = len(keywords) == 1 and meant is not None and same(keywords[0].value, meant)
        return self.value.strip() if is_bare else f"({self.value.strip()})"


def _is_wanted(wanted: ast.expr, call: ast.Call) -> bool:
    return patterns.match(wanted, call if isinstance(wanted, ast.Call) else call.func) is not None


def _value(argument: ast.keyword | ast.expr) -> ast.expr:
    return argument.value if isinstance(argument, ast.keyword) else argument


def _lacks(node: ast.expr, key: str) -> bool:
    """Tell whether `**{...}` certainly lacks a key."""
    keys = node.keys if isinstance(node, ast.Dict) else [None]
    return all(isinstance(one, ast.Constant) and one.value != key for one in keys)


def _added(module: Module, call: ast.Call, new: str) -> tuple[Edit, ...]:
    """Put an argument behind the last one, on a line of its own where that one has one."""
    text = module.source.text
    ranges = item_ranges(module, call)
    if not ranges:
        at = _opening(module, call)
        return (Edit(start=at, end=at, text=new),)
    start, end = ranges[-1]
    line = module.line_start(start)
    if text[line:start].strip():
        return (Edit(start=end, end=end, text=f", {new}"),)
    beginning = module.newline(module.line_start(max(0, line - 1))) + text[line:start]
    comma = _COMMA.match(text, end)
    behind = comma.end() if comma else end
    if module.line_end(behind) >= module.end(call):
        return (Edit(start=end, end=end, text=f",{beginning}{new}"),)
    at = module.line_end(behind)
    if comma:
        return (Edit(start=at, end=at, text=f"{beginning}{new},"),)
    if at == end:
        return (Edit(start=at, end=at, text=f",{beginning}{new}"),)
    return (Edit(start=end, end=end, text=","), Edit(start=at, end=at, text=f"{beginning}{new}"))


def _opening(module: Module, call: ast.Call) -> int:
    """Give the offset behind the parenthesis that opens a call without arguments."""
    text = re.sub(r"#[^\r\n]*", lambda m: " " * len(m[0]), module.source.text[module.end(call.func) : module.end(call)])
    return module.end(call.func) + text.rindex("(") + 1


def _removed(module: Module, call: ast.Call, old: ast.keyword | ast.expr) -> Edit:
    """Take an argument away with one of its commas; a comment of another argument stays."""
    text = module.source.text
    ranges = item_ranges(module, call)
    index = next(i for i, item in enumerate(items_of(call)) if item is old)
    start, end = ranges[index]
    comma = _COMMA.match(text, end)
    behind = comma.end() if comma else end
    line, line_end = module.line_start(start), module.line_end(behind)
    rest = text[behind:line_end].strip()
    if line_end < module.end(call) and not text[line:start].strip() and (not rest or rest.startswith("#")):
        ending = module.newline(line_end)
        return Edit(start=line, end=line_end + len(ending), text="")
    if index + 1 < len(ranges) and not _MULTI.search(text, behind, ranges[index + 1][0]):
        return Edit(start=start, end=ranges[index + 1][0], text="")
    if index and index + 1 == len(ranges) and not _MULTI.search(text, ranges[index - 1][1], start):
        return Edit(start=ranges[index - 1][1], end=end, text="")
    return Edit(start=start, end=behind, text="")
