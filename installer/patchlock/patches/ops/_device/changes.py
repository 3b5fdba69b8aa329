"""Write the edits of `device-literals`, each with the tree that it means; decides nothing."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass

from patchlock.model.text_files import Edit
from patchlock.patches.ops._device.stored import is_stored
from patchlock.patches.ops._device.walk import Spot
from patchlock.patches.ops.syntax import Module, item_ranges, last_name, parse_expression

_ONLY_ASKS = re.compile(
    r"(?!\w*(next|new|pop|take|alloc|acquire|reserve|assign|claim|pick))"
    r"((get|is|has|can|check|detect|current|local|use|using)_\w+|\w*(cuda|gpu|device|avail|rank)\w*|str|int|len|min|max"
    r"|sorted|range|list|tuple|keys|values|items|get|getenv|format|split|r?strip|lower|upper|any|all|isinstance)"
)
"""Functions whose call changes nothing, as far as a name can say."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One node and what takes its place."""

    node: ast.expr
    meant: ast.expr
    edits: tuple[Edit, ...]
    is_companion: bool = False
    """Nothing is wrong there: it goes with what is changed elsewhere."""


def only_asks(call: ast.Call) -> bool:
    """Tell whether a call changes nothing, as far as its name can say."""
    return bool(_ONLY_ASKS.fullmatch(last_name(call.func)))


def lost(change: Change) -> str:
    """Give the code of what a change takes away although more may depend on it than the device: "" for none."""
    kept = {ast.dump(node) for node in ast.walk(change.meant)}
    nodes = list(ast.walk(change.node))
    tests = {id(node) for choice in nodes if isinstance(choice, ast.IfExp) for node in ast.walk(choice.test)}
    for node in nodes:
        match node:
            case ast.Call():
                is_question = id(node) in tests or only_asks(node)
                is_bearable = is_question or node is change.node
            case ast.NamedExpr() | ast.Await() | ast.Yield() | ast.YieldFrom():
                is_bearable = False
            case _:
                is_bearable = True
        if not is_bearable and ast.dump(node) not in kept:
            return ast.unparse(node)
    return ""


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


def guard_call(module: Module, call: ast.expr, cuda: str, otherwise: str) -> Change | None:
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


def insert_element(module: Module, display: ast.List | ast.Tuple | ast.Set, beside: ast.expr, value: str) -> Change:
    """Put a text before an element of a display."""
    at = next(index for index, item in enumerate(display.elts) if item is beside)
    meant = copy.copy(display)
    meant.elts = [*display.elts[:at], ast.Constant(value=value), *display.elts[at:]]
    start = item_ranges(module, display)[at][0]
    return Change(node=display, meant=meant, edits=(Edit(start=start, end=start, text=f'"{value}", '),))


def move_to_device(module: Module, call: ast.Call, value: str) -> Change | None:
    """Turn `x.cuda(…)` into `x.to("cpu", …)`; `None` where its arguments are not those of PyTorch."""
    keywords = {keyword.arg for keyword in call.keywords}
    is_known = keywords <= {"device", "non_blocking", "memory_format"} and len(call.args) <= 1
    if not is_known or any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    if not isinstance(call.func, ast.Attribute) or (call.args and "device" in keywords):
        return None
    literal = ast.Constant(value=value)
    kept = [_with_device(keyword, literal) for keyword in call.keywords]
    replaced = call.args or [keyword.value for keyword in call.keywords if keyword.arg == "device"]
    source = module.source.text
    name = module.end(call.func) - len("cuda")
    start = end = module.end(call) - 1
    comma = ""
    if call.args:
        start, end = item_ranges(module, call)[0]
    elif replaced:
        start, end = module.start(replaced[0]), module.end(replaced[0])
    elif call.keywords:
        start = end = item_ranges(module, call)[0][0]
        comma = ", "
    between = source[name + len("cuda") : start]
    edit = Edit(start=name, end=end, text=f'to{between}"{value}"{comma}')
    is_named = bool(replaced) and not call.args
    to = ast.Attribute(value=call.func.value, attr="to", ctx=ast.Load())
    meant = ast.Call(func=to, args=[] if is_named else [literal], keywords=kept)
    return Change(node=call, meant=meant, edits=(edit,))


def replace_typed_tensor(module: Module, call: ast.Call, name: str, value: str) -> Change | None:
    """Turn `torch.cuda.FloatTensor(…)` into `torch.FloatTensor(…)`, moved to a device that is not the CPU."""
    tensor = code(module, call.func, name)
    if tensor is None:
        return None
    meant = ast.Call(func=tensor.meant, args=call.args, keywords=call.keywords)
    if value == "cpu":
        return Change(node=call, meant=meant, edits=tensor.edits)
    to = ast.Attribute(value=meant, attr="to", ctx=ast.Load())
    end = module.end(call)
    moved = ast.Call(func=to, args=[ast.Constant(value=value)], keywords=[])
    return Change(node=call, meant=moved, edits=(*tensor.edits, Edit(start=end, end=end, text=f'.to("{value}")')))


