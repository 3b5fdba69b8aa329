"""Which models the code of a tree names on a hub or by an address, so that they are downloaded when it runs; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

from patchlock.catalogue.proposals import _program_calls, _started_code, importers
from patchlock.catalogue.proposals._started_code import Function
from patchlock.catalogue.proposals.findings import Files, Finding
from patchlock.patches import import_graph
from patchlock.patches.import_graph import Trees

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_OF_NO_OWNER = re.compile(
    r"(?:albert|(?:distil)?bert|camembert|ctrl|distilgpt2|(?:distil|xlm-)?roberta|gpt2|openai-gpt|t5|transfo-xl|xlm|xlnet)"
    r"(?:-[\w-]+)?"
)
"""The first names of the hub, which need no owner; nobody adds one. Source:
https://huggingface.co/docs/transformers/v4.30.0/en/pretrained_models"""
_CALLS = {
    "from_pretrained": "pretrained_model_name_or_path",
    "from_single_file": "pretrained_model_link_or_path",
    "snapshot_download": "repo_id",
    "hf_hub_download": "repo_id",
    "pipeline": "model",
}
"""Function or method → the argument that names a repository, if it is not the first.

Source: https://huggingface.co/docs/huggingface_hub/package_reference/file_download and the guides of transformers and
diffusers."""
_OPTIONS = frozenset({"add_argument", "option", "Option"})
"""Functions that make an option of a command line."""
_KEYWORD_ONLY = frozenset({"pipeline"})
_OF_A_HUB = frozenset({"snapshot_download", "hf_hub_download"})
"""Those that take no local folder."""
_FOLDERS = frozenset(
    {
        *("assets", "checkpoint", "checkpoints", "ckpt", "ckpts", "data", "logs", "model", "models"),
        *("output", "outputs", "pretrained", "pretrained_models", "weights"),
    }
)
"""What begins with one of these is a path to the others."""
_PUT_TOGETHER = re.compile(r".*\{.*")
"""A name of which a part is only known at run time."""
_VARIABLE = re.compile(r"\{[\w.]*\}")
"""Such a name that says nothing by itself."""
_OF_AN_OWNER = re.compile(r"(?=.*\{)[A-Za-z0-9][\w.-]*/[^/]+")
"""Such a name that is none of a local folder, as far as can be told."""
_WEIGHTS = re.compile(
    r"\.(?:bin|ckpt|gguf|h5|npz|onnx|pkl|pt|pth|safetensors|tflite|tar\.gz|zip)(?:\?.*)?", re.IGNORECASE
)
_HUB = re.compile(
    r"(?:hf://|https?://(?:www\.)?huggingface\.co/)(?P<repository>[\w.-]+/[\w.-]+)"
    r"(?:/(?:resolve|blob)/[^/]+)?(?:/(?P<file>[^?#]+))?(?:\?[^#]*)?"
)
_SIGNS = re.compile(
    rb"\b(?:%s)[ ]*\(|\bnltk\.download\b|\b(?:wget|curl|aria2c)\b|hf://|https?://[^\s\"']+\.(?:bin|ckpt|gguf|h5|npz|onnx|pkl|pt|pth|safetensors|tflite|tar\.gz|zip)\b"
    % "|".join(_CALLS).encode(),
    re.IGNORECASE,
)
"""What a file has that is worth reading."""
_NOT_OWNERS = frozenset({"datasets", "spaces", "docs", "papers", "blog"})
"""First words of an address of Hugging Face that are no owners."""
_FETCHERS = frozenset({"wget", "curl", "aria2c"})
"""Programs that download the addresses of their line."""
_FETCHES = re.compile(r"(?i)download|fetch|retrieve|from_url|cached_path|urlopen|wget|requests\.get$")
"""Functions that download what they are given."""


@dataclass(frozen=True, kw_only=True)
class Download:
    """One thing that the code names."""

    repository: str
    """Of Hugging Face, `owner/name`; "" for an address."""
    file: str
    """Of that repository, the whole address, or `nltk:` and NLTK's name; "" for all that the library takes of the
    repository.

    In both, an expression in braces stands for what only a run knows."""
    found: Finding
    is_at_start: bool
    """As the program starts, Python calls what downloads it, or a function that does so whatever its arguments are."""

    @property
    def name(self) -> str:
        """Name it as a person would look it up."""
        return "/".join(filter(None, (self.repository, self.file)))

    @property
    def is_put_together(self) -> bool:
        """Tell whether only a run knows its name."""
        return "{" in self.name


