"""Which code of a file never runs where the only device is of one kind, and which its tests choose; edits nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patchlock.patches.ops._device.guards import Guards, bindings_of, guards_of
from patchlock.patches.ops._device.walk import Walk
from patchlock.patches.ops.syntax import nodes_of

Tests = Guards
"""What the tests of a file ask, and how they end."""


def tests_of(module: ast.Module, kind: str) -> Tests:
    """Say what the tests of a file ask on a machine with one kind of device, as PyTorch names it: `mps`."""
    return guards_of(bindings_of(nodes_of(module)), kind)


def never_run(module: ast.Module, tests: Tests) -> frozenset[ast.AST]:
    """Give the outermost statements and expressions that never run; none where the file is nested too deeply."""
    walk = Walk(absent=tests, unchosen=tests, lines=None)
    try:
        spots = [spot for spot in walk.spots(module) if spot.is_dead and spot.around and not spot.around.is_dead]
    except RecursionError:
        return frozenset()
    return frozenset(spot.node for spot in spots)


def chosen(module: ast.Module, tests: Tests) -> Iterator[ast.stmt]:
    """Give the statements below tests whose answer is known and takes them; they run wherever the test does."""
    for node in ast.walk(module):
        if isinstance(node, ast.If):
            yield from node.body if tests.rules_out(node.test, truth=False) else ()
            yield from node.orelse if tests.rules_out(node.test, truth=True) else ()
