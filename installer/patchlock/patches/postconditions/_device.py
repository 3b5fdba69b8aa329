"""What must hold in a file that runs without CUDA, read from its syntax tree; shares no code with the op."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeGuard

from patchlock.model.backends import CUDA_HALVES, CUDA_OR_CPU, CUDA_OR_CPU_MODELS, ONNX_MEMORY
from patchlock.patches.postconditions._answers import Answers, owner_of, unmatched
from patchlock.patches.postconditions._for_libraries import only_for_libraries
from patchlock.patches.postconditions._moved import stays
from patchlock.patches.postconditions._newer_python import parse
from patchlock.patches.postconditions._stored import is_kept
from patchlock.patches.postconditions._without_cuda import Around, Machine, device_in, name_of

_ASKED = re.compile(r"cuda(:\d*)?(%[dsi]|\{0?\})?")
_BEARABLE = re.compile(
    r"is_available|device_count|is_initialized|_is_compiled|empty_cache|(random\.)?(manual_seed|seed)(_all)?"
    r"|(memory\.)?(max_)?memory_(allocated|reserved|cached)|memory_(stats|stats_as_nested_dict|snapshot)|memory\.empty_cache"
    r"|get_arch_list|get_gencode_flags|get_allocator_backend|get_rng_state_all|set_rng_state(_all)?|set_stream|device_of"
    r"|list_gpu_processes|nccl\.version|is_jiterator_supported|amp\..*|check_error|[A-Z]\w*Error"
)
"""Functions of `torch.cuda` that do not fail where there is no CUDA; every other one may."""
_CPU = "it takes the CPU where there is no CUDA; let it take `{}` there"
_AUTOCAST = "it switches autocast off for CUDA alone; name `{}` there"
_STAYS = "what it moves to CUDA alone stays on the CPU; let it be moved to `{}` there"
_ONLY_CUDA = "it takes a GPU only where there is CUDA; let it take `{}` there"
_SWITCHED = ("autocast", "GradScaler", "custom_fwd", "custom_bwd", "is_autocast_available", "get_autocast_dtype")
_WORDS = re.compile(
    "startswith|endswith|replace|r?split|partition|removeprefix|removesuffix|find|index|count|strip|join|format|sub|match"
    "|search|(has|get|set|del)attr|isinstance|print|debug|info|warning|warn|error|exception|critical|log|write|input|ord"
    "|len|add_argument|Path|open|import_module|__import__|find_spec|(CUDA)?Extension|run|check_output|Popen|system|library"
    "|impl|register|skipif|skipIf|skipUnless|Markdown|TypeVar|Literal|.*(Error|Exception|Warning)|Info|toast|success"
    "|s?echo|style|fail|skip|s?exit|abort|_|i18n|gettext|translate|tr|notify|show(info|warning|error)|HTML|Label|Button"
    "|Tab|TabItem|Accordion|display|.*[Pp]roviders?"
)
_SAYS_LIBRARY = re.compile("(?i)ctranslate ?2|faster.?whisper|whisperx")
_LIBRARIES = frozenset(known.split(".")[0] for known in CUDA_OR_CPU)
_OFFERED = ("Radio", "Dropdown", "Choice", "CheckboxGroup", "selectbox", "radio")
_OTHER_THINGS = re.compile(
    r"(.*_)?(backend|platform|name|label|title|extra|suffix|prefix|key|tag|lang|language|format|message|msg|text|help"
    r"|build|variant|kind_name|group|section|mode|desc|description|caption|placeholder|tooltip|hint|reason|comment)s?"
)
_TYPES = {"type", "set_default_tensor_type"}
_DISPLAYS = (ast.List, ast.Tuple, ast.Set)
_THROUGH = (ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Starred, ast.Await)


@dataclass(frozen=True, kw_only=True)
class WithoutCuda:
    """The file asks for no CUDA device, and calls nothing of `torch.cuda` that fails without one.

    What stands behind a test for CUDA, or for a chosen device that is another one, does not count; what other files
    do is not read.

    Attributes:
        device: the machine's device, as PyTorch calls it.
        always: CUDA may be there and is not to be taken.
        precision: `single`: no half precision is asked for either, but for what is stored.

    Raises:
        ValueError: a field is not what it should be; one clause.
    """

    device: str = "cpu"
    always: bool = False
    precision: str = ""

    def __post_init__(self) -> None:
        if device_in(ast.Constant(value=self.device)) in {"", "cuda"}:
            raise ValueError(f"`{self.device}` is not a device of PyTorch, or is CUDA")
        if self.precision not in {"", "single"}:
            raise ValueError(f"the precision is `single` or nothing, not `{self.precision}`")

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each place that would fail, or take the wrong device."""
        try:
            tree = parse(data, str(path))
            return tuple(f"line {line}: {why}" for line, why in sorted(set(self._problems(tree, data))))
        except SyntaxError as error:
            return (f"line {error.lineno or 1}: it does not parse: {error.msg}",)
        except (ValueError, RecursionError, MemoryError) as error:
            return (f"it cannot be read: {error}",)

    def _problems(self, tree: ast.Module, data: bytes) -> Iterator[tuple[int, str]]:
        kind = self.device.partition(":")[0]
        nodes = _nodes(tree)
        absent, present = (Machine(nodes, kind, is_absent=is_absent) for is_absent in (True, False))
        modules, functions = _imports(nodes)
        origins = absent.origins
        answers = Answers(tree, absent)
        libraries = [name for name, origin in origins.items() if origin.split(".")[0] in _LIBRARIES]
        marked = _marked(data, [*functions, kind, owner_of(kind), *answers.words, *libraries])
        reached = absent.reached(tree.body, marked)
        for place in reached:
            if not place.is_caught and (function := _unbearable(place.node, modules, functions)):
                yield place.node.lineno, f"it calls torch.cuda.{function}, which fails without CUDA"
            taker = _taker(place, origins)
            if taker and device_in(place.node) not in {"", "cpu", "cuda"}:
                yield place.node.lineno, f"it gives {taker} a device that it does not know"
            if self.device != "cpu" and isinstance(place.node, ast.Call):
                yield from ((place.node.lineno, why) for why in _told_wrong(place.node, absent))
            if kind in {"mps", "xpu"} and _is_cuda_switched_off(place.node, modules, functions):
                yield place.node.lineno, _AUTOCAST.format(kind)
        foreign: frozenset[int] = frozenset()
        if self.device != "cpu":
            foreign = only_for_libraries(nodes, lambda one: bool(_library(one, origins))) if libraries else foreign
            spared = {node.lineno for node in nodes if id(node) in foreign and isinstance(node, ast.expr)}
            free = [place for place in reached if not _taker(place, origins)]
            lost = {*answers.lost(free, lambda one: bool(_unbearable(one, modules, functions)))} - spared
            yield from ((line, _CPU.format(kind)) for line in lost)
            with_cuda = [one for one in present.reached(tree.body, marked) if id(one.node) not in foreign]
            lines = unmatched(absent, reached, with_cuda, lost, lambda one: self._takes(one, present, modules, tree))
            yield from ((line, _ONLY_CUDA.format(kind)) for line in lines)
            yield from ((line, _STAYS.format(kind)) for line in stays(present, reached))
        if self.always:
            reached = present.reached(tree.body, marked)
        for place in reached:
            is_offered = id(place.node) in foreign and isinstance(place.parents[0], _DISPLAYS)
            if not is_offered:
                yield from ((place.node.lineno, why) for why in self._asks(place, absent, modules, tree))

    def _takes(self, place: Around, machine: Machine, modules: set[str], tree: ast.Module) -> bool:
        """Tell whether an expression takes CUDA, itself, by a name, or as one of several."""
        is_one = _is_asked(place.node) and isinstance(place.parents[0], _DISPLAYS)
        is_taken = is_one or machine.is_cuda_by_name(place.node) or any(self._asks(place, machine, modules, tree))
        return is_taken and not _taker(place, machine.origins)

    def _asks(self, place: Around, machine: Machine, modules: set[str], tree: ast.Module) -> Iterator[str]:
        node, kind = place.node, machine.kind
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="cuda")) if name_of(value).split(".")[-1] not in modules:
                yield "it moves something to CUDA"
            case ast.Call(func=function, args=[ast.Constant(value="CPU" | "CUDA" | "Cuda" | "Cpu"), *_]):
                if name_of(function).endswith("device"):
                    yield "it names a device that PyTorch does not know"
            case ast.IfExp(orelse=ast.Constant(value="CPU"), body=body) if _is_asked(body):
                yield "it names a device that PyTorch does not know"
            case ast.Attribute(attr=name, value=value) if name.endswith("Tensor") and name_of(value).endswith(
                "torch.cuda"
            ):
                call = place.parents[0]
                if isinstance(call, ast.Call) and name_of(call.func).split(".")[-1] in _TYPES:
                    yield "it asks for a tensor type of CUDA"
            case ast.Constant(value=str() as text) if re.fullmatch(r"torch\.cuda\.\w+Tensor", text):
                call = place.parents[0]
                if isinstance(call, ast.Call) and name_of(call.func).split(".")[-1] in _TYPES:
                    yield "it asks for a tensor type of CUDA"
            case ast.Constant(value="cuda") if kind in {"mps", "xpu"} and _switches_off(place):
                yield _AUTOCAST.format(kind)
            case _ if self.precision and _is_half(place) and not (_is_off(place, machine) or is_kept(place, tree)):
                yield "it asks for half precision"
            case _ if _is_asked(node) and self._is_request(place):
                yield "it asks for a CUDA device"
            case _:
                pass

    def _is_request(self, place: Around) -> bool:
        """Tell whether a text that names CUDA is taken as a device."""
        child: ast.AST = place.node
        for index, parent in enumerate(place.parents):
            if isinstance(parent, _THROUGH) and child is not getattr(parent, "test", None):
                child = parent
                continue
            is_device = isinstance(parent, ast.Call) and name_of(parent.func).split(".")[-1] == "device"
            if is_device and isinstance(parent, ast.Call) and child in parent.args:
                child = parent
                continue
            return self._is_taken(child, parent, place.parents[index + 1 :])
        return True

    def _is_taken(self, child: ast.AST, parent: ast.AST, outer: tuple[ast.AST, ...]) -> bool:
        match parent:
            case ast.Compare() | ast.Attribute() | ast.BinOp() | ast.Expr() | ast.pattern() | ast.JoinedStr():
                return False
            case ast.Subscript(slice=key) if key is child:
                return False
            case ast.Assert(msg=message) if message is child:
                return False
            case ast.Call() | ast.keyword() | ast.Dict() if _is_complaint(parent, outer):
                return False
            case ast.Dict(keys=keys, values=values):
                owner = next((k for k, v in zip(keys, values, strict=True) if v is child), None)
                return child not in keys and _may_be_device(owner.value if isinstance(owner, ast.Constant) else "")
            case ast.FormattedValue():
                return not _is_said(outer)
            case ast.Call(args=arguments):
                return _is_taken_by(_called(parent), arguments, child)
            case ast.keyword(arg=name):
                return _is_taken_as(name or "", outer[0])
            case ast.List() | ast.Tuple() | ast.Set():
                return self._is_taken_among(child, parent, outer)
            case ast.arguments():
                return _may_be_device(_parameter(parent, child))
            case ast.Assign(targets=targets):
                return _is_taken_into(targets, outer)
            case ast.AnnAssign(target=target, annotation=annotation):
                return annotation is not child and _is_taken_into([target], outer)
            case _:
                return not isinstance(child, ast.expr) or not isinstance(parent, ast.IfExp | ast.If | ast.While)

    def _is_taken_among(self, child: ast.AST, display: ast.AST, outer: tuple[ast.AST, ...]) -> bool:
        items = getattr(display, "elts", [])
        holder = outer[0]
        if isinstance(holder, ast.Compare):
            return False
        is_choice = isinstance(holder, ast.keyword) and holder.arg in {"choices", "options"}
        if is_choice or (isinstance(holder, ast.Call) and name_of(holder.func).split(".")[-1] in _OFFERED):
            said = [one.value for one in ast.walk(outer[1]) if isinstance(one, ast.Constant)] if is_choice else []
            is_of_library = any(_SAYS_LIBRARY.search(str(text)) for text in said)
            return not is_of_library and self.device not in [getattr(item, "value", "") for item in items]
        kinds = {device_in(item) for item in items}
        if len(kinds) > 1 and "" not in kinds:
            return False
        before = items[items.index(child) - 1] if items.index(child) else None
        option = str(before.value).lower() if isinstance(before, ast.Constant) else ""
        if option.startswith("-"):
            return "device" in option or option == "-d"
        if all(map(_is_asked, items)) or isinstance(holder, ast.Assign | ast.Return):
            return self._is_taken(display, holder, outer[1:])
        return False


