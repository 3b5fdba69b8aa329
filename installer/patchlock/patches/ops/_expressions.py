"""Replace the expressions of a file that match a pattern, and prove the result; both ops of `_python.py` are this."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from patchlock.model.patch import Located, Refusal
from patchlock.model.text_files import Edit, SourceText, splice
from patchlock.patches.ops import _pattern as patterns
from patchlock.patches.ops._pattern import Capture, Captures, Pattern
from patchlock.patches.ops.syntax import Module, Place, parse, parse_bare_expression, parse_expression, same


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What to look for and what to put there."""

    wanted: Pattern
    text: str
    """A replacement with metavariables of the pattern."""
    settled: Pattern | None
    """Code that is already as the patch wants it; for calls, only where it is itself a call that matches."""
    within: tuple[str, ...]
    is_call: bool = False


@dataclasses.dataclass(slots=True)
class _Found:
    """What a search came upon."""

    replaced: list[tuple[Place, ast.expr, str]] = dataclasses.field(default_factory=list)
    """Each node to replace and its new text; inner replacements are already in it."""
    settled: list[ast.expr] = dataclasses.field(default_factory=list)
    refusals: list[Refusal] = dataclasses.field(default_factory=list)

    def add(self, other: _Found) -> None:
        self.replaced += other.replaced
        self.settled += other.settled
        self.refusals += other.refusals

    def edits(self, module: Module) -> tuple[Edit, ...]:
        return tuple(
            Edit(start=module.start(node), end=module.end(node), text=_fitting(module, place, node, text))
            for place, node, text in self.replaced
        )


def locate(source: SourceText, rule: Rule) -> Located:
    """Find what a rule wants, and edit it; each set of edits is proved to give the tree that the rule means."""
    module = parse(source)
    if isinstance(module, Refusal):
        return Located(refusals=(module,))
    try:
        return _checked(module, rule, _search(module, rule, [Place(node=module.tree)]))
    except RecursionError:
        return Located(refusals=(Refusal.ambiguous(1, "an expression is nested too deeply to be matched"),))


def _checked(module: Module, rule: Rule, found: _Found) -> Located:
    """Prove that the edits give the tree that the rule means, and that the rule finds nothing in it again."""
    edits = found.edits(module)
    sites = tuple(module.site(node) for _, node, _ in found.replaced)
    settled = tuple(module.site(node) for node in found.settled)
    refusals = tuple(found.refusals)
    if edits:
        after = parse(splice(module.source, edits))
        meant = {id(node): parse_expression(text) or node for _, node, text in found.replaced}
        if isinstance(after, Refusal) or not same(module.tree, after.tree, meant):
            refusals += (Refusal.ambiguous(sites[0].line, f"`{rule.text}` cannot be used there as it is"),)
            return Located(settled=settled, refusals=refusals)
        if again := _search(after, rule, [Place(node=after.tree)]).replaced:
            refusals += (
                Refusal.ambiguous(again[0][1].lineno, f"`{rule.wanted.text}` is there again after it was replaced"),
            )
            return Located(settled=settled, refusals=refusals)
    return Located(edits=edits, sites=sites, settled=settled, refusals=refusals)


def _search(module: Module, rule: Rule, places: Iterable[Place]) -> _Found:
    found = _Found()
    stack = [*places][::-1]
    while stack:
        place = stack.pop()
        node = place.node
        is_inside = isinstance(node, ast.expr) and place.is_within(rule.within)
        captures = rule.wanted.match(node) if is_inside else None
        settled = rule.settled.match(node) if is_inside and rule.settled else None
        if settled is not None and isinstance(node, ast.expr) and (captures is not None or not rule.is_call):
            found.settled.append(node)
            everywhere = [again for capture in settled.values() for again in (capture, *capture.repeats)]
            stack.extend([*_captured(place, everywhere)][::-1])
        elif captures is not None and isinstance(node, ast.expr):
            found.add(_replaced(module, rule, place, node, captures))
        else:
            stack.extend([*place.inner()][::-1])
    return found


