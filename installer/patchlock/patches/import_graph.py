"""What an app's program imports before it does anything: its own files, one after the other, and others' modules; pure.

An import counts where it runs as soon as its file is imported, also in a function of the app that is called then. One
in any other function, under a condition, or in a `try` that goes on without it may never run, and is not followed.
"""

from __future__ import annotations

import ast
import functools
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.model.text_files import Undecodable, decode
from patchlock.patches.ops.syntax import tree_of

Files = Mapping[PurePosixPath, bytes]
_GOES_ON = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_STARTERS = frozenset({"uvicorn", "gunicorn", "hypercorn", "daphne", "flask"})
"""Programs that import `module:object`, the first argument that is no option."""
_TYPED = PurePosixPath("(command)")
"""The code of `python -c`."""
_SETTINGS = frozenset({"logging", "logger", "log", "warnings", "sys", "os", "environ", "dotenv"})
_PREPARES = frozenset({"add_argument", "include_router", "add_middleware", "mount", "append", "update", "register"})
"""First and last words of calls that only prepare."""
_SHOWN = 3
"""Modules in one sentence."""
_RUNNERS = frozenset({"streamlit", "accelerate", "torchrun", "gradio", "chainlit"})
"""Programs that are given the path of the app's script."""


@dataclass(frozen=True, kw_only=True)
class ReachedImport:
    """A module that a program needs as soon as it starts."""

    module: str
    """Dotted."""
    path: PurePosixPath
    line: int
    is_patched: bool = False
    """A patch has written it; it may be met later than at the start."""
    device: str = ""
    """Of which kind, below a test for that: it is met there as the program starts, or later; "" for no such test."""

    @property
    def when(self) -> str:
        """Say when it is met, the end of a clause."""
        return f"where the device is {self.device}" if self.device else "at the start"


@dataclass(frozen=True, kw_only=True)
class Reached:
    """What a program needs as soon as it starts."""

    files: tuple[PurePosixPath, ...]
    """The app's own, in the order in which they are reached; none where the program is none of its files."""
    modules: tuple[ReachedImport, ...]
    """Of others, the standard library included; each once, where it is met first."""


def tree(path: PurePosixPath, data: bytes) -> ast.Module | None:
    """Parse a Python file; None where it cannot be parsed."""
    source = decode(path, data)
    if isinstance(source, Undecodable):
        return None
    try:
        return tree_of(source.text)
    except (SyntaxError, ValueError, RecursionError):
        return None


class Trees:
    """Python files of an app, each parsed when it is first wanted.

    Args:
        files: the app's, by path from the folder in which it is started.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self._parsed: MutableMapping[PurePosixPath, ast.Module | None] = {}
        self.reached: dict[tuple[tuple[str, ...], str], Reached] = {}
        """What commands with a PYTHONPATH need, as far as it is known."""

    def beside(self, path: PurePosixPath, data: bytes) -> Trees:
        """Give these files and one more; what is parsed stays so."""
        both = Trees(ChainMap({path: data}, dict(self.files)))
        both._parsed = ChainMap({}, self._parsed)  # the added file is none of these trees
        return both

    @functools.cached_property
    def folders(self) -> frozenset[PurePosixPath]:
        """The folders with a Python file in them, however deep."""
        found: set[PurePosixPath] = set()
        for path in self.files:
            folder = path.parent
            while path.suffix == ".py" and folder not in found:
                found.add(folder)
                folder = folder.parent
        return frozenset(found)

    @property
    def parsed(self) -> frozenset[PurePosixPath]:
        """The files that were parsed so far."""
        return frozenset(self._parsed)

    def of(self, path: PurePosixPath) -> ast.Module | None:
        """Give one of the files; None where it cannot be parsed."""
        if path not in self._parsed:
            self._parsed[path] = tree(path, self.files[path])
        return self._parsed[path]


def reached(files: Files, command: Sequence[str], python_path: str = "", trees: Trees | None = None) -> Reached:
    """Follow the imports of a program.

    Args:
        files: the app's, by path from the folder in which it is started.
        command: as it is started.
        python_path: its PYTHONPATH, folders from there with `:` between them.
        trees: of the same files, where several programs of them are followed.
    """
    folders = [PurePosixPath(one) for one in python_path.replace(";", ":").split(":") if one]
    known = trees if trees is not None else Trees(files)
    asked = (tuple(command), python_path)
    if asked not in known.reached:
        known.reached[asked] = _reached(files, command, folders, known)
    return known.reached[asked]


def _reached(files: Files, command: Sequence[str], folders: Sequence[PurePosixPath], known: Trees) -> Reached:
    if "-c" in command[1:-1]:
        known = known.beside(_TYPED, command[list(command).index("-c") + 1].encode())
        first: PurePosixPath | None = _TYPED
    else:
        first = _program(files, command, [PurePosixPath(), *folders])
    if first is None:
        return Reached(files=(), modules=())
    walk = _Walk(known, _roots(first, command, folders))
    if "-m" in command:  # the packages that a module is in are imported before it
        for folder in reversed(first.parents[:-1]):
            if folder / "__init__.py" in files and folder / "__init__.py" != first:
                walk.visit(folder / "__init__.py")
    walk.visit(first, is_program=True)
    return Reached(files=tuple(path for path in walk.seen if path != _TYPED), modules=tuple(walk.modules.values()))


def program(started: Sequence[PurePosixPath], command: Sequence[str]) -> PurePosixPath | None:
    """Tell which of the files that a command starts is the program itself; None where it is code that was typed."""
    if "-c" in command:
        return None
    roots = {folder for path in started for folder in path.parents}
    return _program(started, command, sorted(roots, key=lambda root: len(root.parts)))


def _roots(program: PurePosixPath, command: Sequence[str], folders: Sequence[PurePosixPath]) -> list[PurePosixPath]:
    """Name the folders where Python looks for modules: that of a script, or the one in which it is started."""
    is_script = "-m" not in command and any(word.endswith(".py") for word in command)
    return [program.parent if is_script else PurePosixPath(), *folders]


def own_modules(trees: Trees, program: PurePosixPath, command: Sequence[str], python_path: str = "") -> OwnModules:
    """Give an app's own modules as a program finds them; the arguments are those of `reached`."""
    folders = [PurePosixPath(one) for one in python_path.replace(";", ":").split(":") if one]
    return OwnModules(trees, _roots(program, command, folders))


