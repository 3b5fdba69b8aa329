"""No live code of a file starts an installer: runs through the statements with texts instead of values."""

from __future__ import annotations

import ast
import functools
import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.patches.postconditions._newer_python import parse
from patchlock.patches.postconditions._notebook import code_of

_STARTING = frozenset(
    {
        *("run", "exec", "execute", "system", "call", "popen", "shell", "spawn", "sh", "bash", "cmd", "subprocess"),
        *(
            "output",
            "getoutput",
            "getstatusoutput",
            "invoke",
            "terminal",
            "pip",
            "conda",
            "bootstrap",
            "magic",
            "submit",
        ),
    }
)
_STARTS = re.compile(r"exec[vl]p?e?|spawn[vl]p?e?|posix_spawnp?|pipmain|startfile|main")
_SPEAKING = frozenset(("print", "log", "logger", "warn", "warning", "info", "debug", "error", "assert", "add", "mock"))
_MAKING = frozenset(("make", "build", "get", "create", "format", "append", "extend", "insert", "join"))
_MANAGER = r"(?:pip|pip3|pip[\d.]+|uv|conda|mamba|micromamba|poetry|pipenv|pipx|pdm|pixi|rye)(?:\.exe)?"
_VERB = r"(?:install|uninstall|download|wheel|add|remove|sync|update|upgrade|create|inject)"
_READS = (
    r"(?:list|show|freeze|check|config|cache|index|inspect|run|info|activate|deactivate|--version|-V|--help|venv|help)"
)
_EXECUTORS = re.compile(r"(subprocess|pip|pty|setuptools\.command\.easy_install)\.")
_LOOKS = r"(?![^\n;|&]*(?<![\w-])(?:--dry-run|--help|-h)(?![\w-]))"
_SAYS = re.compile(
    rf"(?<![\w.-]){_MANAGER}(?![\w.-])(?:(?!(?<![\w-]){_READS}(?![\w-]))[^\n;|&])*?(?<![\w-]){_VERB}(?![\w-]){_LOOKS}"
    rf"|(?<![\w-])(?:easy_install|ensurepip)(?![\w-]){_LOOKS}"
    rf"|(?<![\w.-])setup\.py\s(?:[^\n;|&]*\s)?(?:install|develop)(?![\w-]){_LOOKS}"
)
_QUICK = re.compile(rf"(?<![\w.-]){_MANAGER}(?![\w.-])|easy_install|ensurepip|setup\.py")
_MATTERS = re.compile(rf"{_MANAGER}|{_VERB}|easy_install|ensurepip|setup\.py|develop|<")
"""Other texts need not be remembered."""
_OTHERS = re.compile(r"\W*(?:echo|git|gcloud|ssh|docker|podman|kubectl|grep|apt|apt-get|npm|brew)\b")
_LONGEST = 4000
_MOST = 40
"""Characters, alternatives and commands that are kept."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Texts = dict[str, str]
"""What each name may hold: all its words, one alternative a line."""


@dataclass(frozen=True, kw_only=True)
class NoRunTimePip:
    """No live call of the file installs, downloads or removes packages, whatever the installer and the spelling.

    Attributes:
        packages: only calls that mention one of these; empty: all.
    """

    packages: tuple[str, ...] = ()

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Name each call."""
        tree = read(path, data)
        if isinstance(tree, str):
            return (tree,)
        try:
            found = _File(tree).calls_that_install()
        except RecursionError as error:
            return (f"it cannot be read: {error}",)
        wanted = [_normalised(name) for name in self.packages]
        told = {line for line, text in found if not wanted or any(name in _normalised(text) for name in wanted)}
        return tuple(f"line {line}: it installs packages at run time" for line in sorted(told))


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class _File:
    """The texts that go through one file."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._functions = dict(_functions(tree))
        self._defaults: _Texts = {}
        self._executors = _imported_executors(tree)
        self._returned: _Texts = {}
        self._attributes: _Texts = {}
        self._sinks: dict[str, set[str]] = {}
        """Function → the commands that it starts, with its parameters in them."""
        self._found: dict[int, str] = {}

    def calls_that_install(self) -> list[tuple[int, str]]:
        names: _Texts = {}
        for _ in range(4):  # commands that travel through that many functions
            before = (len(self._found), sum(map(len, self._sinks.values())), str(self._returned))
            names = self._block(self._tree.body, dict(names), "")
            for name, node in _functions(self._tree):
                self._function(name, node, names)
            if before == (len(self._found), sum(map(len, self._sinks.values())), str(self._returned)):
                break
        return sorted(self._found.items())

    def _function(self, name: str, node: _Function | ast.Lambda, names: _Texts) -> None:
        arguments = node.args
        all_of_them = [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        ]
        values = [self._text(value, names) for value in (*arguments.defaults, *arguments.kw_defaults) if value]
        self._defaults[name] = "\n".join(values)
        inside = {**names, **{argument.arg: f"<{name}>" for argument in all_of_them if argument is not None}}
        if isinstance(node, ast.Lambda):
            self._calls_in(node.body, inside)
        else:
            self._block(node.body, inside, name)

    def _block(self, body: list[ast.stmt], names: _Texts, function: str) -> _Texts:
        """Run through statements; what follows a `return` is not live."""
        for statement in body:
            match statement:
                case ast.If(test=test, body=then, orelse=otherwise):
                    self._calls_in(test, names)
                    blocks = [] if _is(test, value=False) else [then]
                    blocks += [] if _is(test, value=True) else [otherwise]
                    names = _either([self._block(block, dict(names), function) for block in blocks])
                case ast.For() | ast.AsyncFor() | ast.While():
                    names = self._loop(statement, names, function)
                case ast.Try() | ast.With() | ast.AsyncWith() | ast.Match() | ast.ClassDef():
                    for inner in _parts(statement):
                        if isinstance(inner, list):
                            after = self._block(inner, dict(names), function)
                            if isinstance(statement, ast.ClassDef):
                                self._attributes |= {n: t for n, t in after.items() if t != names.get(n)}
                            names = _either([names, after])
                        else:
                            self._calls_in(inner, names)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    if function:  # those of the module are read when all its names are known
                        self._function(name, statement, names)
                case _:
                    self._calls_in(statement, names)
                    self._assign(statement, names, function)
            if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
                break
        return names

    def _loop(self, loop: ast.For | ast.AsyncFor | ast.While, names: _Texts, function: str) -> _Texts:
        head = loop.test if isinstance(loop, ast.While) else loop.iter
        self._calls_in(head, names)
        if _is(head, value=False):
            return names
        for _ in range(2):  # what the first round leaves behind is there in the second
            if not isinstance(loop, ast.While):
                self._bind(loop.target, self._each(loop.iter, names), names)
            names = _either([names, self._block(loop.body, dict(names), function)])
        return self._block(loop.orelse, names, function)

    def _assign(self, statement: ast.stmt, names: _Texts, function: str) -> None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, self._text(value, names), names)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, self._text(value, names), names)
            case ast.AugAssign(target=target, value=value):
                self._bind(target, f"{self._text(target, names)} {self._text(value, names)}", names)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr="append" | "extend" | "insert"))):
                call = statement.value
                added = " ".join(self._text(a, names) for a in call.args) if isinstance(call, ast.Call) else ""
                self._bind(target, f"{self._text(target, names)} {added}", names)
            case ast.Return(value=ast.expr() as value):
                known = self._returned.get(function, "")
                text = self._text(value, names)
                text = text if _MATTERS.search(text) else ""
                self._returned[function] = known if text in known else f"{known}\n{text}"[-_LONGEST:]
            case _:
                pass

    def _bind(self, target: ast.expr, text: str, names: _Texts) -> None:
        """Note what a name holds now; most names hold nothing that matters here."""
        match target:
            case ast.Name(id=name):
                if _MATTERS.search(text):
                    names[name] = text[-_LONGEST:]
                else:
                    names.pop(name, None)
            case ast.Subscript(value=ast.Name(id=name)):
                names[name] = f"{names.get(name, '')}\n{text}"[-_LONGEST:]
            case ast.Attribute(attr=name):
                known = self._attributes.get(name, "")
                text = text if _MATTERS.search(text) else ""
                self._attributes[name] = known if text in known else f"{known}\n{text}"[-_LONGEST:]
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements:
                    self._bind(element, text, names)
            case _:
                pass

    def _each(self, node: ast.expr, names: _Texts) -> str:
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return "\n".join(self._text(element, names) for element in node.elts)
        return self._text(node, names)

    def _text(self, node: ast.AST, names: _Texts) -> str:
        """Give all words of an expression in their order; alternatives stand on lines of their own."""
        lines = dict.fromkeys(self._read(node, names)[-_LONGEST:].split("\n"))
        return "\n".join([*lines][:_MOST])

    def _read(self, node: ast.AST, names: _Texts) -> str:
        match node:
            case ast.Constant(value=str(value)):
                return " ; ".join(value.strip().split("\n"))
            case ast.Name(id=name):
                return names.get(name, "")
            case ast.Attribute(attr=name):
                return f"{self._text(node.value, names)} {self._attributes.get(name, '')}"
            case ast.IfExp(body=body, orelse=orelse):
                return f"{self._text(body, names)}\n{self._text(orelse, names)}"
            case ast.BoolOp(values=values) | ast.Dict(values=values):
                return "\n".join(self._text(value, names) for value in values)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return f"{self._text(left, names)}/{self._text(right, names)}"
            case ast.Call(func=func) if set(_words(func)) & _SPEAKING:
                return ""
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                return self._filled(self._text(left, names), self._text(right, names))
            case ast.Call(func=ast.Attribute(value=template, attr="format"), args=arguments, keywords=keywords):
                inner = " ".join(self._text(child, names) for child in (*arguments, *keywords))
                return self._filled(self._text(template, names), inner)
            case ast.Call(func=func, args=arguments, keywords=keywords):
                name = _last(func)
                parts = [func, *arguments, *keywords] if isinstance(func, ast.Attribute) else [*arguments, *keywords]
                told = " ".join([*_words(func), *(self._text(child, names) for child in parts)])
                return f"{self._returned[name]}\n{told}" if self._returned.get(name) else told
            case ast.Lambda():
                return ""
            case _:
                return " ".join(filter(None, (self._text(child, names) for child in ast.iter_child_nodes(node))))

    def _calls_in(self, node: ast.AST, names: _Texts) -> None:
        inner = dict(names)
        for part in ast.walk(node):
            if isinstance(part, ast.comprehension):
                self._bind(part.target, self._each(part.iter, inner), inner)
            elif isinstance(part, ast.NamedExpr):
                self._bind(part.target, self._text(part.value, names), names)
                inner |= names
            elif isinstance(part, ast.Lambda):
                inner |= {argument.arg: "" for argument in part.args.args}
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                self._call(part, inner)

    def _filled(self, template: str, values: str) -> str:
        """Give the words of a filled template: what is filled in may stand before or behind what is there."""
        return f"{template} {values}\n{values} {template}"

    def _call(self, call: ast.Call, names: _Texts) -> None:
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not self._concerns(call.func, arguments):
            return
        texts = [self._text(argument, names) for argument in arguments]
        lines = {line for text in (" ".join(texts), *texts) for line in text.split("\n")[:_MOST]}
        name = _last(call.func)
        if name in self._functions and not _is_of_module(call.func, self._executors):
            lines |= set(self._defaults.get(name, "").split("\n"))
            commands = {sink.replace(f"<{name}>", f" {line} ") for sink in self._sinks.get(name, ()) for line in lines}
        elif self._is_starting(call.func) or any(_dotted(a) in self._executors for a in arguments):
            commands = {f"{self._manager(call.func)} {line}" for line in lines}
            if "run_module" in name:
                commands |= set(self._attributes.get("argv", "").split("\n"))
        elif not set(_words(call.func)) & (_SPEAKING | _MAKING):
            commands = {line for a in arguments if isinstance(a, ast.List) for line in self._text(a, names).split("\n")}
        else:
            return
        for command in sorted(commands, key=len)[: 4 * _MOST]:
            if _installs(command):
                self._found.setdefault(call.lineno, command)
            else:
                for owner in re.findall(r"<(\w+)>", command):
                    known = self._sinks.setdefault(owner, set())
                    if len(known) < _MOST:
                        known.add(command[:500])

    def _concerns(self, callee: ast.expr, arguments: list[ast.expr]) -> bool:
        """Leave out, before anything is read, the many calls that cannot start a program."""
        is_handing = any(isinstance(a, ast.List) or _dotted(a) in self._executors for a in arguments)
        return is_handing or bool(self._sinks.get(_last(callee))) or self._is_starting(callee)

    def _is_starting(self, callee: ast.expr) -> bool:
        """Tell whether a function starts programs or is an installer, by where it comes from or by its name."""
        if isinstance(callee, ast.Call):  # getattr(subprocess, "run")
            return bool(set(re.findall(r"\w+", self._text(callee, {}))) & _STARTING)
        words, name = set(_words(callee)), _last(callee)
        if _dotted(callee) in self._executors or name.startswith("create_subprocess"):
            return True
        return bool(words & _STARTING or _STARTS.fullmatch(name)) and not words & (_SPEAKING | _MAKING)

    def _manager(self, callee: ast.expr) -> str:
        """Name the installer that a function is, such as `pip.main`; "" for one that starts programs."""
        origin = f"{_dotted(callee)} {self._executors.get(_last(callee), '')} {' '.join(_words(callee))}"
        found = re.findall(r"(?<![a-z])(?:ensurepip|easy_install|pip|conda)(?=main|\b|_)", origin)
        return found[0] if found else ""


@functools.lru_cache(maxsize=4096)
def _installs(command: str) -> bool:
    """Read one command."""
    if not _QUICK.search(command):  # the other expression looks at each place many times
        return False
    return _SAYS.search(command[:_LONGEST]) is not None and not _OTHERS.match(command.strip())


def _functions(tree: ast.Module) -> Iterator[tuple[str, _Function | ast.Lambda]]:
    """Give every function with its name, also a lambda that is assigned to one."""
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            yield node.name, node
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))


def _imported_executors(tree: ast.Module) -> dict[str, str]:
    """Give the names under which the file has functions of `subprocess`, `os` and `pip`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _EXECUTORS.match(f"{node.module}."):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            starting = [a for a in node.names if a.name in {"system", "popen"} or _STARTS.fullmatch(a.name)]
            found |= {alias.asname or alias.name: f"os.{alias.name}" for alias in starting}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            starts = set(_words(node.value)) & _STARTING and _dotted(node.value).startswith(("subprocess.", "os."))
            found |= {t.id: _dotted(node.value) for t in node.targets if isinstance(t, ast.Name) and starts}
    names = ("run", "call", "check_call", "check_output", "Popen")
    return found | {f"subprocess.{name}": "subprocess" for name in names} | {"os.system": "os", "os.popen": "os"}


