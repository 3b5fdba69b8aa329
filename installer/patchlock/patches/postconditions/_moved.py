"""What stays on the CPU though the device that is given is another one, as only CUDA is compared; runs nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from patchlock.patches.postconditions._answers import owner_of
from patchlock.patches.postconditions._without_cuda import Around, Machine, device_in

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def stays(machine: Machine, reached: Iterable[Around]) -> Iterator[int]:
    """Give the lines of choices by a device that move to CUDA what they leave on the CPU for the machine's device.

    Args:
        machine: where CUDA may be there, and is not chosen.
        reached: all expressions that run without CUDA.
    """
    for place in reached:
        choice = place.parents[0]
        if not isinstance(choice, ast.If | ast.IfExp) or choice.test is not place.node:
            continue
        outcome = machine.outcome(place.node)
        if outcome is None or not _is_compared(place.node):
            continue
        taken, other = [_block(choice, name) for name in (("orelse", "body") if outcome else ("body", "orelse"))]
        tests = [choice.test, *_before(place)]
        while len(other) == 1 and isinstance(other[0], ast.If):
            tests.append(other[0].test)
            other = [*other[0].orelse]
        if any(_is_own(part, machine.kind) for test in tests for part in ast.walk(test)):
            continue
        left = set(_moved(other, "cpu")) | ({ast.unparse(other[0])} if isinstance(choice, ast.IfExp) else set())
        if not other:
            own = {id(part) for one in taken for part in ast.walk(one)}
            scope = next((one for one in place.parents if isinstance(one, _Function)), place.parents[-1])
            rest = [one for one in ast.walk(scope) if id(one) not in own]
            left = {*_moved(taken, "cuda")} - {*_moved_at_all(rest)}
        if {*_moved(taken, "cuda")} & left:
            yield choice.test.lineno


def _block(choice: ast.If | ast.IfExp, name: str) -> list[ast.AST]:
    value = getattr(choice, name)
    return [*value] if isinstance(value, list) else [value]


def _is_compared(test: ast.expr) -> bool:
    """Tell whether a test names a device in so many words."""
    return any(device_in(part) == "cuda" for part in ast.walk(test))


def _is_own(part: ast.AST, kind: str) -> bool:
    return device_in(part) == kind or getattr(part, "attr", "") == owner_of(kind)


def _before(place: Around) -> Iterator[ast.expr]:
    """Give the tests in front of one in a chain of `elif`."""
    child: ast.AST = place.parents[0]
    for node in place.parents[1:]:
        if not isinstance(node, ast.If) or node.orelse != [child]:
            return
        yield node.test
        child = node


def _moved(block: Iterable[ast.AST], kind: str) -> Iterator[str]:
    """Give the code of what is moved to a kind of device."""
    for node in (inner for one in block for inner in ast.walk(one)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_named = node.func.attr == "to" and any(device_in(one) == kind for one in node.args[:1])
            if is_named or node.func.attr == kind:
                yield ast.unparse(node.func.value)


def _moved_at_all(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="to" | "cuda" | "mps" | "xpu")):
                yield ast.unparse(value)
            case _:
                pass
