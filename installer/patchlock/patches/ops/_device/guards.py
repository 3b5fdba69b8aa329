"""Which code of a file never runs on a machine without CUDA, read from its tests and early ends; edits nothing."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from patchlock.patches.ops.syntax import last_name

_KINDS = "cpu|cuda|hip|hpu|ipu|maia|mlu|mps|mtia|musa|npu|ocl|opencl|privateuseone|sdaa|xla|xpu"
KINDS = frozenset(_KINDS.split("|"))
"""Device types of PyTorch and its extensions, without `meta`, which is everywhere.

Source: the error message of `torch.device`; the documentation of the extensions.
"""

_DEVICE = re.compile(rf"({_KINDS})(:\d+)?")
_NUMBERED = re.compile(rf"({_KINDS}):")
_OWN = {"mps": "mps", "xpu": "xpu", "torch_directml": "privateuseone", "Darwin": "mps", "darwin": "mps"}
"""What a test asks about, a module or a system → the one device whose machines have it."""
_FLAG = re.compile(
    r"_*((is|has|use|using|with|enable)_?(cuda|gpu)|cuda|(\w+_)?(cuda|gpu)_?(is_)?(avail|available|enabled))"
)
_WANTED = re.compile(r"_*(use|using|with|enable)_?(cuda|gpu)|cuda|(\w+_)?(cuda|gpu)_?enabled")
"""Those of them that say what somebody wants, if nothing in the file says that they tell what is there."""
_ASKED = re.compile(
    r"_*(is|has|detect|check|use|can_use)_(cuda|gpu)(_\w+)?|(\w+_)?(cuda|gpu)_(is_)?(available|enabled)"
)
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_MADE_OF = ast.BoolOp | ast.UnaryOp | ast.BinOp | ast.Compare | ast.IfExp | ast.NamedExpr | ast.Tuple | ast.List
_NEGATED = ast.NotEq | ast.IsNot | ast.NotIn
_FOR_CUDA = ("nccl", "CUDAExecutionProvider")
_SYSTEMS = ("platform.system()", "sys.platform")
_EXITS = ("exit", "quit", "_exit", "abort")
_NO_DEVICE = re.compile(
    r"(.*_)?(backend|platform|name|label|title|extra|suffix|prefix|key|tag|lang|language|format|message|msg|text|help"
    r"|build|variant|kind_name|group|section|mode|desc|description|caption|placeholder|tooltip|hint|reason|comment)s?"
)


def dotted(node: ast.AST) -> str:
    """Give `a.b.c` as text, and "" for anything else."""
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def is_device_name(name: str) -> bool:
    """Tell whether what has this name may hold a device."""
    lower = name.lower()
    return any(word in lower for word in ("device", "cuda", "gpu")) or not _NO_DEVICE.fullmatch(lower)


def kind_of(node: ast.AST) -> str:
    """Give the device type that `"cuda:0"` or `torch.device("cuda")` names, and "" for anything else."""
    match node:
        case ast.Constant(value=str() as text):
            found = _DEVICE.fullmatch(text)
            return found[1] if found else ""
        case ast.JoinedStr(values=[ast.Constant(value=str() as text), ast.FormattedValue()]):
            found = _NUMBERED.fullmatch(text)
            return found[1] if found else ""
        case ast.Call(func=function, args=[first, *_]) if last_name(function) == "device":
            return kind_of(first)
        case _:
            return ""


@dataclass(frozen=True, kw_only=True)
class Guards:
    """What a test says, on a machine where another device than CUDA is chosen.

    Attributes:
        kind: the type of the machine's device.
        is_absent: CUDA is known not to be there; else it may be there, and is only not chosen.
        flags: names that are true only where CUDA is there.
        counts: names that hold the number of CUDA devices.
        names: all names that the file binds by an import.
        origins: name → what of `torch.cuda` the file calls so.
        answers: functions of the file that return whether CUDA is there.
        kept: names to which the file gives "cuda" and which keep it, as they name no device: `backend`, `mode`.
        values: name → all that is assigned to it, or is its default.
    """

    kind: str
    is_absent: bool
    flags: frozenset[str] = frozenset()
    counts: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    origins: Mapping[str, str] = field(default_factory=dict)
    answers: frozenset[str] = frozenset()
    values: Mapping[str, Sequence[ast.expr]] = field(default_factory=dict)

    def rules_out(self, test: ast.expr, truth: bool) -> bool:
        """Tell whether a test cannot have this truth value on such a machine."""
        if self.kind != "cpu" and (own := _OWN.get(_asked(test))):  # a machine that takes the CPU may have either
            is_negated = isinstance(test, ast.Compare) and isinstance(test.ops[0], _NEGATED)
            return (own == self.kind) is not (truth is not is_negated)
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.rules_out(operand, not truth)
            case ast.BoolOp(op=op, values=values):
                enough = any if isinstance(op, ast.And) is truth else all
                return enough(self.rules_out(value, truth) for value in values)
            case ast.NamedExpr(value=value):
                return self.rules_out(value, truth)
            case ast.IfExp(test=choice, body=body, orelse=orelse):
                ends = ((body, True), (orelse, False))
                return all(self.rules_out(choice, which) or self.rules_out(end, truth) for end, which in ends)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compared(left, op, right, truth)
            case ast.Constant(value=value):
                return bool(value) is not truth
            case ast.Call(func=ast.Attribute(value=value, attr="startswith"), args=[first]):
                return truth and self._is_foreign(first) and not self._is_kept(value)
            case ast.Attribute(attr="is_cuda"):
                return truth
            case _:
                return truth and self.is_absent and (self.counted(test) or self._is_flag(test))

    def counted(self, node: ast.expr) -> bool:
        """Tell whether an expression is the number of CUDA devices."""
        if isinstance(node, ast.Call):
            name = self._called(node.func)
            return "cuda" in name and name.endswith(".device_count")
        return last_name(node) in self.counts

    def asks(self, test: ast.expr) -> bool:
        """Tell whether a test asks, among other things, whether CUDA is there."""
        return any(isinstance(n, ast.expr) and (self.counted(n) or self._is_flag(n)) for n in ast.walk(test))

    def asks_for_several(self, test: ast.expr) -> bool:
        """Tell whether a test asks for more than one card."""
        for node in ast.walk(test):
            match node:
                case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=int() as number)]):
                    compare = _COMPARISONS.get(type(op))
                    if compare is not None and self.counted(left) and not compare(1, number):
                        return True
                case _:
                    pass
        return False

    def questions(self, test: ast.AST) -> Iterator[ast.expr]:
        """Give the calls and names of which the truth of a test is made."""
        if isinstance(test, _MADE_OF) or _is_conversion(test):
            for part in ast.iter_child_nodes(test):
                yield from self.questions(part)
        elif isinstance(test, ast.Call | ast.Name | ast.Attribute):
            yield test

    def is_question(self, node: ast.expr) -> bool:
        """Tell whether a call asks whether CUDA is there."""
        return isinstance(node, ast.Call) and (self.counted(node) or self._is_flag(node))

    def _is_flag(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            name = self._called(node.func)
            is_method = name.endswith(".is_available") and "cuda" in name.split(".")
            is_known = is_method or name in self.answers or _looks_for_driver(node)
            return is_known or bool(_ASKED.fullmatch(last_name(node.func).lower()))
        return last_name(node) in self.flags

    def _called(self, function: ast.expr) -> str:
        """Give what is called as text, without the file's own names for what is of `torch.cuda`."""
        head, dot, rest = dotted(function).partition(".")
        return self.origins.get(head, head) + dot + rest

    def _is_foreign(self, node: ast.AST) -> bool:
        return kind_of(node) not in {"", "cpu", self.kind}

    def _is_kept(self, node: ast.expr) -> bool:
        return last_name(node) in self.kept

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr, truth: bool) -> bool:
        if self._is_kept(left) or self._is_kept(right):
            return False
        if isinstance(right, ast.Constant) and right.value is None and isinstance(left, ast.Call):
            return self.is_absent and self._is_flag(left) and truth is isinstance(op, _NEGATED)
        wanted = truth is not isinstance(op, _NEGATED)
        if isinstance(op, ast.In | ast.NotIn):
            if isinstance(right, ast.List | ast.Tuple | ast.Set) and right.elts:
                is_ours = self.kind == "cpu" and any(kind_of(item) == "cpu" for item in right.elts)
                return all(map(self._is_foreign, right.elts)) if wanted else is_ours
            return wanted and (self._is_foreign(left) or (self.is_absent and _is_of_cuda(left)))
        if isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
            if any(self._is_foreign(side) or (self.is_absent and _is_of_cuda(side)) for side in (left, right)):
                return wanted
            if any(kind_of(side) == self.kind == "cpu" for side in (left, right)):
                return not wanted
        for count, other, turned in ((left, right, False), (right, left, True)):
            match other, _COMPARISONS.get(type(op)):
                case ast.Constant(value=int() as number), compare if compare and self.is_absent and self.counted(count):
                    return (compare(number, 0) if turned else compare(0, number)) is not truth
                case _:
                    pass
        return False