def cast_and_move(module: Module, call: ast.Call, name: str, value: str) -> Change | None:
    """Turn `x.type(torch.cuda.FloatTensor)` into `x.type(torch.FloatTensor)`, moved to a device that is not the CPU."""
    given, end = call.args[0], module.end(call)
    tensor = code(module, given, name)
    if tensor is None:
        return None
    cast = ast.Call(func=call.func, args=[tensor.meant], keywords=call.keywords)
    to = ast.Attribute(value=cast, attr="to", ctx=ast.Load())
    moved = ast.Call(func=to, args=[ast.Constant(value=value)], keywords=[])
    rest = module.source.text[module.end(given) : end]
    edit = Edit(start=module.start(given), end=end, text=f'{name}{rest}.to("{value}")')
    return Change(node=call, meant=moved, edits=(edit,))


def rename_attribute(module: Module, attribute: ast.Attribute, name: str) -> Change:
    """Give an attribute another name."""
    end = module.end(attribute)
    edit = Edit(start=end - len(attribute.attr), end=end, text=name)
    return Change(node=attribute, meant=ast.Attribute(value=attribute.value, attr=name, ctx=ast.Load()), edits=(edit,))


def _with_device(keyword: ast.keyword, literal: ast.Constant) -> ast.keyword:
    return ast.keyword(arg="device", value=literal) if keyword.arg == "device" else keyword


_NAMES = {"compute_type", "dtype", "torch_dtype", "weight_dtype", "data_type", "precision"}
_HALVES = {"float16", "half"}


def to_single_precision(module: Module, spot: Spot) -> Change | None:
    """Give the change for `x.half()`, `torch.float16` or `compute_type="float16"`; `None` for anything else.

    What is chosen beside `torch.float16` changes with it; what is only stored stays.
    """
    match spot.node, spot.parent:
        case ast.Attribute(attr="half") as attribute, ast.Call(args=[], keywords=[]) if spot.field == "func":
            return None if is_stored(module.tree, attribute) else rename_attribute(module, attribute, "float")
        case ast.Attribute(value=ast.Name(id="torch"), attr="bfloat16", ctx=ast.Load()) as attribute, _:
            return rename_attribute(module, attribute, "float32") if _is_beside_half(spot) else None
        case ast.Attribute(value=ast.Name(id="torch"), attr=name, ctx=ast.Load()) as attribute, parent:
            is_given = name in _HALVES and not _is_compared(spot) and not isinstance(parent, ast.Attribute)
            is_used = is_given and not is_stored(module.tree, attribute)
            return rename_attribute(module, attribute, "float32") if is_used else None
        case ast.Constant(value="float16") as constant, ast.keyword(arg=name) if name in _NAMES:
            return text(module, constant, "float32")
        case ast.Constant(value="float16") as constant, ast.keyword(arg="default") if _option(spot) in _NAMES:
            return text(module, constant, "float32")
        case ast.Constant(value="float16") as constant, ast.Assign(targets=[ast.Name(id=name)]) if name in _NAMES:
            return text(module, constant, "float32")
        case ast.Constant(value="float16") as constant, ast.arguments() as arguments:
            positional = [*arguments.posonlyargs, *arguments.args]
            last = zip(reversed(positional), reversed(arguments.defaults), strict=False)
            only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            is_named = any(value is constant and argument.arg in _NAMES for argument, value in (*last, *only))
            return text(module, constant, "float32") if is_named else None
        case _:
            return None


def _option(default: Spot) -> str:
    """Name the option of a command line whose default it is: `compute_type` of `--compute-type`."""
    call = default.around.parent if default.around else None
    names = [one.value for one in call.args if isinstance(one, ast.Constant)] if isinstance(call, ast.Call) else []
    return str(names[-1]).lstrip("-").replace("-", "_") if names else ""


def _is_beside_half(spot: Spot) -> bool:
    """Tell whether a type is chosen beside `torch.half`, with no single precision to choose: both go, or neither."""
    around: Spot | None = spot
    while around and around.field in {"body", "orelse"} and isinstance(around.parent, ast.IfExp):
        around = around.around
    if around is None:
        return False
    types = set(_types(around.node))
    target = _target(around.parent)
    outer = around.around
    while outer and target and isinstance(outer.parent, ast.If) and outer.field in {"body", "orelse"}:
        outer = outer.around
        inner = [] if outer is None else ast.walk(outer.node)
        types |= {name for one in inner if _target(one) == target for name in _types(getattr(one, "value", None))}
    return bool(types & _HALVES) and not types & {"float32", "float"}


def _types(node: ast.AST | None) -> Iterator[str]:
    """Name the types that an expression may be."""
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            yield from _types(body)
            yield from _types(orelse)
        case ast.Attribute(value=ast.Name(id="torch"), attr=name):
            yield name
        case _:
            pass


def _target(node: ast.AST | None) -> str:
    """Give the code of what a statement gives a value to, "return" for the caller, and "" for anything else."""
    match node:
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return ast.unparse(target)
        case ast.Return():
            return "return"
        case _:
            return ""


def _is_compared(spot: Spot) -> bool:
    """Tell whether a type is compared, or looked up, and not given to anything."""
    here: Spot | None = spot.around
    while here and isinstance(here.node, ast.List | ast.Tuple | ast.Set | ast.Dict):
        here = here.around
    return here is not None and isinstance(here.node, ast.Compare | ast.Dict | ast.Subscript)
