"""What runs of a Python file where CUDA is absent and another device is chosen, judged from its tests; runs nothing."""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

_DEVICES = re.compile(r"(cuda|maia|mps|xpu|npu|hpu|mlu|musa|sdaa|xla|ipu|hip|mtia|ocl|opencl|privateuseone|cpu)(:\d+)?")
_SAYS_CUDA = re.compile(r"(?<![a-z])(cuda|gpu)(?![a-z])")
_IMPORTERS = ("import_module", "__import__")
_DRIVER = re.compile(r"(.*/)?nvidia-smi(\s.*)?|/(dev|proc)/.*nvidia.*")
_QUESTIONS = (".cuda.is_available", ".cuda.device_count")
_WISH = re.compile(r"_*(use|using|with|enable)_?(cuda|gpu)|cuda|(\w+_)?(cuda|gpu)_?enabled")
_QUESTION = re.compile(r"(is|has|use|using|with|enable|detect|check|can)_|avail|enabled")


@dataclass(frozen=True, kw_only=True)
class Around:
    """An expression with the nodes around it, innermost first."""

    node: ast.expr
    parents: tuple[ast.AST, ...]
    is_caught: bool


_OF_ONE = {"mps": "mps", "xpu": "xpu", "torch_directml": "privateuseone"}
"""Modules that ask whether there is a device → its type."""


