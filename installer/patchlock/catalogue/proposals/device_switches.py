"""Which devices an app takes only where a variable says so, leaves out with a comment, or cannot take; pure."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.proposals import importers
from patchlock.catalogue.proposals.findings import Finding, excerpt
from patchlock.model.backends import BACK_ENDS, CUDA_OR_CPU, CUDA_OR_CPU_MODELS
from patchlock.model.text_files import SourceText, decode
from patchlock.patches.import_graph import Trees

_TITLES = {"cuda": "CUDA", "mps": "Metal", "xpu": "XPU"}
_DEVICES = {one.device: _TITLES.get(one.device, one.device) for one in BACK_ENDS.values() if one.device != "cpu"}
_CUDA_OR_CPU = frozenset(name.split(".")[0] for name in CUDA_OR_CPU)
_NAMED = {"mps": re.compile(rb"(?i)\b(?:mps|metal)\b"), "xpu": re.compile(rb"(?i)\bxpu\b")}
"""Devices that a comment may speak of, and how."""
_OFF = frozenset({"", "0", "false", "no", "off", "none"})


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A device that code does not choose, and a comment there speaks of."""

    device: str
    found: Finding
    """The comment."""

    @property
    def says(self) -> str:
        """Quote the comment, a clause."""
        place = f"{self.found.path}:{self.found.line}"
        return f'upstream\'s choice of a device leaves out {self.device}, and {place} says: "{self.found.text}"'


def left_out(
    trees: Trees, started: Collection[PurePosixPath], idle: Mapping[PurePosixPath, Collection[int]]
) -> tuple[LeftOut, ...]:
    """List the devices of whom a comment speaks beside code that chooses others, each with its first comment.

    Args:
        trees: of the app.
        started: the files that count; none: all but tests and examples.
        idle: lines that do not count.
    """
    found: dict[str, LeftOut] = {}
    for path in started or [path for path in sorted(trees.files) if not importers.is_no_part(path)]:
        words = [device for device, said in _NAMED.items() if said.search(trees.files[path])]
        module = trees.of(path) if words and b"is_available" in trees.files[path] else None
        comments = _comments(path, trees.files[path]) if module is not None else {}
        for scope in _choosers(module) if comments and module is not None else ():
            code = ast.unparse(scope).encode()
            first = _first_line(scope, comments)
            for line in range(first, (scope.end_lineno or first) + 1):
                text = comments.get(line, "") if line not in idle.get(path, ()) else ""
                for device in words:
                    if _NAMED[device].search(text.encode()) and not _NAMED[device].search(code):
                        place = Finding(path=path, line=line, text=excerpt(text.lstrip("# ")))
                        found.setdefault(device, LeftOut(device=device, found=place))
    return tuple(found.values())


def _choosers(module: ast.Module) -> Iterator[ast.stmt]:
    """Give the functions of a module, and the statements beside them, that ask whether CUDA is there."""
    for node in module.body:
        functions = [one for one in ast.walk(node) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
        scopes: list[ast.stmt] = [*functions] or [node]
        for one in scopes:
            asked = (inner for inner in ast.walk(one) if isinstance(inner, ast.Attribute))
            if any(inner.attr == "is_available" and "cuda" in ast.unparse(inner) for inner in asked):
                yield one


def _first_line(scope: ast.stmt, comments: Mapping[int, str]) -> int:
    """Give the line of a statement, or of the comment right above it."""
    line = scope.lineno
    while line - 1 in comments:
        line -= 1
    return line


def _comments(path: PurePosixPath, data: bytes) -> Mapping[int, str]:
    source = decode(path, data)
    try:
        tokens = list(
            tokenize.generate_tokens(io.StringIO(source.text if isinstance(source, SourceText) else "").readline)
        )
    except (tokenize.TokenError, SyntaxError):
        return {}
    return {one.start[0]: one.string for one in tokens if one.type == tokenize.COMMENT}


def read(trees: Trees) -> tuple[str, ...]:
    """Say of each device that it is off until a variable is set, with the place; sorted by file."""
    paths = (path for path in sorted(trees.files) if path.suffix == ".py" and not importers.is_no_part(path))
    reading = (path for path in paths if any(word in trees.files[path] for word in (b"environ", b"getenv")))
    return tuple(dict.fromkeys(remark for path in reading for remark in _of_file(trees, path)))


def on_cpu_without_cuda(trees: Trees, come_to: Collection[PurePosixPath]) -> tuple[str, ...]:
    """Say that a library which knows no other card than CUDA's computes on the CPU, with the first place.

    Args:
        trees: of the app.
        come_to: the files that count; none: all but tests and examples.
    """
    loaded: list[str] = []
    given: list[str] = []
    for path in sorted(come_to or [path for path in trees.files if not importers.is_no_part(path)]):
        tree = trees.of(path) if any(name.encode() in trees.files[path] for name in _CUDA_OR_CPU) else None
        for scope in ast.walk(tree) if tree is not None else ():
            if not isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            names: set[str] = set()
            for node in _own(scope):
                if (libraries := _CUDA_OR_CPU.intersection(_loaded(node))) and isinstance(node, ast.stmt | ast.expr):
                    loaded += [f"{name}, {path}:{node.lineno}" for name in libraries]
                    names.update(_bound(node))
            calls = (node for node in ast.walk(scope) if isinstance(node, ast.Call))
            given += [f"{path}:{call.lineno}" for call in calls if _gives_a_device(call, names)]
    if not loaded:
        return ()
    name, _, place = loaded[0].partition(", ")
    what = f"upstream computes with {name}, which knows only CUDA and the CPU"
    on_rocm = "; on ROCm torch calls its card cuda too, and with that it fails: see which device it is given at "
    return (f"{what}; without CUDA it computes on the CPU: {place}" + (f"{on_rocm}{given[0]}" if given else ""),)


def _own(scope: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """Give the nodes of a scope, without those of the functions in it."""
    waiting: list[ast.AST] = [*scope.body]
    for node in waiting:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += ast.iter_child_nodes(node)


def _bound(node: ast.AST) -> Iterator[str]:
    """Name what an import gives a name to."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)


def _gives_a_device(call: ast.Call, names: Collection[str]) -> bool:
    """Tell whether a model of such a library, imported by these names, gets a device that stands nowhere as a word."""
    called = ast.unparse(call.func)
    if called.split(".")[0] not in names or called.rpartition(".")[2] not in CUDA_OR_CPU_MODELS:
        return False
    devices = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "device")]
    return any(not isinstance(one, ast.Constant) for one in devices)


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
