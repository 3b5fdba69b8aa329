"""Where a program calls what the draft leaves out, of which it has a stand-in that can only be imported; pure."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from patchlock.catalogue.proposals import _started_code
from patchlock.catalogue.proposals.findings import Finding, Issue, ProposedPatch, excerpt
from patchlock.patches import import_graph
from patchlock.patches.import_graph import Trees

NAME = "left-out-and-used"


def issues(
    trees: Trees,
    sections: Sequence[ProposedPatch],
    started: Sequence[PurePosixPath],
    command: Sequence[str],
    idle: Mapping[PurePosixPath, Collection[int]],
) -> tuple[Issue, ...]:
    """Tell of the calls of each package, those that the program makes as it starts before those that it may come to.

    Args:
        trees: of the app, as upstream has it.
        sections: the patches of the draft.
        started: the files that the program runs as it starts.
        command: with which it is started.
        idle: the files to which it may come on a machine without a card, with the lines to which it does not.
    """
    program = import_graph.program(started, command)
    begun = [(module, path == program) for path in started if (module := trees.of(path)) is not None]
    functions = _started_code.functions([module for module, _ in begun])
    found: list[Issue] = []
    for patch in [one.written.patch for one in sections if one.written.patch.op_name == "optional-import"]:
        package, message = getattr(patch.op, "package", ""), getattr(patch.op, "message", "")
        paths = [path for path in sorted(idle) if path in {PurePosixPath(one) for one in patch.paths}]
        at_start = _started_code.run_at_start(begun, functions, is_sure=True)
        places: dict[bool, list[Finding]] = {True: [], False: []}
        for path in paths:
            module = trees.of(path) or ast.Module(body=[], type_ignores=[])
            calls = _calls(module, _bound(module, package))
            for call in sorted(calls, key=lambda one: one.lineno):
                if call.lineno not in idle[path]:
                    place = Finding(path=path, line=call.lineno, text=excerpt(ast.unparse(call)))
                    places[call in at_start].append(place)
        whom = f"{package}, which is left out: {message}"
        found += [
            Issue(
                name=NAME,
                title=f"as it starts, the program calls {whom}" if is_at_start else f"the program may call {whom}",
                means=f"where it is left out ({', '.join(patch.profiles)}), this ends with ImportError",
                found=tuple(calls_found),
                remedy="no patch of the draft changes that: write one that does without it, or a [[refused]] table for "
                "each such profile",
                is_at_start=is_at_start,
                is_left=True,
            )
            for is_at_start, calls_found in places.items()
            if calls_found
        ]
    return tuple(found)


def _bound(module: ast.Module, package: str) -> frozenset[str]:
    """Name what the imports of a package bind."""
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            tops = [(one, one.name) for one in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            tops = [(one, node.module or "") for one in node.names]
        else:
            continue
        names |= {one.asname or one.name.partition(".")[0] for one, top in tops if top.partition(".")[0] == package}
    return frozenset(names)


def _calls(node: ast.AST, names: Collection[str]) -> Iterator[ast.Call]:
    """Give the calls of some names and of their attributes; none where a test asks for it, or errors are caught."""
    if isinstance(node, ast.Call) and _root(node.func) in names:
        yield node
    is_kept = isinstance(node, ast.Try) and bool(node.handlers)
    if isinstance(node, ast.If | ast.IfExp):
        is_kept = any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(node.test))
    if not is_kept:
        for child in ast.iter_child_nodes(node):
            yield from _calls(child, names)


def _root(function: ast.expr) -> str:
    while isinstance(function, ast.Attribute):
        function = function.value
    return function.id if isinstance(function, ast.Name) else ""