def _is_asked(node: ast.AST) -> bool:
    """Tell whether an expression makes the name of a CUDA device."""
    match node:
        case ast.JoinedStr(values=[ast.Constant(value=str() as text), *rest]):
            if rest and text == "cuda:":
                return not any(isinstance(part, ast.Constant) for part in rest)
            return not rest and bool(_ASKED.fullmatch(text))
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Add() | ast.Mod()):
            return bool(_ASKED.fullmatch(text)) and text != "cuda"
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format")):
            return bool(_ASKED.fullmatch(text)) and text != "cuda"
        case ast.Constant(value=str() as text):
            return bool(re.fullmatch(r"cuda(:\d+)?", text))
        case _:
            return False


def _is_half(place: Around) -> bool:
    """Tell whether half precision is asked for: by a method, by a type, or by the name of a type."""
    node, parent = place.node, place.parents[0]
    match node:
        case ast.Call(func=ast.Attribute(attr="half"), args=[], keywords=[]):
            return True
        case ast.Attribute():
            is_type = name_of(node) in {"torch.float16", "torch.half"}
            around = next(outer for outer in place.parents if not isinstance(outer, ast.List | ast.Tuple | ast.Set))
            return is_type and not isinstance(around, ast.Compare | ast.Dict | ast.Subscript | ast.Attribute)
        case ast.Constant(value="float16"):
            name = parent.arg if isinstance(parent, ast.keyword) else ""
            name = _parameter(parent, node) if isinstance(parent, ast.arguments) else name
            if name == "default" and isinstance(place.parents[1], ast.Call):
                words = [one.value for one in place.parents[1].args if isinstance(one, ast.Constant)]
                name = str(words[-1]).strip("-").replace("-", "_") if words else ""
            if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
                name = parent.targets[0].id
            return name in {"compute_type", "dtype", "torch_dtype", "weight_dtype", "data_type", "precision"}
        case _:
            return False