def of_others(
    files: Files, modules: Iterable[ReachedImport], command: Sequence[str], python_path: str = ""
) -> tuple[ReachedImport, ...]:
    """Leave out what an app finds in its own tree, from its program's folders or from one that it puts on `sys.path`.

    Args:
        files: the app's, by path from the folder in which it is started.
        modules: what is imported.
        command: as the program is started.
        python_path: its PYTHONPATH.
    """
    wanted = tuple(modules)
    if not wanted:
        return ()
    roots = import_roots(files, command, python_path)
    own = {folder for path in files for folder in path.parents} | {path.with_suffix("") for path in files}
    tops = {one.module.partition(".")[0] for one in wanted}
    found = {top for top in tops if any(root / top in own for root in roots)}
    return tuple(one for one in wanted if one.module.partition(".")[0] not in found)


def import_roots(files: Files, command: Sequence[str], python_path: str = "") -> frozenset[PurePosixPath]:
    """Name the folders from which a program may find modules: its root, `src`, its script's, and those on its path.

    What a file puts on `sys.path` is not computed: it may be any folder above that file, or one that its texts name.
    """
    roots = {PurePosixPath(), PurePosixPath("src"), *map(PurePosixPath, python_path.replace(";", ":").split(":"))}
    roots |= {PurePosixPath(word).parent for word in command if word.endswith(".py")}
    folders = {folder for path in files for folder in path.parents}
    for path in files:
        if path.suffix == ".py" and any(word in files[path] for word in (b"sys.path", b"addsitedir")):
            roots |= {*path.parents}
            module = tree(path, files[path])
            nodes = ast.walk(module) if module is not None else ()
            constants = (node.value for node in nodes if isinstance(node, ast.Constant))
            parts = {PurePosixPath(one).name for one in constants if isinstance(one, str)} - {""}
            roots |= {folder for folder in folders if folder.name in parts}
    return frozenset(roots)


def is_program(module: ast.Module | None) -> bool:
    """Tell whether a file does something when it is run, and not only when others call what it defines.

    It has a part for `__main__`; or it calls a function of its own, or a method of what it has made or imported, for
    what that does: settings of logging, warnings, the environment and the paths are none.
    """
    if module is None:
        return False
    own = {node.name for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for node in _statements(module.body):
        if isinstance(node, ast.If) and is_main(node.test):
            return True
        if isinstance(node, ast.Expr) and any(map(functools.partial(_does, own=own), _calls(node.value))):
            return True
    return False


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Give the statements that run where a file is run, whatever they hang on; not those of functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _statements([child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)])


