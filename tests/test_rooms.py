"""What import-linter cannot see: the number of rooms, their signs, what is public and what runs at import; and tests."""

from __future__ import annotations

import ast
import copy
import functools
import importlib
import re
from collections.abc import Iterator

import pytest
from conftest import ROOT

PACKAGE = ROOT / "installer" / "patchlock"
ROOMS = sorted(path for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__")
HEAVY = {"click", "libcst", "requests", "rich", "ruamel", "tomlkit"}
"""Libraries that a command must not wait for unless it uses them."""
PURE = ("model", "patches")
IO_FUNCTIONS = {"open", "print", "input", "exec", "eval", "breakpoint", "__import__"}
IO_METHODS = {
    *("open", "FileIO", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "rmdir", "unlink"),
    *("exists", "is_file", "is_dir", "is_symlink", "is_mount", "iterdir", "glob", "rglob", "stat", "lstat", "chmod"),
    *("resolve", "absolute", "readlink", "samefile", "expanduser", "cwd", "symlink_to", "hardlink_to", "rename"),
}
LOOKS_LIKE_IO = {"patches": {"patches.ops._newer_syntax": {"wrapper.resolve"}}}
"""Room → module → what is none: LibCST calls it so that positions are looked up."""
USED_BY_NO_OTHER_ROOM: dict[str, str] = {}
"""Public module → why it is public all the same."""
STARTS_PROGRAMS = {
    "core.process": "the one place that starts programs",
    "environments._children.gate": "runs inside an app's environment, which has no patchlock",
    "verify._children.sound": "runs inside an app's environment, which has no patchlock",
    "verify._children.forks": "runs inside an app's environment, which has no patchlock",
    "verify._children.contained_start": "runs inside an app's environment, which has no patchlock",
}


@functools.cache
def _modules() -> dict[str, ast.Module]:
    """Give each module by its dotted name below patchlock; a package by its folder."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def _imports(node: ast.AST, *, at_import: bool) -> Iterator[str]:
    """Name what a module imports, `from a import b` as `a.b`; with `at_import` only what runs when it is imported."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names):
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() if at_import:
                continue
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=orelse) if at_import:
                yield from _imports(ast.Module(body=orelse, type_ignores=[]), at_import=True)
            case _:
                yield from _imports(child, at_import=at_import)


def _room(name: str) -> str:
    return name.partition(".")[0]


def _calls(name: str) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(_modules()[name]) if isinstance(node, ast.Call)}


def test_patchlock_holds_at_most_twelve_rooms_and_nothing_else() -> None:
    assert len(ROOMS) <= 12
    others = {path.name for path in PACKAGE.iterdir()} - {path.name for path in ROOMS} - {"__pycache__"}
    assert others == {"__init__.py", "__main__.py", "py.typed"}


@pytest.mark.parametrize("room", [path.name for path in ROOMS])
def test_each_room_says_what_it_is_for(room: str) -> None:
    assert ast.get_docstring(_modules()[room])


def test_every_public_module_is_imported_by_another_room() -> None:
    used: set[str] = set()
    for name, tree in _modules().items():
        for imported in _imports(tree, at_import=False):
            first, _, below = imported.partition(".")
            while first == "patchlock" and below and below not in _modules():
                below = below.rpartition(".")[0]
            while first == "patchlock" and below and _room(below) != _room(name):
                used.add(below)  # and the packages around it
                below = below.rpartition(".")[0]
    public = {name for name in _modules() if "." in name and "._" not in f".{name}"}
    assert public - used == USED_BY_NO_OTHER_ROOM.keys()


def test_imports_are_absolute() -> None:
    relative = [
        name
        for name, tree in _modules().items()
        if "_children" not in name.split(".")  # in an app's environment they lie under another name
        if any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))
    ]
    assert relative == []


def test_nothing_heavy_is_imported_at_import() -> None:
    for name, tree in _modules().items():
        allowed = {"click"} if _room(name) == "cli" else set()
        tops = {imported.partition(".")[0] for imported in _imports(tree, at_import=True)}
        assert tops & HEAVY <= allowed, name


def test_only_process_starts_programs() -> None:
    starts = re.compile(r"subprocess\.\w+|os\.(system|popen|fork|exec\w+|spawn\w+|posix_spawn\w*|startfile)")
    assert {name for name in _modules() if any(map(starts.fullmatch, _calls(name)))} == STARTS_PROGRAMS.keys()