def read(
    files: Files,
    trees: Trees,
    started: Sequence[PurePosixPath],
    command: Sequence[str],
    idle: Mapping[PurePosixPath, Collection[int]] = MappingProxyType({}),
) -> tuple[Download, ...]:
    """List what is named, each thing once: first what is downloaded at the start, then by place.

    Args:
        files: of the tree.
        trees: of its Python files.
        started: the files that the program runs as it starts, in order: packages around it, itself, what it imports.
        command: with which it is started.
        idle: lines to which the program never comes, of files to which it does.
    """
    paths = [path for path in sorted(trees.files) if not importers.is_no_part(path, started)]
    code = {path: module for path in paths if (module := trees.of(path))}
    signs = sorted((path for path in code if _SIGNS.search(files[path])), key=lambda path: (path not in started, path))
    program = import_graph.program(started, command)
    begun = [(code[path], path == program) for path in started if path in code and signs]
    functions = _started_code.functions([module for module, _ in begun])
    run = _started_code.run_at_start(begun, functions)
    wanted = {one for one in run if isinstance(one, ast.Call)} | _fetched(run, functions)
    reaching = _reaching_calls(code.values()) if signs else frozenset()
    given = _given_texts([code[path] for path in signs], code.values())
    found: dict[str, Download] = {}
    for path in signs:
        for one in _of(path, code[path], files, wanted, reaching, given):
            is_unknown = started and _VARIABLE.fullmatch(one.repository) and path not in started
            if is_unknown or one.found.line in idle.get(path, ()):
                continue
            if one.name not in found or (one.is_at_start and not found[one.name].is_at_start):
                found[one.name] = one
    return tuple(
        sorted(found.values(), key=lambda one: (not one.is_at_start, one.found.path not in started, one.found.line))
    )


def _of(
    path: PurePosixPath,
    module: ast.Module,
    files: Files,
    wanted: Collection[ast.AST],
    reaching: Collection[ast.AST],
    given: Mapping[Function, Mapping[str, ast.expr]],
) -> Iterator[Download]:
    texts, loops = _Texts(module, given), _loops(module)
    for node in ast.walk(module):
        found: list[tuple[str, str] | None] = []
        if isinstance(node, ast.Call):
            found = [_of_call(node, {**texts.at(node), **each}) for each in loops.get(node, [{}])]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node in reaching:
            found = [_of_text(node.value)]
        for named in found:
            if named is None or PurePosixPath(named[0]) in files or _is_folder(named[0], files):
                continue
            place = Finding(path=path, line=node.lineno, text="/".join(filter(None, named))[:100])  # type: ignore[attr-defined]
            yield Download(repository=named[0], file=named[1], found=place, is_at_start=node in wanted)


def _loops(module: ast.Module) -> Mapping[ast.Call, list[dict[str, ast.expr]]]:
    """Give the values that the variable of a loop over a written list has, by the calls in that loop."""
    found: dict[ast.Call, list[dict[str, ast.expr]]] = {}
    for node in ast.walk(module):
        match node:
            case ast.For(target=ast.Name(id=name), iter=ast.List(elts=values) | ast.Tuple(elts=values)):
                calls = (one for line in node.body for one in ast.walk(line) if isinstance(one, ast.Call))
                found |= {one: [{name: value} for value in values] for one in calls}
    return found


def _fetched(run: Collection[ast.AST], functions: Mapping[str, Sequence[Function]]) -> frozenset[ast.AST]:
    """Give the nodes of values that calls which download are given as a program starts, by whatever names."""
    values = _started_code.values(run)
    calls = [node for node in run if isinstance(node, ast.Call)]
    for call in calls:
        if one := _started_code.called(call, functions):
            for name, value in _started_code.arguments(call, one):
                values.setdefault(name, []).append(value)
    return _flow((_given(one) for one in calls if any(map(_FETCHES.search, _started_code.names_of(one.func)))), values)


def _reaching_calls(modules: Iterable[ast.Module]) -> frozenset[ast.AST]:
    """Give the nodes of values that a call is given, or that a function returns, by whatever names."""
    nodes = [node for module in modules for node in ast.walk(module)]
    return _flow(map(_given, nodes), _started_code.values(nodes))


def _given(node: ast.AST) -> list[ast.AST]:
    match node:
        case ast.Call(args=args, keywords=keywords):
            return [*args, *(one.value for one in keywords)]
        case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value):
            return [value]
        case _:
            return []


def _flow(ends: Iterable[Iterable[ast.AST]], values: dict[str, list[ast.AST]]) -> frozenset[ast.AST]:
    """Give the nodes in what arrives at ends, directly or by names; takes them out of the values."""
    waiting = [node for every in ends for node in every]
    found: set[ast.AST] = set()
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [*ast.iter_child_nodes(node), *values.pop(_started_code.name_of(node), ())]
    return frozenset(found)


