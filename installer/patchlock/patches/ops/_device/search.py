"""Look at each node of a file and decide whether it is to be changed, left or refused; `device-literals` is this."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from patchlock.model.backends import CUDA_HALVES
from patchlock.model.patch import Refusal
from patchlock.patches.ops._device import calls
from patchlock.patches.ops._device import changes as device_changes
from patchlock.patches.ops._device.changes import Change, to_single_precision
from patchlock.patches.ops._device.choosers import (
    Choice,
    branches_of,
    choice_of,
    cpu_fallbacks,
    is_misspelt,
    may_be_cuda,
    pairs_of,
)
from patchlock.patches.ops._device.for_ctranslate2 import is_offered_for_ctranslate2
from patchlock.patches.ops._device.guards import Guards, dotted, is_device_name, kind_of
from patchlock.patches.ops._device.movers import changed_comparison, mover_of
from patchlock.patches.ops._device.strings import ASKS, CHOICES, ITSELF, KINDS, UNCLEAR, is_device, taker, use_of
from patchlock.patches.ops._device.walk import Spot
from patchlock.patches.ops._device.wishes import joined, wishes
from patchlock.patches.ops.syntax import Module, Positioned, last_name, nodes_of

_UNREACHABLE = "without CUDA it takes no other GPU, and no edit of this choice alone is right"
_STAYS = "what it moves to CUDA alone stays on the CPU; write there what moves it to `{}`, or leave the patch out"
_ONLY_CUDA = "it takes a GPU only where there is CUDA; write there what is to run on `{}`, or leave the patch out"
_QUESTIONS = {"mps": "torch.backends.mps.is_available()", "xpu": "torch.xpu.is_available()"}
_WALKERS = frozenset({"next", "filter", "iter", "enumerate", "sorted", "reversed", "max", "min", "zip", "map"})
_TYPES = {"type", "set_default_tensor_type"}
_DISPLAYS = ast.List | ast.Tuple | ast.Set
_COMPREHENSION = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


@dataclasses.dataclass(slots=True)
class Found:
    """What a search came upon."""

    changes: list[Change] = dataclasses.field(default_factory=list)
    settled: list[Positioned] = dataclasses.field(default_factory=list)
    refusals: list[Refusal] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(kw_only=True, slots=True)
class Search:
    """A search through one file."""

    module: Module
    device: str
    always: bool
    precision: str
    providers: tuple[str, ...]
    guards: Guards
    names: calls.Names
    foreign: frozenset[int] = frozenset()
    """Expressions of which only a library is told that knows no other device than CUDA and the CPU."""
    found: Found = dataclasses.field(default_factory=Found)
    _done: set[int] = dataclasses.field(default_factory=set)
    """Nodes that belong to a decision about a node around them."""
    _given: dict[int, dict[str, ast.expr]] = dataclasses.field(default_factory=dict)
    """By function: what it has assigned to names."""
    _answers: dict[int, set[tuple[str, bool]]] = dataclasses.field(default_factory=dict)
    """By function: the names and attributes that it has made so that they have a truth value only where CUDA is."""

    _scope: ast.AST | None = None
    """The function around the node that is looked at."""
    _reaching: set[int] = dataclasses.field(default_factory=set)
    """Functions in which a change puts the machine's device."""
    _refused: set[int] = dataclasses.field(default_factory=set)
    """Functions in which something is refused already."""
    _chosen: set[int] = dataclasses.field(default_factory=set)
    """Statements that belong to a choice that was decided."""
    _revived: set[tuple[int, str]] = dataclasses.field(default_factory=set)
    """Statements that ask for the machine's device now, where they asked for CUDA, and the field that runs then."""
    _own_question: bool | None = None
    """The file asks itself for the machine's device; None as long as nobody wanted to know."""
    _only_cuda: list[tuple[ast.expr, ast.AST | None]] = dataclasses.field(default_factory=list)
    """What takes a GPU, and runs only where CUDA is, with the function around it."""

    def finish(self) -> None:
        """Refuse what takes a GPU only where CUDA is, in functions that never come to the machine's device."""
        if self._only_cuda and self._asks_for_own():
            return
        for node, scope in self._only_cuda:
            if id(scope) not in self._reaching | self._refused and not self._names_own(scope or self.module.tree):
                self.found.refusals.append(Refusal.ambiguous(node.lineno, _ONLY_CUDA.format(self.device)))

    def _asks_for_own(self) -> bool:
        """Tell whether the file asks itself for the machine's device: then it chooses among devices in its own way."""
        if self._own_question is None:
            owner = {"privateuseone": "directml"}.get(self.guards.kind, self.guards.kind)
            nodes = (node for node in nodes_of(self.module.tree) if isinstance(node, ast.Attribute))
            asked = (last_name(node.value) for node in nodes if node.attr == "is_available")
            self._own_question = any(name.endswith(owner) for name in asked)
        return self._own_question

    def _names_own(self, scope: ast.AST) -> bool:
        """Tell whether a function names the machine's device, or something that may hold it."""
        nodes = list(ast.iter_child_nodes(scope))
        while nodes:
            node = nodes.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            if kind_of(node) == self.guards.kind:
                return True
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                values = self.guards.values.get(last_name(node), ())
                is_known = values and not any(isinstance(value, ast.Call) and not kind_of(value) for value in values)
                is_of_torch = "cuda" in dotted(node).split(".") or dotted(node) == "torch.device"
                if "device" in last_name(node).lower() and not is_known and not is_of_torch:
                    return True
            nodes += ast.iter_child_nodes(node)
        return False

    def look(self, spot: Spot) -> None:
        """Decide about one node; nodes come parents first."""
        node = spot.node
        self._scope = spot.function
        if id(node) in self._done or id(spot.parent) in self._done:
            self._done.add(id(node))
            return
        if isinstance(node, ast.If):
            decided = len(self.found.changes) + len(self.found.refusals)
            self._choosing_statement(spot, node)
            if len(self.found.changes) + len(self.found.refusals) != decided:
                self._chosen |= {id(inner) for inner in ast.walk(node) if isinstance(inner, ast.If)}
            elif id(node) not in self._chosen and not self._revive(spot, node):
                self._follow_mover(spot, node)
            self._remember_branches(spot, node)
        elif isinstance(node, ast.Match):
            self._matching_statement(spot, node)
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            self._remember(spot, node)
        elif isinstance(node, ast.expr):
            self._expression(spot, node)

    def _expression(self, spot: Spot, node: ast.expr) -> None:
        if self._is_dead(spot) != spot.is_dead:
            spot = spot._replace(is_dead=False)
        is_off = spot.is_unchosen if self.always else spot.is_dead
        match node:
            case ast.IfExp() | ast.BoolOp() | ast.Subscript() if choice := choice_of(self.guards, node):
                self._chooser(spot, node, choice)
            case ast.IfExp() if self.device != "cpu" and any(pairs_of(node)):
                self._choosing_pairs(spot, node)
            case ast.IfExp() if use_of(spot) == ASKS and self._revive(spot, node):
                pass
            case ast.IfExp():
                self._follow_mover(spot, node)
            case (
                ast.Subscript(slice=test) | ast.Call(func=ast.Attribute(value=ast.Dict(), attr="get"), args=[test, *_])
            ) if self._is_lost(spot, test, ast.walk(node)):
                self._decide(node, None, is_settled=is_off, why=_UNREACHABLE)
            case ast.BoolOp(op=ast.Or(), values=values) if any(
                self._is_lost(spot, test, ast.walk(node))
                for one in values
                if isinstance(one, ast.BoolOp)
                for test in one.values[:-1]
            ):
                self._decide(node, None, is_settled=is_off, why=_UNREACHABLE)
            case ast.Call() if self.device != "cpu" and not is_off and calls.is_of_ctranslate2(self.names, node):
                self._tell_ctranslate2(node)
            case ast.Call() if calls.is_method(self.names, node):
                self._remember_only_cuda(spot, node)
                change = None if is_off else device_changes.move_to_device(self.module, node, self.device)
                self._decide(node, change, is_settled=is_off, why="its arguments are not those of `Tensor.cuda`")
            case ast.Call() if is_misspelt(node):
                self._decide(node, device_changes.text(self.module, node.args[0], self.device), is_settled=is_off)
            case ast.Call() if function := calls.function_of(self.names, node.func):
                self._call(spot, node, function)
            case ast.Call() if last_name(node.func) == "device" and len(node.args) + len(node.keywords) > 1:
                self._indexed(spot, node, is_off=is_off)
            case ast.Attribute() if calls.function_of(self.names, node) in calls.TENSORS:
                self._tensor_type(spot, node, is_off=is_off)
            case ast.List() | ast.Tuple() if self.providers and _has_provider(node):
                change = device_changes.code(self.module, node, _display(node, self.providers))
                is_settled = isinstance(spot.parent, ast.Compare)
                self._decide(node, change, is_settled=is_settled)
            case _ if is_device(node):
                self._text(spot, node, is_off=is_off)
            case ast.Name() | ast.Attribute() if self._is_foreign_device(spot, node):
                self._decide(node, device_changes.code(self.module, node, '"cpu"'), is_settled=is_off)
            case _ if self.precision and not is_off and (change := to_single_precision(self.module, spot)):
                self._decide(node, change, is_settled=self._is_switched_off(spot))
            case _:
                pass

    def _given_here(self, spot: Spot) -> dict[str, ast.expr]:
        return self._given.setdefault(id(spot.function), {})

    def _answers_here(self, spot: Spot) -> set[tuple[str, bool]]:
        return self._answers.setdefault(id(spot.function), set())

    def _wishes(self, spot: Spot, test: ast.expr) -> list[ast.expr] | None:
        of_file = self._given.get(id(None), {})
        found = wishes(self.guards, test, of_file | self._given_here(spot))
        return None if any(self._needs_cuda(spot, wish) for wish in found or ()) else found

    def _needs_cuda(self, spot: Spot, test: ast.expr, truth: bool = True) -> bool:
        """Tell whether a test asks for CUDA, itself or by a name that holds an answer, to have this truth value."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._needs_cuda(spot, operand, not truth)
            case ast.BoolOp(op=op, values=values):
                enough = any if isinstance(op, ast.And) is truth else all
                return enough(self._needs_cuda(spot, value, truth) for value in values)
            case ast.Name(id=name):
                return (name, truth) in self._answers_here(spot) | self._answers.get(id(None), set())
            case ast.Attribute(attr=name):
                return any((name, truth) in answers for answers in self._answers.values())
            case _ if self.guards.rules_out(test, not truth):
                return False
            case _:
                parts = [node for node in self.guards.questions(test) if node is not test]
                return self.guards.is_question(test) or any(self._needs_cuda(spot, part) for part in parts)

    def _remember(self, spot: Spot, node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> None:
        """Keep what an assignment gives to names, and whether that is an answer of CUDA's."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if isinstance(node, ast.Assign):
            self._given_here(spot).update({last_name(target): node.value for target in targets})
        if node.value and not any(map(kind_of, ast.walk(node.value))):
            for truth in (True, False):
                given = {(name, truth) for name in _names(targets, ast.Store)}
                if self._needs_cuda(spot, node.value, truth):
                    self._answers_here(spot).update(given)
                elif isinstance(node, ast.Assign) and not spot.is_dead and not self.guards.rules_out(node.value, truth):
                    self._answers_here(spot).difference_update(given)

    def _remember_branches(self, spot: Spot, node: ast.If) -> None:
        """Keep what a statement that asks for CUDA makes true or false in its branches."""
        if not any(map(self.guards.is_question, self.guards.questions(node.test))):
            return
        for block, truth in ((node.body, True), (node.orelse, False)):
            is_dead = self.guards.rules_out(node.test, truth)
            for inner in (inner for statement in block for inner in ast.walk(statement)):
                if isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Constant) and not kind_of(inner.value):
                    needed = bool(inner.value.value) is is_dead
                    self._answers_here(spot).update((name, needed) for name in _names(inner.targets, ast.Store))

    def _revive(self, spot: Spot, node: ast.If | ast.IfExp) -> bool:
        """`if torch.cuda.is_available(): x = x.cuda()`: where that is all that moves `x`, it asks for the device."""
        is_right = self.device == "cpu" or self.always or spot.is_dead
        is_right |= isinstance(node, ast.If) and self._asks_for_own()
        is_right |= self.guards.asks_for_several(node.test)
        if is_right or not self.guards.rules_out(node.test, True) or not self.guards.asks(node.test):
            return False
        blocks = node.body if isinstance(node, ast.If) else [node.body]
        inner = [child for one in blocks for child in ast.walk(one)]
        is_moved = any(calls.is_method(self.names, child) or is_device(child) for child in inner)
        around = (spot.function or self.module.tree) if isinstance(node, ast.If) else ast.Expression(body=node.orelse)
        known = self._done | self.foreign
        is_left = self._names_own(around) or any(id(child) in known for child in inner)
        if not is_moved or not self._is_plain(inner) or is_left or self._wishes(spot, node.test) != []:
            return False
        change = device_changes.code(self.module, node.test, _QUESTIONS.get(self.guards.kind, "True"))
        self._decide(node.test, change, is_settled=False)
        self._revived.add((id(node), "body"))
        return True

    def _is_plain(self, inner: Sequence[ast.AST]) -> bool:
        """Tell whether code runs as well on the machine's device, once what it moves is moved there."""
        functions = [calls.function_of(self.names, one.func) for one in inner if isinstance(one, ast.Call)]
        is_straight = not any(isinstance(one, ast.If | ast.IfExp | ast.While | ast.FunctionDef) for one in inner)
        return is_straight and all(name in calls.HARMLESS for name in functions if name)

    def _follow_mover(self, spot: Spot, node: ast.If | ast.IfExp) -> None:
        """`if device == "cuda": x.cuda()`, else `x.cpu()` or nothing: it moves `x` to the machine's device as well."""
        is_right = self.device == "cpu" or self.always or spot.is_dead
        mover = None if is_right else mover_of(self.guards, spot, node)
        if mover is None:
            return
        if self.guards.asks(node.test) or not self._is_plain(mover.moving):
            self._refuse(node, _STAYS.format(self.device))
            return
        for literal in mover.literals:
            display, text = changed_comparison(node.test, literal, self.device)
            if isinstance(display, _DISPLAYS):
                self._decide(
                    display, device_changes.insert_element(self.module, display, literal, text), is_settled=False
                )
            else:
                self._decide(literal, device_changes.text(self.module, literal, text), is_settled=False)
        self._revived.add((id(node), mover.field))

    def _is_dead(self, spot: Spot) -> bool:
        """Tell whether a node never runs without CUDA, after what was changed around it."""
        here: Spot | None = spot if spot.is_dead and self._revived else None
        while here is not None:
            if (id(here.parent), here.field) in self._revived:
                return False
            here = here.around
        return spot.is_dead

    def _remember_only_cuda(self, spot: Spot, node: ast.expr) -> None:
        is_other = self._device_for(spot) == self.device != "cpu"
        if is_other and spot.is_dead and not spot.is_unchosen and not self.always:
            self._only_cuda.append((node, spot.function))

    def _among_kinds(self, spot: Spot, node: ast.expr, display: ast.List | ast.Tuple | ast.Set) -> None:
        """`for d in ("cuda", "cpu")`: the machine's device comes first, unless a test would pass it over."""
        kinds = set(map(kind_of, display.elts))
        loops = self._loops_over(spot, display)
        if self.device == "cpu" or self.guards.kind in kinds or not kinds >= {"cuda", "cpu"} or loops is None:
            self._decide(node, None, is_settled=True)
            return
        of_others = dataclasses.replace(self.guards, is_absent=False)
        is_lost = any(self.guards.asks(test) and not of_others.rules_out(test, truth=False) for test in _tests(loops))
        change = None if is_lost else device_changes.insert_element(self.module, display, node, self.device)
        self._decide(node, change, is_settled=False, why=_UNREACHABLE)

    def _loops_over(self, spot: Spot, display: ast.expr) -> Sequence[ast.AST] | None:
        """Give what goes through a display, itself or by its name; None where none does, or one is picked by number."""
        around = spot.around
        match around.parent if around else None:
            case ast.For(iter=source) as loop if source is display:
                return [loop]
            case ast.comprehension() if around and around.around:
                return [around.around.node, *[one for one in [around.around.parent] if one]]
            case ast.Call(func=ast.Name(id=function)) if function in _WALKERS:
                return []
            case ast.Assign(targets=[target]):
                name = ast.unparse(target)
                nodes = list(ast.walk(self.module.tree))
                loops = [
                    n for n in nodes if isinstance(n, ast.For | _COMPREHENSION) and name in map(ast.unparse, _iters(n))
                ]
                calls_of = [n for n in nodes if isinstance(n, ast.Call) and last_name(n.func) in _WALKERS]
                is_given = any(ast.unparse(argument) == name for call in calls_of for argument in call.args)
                return loops if loops or is_given else None
            case _:
                return None

    def _choosing_pairs(self, spot: Spot, node: ast.IfExp) -> None:
        """`("cuda", True) if torch.cuda.is_available() else ("cpu", False)`."""
        if spot.is_dead or not self.guards.rules_out(node.test, True) or not self.guards.asks(node.test):
            return
        wanted = self._wishes(spot, node.test)
        for taken, other in pairs_of(node):
            if is_device(taken) and kind_of(other) == "cpu" and isinstance(other, ast.Constant):
                change = device_changes.text(self.module, other, self.device)
                if wanted:
                    code = f'("{self.device}" if {joined(wanted)} else {self.module.segment(other)})'
                    change = device_changes.code(self.module, other, code) or change
                self._decide(other, None if wanted is None else change, is_settled=False, why=_UNREACHABLE)

    def _text(self, spot: Spot, node: ast.expr, *, is_off: bool) -> None:
        use = use_of(spot)
        is_off_everywhere = use == ITSELF and self.guards.kind in _QUESTIONS and _is_off(taker(spot))
        use = ASKS if is_off_everywhere else use  # what is switched off is that of the machine's device
        display = spot.parent
        if use in {ASKS, UNCLEAR} or isinstance(display, _DISPLAYS):
            self._remember_only_cuda(spot, node)
        if use == KINDS and isinstance(display, _DISPLAYS) and not is_off:
            self._among_kinds(spot, node, display)
        elif use == CHOICES and isinstance(display, _DISPLAYS):
            offers = {item.value for item in display.elts if isinstance(item, ast.Constant)}
            around = spot.around.around if spot.around else None
            option = around.parent if around and isinstance(around.node, ast.keyword) else None
            is_foreign = id(display) in self.foreign or is_offered_for_ctranslate2(option)
            is_offered = (
                self.device in offers or is_foreign or id(display) in {id(change.node) for change in self.found.changes}
            )
            change = None if is_offered else device_changes.insert_element(self.module, display, node, self.device)
            self._decide(node, change and dataclasses.replace(change, is_companion=True), is_settled=is_offered)
        else:
            field = spot.parent.arg if isinstance(spot.parent, ast.keyword) else ""
            device = self._device_for(spot)
            device = device.partition(":")[0] if (field or "").endswith("type") else device
            change = None if use else device_changes.text(self.module, node, device)
            change = change and dataclasses.replace(change, is_companion=is_off_everywhere)
            self._decide(node, change, is_settled=is_off or use not in {ASKS, UNCLEAR}, why=use)

    def _is_switched_off(self, spot: Spot) -> bool:
        """Tell whether a precision is that of an autocast that is off on the machine, or switches itself off there."""
        call = taker(spot)
        if call is None or last_name(call.func) != "autocast":
            return False
        enabled = (keyword.value for keyword in call.keywords if keyword.arg == "enabled")
        devices = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "device_type")]
        kinds = {kind for device in devices for kind in _kinds_of(device)}
        is_foreign = bool(kinds) and kinds.isdisjoint({"", self.guards.kind})
        is_of_cuda = dotted(call.func).endswith("cuda.amp.autocast")
        return is_foreign or is_of_cuda or any(self.guards.rules_out(one, truth=True) for one in enabled)

    def _device_for(self, spot: Spot) -> str:
        """Give the machine's device, or the CPU for a library that knows no other device than CUDA."""
        is_foreign = id(spot.node) in self.foreign or calls.knows_cuda_or_cpu(self.names, taker(spot))
        return "cpu" if is_foreign else self.device

    def _is_foreign_device(self, spot: Spot, node: ast.Name | ast.Attribute) -> bool:
        """Tell whether a library that does not know the machine's device is given a name that holds it."""
        is_given = spot.field == "args" or bool(isinstance(spot.parent, ast.keyword) and spot.parent.arg)
        values = self.guards.values.get(last_name(node), ())
        return is_given and self._device_for(spot) != self.device and any(map(may_be_cuda, values))

    def _tell_ctranslate2(self, call: ast.Call) -> None:
        """Give a library that knows only CUDA and the CPU the CPU, wherever the device that it is given comes from."""
        for name, value in calls.told(call):
            given = ast.walk(value)
            if name == "device" and any(isinstance(node, ast.Name | ast.Attribute | ast.Subscript) for node in given):
                is_known = isinstance(value, ast.IfExp) and all(map(kind_of, (value.body, value.orelse)))
                change = None if is_known else device_changes.code(self.module, value, '"cpu"')
                if change is not None:
                    self._decide(value, change, is_settled=False)
            elif name == "compute_type" and self._may_be_half(value):
                self._decide(value, device_changes.text(self.module, value, "float32"), is_settled=False)
            elif not name and any(_has_device(one) for one in self.guards.values.get(last_name(value), ())):
                self._refuse(call, "its device stands in a mapping, and it knows no other than CUDA and the CPU")

    def _may_be_half(self, value: ast.expr, known: frozenset[str] = frozenset()) -> bool:
        """Tell whether a type that CTranslate2 is to compute in may be one that it refuses on the CPU."""
        match value:
            case ast.Constant(value=said):
                return said in CUDA_HALVES
            case ast.IfExp(test=test, body=body, orelse=orelse):
                ends = ((truth, end) for truth, end in ((True, body), (False, orelse)))
                return any(
                    not self.guards.rules_out(test, truth) and self._may_be_half(end, known) for truth, end in ends
                )
            case ast.BoolOp(values=values):
                return any(self._may_be_half(one, known) for one in values)
            case ast.Name(id=name) if name not in known:
                return any(self._may_be_half(one, known | {name}) for one in self.guards.values.get(name, ()))
            case _:
                return False

    def _indexed(self, spot: Spot, call: ast.Call, *, is_off: bool) -> None:
        """`torch.device("cuda", 1)`: the index goes too."""
        kinds = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "type")]
        if any(map(is_device, kinds)):
            is_settled = is_off or isinstance(spot.parent, ast.Compare)
            self._decide(call, device_changes.only_argument(self.module, call, self.device), is_settled=is_settled)

    def _chooser(self, spot: Spot, node: ast.expr, choice: Choice) -> None:
        """`"cuda" if torch.cuda.is_available() else "cpu"`: right for the CPU, unless it is misspelt there."""
        test, taken, leaf = choice
        if not self.guards.rules_out(test, True) or not self.guards.asks(test):
            if self.device != "cpu" and not spot.is_dead and self._needs_cuda(spot, test):
                self._decide(node, None, is_settled=False, why=_UNREACHABLE)
            return
        device = self._device_for(spot)
        is_right = device == "cpu" and not self.always and "CPU" not in ast.unparse(leaf)
        use = use_of(spot)
        if is_right or spot.is_unchosen or (spot.is_dead and not self.always) or use not in {ASKS, UNCLEAR}:
            self._decide(node, None, is_settled=True)
        elif use == UNCLEAR:
            self._decide(node, None, is_settled=False, why=use)
        elif device != "cpu" and (wanted := self._wishes(spot, test)) != []:
            form = f'{self.module.segment(leaf.func)}("{{}}")' if isinstance(leaf, ast.Call) else '"{}"'
            code = f"{form.format(device)} if {joined(wanted or [])} else {form.format('cpu')}"
            change = device_changes.code(self.module, node, code) if wanted else None
            self._decide(node, change, is_settled=False, why=_UNREACHABLE)
        elif isinstance(leaf, ast.Call) and isinstance(taken, ast.Call):
            code = f'{self.module.segment(leaf.func)}("{device}")'
            self._decide(node, device_changes.code(self.module, node, code), is_settled=False)
        else:
            self._decide(node, device_changes.text(self.module, node, device), is_settled=False)

    def _choosing_statement(self, spot: Spot, node: ast.If) -> None:
        """`if torch.cuda.is_available(): d = "cuda"`: what is the CPU because somebody asks for it, stays that."""
        if self.device == "cpu" or spot.is_dead:
            return
        for branches in branches_of(self.guards, spot, node):
            known = self._done | self.foreign
            literals = [literal for literal in cpu_fallbacks(branches) if id(literal) not in known]
            if not self.guards.rules_out(branches.test, True) or not self.guards.asks(branches.test):
                if literals and self._needs_cuda(spot, branches.test):
                    self._refuse(node, _UNREACHABLE)
                continue
            wanted = self._wishes(spot, branches.test)
            if branches.are_around and wanted and _names(branches.others, ast.Store) & _names(wanted, ast.Load):
                wanted = None
            by_default = {id(inner) for _, value in branches.defaults for inner in ast.walk(value)}
            for literal in literals:
                change = device_changes.text(self.module, literal, self.device)
                if wanted and id(literal) in by_default:  # where there are no names of parameters yet
                    self._decide(literal, None, is_settled=False, why=_UNREACHABLE)
                    continue
                if wanted:
                    code = f'"{self.device}" if {joined(wanted)} else {self.module.segment(literal)}'
                    change = device_changes.code(self.module, literal, code) or change
                self._decide(literal, None if wanted is None else change, is_settled=False, why=_UNREACHABLE)

    def _matching_statement(self, spot: Spot, node: ast.Match) -> None:
        """`match torch.cuda.is_available():`, of which no edit makes another question."""
        inner = [child for case in node.cases for statement in case.body for child in ast.walk(statement)]
        if not spot.is_dead and self._is_lost(spot, node.subject, inner):
            self._refuse(node, _UNREACHABLE)

    def _is_lost(self, spot: Spot, test: ast.expr, among: Iterable[ast.AST]) -> bool:
        """Tell whether a question for CUDA chooses among devices of which none is the machine's."""
        kinds = set(map(kind_of, among))
        is_choice = self.guards.kind not in kinds and kinds >= {"cpu", "cuda"}
        return is_choice and not any(map(kind_of, ast.walk(test))) and self._needs_cuda(spot, test)

    def _call(self, spot: Spot, call: ast.Call, function: str) -> None:
        """Decide about a call of `torch.cuda`, in whose branches CUDA is there even where it is not chosen."""
        cuda = calls.cuda_of(call.func)
        is_off = function == "amp.autocast" and self.guards.kind in _QUESTIONS and _is_off(call)
        if (function.startswith("amp.") and not is_off) or function in calls.HARMLESS:
            if self.device != "cpu" and self.guards.is_question(call):
                self.found.settled.append(call)  # what is made of the answer, the ensure judges
            return
        is_imported = isinstance(call.func, ast.Name) and "torch" not in self.guards.names
        is_settled = spot.is_dead or spot.is_caught
        change: Change | None = None
        why = f"`{cuda}.{function}` fails without CUDA, and no edit of this call alone is right"
        if is_imported:
            why = f"`{function}` fails without CUDA, and `torch` is not there to ask"
        elif is_off:
            code = f'{cuda.removesuffix(".cuda")}.autocast("{self.device}", enabled=False)'
            change = device_changes.code(self.module, call, code)
            change = change and dataclasses.replace(change, is_companion=True)
        elif function == "current_device":
            is_settled = (spot.is_unchosen if self.always else spot.is_dead) or spot.is_caught
            change = device_changes.text(self.module, call, self.device) if _is_device_use(spot) else None
        elif function == "get_device_name":
            change = device_changes.guard_call(self.module, call, cuda, f'"{self.device}"')
        elif function in calls.WITHOUT_VALUE:
            change = device_changes.guard_call(self.module, call, cuda, "None")
        elif function in calls.WITH_VALUE:
            otherwise = calls.WITH_VALUE[function].format(cuda=cuda)
            is_settled |= otherwise == ast.unparse(call)
            change = device_changes.guard_call(self.module, call, cuda, otherwise)
        elif function in calls.TENSORS:
            is_settled = spot.is_unchosen if self.always else spot.is_dead
            name = f"{cuda.removesuffix('.cuda')}.{function}"
            change = device_changes.replace_typed_tensor(self.module, call, name, self.device)
        self._decide(call, change, is_settled=is_settled, why=why)

    def _tensor_type(self, spot: Spot, node: ast.Attribute, *, is_off: bool) -> None:
        """`x.type(torch.cuda.FloatTensor)`."""
        call = spot.parent
        if is_off or not isinstance(call, ast.Call) or last_name(call.func) not in _TYPES:
            self._decide(node, None, is_settled=True)
        elif self.device == "cpu":
            cuda = calls.cuda_of(node)
            code = f"{cuda.removesuffix('.cuda')}.{node.attr}"
            self._decide(node, device_changes.code(self.module, node, code), is_settled=False)
        elif last_name(call.func) == "type" and call.args == [node]:
            self._done.add(id(node))
            name = f"{calls.cuda_of(node).removesuffix('.cuda')}.{node.attr}"
            self._decide(call, device_changes.cast_and_move(self.module, call, name, self.device), is_settled=False)
        else:
            self._decide(node, None, is_settled=False, why=f"`{self.device}` has no tensor type of this name")

    def _decide(self, node: ast.expr, change: Change | None, *, is_settled: bool, why: str = "") -> None:
        if isinstance(node, ast.Call) and calls.is_method(self.names, node):
            self._done |= {id(item) for item in (*node.args, *node.keywords)}
        elif isinstance(node, ast.Call) and calls.function_of(self.names, node.func) in calls.TENSORS:
            self._done.add(id(node.func))
        else:
            self._done.add(id(node))
        if is_settled:
            self.found.settled.append(node)
        elif change is not None and (lost := device_changes.lost(change)):
            why = f"`{lost}` says which card, and would no longer run"
            self._refuse(node, why)
        elif change is not None:
            self.found.changes.append(change)
            if self.guards.kind in map(kind_of, ast.walk(change.meant)):
                self._reaching.add(id(self._scope))
        else:
            self._refuse(node, why)

    def _refuse(self, node: ast.expr | ast.stmt, why: str) -> None:
        self.found.refusals.append(Refusal.ambiguous(node.lineno, why))
        self._refused.add(id(self._scope))


