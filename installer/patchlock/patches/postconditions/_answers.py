"""Where a device still depends on CUDA's presence, through names, functions, parameters and options; runs nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from patchlock.patches.postconditions._without_cuda import Around, Machine, device_in, name_of, names_driver

_CARRIERS = re.compile(
    "int|bool|str|len|min|max|any|all|range|list|tuple|sorted|get|getenv|lower|upper|strip|split|format"
)
"""Functions whose answer is made of what they are given."""
_NAMES_A_CARD = ("device", "gpu", "cuda")
_QUESTION = re.compile(
    r"cuda\W*[._](\w*[._])?(is_(available|built|initialized)|device_count|current_device|getDeviceCount)$"
    r"|^(pynvml|py3nvml|nvidia_smi|GPUtil)\."
)
_SWITCH = re.compile(r"((use|on|with|enable)_?)?(cuda|gpu)")
_WALKERS = frozenset({"next", "filter", "iter", "enumerate", "sorted", "reversed", "max", "min", "zip", "map"})
_WISH = re.compile("(use|using|with|enable)_|cuda$")
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
        self._owner = owner_of(machine.kind)
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
        self._read(tree)
        self._walked = {name_of(one).split(".")[-1] for node in self._nodes for one in _sources(node)} - {"?"}
        if not any(map(self._is_question, self._nodes)):
            return
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

    def lost(self, places: Iterable[Around], fails: Callable[[ast.expr], bool]) -> Iterator[int]:
        """Give the lines on which the answer that CUDA is absent takes the CPU, or no card at all.

        Args:
            places: all expressions that run without CUDA.
            fails: tells of a call whether it raises without CUDA.
        """
        for place in places:
            is_choice = any(self._is_cpu_for(place, *choice) for choice in self._choices(place))
            if is_choice or self._is_switch(place) or self._is_walked(place):
                yield place.node.lineno
        choices = (node for node in self._nodes if isinstance(node, ast.If) and self._machine.outcome(node.test))
        idle = {id(inner) for node in choices for one in node.orelse for inner in ast.walk(one)}
        for node in (node for node in self._nodes if id(node) not in idle):
            yield from self._in_loop(node)
            for block in (getattr(node, name, None) for name in ("body", "orelse")):
                if isinstance(block, list) and not (block and id(block[0]) in idle):
                    yield from self._in_block(block, fails)

    # --- what depends -------------------------------------------------------------------------------------------------

    def _is_question(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return isinstance(node, ast.Constant) and node.value == "CUDA_VISIBLE_DEVICES"
        called = self._machine.origin(node.func)
        if called.startswith("?") and isinstance(node.func, ast.Attribute):  # getattr(torch, "cuda").is_available()
            called = f"{ast.unparse(node.func.value)}.{node.func.attr}"
        last = called.split(".")[-1]  # has_cuda(), of another file
        is_of_another = last not in self._functions and self._machine.asks(last) and not _WISH.match(last.lower())
        return bool(_QUESTION.search(called)) or is_of_another or any(map(names_driver, node.args))

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

    def _read(self, tree: ast.Module) -> None:
        pending: list[tuple[ast.AST, tuple[_Function, ...]]] = [(tree, ())]
        while pending:
            node, scopes = pending.pop()
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
            pending += [(child, scopes) for child in reversed([*ast.iter_child_nodes(node)])]

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

    def _choices(self, place: Around) -> Iterator[tuple[list[ast.expr], list[ast.expr], bool]]:
        """Give what may be taken without CUDA, all else, and whether the machine's device among it is enough."""
        match node := place.node:
            case ast.IfExp(test=test, body=body, orelse=orelse) if self.depends(test, node):
                outcome = self._machine.outcome(test)
                both = [body, orelse]
                yield (both, both, False) if outcome is None else ([both[not outcome]], [both[outcome]], True)
            case ast.BoolOp(op=ast.Or(), values=values) if any(self.depends(value, node) for value in values[:-1]):
                yield values, values, True
            case ast.Subscript(value=table, slice=key, ctx=ast.Load()) if self.depends(key, node):
                yield self._items(table), self._items(table), False
            case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, *others]) if self.depends(key, node):
                yield [*self._items(table), *others], self._items(table), False
            case ast.Call(args=items) | ast.List(elts=items) | ast.Tuple(elts=items):
                pairs = [item for item in items if isinstance(item, ast.Tuple | ast.List) and self._kinds(item)]
                if any(self.depends(pair, node) for pair in pairs):  # max(("cpu", 0), ("cuda", has_cuda()))
                    yield [*pairs], [*pairs], False
            case _:
                pass

    def _is_cpu_for(self, place: Around, without: list[ast.expr], others: list[ast.expr], may_be_own: bool) -> bool:
        """Tell whether a choice may end at the CPU because CUDA is absent."""
        if isinstance(place.parents[0], ast.Compare | ast.FormattedValue) or self._is_place_to_load(place):
            return False
        kinds = {kind for one in without for kind in self._kinds(one)}
        if may_be_own and self._machine.kind in kinds:
            return False
        if "cpu" in kinds:
            return True
        is_card = any(word in _taker(place).lower() for word in _NAMES_A_CARD)
        return is_card and any(map(_is_no_card, without)) and not all(map(_is_no_card, others))

    def _is_place_to_load(self, place: Around) -> bool:
        """Tell whether it only says where a file is read to, and what is read does not compute there and then."""
        if _taker(place).split(".")[-1] != "map_location":
            return False
        targets = next((node.targets for node in place.parents if isinstance(node, ast.Assign)), [])
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        uses = [
            "call" if isinstance(node, ast.Call) and node.func is child else getattr(node, "attr", "to")
            for node in self._nodes
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.Name) and child.id in names and isinstance(child.ctx, ast.Load)
        ]
        return "call" not in uses or bool({"to", "cuda"} & {*uses})

    def _is_walked(self, place: Around) -> bool:
        """Tell whether one of several devices is picked, of which none is the machine's."""
        kinds = [*map(device_in, getattr(place.node, "elts", []))]
        if "" in kinds or self._machine.kind in kinds or not {"cuda", "cpu"} <= {*kinds}:
            return False
        match place.parents[0]:
            case ast.Assign(targets=targets):
                return any(name_of(target).split(".")[-1] in self._walked for target in targets)
            case parent:
                return any(source is place.node for source in _sources(parent))

    def _in_loop(self, loop: ast.AST) -> Iterator[int]:
        """Give the tests of a loop over devices that pass over the machine's own because CUDA is absent."""
        for target, source in _loops(loop):
            named = self._machine.values.get(name_of(source).split(".")[-1], [])
            if not any(self._machine.kind in map(device_in, getattr(one, "elts", [])) for one in (source, *named)):
                continue
            for test in (test for node in ast.walk(loop) for test in _tests(node)):
                if self._machine.outcome_for(test, name_of(target)) is False and self.depends(test, loop):
                    yield test.lineno

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

    def _in_block(self, block: list[ast.stmt], fails: Callable[[ast.expr], bool]) -> Iterator[int]:
        """Give the lines that take the CPU for what a GPU is taken for where CUDA is, or where no call has failed."""
        for index, node in enumerate(block):
            before = block[:index]
            match node:
                case ast.Try(body=body, handlers=handlers, orelse=orelse):
                    calls = [inner for one in body for inner in ast.walk(one) if isinstance(inner, ast.expr)]
                    left = [one for handler in handlers for one in handler.body] if any(map(fails, calls)) else []
                    yield from self._twins([*before, *body, *orelse], left)
                case ast.If(test=test, body=body) if self.depends(test, node):
                    rest = block[index + 1 :] if isinstance(body[-1], ast.Return) else []
                    others = node.orelse
                    while len(others) == 1 and isinstance(others[0], ast.If):
                        rest += [one for one in others[0].body if self._machine.kind in map(device_in, ast.walk(one))]
                        others = others[0].orelse
                    if any(device_in(inner) == self._machine.kind for one in rest for inner in ast.walk(one)):
                        continue
                    outcome, around = self._machine.outcome(test), [*before, *rest]
                    if outcome is not True:
                        yield from self._twins(body, others or around)
                    if outcome is not False:
                        yield from self._twins([*around, *others], body)

    def _twins(self, taken: Iterable[ast.stmt], left: Iterable[ast.stmt]) -> Iterator[int]:
        """Give the lines of the statements that take the CPU for what others take a GPU for."""
        cards = {target for target, kinds, _ in self._gifts(taken) if kinds & {"cuda", self._machine.kind}}
        last = {target: (kinds, line) for target, kinds, line in self._gifts(left)}
        yield from (
            line
            for target, (kinds, line) in last.items()
            if target in cards and "cpu" in kinds and self._machine.kind not in kinds
        )

    def _gifts(self, statements: Iterable[ast.stmt]) -> Iterator[tuple[str, set[str], int]]:
        """Give what statements give a device to: a name as code, or the caller; the devices, and the line."""
        for statement in statements:
            value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return) else None
            if value is not None and (kinds := self._kinds(value)):
                targets = (
                    statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
                )
                yield ", ".join(ast.unparse(one) if one else "return" for one in targets), kinds, statement.lineno