class _Texts:
    """The texts of a module's names, where it calls something.

    Args:
        module: whose names.
        given: what those who call a function give its parameters.
    """

    def __init__(
        self, module: ast.Module, given: Mapping[Function, Mapping[str, ast.expr]] = MappingProxyType({})
    ) -> None:
        self._everywhere, self._given = _texts(ast.walk(module)), given
        functions = dict.fromkeys(one for every in _started_code.functions([module]).values() for one in every)
        self._around = {node: one for one in functions for node in ast.walk(one) if isinstance(node, ast.Call)}
        self._inside: dict[Function, Mapping[str, ast.expr]] = {}

    def at(self, call: ast.Call) -> Mapping[str, ast.expr]:
        """Give the texts of names as the function around a call has them: its own come before its arguments."""
        function = self._around.get(call)
        if function is None:
            return self._everywhere
        if function not in self._inside:
            arguments = {**_texts([function.args], self._everywhere), **self._given.get(function, {})}
            self._inside[function] = _texts((node for one in function.body for node in ast.walk(one)), arguments)
        return self._inside[function]


def _texts(nodes: Iterable[ast.AST], outer: Mapping[str, ast.expr] = MappingProxyType({})) -> Mapping[str, ast.expr]:
    """Give the texts of names, also those that are defaults of arguments; of several, the one that is a repository.

    Args:
        nodes: that give them.
        outer: names that are known where the nodes give them nothing.
    """
    found: dict[str, dict[str, ast.expr]] = {}
    for node in nodes:
        pairs: list[tuple[str, ast.AST | None]] = []
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            pairs = [(ast.unparse(one), node.value) for one in targets if isinstance(one, ast.Name | ast.Attribute)]
            found |= {name: found.get(name, {}) for name, _ in pairs}  # whatever it is, it is no longer what is outside
        elif isinstance(node, ast.arguments):
            pairs = list(zip([one.arg for one in node.args[::-1]], node.defaults[::-1], strict=False))
            pairs += list(zip([one.arg for one in node.kwonlyargs], node.kw_defaults, strict=True))
        elif isinstance(node, ast.Call) and not _OPTIONS.isdisjoint(_started_code.names_of(node.func)):
            words = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            name = max(words, key=len, default="").lstrip("-").replace("-", "_")
            default = next((one.value for one in node.keywords if one.arg == "default"), None)
            pairs = [(name, default), (f".{name}", default)]
        for name, value in ((name, one) for name, given in pairs for one in _either(given)):
            if isinstance(value, ast.JoinedStr | ast.BinOp | ast.Name) or (
                isinstance(value, ast.Constant) and isinstance(value.value, str)
            ):
                found.setdefault(name, {})[ast.unparse(value)] = value
    known = {name: value for name, value in outer.items() if name not in found}
    known |= {name: next(iter(values.values())) for name, values in found.items() if len(values) == 1}
    for name, values in found.items():
        texts = {_text(one, known) for one in values.values()} if len(values) > 1 else set()
        texts = {one for one in texts if not _VARIABLE.fullmatch(one)}
        texts = texts if len(texts) == 1 else {one for one in texts if _REPOSITORY.fullmatch(one)}
        if len(texts) == 1:
            known[name] = ast.Constant(value=texts.pop())
    return known


def _either(value: ast.AST | None) -> Sequence[ast.AST | None]:
    """Give the values of which a run takes one."""
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            return (body, orelse)
        case ast.BoolOp(op=ast.Or(), values=values):
            return values
        case _:
            return (value,)


def _names_download(function: Function) -> bool:
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(not _CALLS.keys().isdisjoint(_started_code.names_of(one.func)) for one in calls)


def _given_texts(
    named: Iterable[ast.Module], modules: Collection[ast.Module]
) -> Mapping[Function, Mapping[str, ast.expr]]:
    """Give the texts that parameters around a call have, where all who call the function with a text say one.

    Where some call it with a repository, what the others say is of another one.
    """
    functions = _started_code.functions(named)
    wanted = {name for name, every in functions.items() if any(map(_names_download, every))}
    found: dict[Function, list[dict[str, str]]] = {}
    for module in modules if wanted else ():
        every = (node for node in ast.walk(module) if isinstance(node, ast.Call))
        if callers := [call for call in every if not wanted.isdisjoint(_started_code.names_of(call.func))]:
            texts = _Texts(module)
        for call in callers:
            if (one := _started_code.called(call, functions)) is not None:
                said = {name: _text(value, texts.at(call)) for name, value in _started_code.arguments(call, one)}
                known = {name: text for name, text in said.items() if not _VARIABLE.fullmatch(text)}
                found.setdefault(one, []).append(known)
    return {one: _agreed([said for said in calls if _has_repository(said)] or calls) for one, calls in found.items()}