def _autocast(place: Around) -> ast.Call | None:
    """Give the call of autocast that an expression is an argument of."""
    calls = (node for node in place.parents[:2] if isinstance(node, ast.Call))
    return next((call for call in calls if _called(call) == "autocast"), None)


def _called(call: ast.Call) -> str:
    """Name what is called, also by `partial(function, …)`."""
    name = name_of(call.func).split(".")[-1]
    return name_of(call.args[0]).split(".")[-1] if name == "partial" and call.args else name


def _enabled(call: ast.Call | None) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords if keyword.arg == "enabled"] if call else []


def _switches_off(place: Around) -> bool:
    """Tell whether a device is named for which mixed precision is switched off."""
    return any(isinstance(value, ast.Constant) and value.value is False for value in _enabled(_autocast(place)))


def _is_off(place: Around, machine: Machine) -> bool:
    """Tell whether a precision is that of an autocast that is off on the machine, or is for other devices alone."""
    call = _autocast(place)
    if call is None:
        return False
    given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "device_type")]
    texts = {getattr(one, "value", None) for device in given for one in _choices(device)}
    is_foreign = texts <= {"cuda", "mps", "xpu", "cpu"} - {machine.kind} and bool(texts)
    is_of_cuda = "cuda.amp.autocast" in name_of(call.func)
    return is_foreign or is_of_cuda or any(machine.outcome(value) is False for value in _enabled(call))