def unmatched(
    machine: Machine,
    reached: Iterable[Around],
    with_cuda: Sequence[Around],
    lost: Collection[int],
    takes: Callable[[Around], bool],
) -> Iterator[int]:
    """Give the lines that take a GPU only where CUDA is, in functions that never name the machine's device.

    Not in a file that asks itself whether the machine's device is there: it chooses among devices in its own way. An
    expression that takes CUDA or else no device is one of these lines wherever it stands.

    Args:
        machine: where CUDA is absent.
        reached: all expressions that run there.
        with_cuda: those that run where CUDA may be there.
        lost: lines that are named already; nothing more is said of their functions.
        takes: tells whether an expression takes CUDA.
    """
    asked = f"{owner_of(machine.kind)}.is_available"
    is_asked = any(isinstance(one.node, ast.Call) and asked in name_of(one.node.func) for one in reached)
    alive = {id(place.node) for place in reached}
    reaching = {_scope(place) for place in reached if machine.may_be_own(place.node)}
    reaching |= {_scope(place) for place in with_cuda if place.node.lineno in lost}
    only = [place for place in with_cuda if id(place.node) not in alive]
    reaching |= {_scope(place) for place in only if device_in(place.node) == machine.kind and _is_given(machine, place)}
    for place in filter(takes, only):
        is_lost = not is_asked and _scope(place) not in reaching
        if (is_lost or _is_only_choice(machine, place)) and not _is_of_cuda(place):
            yield place.node.lineno


