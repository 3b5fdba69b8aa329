"""Where a device still depends on CUDA's presence, through names, functions, parameters and options; runs nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from patchlock.patches.postconditions._without_cuda import Around, Machine, device_in, name_of

_CARRIERS = re.compile(
    "int|bool|str|len|min|max|any|all|range|list|tuple|sorted|get|getenv|lower|upper|strip|split|format"
)
"""Functions whose answer is made of what they are given."""
_NAMES_A_CARD = ("device", "gpu", "cuda")
_QUESTION = re.compile(
    r"cuda\W*[._](\w*[._])?(is_(available|built|initialized)|device_count|current_device|getDeviceCount)$"
    r"|^(pynvml|py3nvml|nvidia_smi|GPUtil)\."
)
_DRIVER = re.compile(r"(.*/)?nvidia-smi(\s.*)?|/(dev|proc)/.*nvidia.*")
_SWITCH = re.compile(r"((use|on|with|enable)_?)?(cuda|gpu)")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Made = (
    *(ast.IfExp, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.NamedExpr, ast.JoinedStr),
    *(ast.FormattedValue, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.GeneratorExp, ast.SetComp),
    *(ast.comprehension, ast.Starred),
)


class Answers:
    """What of a file is made of the answer to whether CUDA is there."""

    def __init__(self, tree: ast.Module, machine: Machine) -> None:
        """Follow the answers through the file, until nothing more is made of them."""
        self._machine = machine
        self._owner = {"privateuseone": "directml"}.get(machine.kind, machine.kind)
        self._scopes: dict[int, tuple[_Function, ...]] = {}
        self._functions: dict[str, _Function] = {}
        self._fields: set[int] = set()
        """Statements of classes."""
        self._names: set[tuple[int, str]] = set()
        """Function, 0 for the file itself, and a name in it."""
        self._attributes: set[str] = set()
        self._told: set[str] = set()
        """Functions that return an answer."""
        self._nodes: list[ast.AST] = []
        self._clean: dict[int, bool] = {}
        if not any(self._is_question(node) for node in ast.walk(tree)):
            return
        self._read(tree, ())
        before = -1
        while before != (now := len(self._names) + len(self._attributes) + len(self._told)):
            before = now
            for node in self._nodes:
                self._follow(node)

    @property
    def words(self) -> set[str]:
        """The names that may hold an answer."""
        return self._attributes | self._told | {name for _, name in self._names}

    def depends(self, node: ast.AST, at: ast.AST) -> bool:
        """Tell whether an expression is made of an answer.

        Args:
            node: the expression.
            at: it, or a node around it, of which the function around is known.
        """
        match node:
            case _ if self._is_question(node):
                return True
            case ast.Name(id=name):
                scopes = [0, *map(id, self._scopes.get(id(at), ()))]
                return any((scope, name) in self._names for scope in scopes)
            case ast.Attribute(value=value, attr=name):
                return name in self._attributes | self._told or self.depends(value, at)
            case ast.Lambda(body=body):
                return self.depends(body, at)
            case ast.Call(func=function, args=arguments, keywords=keywords):
                called = name_of(function).split(".")[-1]
                if called in self._told or (isinstance(function, ast.Name) and self.depends(function, at)):
                    return True
                if not _CARRIERS.fullmatch(called):
                    return False
                owner = [function.value] if isinstance(function, ast.Attribute) else []
                given = [*owner, *arguments, *(keyword.value for keyword in keywords)]
                return any(self.depends(one, at) for one in given)
            case ast.expr() | ast.comprehension() if isinstance(node, _Made):
                return not self._names_own(node) and any(
                    self.depends(child, at) for child in ast.iter_child_nodes(node)
                )
            case _:
                return False

    def lost(self, places: Iterable[Around], present: Machine) -> Iterator[int]:
        """Give the lines on which the answer that CUDA is absent takes the CPU, or no card at all."""
        if not self._nodes:
            return
        for place in places:
            is_choice = any(self._is_cpu_for(place, *choice) for choice in self._choices(place.node, present))
            if is_choice or self._is_switch(place):
                yield place.node.lineno
        for block in (getattr(node, name, None) for node in self._nodes for name in ("body", "orelse")):
            if isinstance(block, list):
                yield from self._in_block(block)

    # --- what depends -------------------------------------------------------------------------------------------------

    def _is_question(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return isinstance(node, ast.Constant) and node.value == "CUDA_VISIBLE_DEVICES"
        called = self._machine.origin(node.func)
        if called.startswith("?") and isinstance(node.func, ast.Attribute):  # getattr(torch, "cuda").is_available()
            called = f"{ast.unparse(node.func.value)}.{node.func.attr}"
        return bool(_QUESTION.search(called)) or any(map(_names_driver, node.args))

    def _names_own(self, node: ast.AST) -> bool:
        """Tell whether an expression also names, or asks for, the machine's device."""
        if id(node) not in self._clean:
            self._clean[id(node)] = any(
                device_in(one) == self._machine.kind
                or (isinstance(one, ast.Attribute) and one.attr in {self._owner, "accelerator"})
                or (isinstance(one, ast.Name) and self._owner in one.id.lower())
                for one in ast.walk(node)
            )
        return self._clean[id(node)]

    def _read(self, node: ast.AST, scopes: tuple[_Function, ...]) -> None:
        self._scopes[id(node)] = scopes
        self._nodes.append(node)
        if isinstance(node, _Function):
            self._functions[node.name] = node
            scopes = (*scopes, node)
        elif isinstance(node, ast.ClassDef):
            self._fields |= set(map(id, node.body))
            for one in node.body:
                if isinstance(one, _Function) and one.name == "__init__":
                    self._functions[node.name] = one
        for child in ast.iter_child_nodes(node):
            self._read(child, scopes)

    def _follow(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value) if self.depends(value, node):
                self._hold(targets, node)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
            ) if self.depends(value, node):
                self._hold([target], node)
            case ast.For(target=target, iter=source) | ast.comprehension(target=target, iter=source):
                if self.depends(source, node):
                    self._hold([target], node)
            case ast.Return(value=ast.expr() as value) if self.depends(value, node):
                self._tell(node)
            case ast.If(test=test) if self.depends(test, node) and not self._names_own(node):
                for inner in (one for block in (node.body, node.orelse) for one in block):
                    said = inner.value if isinstance(inner, ast.Assign | ast.Return) else None
                    if not isinstance(said, ast.Constant) or device_in(said):  # a device is a choice of its own
                        continue
                    if isinstance(inner, ast.Assign):
                        self._hold(inner.targets, inner)
                    else:
                        self._tell(inner)
            case ast.Call():
                self._pass(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for name, value in _defaults(node.args):
                    if self.depends(value, node):
                        self._names.add((id(node), name))
            case _:
                pass

    def _tell(self, node: ast.AST) -> None:
        if scopes := self._scopes[id(node)]:
            self._told.add(scopes[-1].name)

    def _hold(self, targets: Sequence[ast.expr], at: ast.AST) -> None:
        for target in targets:
            if isinstance(target, ast.Tuple | ast.List):
                self._hold(target.elts, at)
            elif isinstance(target, ast.Attribute):
                self._attributes.add(target.attr)
            elif isinstance(target, ast.Name):
                scopes = self._scopes[id(at)]
                self._names.add((id(scopes[-1]) if scopes else 0, target.id))
                self._attributes |= {target.id} if id(at) in self._fields else set()

    def _pass(self, call: ast.Call) -> None:
        """Follow an answer into the parameters of a function of the file, or an option of its command line."""
        called = self._functions.get(name_of(call.func).split(".")[-1])
        for keyword in call.keywords:
            if not keyword.arg or not self.depends(keyword.value, call):
                continue
            if called is not None:
                self._names.add((id(called), keyword.arg))
            words = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if keyword.arg == "default" and words:
                option = words[-1].lstrip("-").replace("-", "_")
                self._attributes.add(option)
                self._names |= {(id(one), option) for one in self._functions.values() if option in _parameters(one)}
        if called is not None:
            named = [name for name in _parameters(called) if name not in {"self", "cls"}]
            for name, value in zip(named, call.args, strict=False):
                if self.depends(value, call):
                    self._names.add((id(called), name))

    # --- what is lost -------------------------------------------------------------------------------------------------

    def _choices(self, node: ast.AST, present: Machine) -> Iterator[tuple[list[ast.expr], list[ast.expr], bool]]:
        """Give what may be taken without CUDA, and all else, of an expression that an answer chooses for."""
        match node:
            case ast.IfExp(test=test, body=body, orelse=orelse) if self.depends(test, node):
                outcome = self._machine.outcome(test)
                if outcome is None:
                    yield [body, orelse], [body, orelse], False
                elif present.outcome(test) is None:
                    yield ([body], [orelse], True) if outcome else ([orelse], [body], True)
            case ast.BoolOp(op=ast.Or(), values=values) if any(self.depends(value, node) for value in values[:-1]):
                yield values, values, True
            case ast.Subscript(value=table, slice=key, ctx=ast.Load()) if self.depends(key, node):
                yield self._items(table), self._items(table), False
            case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, *others]) if self.depends(key, node):
                yield [*self._items(table), *others], self._items(table), False
            case _:
                pass

    def _is_cpu_for(self, place: Around, without: list[ast.expr], others: list[ast.expr], may_be_own: bool) -> bool:
        """Tell whether a choice may end at the CPU because CUDA is absent."""
        if _is_only_told(place) or _is_place_to_load(place):
            return False
        kinds = {kind for one in without for kind in self._kinds(one)}
        if may_be_own and self._machine.kind in kinds:
            return False
        if "cpu" in kinds:
            return True
        is_card = any(word in _taker(place).lower() for word in _NAMES_A_CARD)
        return is_card and any(map(_is_no_card, without)) and not all(map(_is_no_card, others))

    def _is_switch(self, place: Around) -> bool:
        """Tell whether an answer is what a function of another file is told about a card: `Reader(gpu=…)`."""
        match place.parents:
            case [ast.keyword(arg=str() as name), ast.Call(func=function), *_] if _SWITCH.fullmatch(name):
                called = self._machine.origin(function)
                is_own = called.split(".")[-1] in self._functions or ".cuda." in called
                return not is_own and not self._kinds(place.node) and self.depends(place.node, place.node)
            case _:
                return False

    def _items(self, table: ast.expr) -> list[ast.expr]:
        tables = self._machine.values.get(name_of(table).split(".")[-1], []) if name_of(table) != "?" else [table]
        found: list[ast.expr] = []
        for one in tables:
            if isinstance(one, ast.Dict):
                found += one.values
            elif isinstance(one, ast.List | ast.Tuple):
                found += one.elts
            elif isinstance(one, ast.Call) and name_of(one.func) == "dict":
                found += [keyword.value for keyword in one.keywords]
        return found

    def _kinds(self, node: ast.expr) -> set[str]:
        """Give the types of device that an expression may be."""
        match node:
            case ast.IfExp(body=body, orelse=orelse):
                return self._kinds(body) | self._kinds(orelse)
            case ast.BoolOp(values=values) | ast.List(elts=values) | ast.Tuple(elts=values):
                return set().union(*map(self._kinds, values))
            case ast.Call(func=function, args=[first]) if name_of(function).split(".")[-1] == "device":
                return self._kinds(first)
            case _:
                return {self._machine.said(node)} - {""}

    def _in_block(self, block: list[ast.stmt]) -> Iterator[int]:
        """Give the lines of what takes the CPU beside a GPU, by an answer of which it is not known what it is."""
        for index, node in enumerate(block):
            if not isinstance(node, ast.If) or not self.depends(node.test, node):
                continue
            if self._machine.outcome(node.test) is not None:
                continue
            rest = block[index + 1 :] if isinstance(node.body[-1], ast.Return) else []
            others = [*(node.orelse or [*block[:index], *rest])]
            for taken, left in ((node.body, others), (others, node.body)):
                devices = {"cuda", self._machine.kind}
                cards = {target for one in taken for target, kinds in self._gifts(one) if kinds & devices}
                for target, kinds, line in ((*gift, one.lineno) for one in left for gift in self._gifts(one)):
                    if "cpu" in kinds and target in cards:
                        yield line

    def _gifts(self, statement: ast.stmt) -> Iterator[tuple[str, set[str]]]:
        match statement:
            case ast.Assign(targets=[target], value=value):
                yield ast.unparse(target), self._kinds(value)
            case ast.Return(value=ast.expr() as value):
                yield "return", self._kinds(value)
            case _:
                pass