def _is_conversion(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in {"int", "bool", "min", "max", "any", "all"}


def _looks_for_driver(call: ast.Call) -> bool:
    """Tell whether a call looks for the program that only NVIDIA's driver brings."""
    is_named = any(isinstance(argument, ast.Constant) and argument.value == "nvidia-smi" for argument in call.args)
    return is_named and last_name(call.func) == "which"


def _is_of_cuda(node: ast.expr) -> bool:
    """Tell whether an expression names NCCL or ONNX Runtime's provider, which are for CUDA alone."""
    return last_name(node) == "NCCL" or (isinstance(node, ast.Constant) and node.value in _FOR_CUDA)


def _asked(test: ast.expr) -> str:
    """Name the module of another device that is asked whether it is there, or the system that a test asks for."""
    match test:
        case ast.Call(func=ast.Attribute(value=owner, attr="is_available")):
            return last_name(owner)
        case ast.Compare(
            left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=str() as system)]
        ) if ast.unparse(left) in _SYSTEMS:
            return system
        case _:
            return ""


@dataclass(frozen=True, kw_only=True)
class Bindings:
    """What the names of a file may hold, whatever the machine's device is."""

    values: Mapping[str, Sequence[ast.expr]]
    """Name → all that is assigned to it, or is its default."""
    names: frozenset[str]
    """All names and attributes that the file reads or binds, and ""."""
    flags: frozenset[str]
    """Those of them that say by how they are written that CUDA is there."""
    imported: frozenset[str]
    """Names that `import` binds."""
    origins: Mapping[str, str]
    """Name → what of `torch.cuda` it is: `import torch.cuda as c`, `from torch.cuda import …`, `c = torch.cuda`."""
    returned: Mapping[str, ast.expr]
    """Function → all that it returns, where that is one expression."""


