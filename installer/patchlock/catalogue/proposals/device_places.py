"""What a place of a file that uses a device means on a machine with one kind of device; pure.

| what stands above the place                                            | verdict    |
|------------------------------------------------------------------------|------------|
| tests, early ends, `assert`, `and`, that are never so on such a machine | NEVER      |
| an end of the file, or an import of what only CUDA has                  | ENDED      |
| nothing, but what it assigns is read nowhere else than in such code     | NEVER      |
| nothing, but its value is replaced on such a machine before it is read  | NEVER      |
| it is what a function takes where no caller gives it a device           | BY_DEFAULT |
| a caller has given a card                                               | IF_GIVEN   |
| anything else                                                           | (it runs)  |
"""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from packaging.specifiers import SpecifierSet

from patchlock.catalogue.proposals import _gpu_packages, _started_code, module_names, reached_code
from patchlock.catalogue.proposals.reached_code import lines_of
from patchlock.patches import device_branches
from patchlock.patches.import_graph import Trees

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_EXITS = frozenset({"exit", "_exit", "quit", "abort"})
_CARD = re.compile(r"(?i)device|cuda|gpu")
_ASKS = re.compile(rb"(?i)cuda|gpu|nccl|nvidia|is_available|platform")
"""What stands in a file whose tests may ask for a device."""


class Verdict(enum.Enum):
    """Whether a place counts on a machine."""

    NEVER = "it does not run there, or does nothing"
    ENDED = "the program ends before it"
    BY_DEFAULT = "a function does it where no caller gives it a device"
    IF_GIVEN = "it does it where a caller gives it the number of a card"


Made = Mapping[str, Sequence[ast.Call]]
"""A class → the calls that make one, in code that runs."""


def verdicts(module: ast.Module, kind: str, made: Made) -> Mapping[int, Verdict]:
    """Judge the lines of a file on machines with one kind of device; one that is not there runs.

    Args:
        module: the file.
        kind: as PyTorch names it: `cpu`, `mps`, `xpu`, `privateuseone`.
        made: of the program.
    """
    tests = device_branches.tests_of(module, kind)
    found = {line: one for function, calls in _functions(module, made) for line, one in _by_arguments(function, calls)}
    outermost = device_branches.never_run(module, tests)
    never = {*_lines(outermost)}
    dead = {node for one in outermost for node in ast.walk(one)}
    loads: dict[str, list[bool]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads.setdefault(node.id, []).append(node in dead)
    for one, after in _followed(module):
        if name := _target(one):
            is_idle = all(loads.get(name, [False])) or _is_replaced(name, after, tests)
            never.update(lines_of([one]) if is_idle else [])
    ended = {line for block, at in _ends(module, tests) for line in lines_of(block[at + 1 :])}
    return found | dict.fromkeys(never, Verdict.NEVER) | dict.fromkeys(ended, Verdict.ENDED)


def idle_lines(
    kind: str,
    trees: Trees,
    started: Sequence[PurePosixPath],
    command: Sequence[str],
    python_path: str,
    elsewhere: Mapping[PurePosixPath, Collection[int]],
) -> Mapping[PurePosixPath, Collection[int]]:
    """List the lines to which a program does not come on machines with one kind of device, but does on others.

    Args:
        kind: as PyTorch names it.
        trees: of the app.
        started: as `reached_code` has it, like the two that follow.
        command: with which it is started.
        python_path: its PYTHONPATH.
        elsewhere: the lines to which it comes on no machine, by the files to which it comes on some.
    """

    def never(path: PurePosixPath) -> Collection[ast.AST]:
        module = trees.of(path) if _ASKS.search(trees.files[path]) else None
        return device_branches.never_run(module, device_branches.tests_of(module, kind)) if module is not None else ()

    there = reached_code.idle_lines(trees, started, command, python_path, never)
    return {
        path: there.get(path, frozenset(range(trees.files[path].count(b"\n") + 2))).difference(lines)
        for path, lines in elsewhere.items()
    }


def ends(module: ast.Module, kind: str) -> tuple[ast.stmt, ...]:
    """List the statements with which a file ends on such machines: it raises or exits, and nobody goes on."""
    found = (block[at] for block, at in _ends(module, device_branches.tests_of(module, kind)))
    return tuple(one for one in found if isinstance(one, ast.If | ast.Assert))


def _ends(node: ast.AST, tests: device_branches.Tests) -> Iterator[tuple[Sequence[ast.stmt], int]]:
    """Give the blocks that may run with the places of their ends; where a `try` goes on there is none."""
    for name, block in (("body", getattr(node, "body", [])), ("orelse", getattr(node, "orelse", []))):
        is_caught = name == "body" and isinstance(node, ast.Try) and node.handlers
        is_dead = isinstance(node, ast.If) and tests.rules_out(node.test, name == "body")
        for at, one in enumerate(block if isinstance(block, list) and not is_caught and not is_dead else []):
            if isinstance(one, ast.If) and _is_left(one.body[-1]) and tests.rules_out(one.test, truth=False):
                break
            if _is_end(one, tests) or _imports_of_cuda(one):
                yield block, at
            yield from _ends(one, tests)


def _is_end(one: ast.stmt, tests: device_branches.Tests) -> bool:
    match one:
        case ast.Assert(test=test):
            return _is_sure(test) and tests.rules_out(test, truth=True)
        case ast.If(test=test, body=[*_, last]):
            return _is_exit(last) and _is_sure(test) and tests.rules_out(test, truth=False)
        case _:
            return False


def calls_of_classes(trees: Trees, idle: Mapping[PurePosixPath, Collection[int]]) -> Made:
    """Find the calls that make something of a class: what is named as classes are.

    Args:
        trees: of the app.
        idle: the files to which the program may come, with the lines to which it does not.
    """
    found: dict[str, list[ast.Call]] = {}
    for path, lines in idle.items():
        for node in ast.walk(trees.of(path) or ast.Module([], [])):
            if isinstance(node, ast.Call) and node.lineno not in lines:
                name = ast.unparse(node.func).rpartition(".")[2]
                if name[:1].isupper():
                    found.setdefault(name, []).append(node)
    return found


def _functions(module: ast.Module, made: Made) -> Iterator[tuple[_Function, Sequence[ast.Call]]]:
    """Give the functions of a file, with the calls of each that makes an object."""
    owners = {one: node.name for node in ast.walk(module) if isinstance(node, ast.ClassDef) for one in node.body}
    for node in ast.walk(module):
        if isinstance(node, _Function):
            yield node, made.get(owners.get(node, ""), ()) if node.name == "__init__" else ()


def _by_arguments(function: _Function, calls: Sequence[ast.Call]) -> Iterator[tuple[int, Verdict]]:
    """Judge the lines of a function that depend on whether a caller gives it a device, or the number of one."""
    every = function.args
    ordered = [*every.posonlyargs, *every.args]
    last = ordered[len(ordered) - len(every.defaults) :]
    for one, default in zip((*last, *every.kwonlyargs), (*every.defaults, *every.kw_defaults), strict=True):
        answers = {_is_given(call, function, one.arg) for call in calls}
        verdict = Verdict.NEVER if answers == {True} else Verdict.BY_DEFAULT
        if default and (False not in answers or None in answers):
            yield from ((line, verdict) for line in lines_of([default]))
    names = {one.arg for one in (*every.posonlyargs, *every.args, *every.kwonlyargs) if _CARD.search(one.arg)}
    for node in ast.walk(function) if names else ():
        if isinstance(node, ast.If | ast.IfExp):
            body, orelse = ([one] if isinstance(one, ast.expr) else one for one in (node.body, node.orelse))
            match node.test:
                case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
                    without, given = body, orelse
                case ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
                    without, given = orelse, body
                case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
                    without, given = body, orelse
                case _:
                    continue
            if name in names:
                yield from ((line, Verdict.BY_DEFAULT) for line in lines_of(without))
                yield from ((line, Verdict.IF_GIVEN) for line in lines_of(given))


def _is_given(call: ast.Call, function: _Function, name: str) -> bool | None:
    """Tell whether a call gives a parameter of a function a value; None where it may."""
    if any(keyword.arg is None for keyword in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    return name in dict(_started_code.arguments(call, function))


def _is_replaced(name: str, after: Iterable[ast.stmt], tests: device_branches.Tests) -> bool:
    """Tell whether statements give a name another value before one of them reads it, on machines of this kind."""
    for one in after:
        match one:
            case ast.Assign(value=value) if _target(one) == name:
                return name not in _named(value)
            case ast.If(test=test, body=body) if name not in _named(test):
                if tests.rules_out(test, truth=False):
                    return _is_replaced(name, body, tests)
                if not tests.rules_out(test, truth=True) and name in _named(one):
                    return False
                if name in _named(*one.orelse):
                    return False
            case _ if name in _named(one):
                return False
            case _:
                pass
    return False


def _named(*nodes: ast.AST) -> set[str]:
    inner = (one for node in nodes for one in ast.walk(node))
    return {ast.unparse(one) for one in inner if isinstance(one, ast.Name | ast.Attribute)}


def _target(node: ast.AST) -> str:
    """Write the one variable or attribute that a statement gives a value; "" for none."""
    match node:
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]):
            return ast.unparse(target)
        case _:
            return ""