def _choices(node: ast.expr) -> list[ast.expr]:
    return [*_choices(node.body), *_choices(node.orelse)] if isinstance(node, ast.IfExp) else [node]


def _nodes(tree: ast.Module) -> list[ast.AST]:
    """List all nodes, as `ast.walk` does, without those that say how a name is used."""
    listed: list[ast.AST] = [tree]
    for node in listed:
        for value in vars(node).values():
            if type(value) is list:
                listed += [child for child in value if isinstance(child, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                listed.append(value)
    return listed


def _marked(data: bytes, functions: Iterable[str]) -> frozenset[int]:
    """Number the lines on which a device can be named, or a function that was imported from `torch.cuda`."""
    words = "|".join(["cuda", "cpu", "gpu", "half", "float16", *map(re.escape, functions)])
    wanted = re.compile(words.encode(), re.IGNORECASE)
    return frozenset(number for number, line in enumerate(re.split(rb"\r\n|\r|\n", data), 1) if wanted.search(line))


def _imports(nodes: Iterable[ast.AST]) -> tuple[set[str], dict[str, str]]:
    """Give the names of `torch`, and what other names are in `torch.cuda`."""
    modules, functions = {"torch"}, {}
    for node in nodes:
        if isinstance(node, ast.Import):
            modules.update(alias.asname for alias in node.names if alias.asname and alias.name == "torch")
        elif isinstance(node, ast.ImportFrom) and (
            node.module == "torch.cuda" or (node.module or "").startswith("torch.cuda.")
        ):
            origin = (node.module or "")[len("torch.cuda.") :]
            for alias in node.names:
                functions[alias.asname or alias.name] = ".".join(filter(None, (origin, alias.name)))
    return modules, functions


def _takes_device(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and name_of(node.func).split(".")[-1] != "device"


def _taker(place: Around, origins: Mapping[str, str]) -> str:
    """Name what takes an expression of a library that knows CUDA and the CPU alone, or ""."""
    return next((_library(node, origins) for node in place.parents if _takes_device(node)), "")


def _library(node: ast.Call, origins: Mapping[str, str]) -> str:
    """Name what is called of a library that knows CUDA and the CPU alone, or ""."""
    first, *rest = name_of(node.func).split(".")
    if any(f".{name_of(node.func)}".endswith(f".{known}") for known in ONNX_MEMORY):
        return name_of(node.func).lstrip("?.")
    called = ".".join([origins.get(first, ""), *rest])
    return called if _is_cuda_or_cpu(called) else ""


def _is_cuda_or_cpu(origin: str) -> bool:
    return any(origin == known or origin.startswith(f"{known}.") for known in CUDA_OR_CPU)


def _told_wrong(call: ast.Call, machine: Machine) -> Iterator[str]:
    """Say what a library that knows CUDA and the CPU alone is told although it has to compute on the CPU."""
    called = _library(call, machine.origins)
    if not _is_cuda_or_cpu(called):
        return
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    seconds = call.args[1:2] if called.split(".")[-1] in CUDA_OR_CPU_MODELS else []
    device = seconds[0] if seconds and not isinstance(call.args[0], ast.Starred) else given.get("device")
    leaves = [device.body, device.orelse] if isinstance(device, ast.IfExp) else [device] if device else []
    if not all(isinstance(leaf, ast.Constant | ast.Starred) for leaf in leaves):
        yield f"it gives {called} a device that it may not know; let it be `cpu`"
    if machine.may_say(given.get("compute_type"), CUDA_HALVES):
        yield f"it lets {called} compute in half precision, which it refuses on the CPU"
    for one in machine.values.get(name_of(given[None]).split(".")[-1], []) if None in given else []:
        pairs = [*zip(one.keys, one.values, strict=True)] if isinstance(one, ast.Dict) else []
        said = {getattr(key, "value", ""): device_in(value) for key, value in pairs}
        said |= {keyword.arg: device_in(keyword.value) for keyword in getattr(one, "keywords", [])}
        if said.get("device", "cpu") != "cpu":
            yield f"it gives {called} a device that stands in a mapping; name `cpu` in the call"


def _called_of_cuda(node: ast.Call, modules: set[str], functions: dict[str, str]) -> str:
    owner, cuda, function = name_of(node.func).partition(".cuda.")
    return function if cuda and owner.split(".")[-1] in modules else functions.get(name_of(node.func), "")


def _is_cuda_switched_off(node: ast.expr, modules: set[str], functions: dict[str, str]) -> bool:
    """Tell whether an expression is `torch.cuda.amp.autocast(enabled=False)`."""
    if not isinstance(node, ast.Call) or _called_of_cuda(node, modules, functions) != "amp.autocast":
        return False
    return any(isinstance(one, ast.Constant) and one.value is False for one in [*node.args[:1], *_enabled(node)])


def _unbearable(node: ast.expr, modules: set[str], functions: dict[str, str]) -> str:
    """Name the function of `torch.cuda` that is called and may fail, or ""."""
    if not isinstance(node, ast.Call):
        return ""
    function = _called_of_cuda(node, modules, functions)
    is_nowhere = function == "device" and len(node.args) == 1 and ast.unparse(node.args[0]) == "-1"
    return "" if _BEARABLE.fullmatch(function) or is_nowhere else function


def _is_taken_by(function: str, arguments: list[ast.expr], child: ast.AST) -> bool:
    if function in {"get", "getenv", "pop", "setdefault"}:
        return arguments[0] is not child
    return child in arguments and not _WORDS.fullmatch(function) and not function.endswith(_SWITCHED)


def _is_taken_as(name: str, call: ast.AST) -> bool:
    if isinstance(call, ast.Call) and name_of(call.func).endswith(_SWITCHED):
        return False
    if name == "default" and isinstance(call, ast.Call):
        options = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
        return _may_be_device(str(options[-1]).strip("-").replace("-", "_") if options else "")
    return _may_be_device(name)


def _is_taken_into(targets: list[ast.expr], outer: tuple[ast.AST, ...]) -> bool:
    inner = [
        part for target in targets for part in (target.elts if isinstance(target, ast.Tuple | ast.List) else [target])
    ]
    names = []
    for target in inner:
        key = target.slice if isinstance(target, ast.Subscript) else None
        names.append(key.value if isinstance(key, ast.Constant) else name_of(target).split(".")[-1])
    is_enum = False
    for node in outer:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            break
        is_enum |= isinstance(node, ast.ClassDef) and any(name_of(base).endswith("Enum") for base in node.bases)
    return not is_enum and "CUDA" not in names and any(map(_may_be_device, names))


def _is_complaint(parent: ast.AST, outer: tuple[ast.AST, ...]) -> bool:
    """Tell whether a call makes what is raised, or a dictionary is only printed or logged."""
    if isinstance(parent, ast.Dict):
        return _is_said(outer)
    call_at = 0 if isinstance(parent, ast.keyword) else -1
    return isinstance(outer[call_at + 1], ast.Raise)


def _is_said(outer: tuple[ast.AST, ...]) -> bool:
    """Tell whether a part of an f-string is printed, logged or raised."""
    for node in outer:
        if isinstance(node, ast.stmt):
            return isinstance(node, ast.Raise | ast.Assert)
        if isinstance(node, ast.Call) and _WORDS.fullmatch(name_of(node.func).split(".")[-1]):
            return True
    return False


def _parameter(arguments: ast.arguments, default: ast.AST) -> str:
    named = [*arguments.posonlyargs, *arguments.args][::-1]
    pairs = [
        *zip(named, arguments.defaults[::-1], strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return next((argument.arg for argument, value in pairs if value is default), "")


def _may_be_device(name: object) -> bool:
    lower = str(name).lower()
    return not lower or any(word in lower for word in ("device", "cuda", "gpu")) or not _OTHER_THINGS.fullmatch(lower)