def _has_device(value: ast.expr) -> bool:
    """Tell whether a mapping that the file writes has a device that is not the CPU."""
    match value:
        case ast.Dict(keys=keys, values=values):
            pairs = [(getattr(key, "value", ""), one) for key, one in zip(keys, values, strict=True)]
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            pairs = [(keyword.arg, keyword.value) for keyword in keywords]
        case _:
            pairs = []
    return any(name == "device" and kind_of(one) != "cpu" for name, one in pairs)


def _iters(loop: ast.AST) -> Iterator[ast.expr]:
    for one in getattr(loop, "generators", [loop]):
        yield one.iter


def _tests(loops: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """Give all that is asked in loops."""
    for node in (node for loop in loops for node in ast.walk(loop)):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            yield node.test
        elif isinstance(node, ast.comprehension):
            yield from node.ifs


def _names(nodes: Iterable[ast.AST], use: type[ast.expr_context]) -> set[str]:
    """Give the names that code binds or reads."""
    inner = (node for one in nodes for node in ast.walk(one))
    return {last_name(n) for n in inner if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, use)}


def _kinds_of(device: ast.expr) -> set[str]:
    """Name the kinds that a device or a choice of devices may be, "" for one that is not known."""
    if isinstance(device, ast.IfExp):
        return _kinds_of(device.body) | _kinds_of(device.orelse)
    return {kind_of(device)}