def _does(call: ast.Call, own: Collection[str]) -> bool:
    words = ast.unparse(call.func).split(".")
    if len(words) == 1:
        return words[0] in own
    return words[0].strip("_") not in _SETTINGS and words[-1] not in _PREPARES


def missing_text(missing: Sequence[ReachedImport]) -> str:
    """Say which modules are missing, and which line of whose file imports each."""
    told = []
    for who in dict.fromkeys(map(_who, missing)):
        found = [one for one in missing if _who(one) == who]
        first = ", ".join(f"{one.module} ({one.path}:{one.line})" for one in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        told.append(f"{who} what no package of the lock brings: {first}{more}")
    return "; ".join(told)


def _who(one: ReachedImport) -> str:
    if one.is_patched:
        return "patches make it import"
    return f"it imports {one.when}" if one.device else "it imports at its start"


def _program(
    files: Collection[PurePosixPath], command: Sequence[str], roots: Sequence[PurePosixPath]
) -> PurePosixPath | None:
    """Find the file that a command starts."""
    words = list(command)
    starter = PurePosixPath(words[0]).stem
    if starter.startswith("python") and "-m" in words[1:-1]:
        words = words[words.index("-m") + 1 :]
        starter = words[0].partition(".")[0]
        if starter not in _STARTERS | _RUNNERS:
            inside = PurePosixPath(*words[0].split("."))
            wanted = [root / one for root in roots for one in (inside / "__main__.py", inside.with_suffix(".py"))]
            return next((path for path in wanted if path in files), None)
    if starter in _STARTERS:
        named = next((word for word in words[1:] if not word.startswith("-")), "").partition(":")[0]
        return _module(files, named.removesuffix(".py"), roots)
    script = next((PurePosixPath(word) for word in words if word.endswith(".py")), None)
    return script if script in files else None


def _module(files: Collection[PurePosixPath], dotted: str, roots: Collection[PurePosixPath]) -> PurePosixPath | None:
    """Find the file of a module of the app's own."""
    if not dotted:
        return None
    inside = PurePosixPath(*dotted.split("."))
    places = [root / one for root in roots for one in (inside / "__init__.py", inside.with_suffix(".py"))]
    return next((path for path in places if path in files), None)


class OwnModules:
    """An app's own modules, by the names with which its files import them.

    Args:
        trees: of the app.
        roots: the folders where Python looks for them, in order.
    """

    def __init__(self, trees: Trees, roots: Sequence[PurePosixPath]) -> None:
        self._trees, self._roots = trees, list(dict.fromkeys(roots))
        self._found: dict[str, PurePosixPath | None] = {}
        self._folders: dict[str, bool] = {}

    def names(self, path: PurePosixPath, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        """Give the dotted names that an import of a file asks for."""
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            return
        base = self.base(path, node)
        if not base:
            return
        yield base
        # `from package import module` imports the module too, where there is one.
        yield from (f"{base}.{alias.name}" for alias in node.names if self.file(f"{base}.{alias.name}") is not None)

    def base(self, path: PurePosixPath, node: ast.ImportFrom) -> str:
        """Give the dotted name from which an import takes others."""
        if not node.level:
            return node.module or ""
        folder = path.parent
        for _ in range(node.level - 1):
            folder = folder.parent
        root = next((one for one in self._roots if folder.is_relative_to(one)), PurePosixPath())
        return ".".join([*folder.relative_to(root).parts, *([node.module] if node.module else [])])

    def files(self, dotted: str) -> list[PurePosixPath]:
        """Give the files that Python runs for a name, packages first; none where it is another's."""
        parts = dotted.split(".")
        if not self.has(parts[0]):
            return []
        found = (self.file(".".join(parts[:end])) for end in range(1, len(parts) + 1))
        return [one for one in found if one is not None]

    def has(self, dotted: str) -> bool:
        """Tell whether it is a module or a package, also one without `__init__.py`."""
        return self.file(dotted) is not None or self._is_folder(dotted)

    def file(self, dotted: str) -> PurePosixPath | None:
        """Find the file of a module."""
        if dotted not in self._found:
            self._found[dotted] = _module(self._trees.files, dotted, self._roots)
        return self._found[dotted]

    def _is_folder(self, dotted: str) -> bool:
        if dotted not in self._folders:
            parts = dotted.split(".")
            self._folders[dotted] = any(root.joinpath(*parts) in self._trees.folders for root in self._roots)
        return self._folders[dotted]


class _Walk:
    def __init__(self, trees: Trees, roots: Sequence[PurePosixPath]) -> None:
        self._trees, self._own = trees, OwnModules(trees, roots)
        self._called: set[tuple[PurePosixPath, str]] = set()
        self.seen: dict[PurePosixPath, None] = {}
        """In the order in which they were reached."""
        self.modules: dict[str, ReachedImport] = {}

    def visit(self, path: PurePosixPath, *, is_program: bool = False) -> None:
        if path in self.seen:
            return
        self.seen[path] = None
        self._run(path, self._body(path), is_program=is_program)

    def _body(self, path: PurePosixPath) -> Sequence[ast.stmt]:
        module = self._trees.of(path)
        return module.body if module else ()

    def _run(self, path: PurePosixPath, body: Sequence[ast.stmt], *, is_program: bool = False) -> None:
        # What a function imports is no name of its file's.
        imported: list[ast.ImportFrom] = []
        for node in _run_at_once(body, is_program=is_program):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Name):
                    self._call(path, node.func.id, [*self._body(path), *imported])
                continue
            if isinstance(node, ast.ImportFrom):
                imported.append(node)
            for name in self._own.names(path, node):
                self._follow(path, node.lineno, name)

    def _call(self, path: PurePosixPath, name: str, body: Sequence[ast.stmt]) -> None:
        """Follow a call of a function that these statements define, or import from another file of the app's."""
        if (path, name) in self._called:
            return
        self._called.add((path, name))
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name == name:
                    self._run(path, node.body)
                case ast.ImportFrom():
                    own = self._own.file(self._own.base(path, node))
                    for alias in node.names:
                        if (alias.asname or alias.name) == name and own is not None:
                            self._call(own, alias.name, self._body(own))
                case _:
                    pass

    def _follow(self, path: PurePosixPath, line: int, dotted: str) -> None:
        for one in self._own.files(dotted):
            self.visit(one)
        if not self._own.has(dotted):
            self.modules.setdefault(dotted, ReachedImport(module=dotted, path=path, line=line))


def _run_at_once(body: Sequence[ast.stmt], *, is_program: bool) -> Iterator[ast.Import | ast.ImportFrom | ast.Call]:
    """Give the imports and the calls that a file or a function comes to, whatever else is so."""
    for node in body:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield node
            case ast.ClassDef():
                yield from _run_at_once(node.body, is_program=is_program)
            case ast.With() | ast.AsyncWith():
                yield from (call for item in node.items for call in _calls(item.context_expr))
                yield from _run_at_once(node.body, is_program=is_program)
            case ast.Try():
                if not any(map(_goes_on, node.handlers)):
                    yield from _run_at_once([*node.body, *node.orelse], is_program=is_program)
                yield from _run_at_once(node.finalbody, is_program=is_program)
            case ast.If() if is_program and is_main(node.test):
                yield from _run_at_once(node.body, is_program=is_program)
            case ast.Expr(value=value) | ast.Assign(value=value) | ast.AugAssign(value=value):
                yield from _calls(value)
            case ast.AnnAssign(value=ast.expr() as value):
                yield from _calls(value)
            case ast.Return(value=value) | ast.Raise(exc=value):
                yield from _calls(value) if value is not None else ()
                return
            case _:
                pass
        if may_return(node):
            return


def _calls(value: ast.expr) -> Iterator[ast.Call]:
    """Give the calls that an expression makes whatever it finds."""
    if isinstance(value, ast.BoolOp | ast.IfExp | ast.Lambda | ast.comprehension | ast.ListComp | ast.GeneratorExp):
        return
    for child in ast.iter_child_nodes(value):
        if isinstance(child, ast.expr):
            yield from _calls(child)
        elif isinstance(child, ast.keyword):
            yield from _calls(child.value)
    if isinstance(value, ast.Call):
        yield value


def may_return(node: ast.stmt) -> bool:
    """Tell whether a statement may end its function, so that what follows may never run.

    One that may raise ends the program: whatever starts comes to what follows.
    """
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return any(may_return(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)) or (
        isinstance(node, ast.Try) and any(may_return(child) for one in node.handlers for child in one.body)
    )


def _goes_on(handler: ast.ExceptHandler) -> bool:
    """Tell whether what cannot be imported is caught."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _GOES_ON) for kind in kinds)


def is_main(test: ast.expr) -> bool:
    """Tell whether a test asks if its file is started itself, and not imported."""
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