def name_of(node: ast.AST) -> str:
    """Give a dotted name as text, `?` for what is no name."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def device_in(node: ast.AST) -> str:
    """Give the type of device that an expression says in so many words, or ""."""
    if isinstance(node, ast.Call) and node.args and name_of(node.func).split(".")[-1] == "device":
        return device_in(node.args[0])
    match node:
        case ast.Constant(value=str() as text):
            found = _DEVICES.fullmatch(text)
        case ast.JoinedStr(values=[ast.Constant(value=str() as text), ast.FormattedValue()]):
            found = _DEVICES.fullmatch(f"{text}0")
        case _:
            found = None
    return found[1] if found else ""


class Machine:
    """A machine on which tests have an outcome: true, false, or `None` for "it depends"."""

    def __init__(self, nodes: Iterable[ast.AST], kind: str, *, is_absent: bool) -> None:
        """Read what the file assigns to the names that its tests use, from all its nodes."""
        self.kind = kind
        self.is_absent = is_absent
        self.values: dict[str, list[ast.expr]] = {}
        self._given: dict[str, set[str]] = {}
        self._open: set[str] = set()
        self._answers: dict[str, ast.expr] = {}
        """Function of the file → the one thing that it returns."""
        self.origins: dict[str, str] = {}
        """Name → what it is, for what is imported."""
        self._own = ""
        """A name that is taken to hold the machine's device."""
        self._marked: list[int] = []
        for node in nodes:
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._remember(target, value)
                        if isinstance(value, ast.Attribute) and "cuda" in name_of(value).split("."):
                            self.origins[name_of(target)] = name_of(value)
                        elif isinstance(value, ast.Call) and name_of(value.func).endswith(_IMPORTERS) and value.args:
                            self.origins[name_of(target)] = str(getattr(value.args[0], "value", ""))
                case (
                    ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value)
                ):
                    self._remember(target, value)
                case ast.FunctionDef(name=name, body=body):
                    returned = [inner.value for one in body for inner in ast.walk(one) if isinstance(inner, ast.Return)]
                    if len(returned) == 1 and returned[0] is not None:
                        self._answers[name] = returned[0]
                case ast.Import(names=aliases):
                    for alias in aliases:
                        top = alias.name.split(".")[0]
                        self.origins[alias.asname or top] = alias.name if alias.asname else top
                case ast.ImportFrom(names=aliases, module=module, level=0):
                    self.origins.update((alias.asname or alias.name, f"{module}.{alias.name}") for alias in aliases)
                case ast.arguments():
                    named = [*node.posonlyargs, *node.args][::-1]
                    for argument, default in zip(named, node.defaults[::-1], strict=False):
                        self._remember(ast.Name(id=argument.arg), default)
                    for argument, only in zip(node.kwonlyargs, node.kw_defaults, strict=True):
                        self._remember(ast.Name(id=argument.arg), only)
                case _:
                    pass

    def _remember(self, target: ast.expr, value: ast.expr | None) -> None:
        if value is not None:
            self.values.setdefault(name_of(target).split(".")[-1], []).append(value)

    def origin(self, node: ast.expr) -> str:
        """Give a dotted name as it is without the file's own names for what it imports."""
        first, *rest = name_of(node).split(".")
        return ".".join([self.origins.get(first, first), *rest])

    def outcome(self, test: ast.expr) -> bool | None:
        """Say how a test ends."""
        match test:
            case ast.Constant(value=value):
                return bool(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.outcome(operand)
                return None if inner is None else not inner
            case ast.BoolOp(op=op, values=values):
                decisive = isinstance(op, ast.Or)
                ends = [self.outcome(value) for value in values]
                return decisive if decisive in ends else None if None in ends else not decisive
            case ast.NamedExpr(value=value):
                return self.outcome(value)
            case ast.IfExp(test=choice, body=body, orelse=orelse):
                first = self.outcome(choice)
                taken = {self.outcome(end) for end, which in ((body, False), (orelse, True)) if first is not which}
                return taken.pop() if len(taken) == 1 else None
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._comparison(left, op, right)
            case ast.Call(func=ast.Attribute(value=value, attr="startswith"), args=[prefix]):
                return False if self._is_other(prefix) and not self._is_given(value, {device_in(prefix)}) else None
            case ast.Call(func=function, args=arguments):
                name = name_of(function)
                if name in self._answers and name not in self._open:
                    self._open.add(name)
                    answer = self.outcome(self._answers[name])
                    self._open.discard(name)
                    return answer
                if name.endswith("which") and any(map(names_driver, arguments)):
                    return False if self.is_absent else None
                if (owner := _OF_ONE.get(name.removesuffix(".is_available").split(".")[-1])) and self.kind != "cpu":
                    return owner == self.kind
                is_question = self.origin(function).endswith(_QUESTIONS)
                return False if self.is_absent and (is_question or self.asks(name)) else None
            case ast.Attribute(attr="is_cuda"):
                return False
            case ast.Name() | ast.Attribute():
                return self._named(name_of(test).split(".")[-1])
            case _:
                return None

    def outcome_for(self, test: ast.expr, name: str) -> bool | None:
        """Say how a test ends where a name holds the machine's device."""
        self._own = name
        answer = self.outcome(test)
        self._own = ""
        return answer

    def said(self, node: ast.expr) -> str:
        """Give the type of device that an expression says, or all that the file gives to the name that it is."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return device_in(node)
        devices = {device_in(value) for value in self.values.get(name_of(node).split(".")[-1], ())}
        return devices.pop() if len(devices) == 1 else ""

    def may_say(self, node: ast.expr | None, texts: Collection[str], known: frozenset[str] = frozenset()) -> bool:
        """Tell whether an expression may be one of some texts, as far as the file says."""
        match node:
            case ast.Constant(value=value):
                return value in texts
            case ast.IfExp(test=test, body=body, orelse=orelse):
                outcome = self.outcome(test)
                left = [body] * (outcome is not False) + [orelse] * (outcome is not True)
                return any(self.may_say(one, texts, known) for one in left)
            case ast.BoolOp(values=values):
                return any(self.may_say(one, texts, known) for one in values)
            case ast.Name(id=name) if name not in known:
                return any(self.may_say(one, texts, known | {name}) for one in self.values.get(name, ()))
            case _:
                return False

    def may_be_own(self, node: ast.expr) -> bool:
        """Tell whether an expression is the machine's device, or a name that may hold it."""
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            return False
        *owners, name = name_of(node).lower().split(".")
        is_torch = "cuda" in owners or (owners, name) == (["torch"], "device")
        is_named = isinstance(node, ast.Name | ast.Attribute) and "device" in name and not is_torch
        return device_in(node) == self.kind or (is_named and self._holds_own(node, set()))

    def _holds_own(self, node: ast.AST, known: set[str]) -> bool:
        """Tell whether a value may be the machine's device, as that of a name of which the file says nothing may."""
        match node:
            case ast.Name() | ast.Attribute():
                name = name_of(node).split(".")[-1]
                values = self.values.get(name, [])
                is_open = name in known
                known.add(name)
                return not is_open and (not values or any(self._holds_own(value, known) for value in values))
            case ast.Constant():
                return device_in(node) == self.kind
            case ast.Call(func=function, args=[first, *_]) if name_of(function).split(".")[-1] == "device":
                return self._holds_own(first, known)
            case ast.Call(func=ast.Name(id=name)) if name in self._answers:
                return self._holds_own(self._answers[name], known)
            case ast.Subscript(value=value):
                return self._holds_own(value, known)
            case ast.IfExp(body=body, orelse=orelse):
                return self._holds_own(body, known) or self._holds_own(orelse, known)
            case ast.BoolOp() | ast.BinOp() | ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
                return any(self._holds_own(child, known) for child in ast.iter_child_nodes(node))
            case ast.Call():
                return True
            case _:
                return False

    def is_cuda_by_name(self, node: ast.expr) -> bool:
        """Tell whether an expression is a name to which the file gives nothing but a CUDA device."""
        is_read = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
        return is_read and self.said(node) == "cuda"

    def asks(self, name: str) -> bool:
        """Tell whether a name says that it asks for CUDA."""
        last = name.rsplit(".", maxsplit=1)[-1].lower()
        return bool(_SAYS_CUDA.search(last.replace("_", " ")) and _QUESTION.search(last))

    def _named(self, name: str) -> bool | None:
        if not self.is_absent or name in self._open:
            return None
        self._open.add(name)
        ends = {self.outcome(value) for value in self.values.get(name, ())}
        self._open.discard(name)
        if self.kind != "cpu" and _WISH.fullmatch(name.lower()) and not self._is_answered(name):
            return None  # somebody wants a card, and the machine's own will do
        if ends:
            is_known = ends == {False} and any(self._is_telling(value) for value in self.values[name])
            is_known |= ends == {False} and (name.lower() == "cuda" or self.asks(name))
            return False if is_known else None
        return False if name.lower() == "cuda" or self.asks(name) else None

    def _is_answered(self, name: str) -> bool:
        """Tell whether a question for CUDA is among what the file makes a name of."""
        nodes = (node for value in self.values.get(name, ()) for node in ast.walk(value))
        return any(isinstance(node, ast.Call) and self.outcome(node) is False for node in nodes)

    def _is_telling(self, value: ast.expr) -> bool:
        return not isinstance(value, ast.Constant)

    def count(self, node: ast.expr) -> bool:
        """Tell whether an expression counts CUDA devices."""
        if isinstance(node, ast.Call):
            return self.origin(node.func).endswith(".cuda.device_count")
        values = self.values.get(name_of(node).split(".")[-1], [])
        counts = [isinstance(value, ast.Call) and self.count(value) for value in values]
        return any(counts) and all(
            c or (isinstance(v, ast.Constant) and not v.value) for c, v in zip(counts, values, strict=True)
        )

    def _is_other(self, node: ast.AST) -> bool:
        return device_in(node) not in {"", "cpu", self.kind}

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool | None:
        if ast.unparse(left) in {"platform.system()", "sys.platform"} and self.kind != "cpu":
            is_of_it = self.kind == "mps" if str(getattr(right, "value", "")).lower() == "darwin" else None
            is_there = {ast.Eq: is_of_it, ast.NotEq: None if is_of_it is None else not is_of_it}
            return is_there.get(type(op))
        if isinstance(right, ast.Constant) and right.value is None and self.outcome(left) is False:
            return {ast.Is: True, ast.IsNot: False}.get(type(op))
        if self._own and device_in(right) and name_of(left) == self._own:
            is_equal = device_in(right) == self.kind
            return {ast.Eq: is_equal, ast.NotEq: not is_equal}.get(type(op))
        if self.is_absent and self.count(left) and isinstance(right, ast.Constant) and type(right.value) is int:
            return _compared(0, op, right.value)
        if self.is_absent and self.count(right) and isinstance(left, ast.Constant) and type(left.value) is int:
            return _compared(left.value, op, 0)
        said = [*right.elts] if isinstance(right, ast.List | ast.Tuple | ast.Set) else [left, right]
        if isinstance(op, ast.In | ast.NotIn) and said == [left, right]:
            said = [left]
        is_nccl = any(name_of(s).endswith(".NCCL") or (isinstance(s, ast.Constant) and s.value == "nccl") for s in said)
        devices = [device_in(item) for item in said]
        if self._is_given(left, set(devices)) or self._is_given(right, set(devices)):
            return None
        equal: bool | None = None
        if self.kind == "cpu" and "cpu" in devices:
            equal = True
        elif (
            any(map(self._is_other, said)) and (said in ([left, right], [left]) or all(map(self._is_other, said)))
        ) or (is_nccl and self.is_absent):
            equal = False
        is_same = isinstance(op, ast.Eq | ast.Is | ast.In)
        if equal is None or not (is_same or isinstance(op, ast.NotEq | ast.IsNot | ast.NotIn)):
            return None
        return equal is is_same

    # --- what is reached ----------------------------------------------------------------------------------------------

    def reached(self, body: list[ast.stmt], marked: frozenset[int]) -> tuple[Around, ...]:
        """Give every expression that may run and touches a marked line; a block is left where it ends.

        Where the file itself gives a name another device than the machine's, that it has this device is not ruled out.

        Args:
            body: the file's statements.
            marked: 1-based lines.
        """
        self._marked = sorted(marked)
        texts = {id(v): (n, device_in(v)) for n, values in self.values.items() for v in values if self._is_other(v)}
        self._given = {}
        while True:
            places = tuple(self._block(body, (), is_caught=False))
            given = [texts.pop(id(place.node)) for place in places if id(place.node) in texts]
            if not given:
                return places
            for name, device in given:
                self._given.setdefault(name, set()).add(device)

    def _is_given(self, node: ast.expr, devices: set[str]) -> bool:
        return bool(self._given.get(name_of(node).split(".")[-1], set()) & devices)

    def _is_marked(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.stmt | ast.expr):
            return True
        first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
        at = bisect.bisect_left(self._marked, first)
        return at < len(self._marked) and self._marked[at] <= (node.end_lineno or node.lineno)

    def _block(self, body: list[ast.stmt], parents: tuple[ast.AST, ...], *, is_caught: bool) -> Iterator[Around]:
        for statement in body:
            if self._is_marked(statement):
                yield from self._node(statement, parents, is_caught=is_caught)
            if self._is_end(statement):
                return

    def _is_end(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
                return True
            case ast.Expr(value=ast.Call(func=function)):
                return name_of(function).split(".")[-1] in {"exit", "quit", "_exit", "abort"}
            case ast.Assert(test=test):
                return self.outcome(test) is False
            case ast.If(test=test, body=body, orelse=orelse):
                outcome = self.outcome(test)
                ends = [bool(block) and any(map(self._is_end, block)) for block in (body, orelse)]
                return ends[0] if outcome is True else ends[1] if outcome is False else all(ends)
            case _:
                return False

    def _node(self, node: ast.AST, parents: tuple[ast.AST, ...], *, is_caught: bool) -> Iterator[Around]:
        if isinstance(node, ast.expr):
            yield Around(node=node, parents=parents, is_caught=is_caught)
        skipped = self._skipped(node)
        inside = (node, *parents)
        for field, value in ast.iter_fields(node):
            if field in skipped:
                continue
            is_tried = isinstance(node, ast.Try) and field == "body" and any(map(_ends_all, node.handlers))
            caught = (is_caught or is_tried) and not isinstance(
                node, ast.FunctionDef | ast.Lambda | ast.AsyncFunctionDef
            )
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield from self._block(value, inside, is_caught=caught)
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    if self._is_marked(child):
                        yield from self._node(child, inside, is_caught=caught)
                    if self._is_decided(node, child):
                        break

    def _is_decided(self, node: ast.AST, operand: ast.AST) -> bool:
        """Tell whether nothing behind an operand of `and` or `or` runs."""
        if not isinstance(node, ast.BoolOp) or not isinstance(operand, ast.expr):
            return False
        return self.outcome(operand) is isinstance(node.op, ast.Or)

    def _skipped(self, node: ast.AST) -> set[str]:
        """Name the fields of a node that never run."""
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                return {{True: "orelse", False: "body", None: ""}[self.outcome(test)]} - {
                    "orelse" if isinstance(node, ast.While) else ""
                }
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[count])) if self.is_absent and self.count(
                count
            ):
                return {"body"}
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                tests = [test for generator in node.generators for test in generator.ifs]
                sources = [generator.iter for generator in node.generators]
                is_empty = any(self._is_empty(source) for source in sources)
                return {"elt", "key", "value"} if is_empty or False in map(self.outcome, tests) else set()
            case _:
                return set()

    def _is_empty(self, source: ast.expr) -> bool:
        is_range = isinstance(source, ast.Call) and name_of(source.func) == "range" and len(source.args) == 1
        return self.is_absent and is_range and isinstance(source, ast.Call) and self.count(source.args[0])


def names_driver(argument: ast.expr) -> bool:
    """Tell whether an argument names the program or a file that only NVIDIA's driver brings."""
    parts = argument.elts if isinstance(argument, ast.List | ast.Tuple) else [argument]
    return any(isinstance(one, ast.Constant) and bool(_DRIVER.fullmatch(str(one.value))) for one in parts)


def _compared(left: int, op: ast.cmpop, right: int) -> bool | None:
    match op:
        case ast.Eq():
            return left == right
        case ast.NotEq():
            return left != right
        case ast.Lt():
            return left < right
        case ast.LtE():
            return left <= right
        case ast.Gt():
            return left > right
        case ast.GtE():
            return left >= right
        case _:
            return None


def _ends_all(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type] if handler.type else []
    names = {name_of(kind).split(".")[-1] for kind in kinds}
    is_wide = not kinds or bool(names & {"Exception", "BaseException"}) or names >= {"AssertionError", "RuntimeError"}
    return is_wide and not any(isinstance(inner, ast.Raise) for inner in ast.walk(handler))
