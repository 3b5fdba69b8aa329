"""Which choices of a device never end at the machine's own where CUDA is absent, judged from a file's syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from patchlock.patches.postconditions._without_cuda import Around, Machine, device_in, name_of

_WALKERS = frozenset({"next", "filter", "iter", "enumerate", "sorted", "reversed", "max", "min", "zip", "map"})
_OWN_QUESTIONS = {"privateuseone": "directml.is_available"}
_Display = ast.List | ast.Tuple | ast.Set
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def falls_back(machine: Machine, present: Machine, place: Around) -> bool:
    """Tell whether an expression is `"cuda" if torch.cuda.is_available() else "cpu"`, or its contrary."""
    node = place.node
    if not isinstance(node, ast.IfExp) or present.outcome(node.test) is not None:
        return False
    outcome = machine.outcome(node.test)
    if outcome is None:
        return False
    taken, last = (node.orelse, node.body) if outcome else (node.body, node.orelse)
    while isinstance(last, ast.IfExp):
        if device_in(last.body) == machine.kind:
            return False
        last = last.orelse
    is_given = machine.said(taken) == machine.kind and _is_unknown(machine, node.test)
    if machine.is_wanted(node.test) or is_given:
        return False
    makes = machine.said(taken) in {"cuda", machine.kind} or "cuda" in name_of(taken)
    return makes and machine.said(last) == "cpu" and not isinstance(place.parents[0], ast.Compare | ast.FormattedValue)


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
    alive: set[int] = set()
    reaching: set[ast.AST | None] = set()
    is_asked = False
    for place in reached:
        alive.add(id(place.node))
        if isinstance(place.node, ast.Call) and _OWN_QUESTIONS.get(machine.kind, f"{machine.kind}.is_available") in (
            name_of(place.node.func)
        ):
            is_asked = True
        if machine.may_be_own(place.node):
            reaching.add(_scope(place))
    reaching |= {_scope(place) for place in with_cuda if place.node.lineno in lost}
    only = [place for place in with_cuda if id(place.node) not in alive]
    reaching |= {_scope(place) for place in only if device_in(place.node) == machine.kind and _is_given(machine, place)}
    for place in filter(takes, only):
        is_lost = not is_asked and _scope(place) not in reaching
        if (is_lost or _is_only_choice(machine, place)) and not _is_of_cuda(place):
            yield place.node.lineno


def lost_choices(
    absent: Machine, present: Machine, tree: ast.Module, reached: Iterable[Around], fails: Callable[[ast.expr], bool]
) -> Iterator[int]:
    """Give the lines that choose the CPU, or nothing of the machine's, because CUDA is absent.

    Args:
        absent: the machine without CUDA.
        present: the same where CUDA may be there, and is not chosen.
        tree: the file.
        reached: all expressions that run without CUDA.
        fails: tells of a call whether it raises without CUDA.
    """
    nodes = list(ast.walk(tree))
    for block in (block for node in nodes for block in (getattr(node, name, None) for name in ("body", "orelse"))):
        if isinstance(block, list):
            yield from _in_block(absent, present, block, fails)
    walked = {name for node in nodes for name in _walked_names(node)}
    for place in reached:
        is_choice = isinstance(place.node, _Display) and _is_choice(absent, place, walked)
        if is_choice or _is_looked_up(absent, present, place.node):
            yield place.node.lineno
    for whole in {id(whole): whole for place in reached if (whole := _whole(place)) is not None}.values():
        if _is_table(absent, present, whole):
            yield whole.lineno
    for node in nodes:
        yield from _lost_in_loop(absent, present, node)


def _in_block(
    machine: Machine, present: Machine, block: list[ast.stmt], fails: Callable[[ast.expr], bool]
) -> Iterator[int]:
    """Give the lines of `x = "cpu"` around `if torch.cuda.is_available(): x = "cuda"`, or where a call has failed."""
    for index, node in enumerate(block):
        if isinstance(node, ast.Try):
            calls = [inner for statement in node.body for inner in ast.walk(statement) if isinstance(inner, ast.expr)]
            others = [one for handler in node.handlers for one in handler.body] if any(map(fails, calls)) else []
            yield from _twins(machine, [*block[:index], *node.body, *node.orelse], others)
        outcome = machine.outcome(node.test) if isinstance(node, ast.If) else None
        if not isinstance(node, ast.If) or outcome is None or present.outcome(node.test) is not None:
            continue
        last: list[ast.stmt] = [node]
        is_chosen = machine.is_wanted(node.test)
        while len(last) == 1 and isinstance(last[0], ast.If):
            body = last[0].body if machine.outcome(last[0].test) is not False else []
            is_chosen |= any(_makes(machine, statement) == machine.kind for statement in body)
            last = last[0].orelse
        rest = block[index + 1 :] if isinstance(node.body[-1], ast.Return) else []
        if is_chosen or any(device_in(inner) == machine.kind for one in rest for inner in ast.walk(one)):
            continue
        before = list({_target(one): one for one in block[:index] if _makes(machine, one)}.values())
        others = last if node.orelse else before + rest
        chosen, others = ([*before, *node.orelse, *rest], node.body) if outcome else (node.body, others)
        yield from _twins(machine, chosen, others)


def _twins(machine: Machine, chosen: Iterable[ast.stmt], others: Iterable[ast.stmt]) -> Iterator[int]:
    """Give the lines of the statements that take the CPU for what others take a GPU for."""
    taken = {_target(statement) for statement in chosen if _makes(machine, statement) in {"cuda", machine.kind}}
    yield from (one.lineno for one in others if _makes(machine, one) == "cpu" and _target(one) in taken)


def _makes(machine: Machine, statement: ast.stmt) -> str:
    value = statement.value if isinstance(statement, ast.Assign | ast.Return) else None
    return machine.said(value) if value is not None else ""


def _target(statement: ast.stmt) -> str:
    """Say what a statement gives a value to: a name as code, or the caller."""
    return ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else "return"


def _scope(place: Around) -> ast.AST | None:
    return next((node for node in place.parents if isinstance(node, _Function)), None)


def _is_only_choice(machine: Machine, place: Around) -> bool:
    """Tell whether an expression takes CUDA where it is, and what may not be the machine's device where it is not."""
    child: ast.AST = place.node
    for node in place.parents:
        if isinstance(node, ast.IfExp) and child is node.body:
            is_absent = machine.outcome(node.test) is False and not machine.is_wanted(node.test)
            return is_absent and not any(
                isinstance(one, ast.expr) and machine.may_be_own(one) for one in ast.walk(node.orelse)
            )
        child = node
    return False