def _does_io(tree: ast.Module) -> set[str]:
    """Name what a module could do I/O by: functions, methods of paths under any name, and parts of packages."""
    nodes = list(ast.walk(tree))
    found = {node.id for node in nodes if isinstance(node, ast.Name)} & IO_FUNCTIONS
    found |= {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute) and node.attr in IO_METHODS}
    imported = set(_imports(tree, at_import=False))
    found |= {name for name in imported if name.startswith("urllib.") and not name.startswith("urllib.parse")}
    return found | {name for name in imported if name.startswith("io.")} | imported & {"urllib"}


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_call_nothing_that_does_io(room: str) -> None:
    found = {name: _does_io(tree) for name, tree in _modules().items() if _room(name) == room}
    assert {name: some for name, some in found.items() if some} == LOOKS_LIKE_IO.get(room, {})


@pytest.mark.parametrize(
    "text",
    [
        *("open('a')", "f = open", "__import__('os')", "io.open('a')", "io.FileIO('a')", "codecs.open('a')"),
        *("from io import FileIO", "import urllib.request", "from urllib import request", "from urllib.error import x"),
        *(f"PurePath('a').{method}()" for method in ("read_text", "exists", "glob", "stat", "unlink", "resolve")),
        "list(map(Path.read_bytes, paths))",
    ],
)
def test_each_way_to_do_io_is_seen(text: str) -> None:
    assert _does_io(ast.parse(text))
    assert not _does_io(ast.parse("import io\nfrom urllib.parse import urlsplit\nio.StringIO(text).readline"))


def _functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for name, tree in _modules().items():
        if "._children" not in name:  # these import nothing of ours
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{name}.{node.name}", node


def _shape(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Write a function without its name, docstring, annotations and the names of its variables; "" for a short one.

    In a body of one statement, what it calls is all that it is, so that only its own variables are renamed there.
    """
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if sum(1 for statement in body for _ in ast.walk(statement)) < 18:
        return ""
    whole = copy.deepcopy(ast.Module([ast.Expr(ast.Lambda(function.args, ast.Constant(None))), *body], []))
    nodes = list(ast.walk(whole))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    own = {node.id for node in names if len(body) > 1 or isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    known: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.arg):
            node.arg, node.annotation = known.setdefault(node.arg, f"name {len(known)}"), None
        elif isinstance(node, ast.Name) and node.id in own:
            node.id = known.setdefault(node.id, f"name {len(known)}")
    return ast.dump(whole)


def test_no_function_stands_twice() -> None:
    places: dict[str, list[str]] = {}
    for place, function in _functions():
        places.setdefault(_shape(function), []).append(place)
    del places[""]
    independent = ("patches.ops.", "patches.postconditions.")  # each proves the other, and so shares nothing with it
    twice = {
        tuple(two)
        for two in places.values()
        if len(two) > 1 and not (len(two) == 2 and all(map(str.startswith, two, independent)))
    }
    assert twice == set()


def test_a_function_that_stands_twice_is_known_by_its_shape() -> None:
    one, same, other = (
        _shape(function)
        for text in (
            "c = _SPACE.match(a, b)\n    return c.end() if c else b",
            "'Say.'\n    at = _BLANK.match(a, b)\n    return at.end() if at else b",
            "c = _SPACE.match(a, b)\n    return c.end() if c else a",
        )
        for function in ast.parse(f"def f(a, b):\n    {text}").body
        if isinstance(function, ast.FunctionDef)
    )
    assert one == same != other


def test_programs_that_tests_hold_as_text_import_what_exists() -> None:
    """Those for Wine, for aarch64 and for a card run on few machines, where a name that has gone would stand for long."""
    names = r"[A-Za-z_]\w*(?: as \w+)?"
    line = re.compile(rf"^\s*from (patchlock(?:\.\w+)*) import ({names}(?:, {names})*)", re.MULTILINE)
    missing = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        texts = (
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant)
        )
        for module, listed in (found for text in texts if isinstance(text, str) for found in line.findall(text)):
            for name in (one.partition(" as ")[0] for one in listed.split(", ")):
                try:
                    held = importlib.import_module(module)
                    if not hasattr(held, name):
                        importlib.import_module(f"{module}.{name}")
                except ModuleNotFoundError:
                    missing.append(f"{path.relative_to(ROOT)}: from {module} import {name}")
    assert missing == []


def test_no_test_asserts_how_long_something_takes() -> None:
    """A deadline that a loop waits for is no such thing: it is compared as it is, and no difference is taken."""
    clock = re.compile(r"time\.(monotonic|perf_counter|process_time|thread_time|time)(_ns)?\(\) -|\bos\.times\(")
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert | ast.If | ast.While) and clock.search(ast.unparse(node.test))
    ]
    assert found == []
