"""Which models the code of a tree names on a hub or by an address, so that they are downloaded when it runs; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.proposals.findings import Files, Finding
from patchlock.patches import import_graph
from patchlock.patches.import_graph import Trees

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
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
_KEYWORD_ONLY = frozenset({"pipeline"})
_WEIGHTS = re.compile(
    r"\.(?:bin|ckpt|gguf|h5|npz|onnx|pkl|pt|pth|safetensors|tflite|tar\.gz|zip)(?:\?.*)?", re.IGNORECASE
)
_HUB = re.compile(
    r"(?:hf://|https?://(?:www\.)?huggingface\.co/)(?P<repository>[\w.-]+/[\w.-]+)"
    r"(?:/(?:resolve|blob)/[^/]+)?(?:/(?P<file>[^?#]+))?(?:\?[^#]*)?"
)
_SIGNS = re.compile(
    rb"\b(?:%s)[ ]*\(|hf://|https?://[^\s\"']+\.(?:bin|ckpt|gguf|h5|npz|onnx|pkl|pt|pth|safetensors|tflite|tar\.gz|zip)\b"
    % "|".join(_CALLS).encode(),
    re.IGNORECASE,
)
"""What a file has that is worth reading."""
_NOT_OWNERS = frozenset({"datasets", "spaces", "docs", "papers", "blog"})
"""First words of an address of Hugging Face that are no owners."""


@dataclass(frozen=True, kw_only=True)
class Download:
    """One thing that the code names."""

    repository: str
    """Of Hugging Face, `owner/name`; "" for an address."""
    file: str
    """Of that repository, or the whole address; "" for all that the library takes of the repository."""
    found: Finding
    is_at_start: bool
    """It stands where Python runs as the program starts."""

    @property
    def name(self) -> str:
        """Name it as a person would look it up."""
        return "/".join(filter(None, (self.repository, self.file)))


def read(files: Files, trees: Trees, started: Sequence[PurePosixPath]) -> tuple[Download, ...]:
    """List what is named, each thing once: first what is downloaded at the start, then by place.

    Args:
        files: of the tree.
        trees: of its Python files.
        started: the files that the program runs as it starts, in order: packages around it, itself, what it imports.
    """
    found: dict[str, Download] = {}
    program = next((path for path in started if path.name != "__init__.py"), None)
    for path in sorted(files, key=lambda path: (path not in started, path)):
        if path.suffix == ".py" and not _is_test(path) and _SIGNS.search(files[path]):
            module = trees.of(path)
            for one in (
                _of(path, module, files, is_started=path in started, is_program=path == program)
                if module is not None
                else ()
            ):
                if one.name not in found or (one.is_at_start and not found[one.name].is_at_start):
                    found[one.name] = one
    return tuple(
        sorted(found.values(), key=lambda one: (not one.is_at_start, one.found.path not in started, one.found.line))
    )


def _is_test(path: PurePosixPath) -> bool:
    return any(re.fullmatch(r"tests?|test_.*|.*_test", part) for part in (*path.parts[:-1], path.stem))


def _of(
    path: PurePosixPath, module: ast.Module, files: Files, *, is_started: bool, is_program: bool
) -> Iterator[Download]:
    texts = _texts(module)
    for node, is_at_once in _nodes(module, is_program=is_program):
        named: tuple[str, str] | None = None
        if isinstance(node, ast.Call):
            named = _of_call(node, texts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = _of_text(node.value)
        if named is None or PurePosixPath(named[0]) in files or _is_folder(named[0], files):
            continue
        place = Finding(path=path, line=node.lineno, text="/".join(filter(None, named))[:100])  # type: ignore[attr-defined]
        yield Download(repository=named[0], file=named[1], found=place, is_at_start=is_started and is_at_once)


def _nodes(module: ast.Module, *, is_program: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Give all nodes, each with whether it runs as the module is imported; documentation is no text of the program."""
    waiting: list[tuple[ast.AST, bool]] = [(module, True)]
    while waiting:
        node, is_at_once = waiting.pop()
        yield node, is_at_once
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        inside = is_at_once and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        inside = inside and (is_program or not (isinstance(node, ast.If) and import_graph.is_main(node.test)))
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]


def _texts(module: ast.Module) -> Mapping[str, str]:
    """Give the texts of a module's names, also those that are defaults of arguments; a name with two is unknown."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(module):
        pairs: list[tuple[str, ast.AST | None]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            pairs = [(node.target.id, node.value)]
        elif isinstance(node, ast.arguments):
            pairs = list(zip([one.arg for one in node.args[::-1]], node.defaults[::-1], strict=False))
            pairs += list(zip([one.arg for one in node.kwonlyargs], node.kw_defaults, strict=True))
        for name, value in pairs:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found.setdefault(name, set()).add(value.value)
    return {name: next(iter(values)) for name, values in found.items() if len(values) == 1}


def _of_call(call: ast.Call, texts: Mapping[str, str]) -> tuple[str, str] | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in _CALLS:
        return None
    given = {keyword.arg: _text(keyword.value, texts) for keyword in call.keywords if keyword.arg}
    if given.get("repo_type", "model") != "model":
        return None
    first = _text(call.args[0], texts) if call.args and name not in _KEYWORD_ONLY else ""
    repository = given.get(_CALLS[name]) or first
    if not _REPOSITORY.fullmatch(repository) or _WEIGHTS.search(repository):
        return None
    file = given.get("filename", "") or (_text(call.args[1], texts) if len(call.args) > 1 else "")
    return repository, file if name == "hf_hub_download" else ""


def _text(node: ast.AST, texts: Mapping[str, str]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return texts.get(node.id, "") if isinstance(node, ast.Name) else ""


def _of_text(text: str) -> tuple[str, str] | None:
    """Read an address that stands in the code; None where it is none of a model."""
    if (hub := _HUB.fullmatch(text)) and hub["repository"].partition("/")[0] not in _NOT_OWNERS:
        is_file = text.startswith("hf://") or (hub["file"] and _WEIGHTS.search(hub["file"]))
        return (hub["repository"], hub["file"] or "") if is_file else None
    is_address = re.fullmatch(r"https?://[\w.-]+\.[a-z]+/\S+", text) is not None
    return ("", text) if is_address and re.search(rf"{_WEIGHTS.pattern}$", text, re.IGNORECASE) else None


def _is_folder(name: str, files: Files) -> bool:
    return bool(name) and any(path.is_relative_to(name) for path in files)
