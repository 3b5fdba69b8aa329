"""Write the edits of `device-literals`, each with the tree that it means; decides nothing."""

from __future__ import annotations

import ast
import copy
import dataclasses

from patchlock.ops.syntax import Module, item_ranges, items_of, parse_expression
from patchlock.sources import Edit


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One node and what takes its place."""

    node: ast.expr
    meant: ast.expr
    edits: tuple[Edit, ...]


def text(module: Module, node: ast.expr, value: str) -> Change:
    """Put a text for an expression, in the quotes that it has."""
    start, end = module.start(node), module.end(node)
    quote = next((mark for mark in module.source.text[start:end] if mark in "'\""), '"')
    edit = Edit(start=start, end=end, text=f"{quote}{value}{quote}")
    return Change(node=node, meant=ast.Constant(value=value), edits=(edit,))


def code(module: Module, node: ast.expr, replacement: str) -> Change | None:
    """Put code for an expression."""
    meant = parse_expression(replacement)
    edit = Edit(start=module.start(node), end=module.end(node), text=replacement)
    return None if meant is None else Change(node=node, meant=meant, edits=(edit,))


def only_argument(module: Module, call: ast.Call, value: str) -> Change:
    """Put a text for all arguments of a call."""
    ranges = item_ranges(module, call)
    edit = Edit(start=ranges[0][0], end=ranges[-1][1], text=f'"{value}"')
    meant = ast.Call(func=call.func, args=[ast.Constant(value=value)], keywords=[])
    return Change(node=call, meant=meant, edits=(edit,))


def guarded(module: Module, call: ast.expr, cuda: str, otherwise: str) -> Change | None:
    """Let a call run only where CUDA is there."""
    test, value = parse_expression(f"{cuda}.is_available()"), parse_expression(otherwise)
    if test is None or value is None:
        return None
    start, end = module.start(call), module.end(call)
    return Change(
        node=call,
        meant=ast.IfExp(test=test, body=copy.copy(call), orelse=value),
        edits=(
            Edit(start=start, end=start, text="("),
            Edit(start=end, end=end, text=f" if {cuda}.is_available() else {otherwise})"),
        ),
    )


def offered(module: Module, display: ast.List | ast.Tuple | ast.Set, value: str) -> Change:
    """Put a text before the elements of a display."""
    meant = copy.copy(display)
    meant.elts = [ast.Constant(value=value), *display.elts]
    start = item_ranges(module, display)[0][0]
    return Change(node=display, meant=meant, edits=(Edit(start=start, end=start, text=f'"{value}", '),))


def moved(module: Module, call: ast.Call, value: str) -> Change | None:
    """Turn `x.cuda(…)` into `x.to("cpu", …)`; `None` where its arguments are not those of PyTorch."""
    keywords = {keyword.arg for keyword in call.keywords}
    is_known = keywords <= {"device", "non_blocking", "memory_format"} and len(call.args) <= 1
    if not is_known or any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    if not isinstance(call.func, ast.Attribute) or (call.args and "device" in keywords):
        return None
    end = module.end(call.func)
    edits = [Edit(start=end - len("cuda"), end=end, text="to")]
    literal = ast.Constant(value=value)
    kept = [_with_device(keyword, literal) for keyword in call.keywords]
    replaced = call.args or [keyword.value for keyword in call.keywords if keyword.arg == "device"]
    ranges = item_ranges(module, call)
    if call.args:
        edits.append(Edit(start=ranges[0][0], end=ranges[0][1], text=f'"{value}"'))
    elif replaced:
        edits.append(Edit(start=module.start(replaced[0]), end=module.end(replaced[0]), text=f'"{value}"'))
    else:
        start = ranges[0][0] if items_of(call) else module.end(call) - 1
        edits.append(Edit(start=start, end=start, text=f'"{value}", ' if call.keywords else f'"{value}"'))
    is_named = bool(replaced) and not call.args
    to = ast.Attribute(value=call.func.value, attr="to", ctx=ast.Load())
    meant = ast.Call(func=to, args=[] if is_named else [literal], keywords=kept)
    return Change(node=call, meant=meant, edits=tuple(edits))


def renamed(module: Module, attribute: ast.Attribute, name: str) -> Change:
    """Give an attribute another name."""
    end = module.end(attribute)
    edit = Edit(start=end - len(attribute.attr), end=end, text=name)
    return Change(node=attribute, meant=ast.Attribute(value=attribute.value, attr=name, ctx=ast.Load()), edits=(edit,))


def _with_device(keyword: ast.keyword, literal: ast.Constant) -> ast.keyword:
    return ast.keyword(arg="device", value=literal) if keyword.arg == "device" else keyword
