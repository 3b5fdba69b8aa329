"""Code patterns: Python expressions with metavariables, matched over trees; knows nothing of files or patches.

| in a pattern | matches |
|---|---|
| `subprocess.run`, `"cuda"`, `f(1, key=None)` | the same code; literals by value, keyword arguments in any order |
| `$name` | any one expression; where it occurs again, the same code |
| `$*name` among arguments | all remaining positional and keyword arguments, also none |
| `$*name` in a list, tuple or set display | all remaining elements, also none |

Nothing else is a wildcard: `f($a)` matches neither `f(1, 2)` nor `f(*a)`.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from patchlock.patches.ops.syntax import Module, item_ranges, items_of, parse_bare_expression, parse_expression, same

_STRING = "|".join(
    rf"{quote}(?:\\.|(?!{quote})[^\\{newline}])*{quote}"
    for quote, newline in (('"""', ""), ("'''", ""), ('"', "\\n"), ("'", "\\n"))
)
_METAVARIABLE = re.compile(rf"(?:{_STRING})|\$(?P<rest>\*?)(?P<name>[A-Za-z_][A-Za-z_0-9]*)", re.DOTALL)
_ONE = "_patchlock_one_"
_REST = "_patchlock_rest_"


@dataclass(frozen=True, kw_only=True)
class Capture:
    """What a metavariable stands for."""

    nodes: tuple[ast.expr | ast.keyword, ...]
    """One for `$name`; any number, in source order, for `$*name`."""
    container: ast.expr | None = None
    """For `$*name`: the call or the display whose arguments or elements the nodes are."""
    repeats: tuple[Capture, ...] = ()
    """Where the metavariable occurs again: the same code in other places."""

    def ranges(self, module: Module) -> tuple[tuple[int, int], ...]:
        """Give the source ranges; neighbouring arguments share one, with what stands between them."""
        if self.container is None:
            return tuple((module.start(node), module.end(node)) for node in self.nodes)
        ids = {id(node) for node in self.nodes}
        ranges: list[tuple[int, int]] = []
        is_neighbour = False
        for item, (start, end) in zip(items_of(self.container), item_ranges(module, self.container), strict=True):
            if id(item) in ids:
                ranges.append((ranges.pop()[0], end) if is_neighbour else (start, end))
            is_neighbour = id(item) in ids
        return tuple(ranges)


Captures = Mapping[str, Capture]
"""By the metavariable's name."""


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A compiled pattern."""

    text: str
    tree: ast.expr
    ones: frozenset[str]
    """Names of the `$name` metavariables."""
    rests: frozenset[str]
    """Names of the `$*name` metavariables."""

    @property
    def is_bare(self) -> bool:
        """Nothing but `$name`, which matches every expression."""
        return bool(_one(self.tree))

    def match(self, node: ast.AST) -> Captures | None:
        """Compare with a node of a parsed file; `None` where it differs."""
        return match(self.tree, node)


def match(tree: ast.AST, node: ast.AST) -> Captures | None:
    """Compare the tree of a pattern with a node of a parsed file; `None` where it differs."""
    captures: dict[str, Capture] = {}
    return captures if _matches(tree, node, captures) else None


def metavariables(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Name the `$name` and the `$*name` metavariables of a text."""
    found = [(match["rest"], match["name"]) for match in _METAVARIABLE.finditer(text) if match["name"]]
    return frozenset(name for rest, name in found if not rest), frozenset(name for rest, name in found if rest)


def with_placeholders(text: str) -> str:
    """Put names that Python can parse for the metavariables of a pattern."""
    return _METAVARIABLE.sub(_placeholder, text)


