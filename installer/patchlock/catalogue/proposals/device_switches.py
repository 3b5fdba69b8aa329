"""Which devices an app takes only where an environment variable says so, or cannot take at all; pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from patchlock.catalogue.proposals import importers
from patchlock.model.backends import BACK_ENDS, CUDA_OR_CPU, CUDA_OR_CPU_MODELS
from patchlock.patches.import_graph import Trees

_TITLES = {"cuda": "CUDA", "mps": "Metal", "xpu": "XPU"}
_DEVICES = {one.device: _TITLES.get(one.device, one.device) for one in BACK_ENDS.values() if one.device != "cpu"}
_CUDA_OR_CPU = frozenset(name.split(".")[0] for name in CUDA_OR_CPU)
_OFF = frozenset({"", "0", "false", "no", "off", "none"})


def read(trees: Trees) -> tuple[str, ...]:
    """Say of each device that it is off until a variable is set, with the place; sorted by file."""
    paths = (path for path in sorted(trees.files) if path.suffix == ".py" and not importers.is_no_part(path))
    reading = (path for path in paths if any(word in trees.files[path] for word in (b"environ", b"getenv")))
    return tuple(dict.fromkeys(remark for path in reading for remark in _of_file(trees, path)))


def on_cpu_without_cuda(trees: Trees) -> tuple[str, ...]:
    """Say that a library which knows no other card than CUDA's computes on the CPU, with the first place."""
    for path in sorted(path for path in trees.files if not importers.is_no_part(path)):
        tree = trees.of(path) if any(name.encode() in trees.files[path] for name in _CUDA_OR_CPU) else None
        for node in ast.walk(tree) if tree is not None else ():
            for name in _CUDA_OR_CPU.intersection(_loaded(node)):
                what = f"upstream computes with {name}, which knows only CUDA and the CPU"
                return (f"{what}; without CUDA it computes on the CPU: {path}:{getattr(node, 'lineno', 1)}",)
    return ()


def _loaded(node: ast.AST) -> Iterator[str]:
    """Name the libraries that code imports whole, or with what takes a device."""
    match node:
        case ast.Import(names=aliases):
            yield from (alias.name.split(".")[0] for alias in aliases)
        case ast.ImportFrom(module=str() as module, names=aliases, level=0):
            yield from (module.split(".")[0] for alias in aliases if alias.name in CUDA_OR_CPU_MODELS)
        case ast.Call(
            func=ast.Name(id=function) | ast.Attribute(attr=function), args=[ast.Constant(value=str() as name)]
        ):
            yield name.split(".")[0] if function == "import_module" else ""
        case _:
            pass


def _of_file(trees: Trees, path: PurePosixPath) -> Iterator[str]:
    tree = trees.of(path)
    nodes = list(ast.walk(tree)) if tree is not None else []
    names = {
        target.id: variable
        for node in nodes
        if isinstance(node, ast.Assign) and (variable := _asked([node.value])) and not _devices([node.value])
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        if (read := _read(node)) is not None and read[1] in {"cpu", *_DEVICES}:
            place = f"{path}:{getattr(node, 'lineno', 1)}"
            yield f"upstream uses the device that {read[0]} names, {read[1]} where it is not set: {place}"
        if isinstance(node, ast.If | ast.IfExp):
            body = node.body if isinstance(node.body, list) else [node.body]
            variable = next(filter(None, (_switch(part, names) for part in _needed(node.test))), "")
            for device in _devices(body) if variable else ():
                yield f"upstream uses {_DEVICES[device]} only where {variable} is set: {path}:{node.test.lineno}"


def _needed(test: ast.expr) -> Iterator[ast.expr]:
    """Give all that has to be true for a test to be."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _needed(value)
        case _:
            yield test


def _switch(part: ast.expr, names: dict[str, str]) -> str:
    """Name the variable that has to be set for a part of a test to be true, "" for none."""
    if isinstance(part, ast.Name):
        return names.get(part.id, "")
    is_negated = isinstance(part, ast.UnaryOp | ast.BoolOp) or (
        isinstance(part, ast.Compare) and not isinstance(part.ops[0], ast.Eq)
    )
    return "" if is_negated or _devices([part]) else _asked([part])


def _asked(nodes: Iterable[ast.AST]) -> str:
    """Name the environment variable that code reads, where it is off if nobody sets it."""
    found = (one for node in nodes for inner in ast.walk(node) if (one := _read(inner)) is not None)
    return next((name for name, default in found if default.lower() in _OFF), "")


def _read(node: ast.AST) -> tuple[str, str] | None:
    """Give the environment variable that a call reads, and what it is where nobody sets it."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="get" | "getenv" as name, value=owner),
            args=[ast.Constant(value=str() as asked), *more],
        ) if name == "getenv" or ast.unparse(owner).endswith("environ"):
            default = more[0].value if more and isinstance(more[0], ast.Constant) else None
            return asked, str(default or "")
        case _:
            return None


def _devices(nodes: Iterable[ast.AST]) -> list[str]:
    texts = (inner.value for one in nodes for inner in ast.walk(one) if isinstance(inner, ast.Constant))
    return list(dict.fromkeys(text for text in texts if isinstance(text, str) and text in _DEVICES))
