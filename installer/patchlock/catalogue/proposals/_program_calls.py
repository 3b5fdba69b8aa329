"""Which programs of the machine an app's code calls, and whether it ends without one; pure."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.proposals.findings import Finding, excerpt
from patchlock.patches.import_graph import Trees

SHELLS = frozenset({"system", "popen", "run", "call", "check_call", "check_output", "Popen", "getoutput"})
"""Functions of `os` and `subprocess` that take a command."""
_PROBES = frozenset({"-version", "--version", "-h", "--help", "-V"})
_EXITS = frozenset({"exit", "_exit", "quit", "abort"})


@dataclass(frozen=True, kw_only=True)
class ProgramCall:
    """One call."""

    found: Finding
    ends_without: bool
    """It asks whether the program is there, and the app ends where it is not."""


def find(trees: Trees, programs: Collection[str]) -> Iterator[ProgramCall]:
    """List the calls of some programs, by path and line: lists of words that begin with one, shell lines, `which`."""
    for path in sorted(trees.files):
        if any(name.encode() in trees.files[path] for name in programs) and (module := trees.of(path)) is not None:
            yield from sorted(_calls(path, module, programs), key=lambda one: one.found.line)


def _calls(path: PurePosixPath, module: ast.Module, programs: Collection[str]) -> Iterator[ProgramCall]:
    around = {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(module):
        match node:
            case ast.List(elts=[ast.Constant(value=str(first)), _, *_]):
                asks = any(isinstance(one, ast.Constant) and one.value in _PROBES for one in node.elts)
            case ast.Call(
                func=ast.Attribute(attr="which") | ast.Name(id="which"), args=[ast.Constant(value=str(first)), *_]
            ):
                asks = True
            case ast.Call(func=ast.Attribute(attr=name), args=[argument, *_]) if name in SHELLS:
                line = _begin(argument)
                first, asks = line.partition(" ")[0], not _PROBES.isdisjoint(line.split())
            case _:
                continue
        if first.rpartition("/")[2].removesuffix(".exe") in programs:
            place = Finding(path=path, line=node.lineno, text=excerpt(ast.unparse(node)))
            yield ProgramCall(found=place, ends_without=asks and _ends(node, around))


def _begin(line: ast.expr) -> str:
    """Give a text as far as it stands in the code."""
    match line:
        case ast.Constant(value=str(text)) | ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod()):
            return _begin(left)
        case _:
            return ""


def _ends(node: ast.AST, around: dict[ast.AST, ast.AST]) -> bool:
    """Tell whether nothing goes on where a program is not there: nobody catches it, or who does leaves."""
    is_which = isinstance(node, ast.Call) and "which" in ast.unparse(node.func)
    while (outer := around.get(node)) is not None and not isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(outer, ast.Try) and node in outer.body and not is_which:
            return all(_leaves(one) for one in outer.handlers)
        if isinstance(outer, ast.If) and node is outer.test and is_which:
            return any(map(_leaves, outer.body))
        node = outer
    return not is_which


def _leaves(block: ast.AST) -> bool:
    for node in ast.walk(block):
        called = node.func if isinstance(node, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        if isinstance(node, ast.Raise) or name in _EXITS:
            return True
    return False
