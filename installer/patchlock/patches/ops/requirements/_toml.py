"""The requirements of `pyproject.toml`: PEP 621, PEP 735, Poetry, uv and PDM."""

from __future__ import annotations

from collections.abc import Iterator

from patchlock.model.patch import OutcomeKind, Refusal
from patchlock.model.text_files import SourceText
from patchlock.patches.ops._literals import quoted
from patchlock.patches.ops._structured import enclosed, toml_tree
from patchlock.patches.ops._structured.tree import Node, Unparsable, line_at
from patchlock.patches.ops.requirements._entries import PipEntry, read_pip_entry
from patchlock.patches.ops.requirements._layouts import Brackets
from patchlock.patches.ops.requirements._poetry import poetry_table
from patchlock.patches.ops.requirements.lists import BUILD, Declared, Doubt, RequirementList

_LISTS = (
    "project.dependencies",
    "project.optional-dependencies.*",
    "dependency-groups.*",
    "tool.uv.dev-dependencies",
    "tool.pdm.dev-dependencies.*",
    BUILD,
)
_POETRY = ("tool.poetry.dependencies", "tool.poetry.dev-dependencies", "tool.poetry.group.*.dependencies")


def read(source: SourceText) -> Declared | Refusal:
    """Read a `pyproject.toml`."""
    data = toml_tree.load(source.text)
    if isinstance(data, Unparsable):
        return Refusal(line=data.line, kind=OutcomeKind.UNPARSABLE, why=data.why)
    root = toml_tree.tree(source.text)
    lists: list[RequirementList] = []
    doubts: list[Doubt] = []
    for pattern in _LISTS:
        for name, node, value in _found(root, data, pattern):
            if isinstance(value, list) and enclosed.is_plain(source.text, node.span, node.spans()):
                one, doubtful = _strings(source, name, node, value)
                lists.append(one)
                doubts += doubtful
    for pattern in _POETRY:
        for name, node, value in _found(root, data, pattern):
            if isinstance(value, dict):
                lists.append(poetry_table(source, name, node, value))
    is_poetry = "project" not in data and any(one.name == _POETRY[0] for one in lists)
    return Declared(lists=tuple(lists), doubts=tuple(doubts), default=_POETRY[0] if is_poetry else _LISTS[0])


def _strings(
    source: SourceText, name: str, array: Node, values: list[object]
) -> tuple[RequirementList, tuple[Doubt, ...]]:
    entries: list[tuple[int, PipEntry]] = []
    doubts: list[Doubt] = []
    for index, (child, value) in enumerate(zip(array.children.values(), values, strict=True)):
        if not isinstance(value, str):  # `{include-group = "name"}`
            continue
        line = line_at(source.text, child.span.start)
        literal = quoted(source.text, child.span, value)
        one = (
            read_pip_entry(literal, line, name)
            if literal
            else Doubt(line=line, text=value, why="its escapes hide where it stands", within=name)
        )
        if isinstance(one, PipEntry):
            entries.append((index, one))
        elif one is not None:
            doubts.append(one)
    layout = Brackets(source=source, outer=array.span, items=array.spans())
    return RequirementList(name=name, entries=tuple(entries), layout=layout), tuple(doubts)


def _found(root: Node, data: dict[str, object], pattern: str) -> Iterator[tuple[str, Node, object]]:
    """Give each place that a dotted pattern names, in which `*` stands for any key."""
    found: list[tuple[tuple[str, ...], Node, object]] = [((), root, data)]
    for part in pattern.split("."):
        found = [
            ((*path, str(key)), child.node, value[key])
            for path, node, value in found
            if isinstance(value, dict)
            for key, child in node.children.items()
            if part in {"*", key} and key in value
        ]
    for path, node, value in found:
        yield ".".join(path), node, value