def compile(text: str) -> Pattern:  # noqa: A001, used as `pattern.compile`, like `re.compile`
    """Read a pattern.

    Raises:
        ValueError: it is no expression, or a metavariable stands where no expression or argument can; one clause.
    """
    names = [(match["rest"], match["name"]) for match in _METAVARIABLE.finditer(text) if match["name"]]
    ones = [name for rest, name in names if not rest]
    rests = [name for rest, name in names if rest]
    tree = parse_bare_expression(with_placeholders(text))
    if tree is None:
        raise ValueError(f"`{text}` is not a Python expression")
    for name in sorted(set(ones) & set(rests)):
        raise ValueError(f"`{text}` uses both ${name} and $*{name}")
    found = [node for node in ast.walk(tree) if _one(node) and isinstance(getattr(node, "ctx", None), ast.Load)]
    if len(found) != len(ones):
        raise ValueError(f"`{text}` has a metavariable where no expression can stand")
    counts = [
        sum(bool(_rest(item)) for item in items_of(node)) for node in ast.walk(tree) if isinstance(node, ast.expr)
    ]
    if sum(counts) != len(rests):
        raise ValueError(f"`{text}` has a $* metavariable that is not an argument and no element")
    if any(count > 1 for count in counts):
        raise ValueError(f"`{text}` has two $* metavariables in one list")
    return Pattern(text=text.strip(), tree=tree, ones=frozenset(ones), rests=frozenset(rests))


def substitute(
    replacement: str,
    captures: Mapping[str, str],
    parse: Callable[[str], ast.AST | None] = parse_bare_expression,
) -> str:
    """Put captured source text for the metavariables of a replacement, verbatim.

    Parentheses are added around an expression only where the code would mean something else without them. A `$*name`
    that stands for nothing takes its comma with it.

    Args:
        replacement: a text with metavariables.
        captures: what each stands for.
        parse: what kind of code the replacement is.

    Raises:
        ValueError: the result is no expression, such as a positional argument behind a keyword argument.
    """
    replacement = replacement.strip()
    for name in captures:
        if not captures[name]:
            replacement = _without(replacement, name, parse)
    found = _METAVARIABLE.finditer(replacement)
    guarded = {match.start() for match in found if match["name"] and not match["rest"]}
    whole = _filled(replacement, captures, guarded)
    meant = parse_expression(whole) if parse is parse_bare_expression else parse(whole)
    if meant is None:
        raise ValueError(f"`{_filled(replacement, captures, set())}` is not a Python expression")
    for at in sorted(guarded):
        bare = parse(_filled(replacement, captures, guarded - {at}))
        if bare is not None and same(bare, meant):
            guarded.discard(at)
    return _filled(replacement, captures, guarded)


def _filled(replacement: str, captures: Mapping[str, str], guarded: set[int]) -> str:
    def fill(match: re.Match[str]) -> str:
        text = captures[match["name"]] if match["name"] else match.group()
        return f"({text})" if match.start() in guarded else text

    return _METAVARIABLE.sub(fill, replacement)


def _without(replacement: str, name: str, parse: Callable[[str], ast.AST | None]) -> str:
    """Take an empty `$*name` out; which comma goes with it is decided by what the code then means."""
    meant = parse(with_placeholders(replacement)) or ast.Pass()
    for node in ast.walk(meant):
        for items in (getattr(node, "args", None), getattr(node, "elts", None)):
            if isinstance(items, list):
                items[:] = [item for item in items if _rest(item) != name]
    with_comma = (rf"\$\*{name}\b\s*,\s*", rf"\s*,\s*\$\*{name}\b", rf"\$\*{name}\b")
    for forms in (with_comma, with_comma[2:]):
        text = replacement
        for form in forms:
            text = re.sub(f"({_STRING})|{form}", lambda match: match[1] or "", text, flags=re.DOTALL)
        tree = parse(with_placeholders(text))
        if tree is not None and same(tree, meant):
            return text
    raise ValueError(f"`{replacement}` is not a Python expression where $*{name} is empty")


def _placeholder(match: re.Match[str]) -> str:
    if not match["name"]:
        return match.group()
    return f"*{_REST}{match['name']}" if match["rest"] else f"{_ONE}{match['name']}"


def _one(node: ast.AST) -> str:
    """Name the `$name` that a node of a pattern stands for, or ""."""
    return node.id.removeprefix(_ONE) if isinstance(node, ast.Name) and node.id.startswith(_ONE) else ""


