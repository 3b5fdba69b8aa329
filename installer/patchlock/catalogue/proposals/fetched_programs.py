"""Where an app's code seems to fetch a program and run it, which no lock covers; pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patchlock.catalogue.proposals import importers
from patchlock.patches.import_graph import Trees

_STARTS = frozenset({"run", "call", "check_call", "check_output", "Popen", "system", "startfile"})
"""Functions of `subprocess` and `os` that start a program."""


def read(trees: Trees) -> tuple[str, ...]:
    """Say which functions make a file executable, start it, and name an address; a clause each."""
    return tuple(
        f"{path}:{line} starts a program that the app seems to fetch when it runs, as {address} stands there: no lock "
        "covers that program"
        for path in sorted(trees.files)
        if b"chmod" in trees.files[path] and not importers.is_no_part(path) and (module := trees.of(path))
        for line, address in dict(_started(module)).items()
    )


def _started(module: ast.Module) -> Iterator[tuple[int, str]]:
    for function in ast.walk(module):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        nodes = list(ast.walk(function))
        calls = sorted((one for one in nodes if isinstance(one, ast.Call)), key=lambda one: one.lineno)
        texts = [one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        address = next((one for one in texts if one.startswith(("https://", "http://"))), None)
        made = {ast.unparse(one.args[0]) for one in calls if _word(one) == "chmod" and one.args}
        line = next((one.lineno for one in calls if _word(one) in _STARTS and _program(one) in made), None)
        if address is not None and line is not None:
            yield line, address


def _word(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _program(call: ast.Call) -> str:
    first = call.args[0] if call.args else None
    if isinstance(first, ast.List | ast.Tuple) and first.elts:
        first = first.elts[0]
    return ast.unparse(first) if first is not None else ""