def _either(states: list[_Texts]) -> _Texts:
    """Join what names may hold after one branch or another."""
    joined: _Texts = {}
    for state in states:
        for name, text in state.items():
            known = joined.get(name)
            joined[name] = (
                text if known is None or known == text else "\n".join(dict.fromkeys(f"{known}\n{text}".split("\n")))
            )
    return joined


def _parts(statement: ast.stmt) -> Iterator[list[ast.stmt] | ast.AST]:
    """Give the blocks of a statement, and the expressions beside them."""
    for _, value in ast.iter_fields(statement):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.ExceptHandler | ast.match_case):
                yield child.body
            elif isinstance(child, ast.AST) and not isinstance(child, ast.stmt):
                yield child
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value


def _words(node: ast.expr) -> list[str]:
    """Split the last part of a name into its words; `SystemExit` says its text and ends, as an error does."""
    name = "error" if _last(node) == "SystemExit" else _last(node)
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_of_module(callee: ast.expr, executors: dict[str, str]) -> bool:
    """Tell `subprocess.run` from a function `run` of the file."""
    return isinstance(callee, ast.Attribute) and _dotted(callee) in executors


def _dotted(node: ast.expr) -> str:
    return ast.unparse(node) if _is_name(node) else ""


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute)


def _is(test: ast.expr, *, value: bool) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value) is value