def _replaced(module: Module, rule: Rule, place: Place, node: ast.expr, captures: Captures) -> _Found:
    """Replace one match, after what it captured."""
    if why := place.barrier or (_unfit_use(place, rule) if rule.is_call else ""):
        return _Found(refusals=[Refusal.ambiguous(node.lineno, why)])
    replacement = patterns.compile(rule.text)
    kept = {name: captures[name] for name in sorted(replacement.ones | replacement.rests)}
    inner = _search(module, rule, _captured(place, kept.values()))
    edits = inner.edits(module)
    inner.replaced.clear()
    try:
        text = patterns.substitute(rule.text, {name: _text(module, kept[name], edits) for name in kept})
    except ValueError as error:
        inner.refusals.append(Refusal.ambiguous(node.lineno, str(error)))
    else:
        inner.replaced.append((place, node, text))
    return inner


def _text(module: Module, capture: Capture, edits: tuple[Edit, ...]) -> str:
    """Give the source of a capture, with the edits that lie inside it made."""
    texts = []
    for start, end in capture.ranges(module):
        text = module.source.text[start:end]
        inner = [edit for edit in edits if start <= edit.start and edit.end <= end]
        for edit in sorted(inner, key=lambda edit: edit.start, reverse=True):
            text = text[: edit.start - start] + edit.text + text[edit.end - start :]
        texts.append(text)
    return ", ".join(texts)


def _captured(place: Place, captures: Iterable[Capture]) -> Iterator[Place]:
    """Give the places of captured nodes inside a matched place, in source order."""
    ids = {id(node) for capture in captures for node in capture.nodes}
    stack = [*place.inner()][::-1]
    while stack:
        inner = stack.pop()
        if id(inner.node) in ids:
            yield inner
        else:
            stack.extend([*inner.inner()][::-1])


def _fitting(module: Module, place: Place, node: ast.expr, text: str) -> str:
    """Put parentheses around a replacement where it would be read otherwise without them."""
    guarded = f"({text})"
    meant = parse_expression(text)
    alone = parse_expression(f"f(a={text})")
    argument = alone.keywords[0].value if isinstance(alone, ast.Call) and len(alone.keywords) == 1 else None
    if meant is None or argument is None or not same(argument, meant) or parse_bare_expression(text) is None:
        return guarded
    start, end = module.start(node), module.end(node)
    source = module.source.text
    if _is_glued(source[:start][-1:], text[:1]) or _is_glued(text[-1:], source[end : end + 1]):
        return guarded
    root = place.root or node
    before, after = source[module.start(root) : start], source[end : module.end(root)]
    bare, whole = parse_expression(before + text + after), parse_expression(before + guarded + after)
    return text if bare is not None and whole is not None and same(bare, whole) else guarded


def _is_glued(left: str, right: str) -> bool:
    """Tell whether two characters would become one word, as in `return"cuda"`."""
    return all(character.isalnum() or character == "_" for character in (left, right) if character) and bool(
        left and right
    )


def _unfit_use(place: Place, rule: Rule) -> str:
    """Say why a declared value cannot take a call's place where it stands, or ""."""
    if isinstance(place.parent, ast.Await):
        return f"it is awaited, and `{rule.text}` need not be awaitable"
    value = parse_expression(rule.text)
    is_number = isinstance(value, ast.Constant) and isinstance(value.value, int | float | complex)
    if not is_singleton(value) and not is_number:
        return ""
    match place.parent, place.field:
        case (ast.Attribute() | ast.Subscript() | ast.Starred() | ast.YieldFrom(), "value") | (ast.Call(), "func"):
            return f"its value is used at once, which `{rule.text}` does not bear"
        case (ast.For() | ast.AsyncFor() | ast.comprehension(), "iter") | (ast.withitem(), "context_expr"):
            return f"its value is used at once, which `{rule.text}` does not bear"
        case (_, "decorator_list"):
            return f"it is a decorator, which `{rule.text}` cannot be"
        case (ast.Assign(targets=targets), "value") if any(isinstance(t, ast.Tuple | ast.List) for t in targets):
            return f"its value is unpacked, which `{rule.text}` does not bear"
        case _:
            return ""


def is_singleton(tree: ast.expr | None) -> bool:
    """Tell whether an expression is `None`, `True`, `False` or `...`, which occur everywhere and bear no use."""
    return isinstance(tree, ast.Constant) and (tree.value is None or isinstance(tree.value, bool | type(...)))


def is_telling(tree: ast.expr) -> bool:
    """Tell whether an equal expression says something; a constant, a dotted name or a list of them stands anywhere."""
    return not all(isinstance(node, _PLAIN) for node in ast.walk(tree))


_PLAIN = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.expr_context, ast.UnaryOp, ast.unaryop),
    *(ast.List, ast.Tuple, ast.Set, ast.Dict),
)
