"""Decide for each text that names a CUDA device whether it asks for that device, or only names it; edits nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from patchlock.patches.ops._device.guards import is_device_name, kind_of
from patchlock.patches.ops._device.walk import Spot
from patchlock.patches.ops.syntax import last_name

ASKS = ""
"""The answer for a text that asks for the device; any other answer says what the text is instead."""
UNCLEAR = "it is inside an f-string, where places differ between versions of Python"
CHOICES = "it is offered beside others"
KINDS = "it is one of several kinds"
ITSELF = "autocast and gradient scaling switch themselves off without CUDA"

_CUDA = re.compile(r"cuda(:\d+)?")
_ITSELF = {"autocast", "GradScaler", "custom_fwd", "custom_bwd", "is_autocast_available", "get_autocast_dtype"}
_TEXTS = re.compile(
    "startswith|endswith|replace|r?split|partition|removeprefix|removesuffix|find|index|count|strip|join|format|sub|match"
    "|search|(has|get|set|del)attr|isinstance|print|debug|info|warning|warn|error|exception|critical|log|write|input|ord"
    "|len|add_argument|Path|open|import_module|__import__|find_spec|(CUDA)?Extension|run|check_output|Popen|system|library"
    "|impl|register|skipif|skipIf|skipUnless|Markdown|TypeVar|Literal|.*(Error|Exception|Warning)|Info|toast|success"
    "|s?echo|style|fail|skip|s?exit|abort|_|i18n|gettext|translate|tr|notify|show(info|warning|error)|HTML|Label|Button"
    "|Tab|TabItem|Accordion|display|.*[Pp]roviders?"
)
"""Functions for which a text is a text."""
_LOOKUPS = {"get", "getenv", "pop", "setdefault"}
_OFFERS = {"Radio", "Dropdown", "Choice", "CheckboxGroup", "selectbox", "radio"}


def is_device(node: ast.AST) -> bool:
    """Tell whether an expression is a text that names a CUDA device: `"cuda:0"`, `f"cuda:{i}"`, `"cuda:" + str(i)`."""
    match node:
        case ast.Constant(value=str() as text):
            return bool(_CUDA.fullmatch(text))
        case ast.JoinedStr(values=[ast.Constant(value=str() as text), *rest]):
            is_number = all(isinstance(part, ast.FormattedValue) for part in rest)
            return text == "cuda:" and is_number if rest else bool(_CUDA.fullmatch(text))
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Add()):
            return text == "cuda:"
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod()):
            return text in {"cuda:%d", "cuda:%s", "cuda:%i"}
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format")):
            return text in {"cuda:{}", "cuda:{0}"}
        case _:
            return False


def use_of(spot: Spot) -> str:
    """Say what a text is for: `ASKS`, or a clause."""
    here = _value(spot)
    is_tested = isinstance(here.parent, ast.IfExp) and here.field == "test"
    return "it is only tested" if is_tested else _direct_use(here)


def taker(spot: Spot) -> ast.Call | None:
    """Give the call that takes an expression, or a choice with it, as an argument."""
    here = _value(spot)
    if isinstance(here.parent, ast.keyword) and here.around:
        here = here.around
    return here.parent if isinstance(here.parent, ast.Call) and here.field in {"args", "keywords"} else None


def _value(spot: Spot) -> Spot:
    """Give the largest expression that may have the value of one in it, as its own or as a device."""
    here = spot
    while here.around:
        match here.parent:
            case ast.IfExp() if here.field == "test":
                break
            case ast.IfExp() | ast.BoolOp() | ast.NamedExpr() | ast.Starred() | ast.Await():
                pass
            case ast.Call(func=function) if last_name(function) == "device" and here.field == "args":
                pass
            case ast.keyword(arg="type") if _is_device_call(here.around.parent):
                here = here.around
            case _:
                break
        here = here.around or here
    return here


def _is_device_call(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == "device"


def _direct_use(here: Spot) -> str:
    node = here.node
    match here.parent:
        case ast.Compare():
            return "it is compared"
        case ast.Subscript() | ast.Dict() if here.field in {"slice", "keys"}:
            return "it is a key"
        case ast.Assert() if here.field == "msg":
            return "it is part of a message"
        case ast.Call() as call if here.field == "args":
            return "it is part of a message" if _is_raised(here.around) else _as_argument(call, node)
        case ast.keyword() as keyword:
            return _as_keyword(here, keyword)
        case ast.List() | ast.Tuple() | ast.Set() as display:
            return _in_display(here, display)
        case ast.FormattedValue():
            return "it is part of a message" if _is_message(here) else UNCLEAR
        case ast.arguments() as arguments:
            return _named(_parameter(arguments, node))
        case ast.Assign(targets=targets):
            return _assigned(here, targets)
        case ast.AnnAssign(target=target):
            return "it is an annotation" if here.field == "annotation" else _assigned(here, [target])
        case ast.Dict() if here.around and _is_message(here.around):
            return "it is part of a message"
        case ast.Dict(keys=keys, values=values):
            return _named(_text(keys[values.index(node)])) if isinstance(node, ast.expr) else ASKS
        case ast.Call() | ast.Attribute() | ast.BinOp() | ast.Expr() | ast.pattern() | ast.JoinedStr():
            return "it is a text"
        case _:
            return ASKS


def _as_argument(call: ast.Call, node: ast.AST) -> str:
    name = last_name(call.args[0] if last_name(call.func) == "partial" else call.func)
    if name in _ITSELF:
        return ITSELF
    if name in _LOOKUPS:
        return "it is a key" if call.args[0] is node else ASKS
    return "it is a text" if _TEXTS.fullmatch(name) else ASKS


def _is_raised(call: Spot | None) -> bool:
    return call is not None and isinstance(call.parent, ast.Raise)


def _as_keyword(here: Spot, keyword: ast.keyword) -> str:
    call = here.around.parent if here.around else None
    if not isinstance(call, ast.Call):
        return ASKS
    if last_name(call.func) in _ITSELF:
        return ITSELF
    if here.around and _is_raised(here.around.around):
        return "it is part of a message"
    if keyword.arg == "default":
        options = [_text(argument) for argument in call.args]
        return _named(options[-1].lstrip("-").replace("-", "_") if options else "")
    return _named(keyword.arg or "")


def _in_display(here: Spot, display: ast.List | ast.Tuple | ast.Set) -> str:
    around = here.around
    if around is None:
        return ASKS
    if isinstance(around.parent, ast.Compare):
        return "it is compared"
    if _is_offer(around):
        return CHOICES
    if len({kind_of(item) for item in display.elts}) > 1 and all(map(kind_of, display.elts)):
        return KINDS
    at = next(index for index, item in enumerate(display.elts) if item is here.node)
    before = _text(display.elts[at - 1]).lower() if at else ""
    if before.startswith("-"):
        return ASKS if "device" in before or before == "-d" else "it is a text"
    is_alone = all(map(is_device, display.elts)) or isinstance(around.parent, ast.Assign | ast.Return)
    return _direct_use(around) if is_alone else "it is a text"


def _is_offer(display: Spot) -> bool:
    match display.parent:
        case ast.keyword(arg="choices" | "options"):
            return True
        case ast.Call(func=function):
            return display.field == "args" and last_name(function) in _OFFERS
        case _:
            return False


def _assigned(here: Spot, targets: list[ast.expr]) -> str:
    names = [name for target in targets for name in _target_names(target)]
    if "CUDA" in names or any(isinstance(node, ast.ClassDef) and _is_enum(node) for node in _enclosing(here)):
        return "it is the name of a kind"
    return ASKS if not names or any(map(is_device_name, names)) else "it is not a device"


def _target_names(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Subscript(slice=key):
            yield _text(key)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            for item in items:
                yield from _target_names(item)
        case _:
            yield last_name(target)


def _enclosing(here: Spot) -> Iterator[ast.AST]:
    spot = here.around
    while spot and not isinstance(spot.node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield spot.node
        spot = spot.around


def _is_enum(node: ast.ClassDef) -> bool:
    return any(last_name(base).endswith("Enum") for base in node.bases)


def _is_message(here: Spot) -> bool:
    """Tell whether an f-string is printed, logged or raised."""
    spot = here.around
    while spot and isinstance(spot.node, ast.expr | ast.keyword):
        if isinstance(spot.node, ast.Call) and _as_argument(spot.node, here.node) == "it is a text":
            return True
        spot = spot.around
    return bool(spot and isinstance(spot.node, ast.Raise | ast.Assert))


def _parameter(arguments: ast.arguments, default: ast.AST) -> str:
    """Name the parameter that a default value belongs to."""
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return next((argument.arg for argument, value in pairs if value is default), "")


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _named(name: str) -> str:
    return ASKS if not name or is_device_name(name) else "it is not a device"