def _rest(node: ast.AST) -> str:
    """Name the `$*name` that a node of a pattern stands for, or ""."""
    if isinstance(node, ast.Starred) and isinstance(node.value, ast.Name) and node.value.id.startswith(_REST):
        return node.value.id.removeprefix(_REST)
    return ""


def _matches(pattern: ast.AST, node: ast.AST, captures: dict[str, Capture]) -> bool:
    if isinstance(pattern, ast.Name) and (name := _one(pattern)):
        return _is_expression(node, type(pattern.ctx)) and _bind(name, Capture(nodes=(node,)), captures)
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, ast.Constant) and isinstance(node, ast.Constant):
        return type(pattern.value) is type(node.value) and pattern.value == node.value
    if isinstance(pattern, ast.Call) and isinstance(node, ast.Call):
        return _matches(pattern.func, node.func, captures) and _match_items(pattern, node, captures)
    if isinstance(pattern, ast.List | ast.Tuple | ast.Set) and isinstance(node, ast.List | ast.Tuple | ast.Set):
        return type(getattr(pattern, "ctx", None)) is type(getattr(node, "ctx", None)) and _match_items(
            pattern, node, captures
        )
    return all(
        _match_values(getattr(pattern, field, None), getattr(node, field, None), captures) for field in pattern._fields
    )


def _match_values(pattern: object, value: object, captures: dict[str, Capture]) -> bool:
    if isinstance(pattern, ast.AST) and isinstance(value, ast.AST):
        return _matches(pattern, value, captures)
    if isinstance(pattern, list) and isinstance(value, list):
        return len(pattern) == len(value) and all(
            _match_values(p, v, captures) for p, v in zip(pattern, value, strict=True)
        )
    return type(pattern) is type(value) and pattern == value


def _match_items(pattern: ast.expr, node: ast.expr, captures: dict[str, Capture]) -> bool:
    """Compare arguments or elements: positional ones from both ends towards `$*name`, keywords by name."""
    wanted, given = list(items_of(pattern)), list(items_of(node))
    rest = next(filter(None, map(_rest, wanted)), "")
    left = list(given)
    for item in wanted:
        if isinstance(item, ast.keyword):
            other = next((i for i in left if isinstance(i, ast.keyword) and i.arg == item.arg), None)
            if other is None or not _matches(item.value, other.value, captures):
                return False
            left.remove(other)
    positional = [item for item in left if not isinstance(item, ast.keyword)]
    expected = [item for item in wanted if not isinstance(item, ast.keyword)]
    at = next((index for index, item in enumerate(expected) if _rest(item)), len(expected))
    head, tail = expected[:at], expected[at + 1 :]
    if len(positional) < len(head) + len(tail) or (not rest and len(left) != len(head)):
        return False
    fixed = [*positional[: len(head)], *positional[len(positional) - len(tail) :]]
    if not all(_matches(p, n, captures) for p, n in zip([*head, *tail], fixed, strict=True)):
        return False
    remaining = tuple(item for item in left if item not in fixed)
    return not rest or _bind(rest, Capture(nodes=remaining, container=node), captures)


def _is_expression(node: ast.AST, use: type[ast.expr_context]) -> TypeGuard[ast.expr]:
    """Tell whether a node is an expression of its own, read or assigned; `*a` and `1:2` are not."""
    if not isinstance(node, ast.expr) or isinstance(node, ast.Starred | ast.Slice | ast.FormattedValue):
        return False
    return isinstance(getattr(node, "ctx", ast.Load()), use)


def _bind(name: str, capture: Capture, captures: dict[str, Capture]) -> bool:
    """Remember what a metavariable stands for; where it stands for something already, compare."""
    known = captures.get(name)
    if known is None:
        captures[name] = capture
        return True
    captures[name] = dataclasses.replace(known, repeats=(*known.repeats, capture))
    return len(known.nodes) == len(capture.nodes) and all(
        same(a, b) or (isinstance(a, ast.Name) and isinstance(b, ast.Name) and a.id == b.id)  # assigned and read
        for a, b in zip(known.nodes, capture.nodes, strict=True)
    )