def _has_repository(said: Mapping[str, str]) -> bool:
    return any(_REPOSITORY.fullmatch(text) and not _WEIGHTS.search(text) for text in said.values())


def _agreed(calls: Iterable[Mapping[str, str]]) -> Mapping[str, ast.expr]:
    texts: dict[str, set[str]] = {}
    for name, text in (one for said in calls for one in said.items()):
        texts.setdefault(name, set()).add(text)
    return {name: ast.Constant(value=every.pop()) for name, every in texts.items() if len(every) == 1}


def _of_call(call: ast.Call, texts: Mapping[str, ast.expr]) -> tuple[str, str] | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in _program_calls.SHELLS and call.args:
        return _of_command(_words(call.args[0], texts))
    if ast.unparse(call.func) == "nltk.download" and (listed := [*call.args, *(one.value for one in call.keywords)]):
        return "", f"nltk:{', '.join(_words(listed[0], texts))}"
    if name not in _CALLS:
        return None
    given = {keyword.arg: _text(keyword.value, texts) for keyword in call.keywords if keyword.arg}
    if given.get("repo_type", "model") != "model":
        return None
    first = _text(call.args[0], texts) if call.args and name not in _KEYWORD_ONLY else ""
    repository = given.get(_CALLS[name]) or first
    is_known = _REPOSITORY.fullmatch(repository) is not None and not _WEIGHTS.search(repository)
    is_known |= name == "from_pretrained" and _OF_NO_OWNER.fullmatch(repository) is not None
    if name not in _OF_A_HUB and repository.partition("/")[0].lower() in _FOLDERS:
        return None
    if not is_known and not (_PUT_TOGETHER if name in _OF_A_HUB else _OF_AN_OWNER).fullmatch(repository):
        return None
    file = given.get("filename", "") or (_text(call.args[1], texts) if len(call.args) > 1 else "")
    return repository, file if name == "hf_hub_download" else ""


def _words(node: ast.expr, texts: Mapping[str, ast.expr]) -> list[str]:
    """Give the words of a command, of a list or of one text."""
    if isinstance(node, ast.List | ast.Tuple):
        return [_text(one, texts) for one in node.elts]
    return [word.strip("\"'") for word in re.findall(r"(?:\{[^}]*\}|\S)+", _text(node, texts))]


def _of_command(words: Sequence[str]) -> tuple[str, str] | None:
    """Read what a program downloads that does nothing else; None where it is another one, or nothing is named."""
    if not words or PurePosixPath(words[0]).name not in _FETCHERS:
        return None
    address = next((word for word in words if re.match(r"https?://", word)), None)
    hub = _HUB.fullmatch(address or "")
    if hub and hub["file"] and hub["repository"].partition("/")[0] not in _NOT_OWNERS:
        return hub["repository"], hub["file"]
    return ("", address) if address else None


def _text(node: ast.AST, texts: Mapping[str, ast.expr]) -> str:
    """Give a text as far as it can be read; an expression in braces stands for what only a run knows."""
    match node:
        case ast.Constant(value=str() | int() as value):
            return str(value)
        case ast.JoinedStr(values=parts):
            return "".join(_text(one, texts) for one in parts)
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            return _text(value, texts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left, texts) + _text(right, texts)
        case ast.Name() | ast.Attribute() if (name := ast.unparse(node)) in texts:
            return _text(texts[name], {other: value for other, value in texts.items() if other != name})
        case ast.Attribute(value=ast.Name(), attr=name) if f".{name}" in texts:  # args.model
            return _text(texts[f".{name}"], {})
        case _:
            return f"{{{ast.unparse(node)}}}"


def _of_text(text: str) -> tuple[str, str] | None:
    """Read an address that stands in the code; None where it is none of a model."""
    if (hub := _HUB.fullmatch(text)) and hub["repository"].partition("/")[0] not in _NOT_OWNERS:
        is_file = text.startswith("hf://") or (hub["file"] and _WEIGHTS.search(hub["file"]))
        return (hub["repository"], hub["file"] or "") if is_file else None
    is_address = re.fullmatch(r"https?://[\w.-]+\.[a-z]+/\S+", text) is not None
    return ("", text) if is_address and re.search(rf"{_WEIGHTS.pattern}$", text, re.IGNORECASE) else None


def _is_folder(name: str, files: Files) -> bool:
    return bool(name) and any(path.is_relative_to(name) for path in files)