def _is_given(machine: Machine, place: Around) -> bool:
    """Tell whether a place is behind a flag that a caller gives, whom the file does not name."""
    return _is_unknown(
        machine, next((node.test for node in place.parents if isinstance(node, ast.If | ast.IfExp)), None)
    )


def _is_unknown(machine: Machine, test: ast.expr | None) -> bool:
    return isinstance(test, ast.Name) and test.id not in machine.values


def _is_of_cuda(place: Around) -> bool:
    """Tell whether an expression is an argument of `torch.cuda.…`, or is compared: it decides no device."""
    around = (node for node in place.parents if isinstance(node, ast.Call))
    return isinstance(place.parents[0], ast.Compare) or any(".cuda." in name_of(call.func) for call in around)


def _walked_names(node: ast.AST) -> Iterator[str]:
    """Name what is gone through one by one, or of which one is picked."""
    match node:
        case ast.For(iter=source) | ast.comprehension(iter=source) | ast.Subscript(value=source, ctx=ast.Load()):
            yield name_of(source).split(".")[-1]
        case ast.Call(func=ast.Name(id=function), args=arguments) if function in _WALKERS:
            yield from (name_of(argument).split(".")[-1] for argument in arguments)
        case _:
            pass


def _is_choice(machine: Machine, place: Around, walked: set[str]) -> bool:
    """Tell whether one of several devices is picked, of which none is the machine's."""
    kinds = {device_in(item) for item in getattr(place.node, "elts", [])}
    if not kinds >= {"cuda", "cpu"} or machine.kind in kinds or "" in kinds:
        return False
    match place.parents[0]:
        case ast.For(iter=source) | ast.comprehension(iter=source) | ast.Subscript(value=source):
            return source is place.node
        case ast.Call(func=ast.Name(id=function)):
            return function in _WALKERS
        case ast.Assign(targets=targets):
            return any(name_of(target).split(".")[-1] in walked for target in targets)
        case _:
            return False