def owner_of(kind: str) -> str:
    """Name the module that a type of device is of: `torch.xpu`, `torch_directml`."""
    return {"privateuseone": "directml"}.get(kind, kind)


def _scope(place: Around) -> ast.AST | None:
    return next((node for node in place.parents if isinstance(node, _Function | ast.Lambda)), None)


def _is_only_choice(machine: Machine, place: Around) -> bool:
    """Tell whether an expression takes CUDA where it is, and what may not be the machine's device where it is not."""
    child: ast.AST = place.node
    for node in place.parents:
        if isinstance(node, ast.IfExp) and child is node.body:
            inner = (one for one in ast.walk(node.orelse) if isinstance(one, ast.expr))
            return machine.outcome(node.test) is False and not any(map(machine.may_be_own, inner))
        child = node
    return False


def _is_given(machine: Machine, place: Around) -> bool:
    """Tell whether a place is behind a flag that a caller gives, whom the file does not name."""
    test = next((node.test for node in place.parents if isinstance(node, ast.If | ast.IfExp)), None)
    return isinstance(test, ast.Name) and test.id not in machine.values


def _is_of_cuda(place: Around) -> bool:
    """Tell whether an expression is an argument of `torch.cuda.…`, or is compared: it decides no device."""
    around = (node for node in place.parents if isinstance(node, ast.Call))
    return isinstance(place.parents[0], ast.Compare) or any(".cuda." in name_of(call.func) for call in around)


def _sources(node: ast.AST) -> Iterator[ast.expr]:
    """Give what is gone through one by one, or of which one is picked."""
    match node:
        case ast.For(iter=source) | ast.comprehension(iter=source) | ast.Subscript(value=source, ctx=ast.Load()):
            yield source
        case ast.Call(func=ast.Name(id=function), args=arguments) if function in _WALKERS:
            yield from arguments
        case _:
            pass


def _loops(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Give what a loop names each item, and what it goes through."""
    for one in getattr(node, "generators", [node] if isinstance(node, ast.For) else []):
        yield one.target, one.iter


def _tests(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.If | ast.IfExp):
        yield node.test
    elif isinstance(node, ast.comprehension):
        yield from node.ifs


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