_MAY_STAND_BEFORE = {*keyword.kwlist, *keyword.softkwlist, "lazy", "type", "print", "exec"}
"""Words that a statement of some Python may begin with; `print` and `exec` are of Python 2, which runs such a file.

Source: https://peps.python.org/pep-0810/ for `lazy`, https://peps.python.org/pep-0695/ for `type`
"""


def read(path: PurePosixPath, data: bytes) -> ast.Module | str:
    """Parse a file, or say why it cannot be read, a clause; of a file that no Python can run nothing is left."""
    try:
        return parse(code_of(data) if path.suffix == ".ipynb" else data, str(path))
    except SyntaxError as error:
        line = "".join(data.decode(errors="replace").splitlines(keepends=True)[(error.lineno or 1) - 1 :][:1])
        if path.suffix == ".py" and is_no_python(line):
            return ast.Module(body=[], type_ignores=[])
        return f"line {error.lineno or 1}: it does not parse: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"it cannot be read: {error}"


def is_no_python(line: str) -> bool:
    """Tell whether a line begins with two names side by side, as `pip install x` does, as no Python does."""
    try:
        first, second = list(tokenize.generate_tokens(io.StringIO(line).readline))[:2]
    except (tokenize.TokenError, IndentationError, SyntaxError, ValueError):
        return False
    is_name = first.type == second.type == tokenize.NAME
    return is_name and first.start[1] == 0 and not {first.string, second.string} & _MAY_STAND_BEFORE