def _lines(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """Give the lines of statements; with an expression that does not run, others may stand on the same line."""
    yield from (line for one in nodes if isinstance(one, ast.stmt) for line in lines_of([one]))


def _followed(node: ast.AST, after: Sequence[ast.stmt] = ()) -> Iterator[tuple[ast.stmt, Sequence[ast.stmt]]]:
    """Give the statements below a node, each with those that run after it, as far as that is sure."""
    for name in ("body", "orelse", "finalbody", "handlers"):
        block = getattr(node, name, [])
        for index, one in enumerate(block if isinstance(block, list) else []):
            rest = [*block[index + 1 :], *(after if isinstance(node, ast.If | ast.With) else ())]
            yield one, rest
            yield from _followed(one, rest)


def _is_left(one: ast.stmt) -> bool:
    return isinstance(one, ast.Return | ast.Continue | ast.Break)


def _imports_of_cuda(one: ast.stmt) -> bool:
    names = [alias.name for alias in one.names] if isinstance(one, ast.Import) else []
    names += [one.module or ""] if isinstance(one, ast.ImportFrom) and not one.level else []
    found = (_gpu_packages.find(module_names.distribution_of(name), SpecifierSet()) for name in names)
    return any(package is not None and package.needs == "nvidia" for package in found)


def _is_exit(one: ast.stmt) -> bool:
    match one:
        case ast.Raise():
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in _EXITS
        case _:
            return False


def _is_sure(test: ast.expr) -> bool:
    """Tell whether a test asks for CUDA itself, and not for something that is called so."""
    nodes = list(ast.walk(test))
    asked = {node.attr for node in nodes if isinstance(node, ast.Attribute) and "cuda" in ast.unparse(node)}
    return not asked.isdisjoint({"is_available", "is_cuda"}) or any(
        getattr(one, "value", "") == "cuda" for one in nodes
    )