def _is_off(call: ast.Call | None) -> bool:
    """Tell whether a call switches autocast off, whatever it is on for."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "enabled"] if call else []
    given += call.args[:1] if call else []  # of torch.cuda.amp; the first argument of torch's own is the device
    return any(isinstance(value, ast.Constant) and value.value is False for value in given)


def _is_device_use(spot: Spot) -> bool:
    """Tell whether the number of the current device is used as a device, for which a text will do."""
    match spot.parent:
        case ast.keyword(arg=name):
            return is_device_name(name or "") and (name or "").lower() in {"device", "map_location", "device_map"}
        case ast.Call(func=function):
            return spot.field == "args" and last_name(function) in {"to", "device", "Generator"}
        case ast.Assign(targets=[target]):
            return last_name(target).endswith("device")
        case ast.Dict(keys=keys):
            return all(isinstance(key, ast.Constant) and key.value == "" for key in keys)
        case ast.Return():
            return getattr(spot.function, "name", "").endswith("device")
        case _:
            return False


def _has_provider(display: ast.List | ast.Tuple) -> bool:
    firsts = [item.elts[0] if isinstance(item, ast.Tuple) and item.elts else item for item in display.elts]
    is_pair = isinstance(display, ast.Tuple) and any(isinstance(item, ast.Dict) for item in display.elts)
    return not is_pair and any(isinstance(i, ast.Constant) and i.value == "CUDAExecutionProvider" for i in firsts)


def _display(display: ast.List | ast.Tuple, names: tuple[str, ...]) -> str:
    items = ", ".join(f'"{name}"' for name in names)
    if isinstance(display, ast.List):
        return f"[{items}]"
    return f"({items},)" if len(names) == 1 else f"({items})"