def _whole(place: Around) -> ast.expr | None:
    """Give all of the expression that names the CPU as a device; None where that is only compared or told."""
    if device_in(place.node) != "cpu" or any(isinstance(node, ast.Compare | ast.JoinedStr) for node in place.parents):
        return None
    whole = place.node
    for node in place.parents:
        if isinstance(node, ast.stmt):
            break
        whole = node if isinstance(node, ast.expr) else whole
    return whole


def _is_table(absent: Machine, present: Machine, whole: ast.expr) -> bool:
    """Tell whether devices stand beside the answer to whether CUDA is there, and the machine's is none of them."""
    kinds = {device_in(node) for node in ast.walk(whole)}
    return kinds >= {"cuda", "cpu"} and absent.kind not in kinds and _asks_inside(absent, present, whole)


def _is_looked_up(absent: Machine, present: Machine, node: ast.expr) -> bool:
    """Tell whether what is looked up in a table with the CPU depends on whether CUDA is there."""
    match node:
        case ast.Subscript(value=table, slice=key):
            pass
        case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, *_]):
            pass
        case _:
            return False
    held = [table, *_given(absent, table)]
    said = [*getattr(node, "args", [])[1:], *(item for one in held for item in _items(one))]
    devices = {device_in(item) for item in said}
    return "cpu" in devices and len(devices) > 1 and _asks_inside(absent, present, key)


def _given(machine: Machine, node: ast.expr) -> list[ast.expr]:
    """Give all that the file gives to a name, and nothing for what is no name."""
    return machine.values.get(name_of(node).split(".")[-1], []) if isinstance(node, ast.Name | ast.Attribute) else []


def _items(node: ast.expr) -> list[ast.expr]:
    return node.values if isinstance(node, ast.Dict) else node.elts if isinstance(node, _Display) else []


def _asks_inside(absent: Machine, present: Machine, node: ast.AST) -> bool:
    parts = [part for part in ast.walk(node) if isinstance(part, ast.Call | ast.Name | ast.Attribute)]
    return any(absent.outcome(part) is False and present.outcome(part) is None for part in parts) or any(
        map(absent.count, parts)
    )


def _lost_in_loop(absent: Machine, present: Machine, loop: ast.AST) -> Iterator[int]:
    """Give the tests of a loop over devices that are false for the machine's own because CUDA is absent."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    tests: list[ast.expr] = []
    if isinstance(loop, ast.For):
        pairs = [(loop.target, loop.iter)]
        inner = (node for statement in loop.body for node in ast.walk(statement))
        tests = [node.test for node in inner if isinstance(node, ast.If | ast.IfExp)]
    elif isinstance(loop, _Comprehension):
        pairs = [(one.target, one.iter) for one in loop.generators]
        tests = [test for one in loop.generators for test in one.ifs]
    for target, source in pairs:
        displays = [source, *_given(absent, source)]
        if not any(absent.kind in map(device_in, _items(display)) for display in displays):
            continue
        for test in tests:
            if (
                absent.outcome_for(test, name_of(target)) is False
                and present.outcome_for(test, name_of(target)) is None
            ):
                yield test.lineno