def _names_driver(argument: ast.expr) -> bool:
    """Tell whether an argument names the program or a file that only NVIDIA's driver brings."""
    parts = argument.elts if isinstance(argument, ast.List | ast.Tuple) else [argument]
    return any(isinstance(one, ast.Constant) and bool(_DRIVER.fullmatch(str(one.value))) for one in parts)


def _parameters(function: _Function) -> list[str]:
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    named = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(named[len(named) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    yield from ((argument.arg, value) for argument, value in pairs if value is not None)


def _is_no_card(node: ast.expr) -> bool:
    """Tell whether an expression is -1, which says "no card"."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)


def _taker(place: Around) -> str:
    """Name what takes an expression: a parameter, an option, or a name."""
    match place.parents:
        case [ast.keyword(arg="default"), ast.Call(args=[*_, ast.Constant(value=str() as option)]), *_]:
            return option
        case [ast.keyword(arg=str() as name), *_]:
            return name
        case [ast.Assign(targets=[target]) | ast.AnnAssign(target=target), *_]:
            return name_of(target)
        case _:
            return ""


def _is_place_to_load(place: Around) -> bool:
    """Tell whether it only says where a file is read to: what is read is moved later."""
    return _taker(place).split(".")[-1] == "map_location"


def _is_only_told(place: Around) -> bool:
    return isinstance(place.parents[0], ast.Compare | ast.FormattedValue)