def bindings_of(nodes: Iterable[ast.AST]) -> Bindings:
    """Read all assignments among the nodes of a file."""
    values: dict[str, list[ast.expr]] = {}
    names: set[str] = {""}
    imported: set[str] = set()
    returned: dict[str, ast.expr] = {}
    origins: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Import):
            imported.update(alias.asname or alias.name for alias in node.names)
            origins |= {alias.asname: alias.name for alias in node.names if alias.asname and alias.name == "torch.cuda"}
        elif isinstance(node, ast.ImportFrom) and node.module in {"torch", "torch.cuda"}:
            given = {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            origins |= {name: origin for name, origin in given.items() if "cuda" in origin.split(".")}
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                values.setdefault(last_name(target), []).append(node.value)
                if isinstance(target, ast.Name) and f"{dotted(node.value)}.".startswith("torch.cuda."):
                    origins[target.id] = dotted(node.value)
        elif isinstance(node, ast.FunctionDef):
            found = [inner.value for one in node.body for inner in ast.walk(one) if isinstance(inner, ast.Return)]
            returned |= {node.name: found[0]} if len(found) == 1 and found[0] is not None else {}
        elif isinstance(node, ast.arguments):
            positional = [*node.posonlyargs, *node.args]
            defaults = zip(positional[len(positional) - len(node.defaults) :], node.defaults, strict=True)
            for argument, default in [*defaults, *zip(node.kwonlyargs, node.kw_defaults, strict=True)]:
                values.setdefault(argument.arg, []).extend([] if default is None else [default])
    flags = {name for name in names if _FLAG.fullmatch(name.lower())}
    return Bindings(
        values=values,
        names=frozenset(names),
        flags=frozenset(flags),
        imported=frozenset(imported),
        origins=origins,
        returned=returned,
    )


def guards_of(bindings: Bindings, kind: str) -> Guards:
    """Say which names of a file tell whether CUDA is there, which is taken to be absent."""
    values, names, flags = bindings.values, bindings.names, set(bindings.flags)
    kept = frozenset(name for name in values if not is_device_name(name) and "cuda" in map(kind_of, values[name]))
    first = Guards(kind=kind, is_absent=True, flags=frozenset(flags), kept=kept, origins=bindings.origins)
    counts = {name for name in names & values.keys() if _are_counts(first, values[name])}
    flags |= {name for name in names & values.keys() if _are_flags(first, values[name])}
    flags -= {name for name in flags & values.keys() if not all(_may_be(first, value) for value in values[name])}
    if kind != "cpu":  # where somebody wants a card, the machine's own will do
        flags -= {name for name in flags if _WANTED.fullmatch(name.lower()) and not _asks(first, values.get(name, ()))}
    return Guards(
        kind=kind,
        is_absent=True,
        flags=frozenset(flags - {""}),
        counts=frozenset(counts - {""}),
        names=bindings.imported,
        kept=kept,
        origins=bindings.origins,
        answers=frozenset(
            name for name, value in bindings.returned.items() if first.asks(value) and first.rules_out(value, True)
        ),
        values=values,
    )


def _are_counts(guards: Guards, values: Iterable[ast.expr]) -> bool:
    return any(map(guards.counted, values)) and all(guards.counted(v) or _is_nothing(v) for v in values)


def _asks(guards: Guards, values: Iterable[ast.expr]) -> bool:
    """Tell whether a question for CUDA is among what values are made of."""
    nodes = (node for value in values for node in ast.walk(value))
    return any(isinstance(node, ast.Call) and guards.is_question(node) for node in nodes)


def _are_flags(guards: Guards, values: Iterable[ast.expr]) -> bool:
    said = [value for value in values if not _is_nothing(value)]
    return bool(said) and all(guards.rules_out(value, True) for value in said)


def _may_be(guards: Guards, value: ast.expr) -> bool:
    """Tell whether a flag stays one although this is assigned to it."""
    return _is_nothing(value) or guards.rules_out(value, True)


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def ends(block: list[ast.stmt]) -> bool:
    """Tell whether nothing after a block runs once the block has run."""
    match block[-1] if block else None:
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.Expr(value=ast.Call(func=function)):
            return last_name(function) in _EXITS
        case _:
            return False
