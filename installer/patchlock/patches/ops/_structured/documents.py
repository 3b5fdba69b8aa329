"""TOML, JSON and YAML files as values beside places, and the way from a key to its place; edits nothing."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, assert_never

from patchlock.model.patch import OutcomeKind, Refusal
from patchlock.model.text_files import SourceText
from patchlock.patches.ops._structured import json_tree, toml_tree, yaml_tree
from patchlock.patches.ops._structured.tree import Node, Step, Unparsable, line_at

Language = Literal["TOML", "JSON", "YAML"]

_LANGUAGES: dict[str, Language] = {".toml": "TOML", ".json": "JSON", ".yaml": "YAML", ".yml": "YAML"}


@dataclass(frozen=True, kw_only=True)
class Document:
    """A structured file."""

    language: Language
    text: str
    data: object
    """As its loader reads it: dictionaries, lists and scalars."""
    root: Node


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a key leads."""

    steps: tuple[Step, ...]
    """The part of the way that is there: keys as the data has them, indices."""
    nodes: tuple[Node, ...]
    """From the root, one more than `steps`."""
    value: object
    """What stands at the end of `steps`."""
    missing: tuple[str, ...]
    """The rest of the key."""


@lru_cache(maxsize=16)
def read(source: SourceText) -> Document | Refusal:
    """Read a structured file by the ending of its name; the answer is kept and never changed."""
    language = _LANGUAGES.get(source.path.suffix.lower())
    if language is None:
        why = f"{source.path.name} is not a .toml, .json, .yaml or .yml file, the only ones whose keys can be edited"
        return Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why=why)
    data = load(language, source.text)
    if isinstance(data, Unparsable):
        return Refusal(line=data.line, kind=OutcomeKind.UNPARSABLE, why=data.why)
    root = _tree(language, source.text)
    if root is None or root.kind == "scalar":
        return Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why="it holds no keys")
    return Document(language=language, text=source.text, data=data, root=root)


def load(language: Language, text: str) -> object | Unparsable:
    """Read a text as plain values, or say why it cannot be."""
    match language:
        case "TOML":
            return toml_tree.load(text)
        case "JSON":
            return json_tree.load(text)
        case "YAML":
            return yaml_tree.load(text)
        case unknown:
            assert_never(unknown)


def _tree(language: Language, text: str) -> Node | None:
    match language:
        case "TOML":
            return toml_tree.tree(text)
        case "JSON":
            return json_tree.tree(text)
        case "YAML":
            return yaml_tree.tree(text)
        case unknown:
            assert_never(unknown)


def literal(language: Language, text: str) -> object | Unparsable:
    """Read a value as it would stand behind a key."""
    match language:
        case "TOML":
            data = toml_tree.load(f"key = {text}")
            is_one = not isinstance(data, Unparsable) and list(data) == ["key"]
            return data["key"] if not isinstance(data, Unparsable) and is_one else Unparsable(line=1, why="")
        case "JSON":
            return json_tree.load(text)
        case "YAML":
            inside = yaml_tree.load(f"[{text}]")
            is_one = isinstance(inside, list) and len(inside) == 1
            return inside[0] if isinstance(inside, list) and is_one else Unparsable(line=1, why="")
        case unknown:
            assert_never(unknown)


def find(document: Document, key: tuple[str, ...]) -> Place | Refusal:
    """Follow a key as far as it leads.

    Args:
        document: the file.
        key: keys of mappings; for a sequence an index, `name=value` for the one item whose `name` is `value`, or
            `=value` for the one scalar.

    Returns:
        the place; a refusal where a step could mean several things.
    """
    node, value = document.root, document.data
    steps: list[Step] = []
    nodes = [node]
    for depth, part in enumerate(key):
        step = _step(node, value, part)
        line = line_at(document.text, node.span.start)
        if isinstance(step, _Several):
            return Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=f"`{part}` means several: {step.why}")
        if step is None:
            return Place(steps=tuple(steps), nodes=tuple(nodes), value=value, missing=key[depth:])
        in_data, in_tree = step
        node = node.children[in_tree].node
        if node.shared:
            why = f"`{part}` is shared by an anchor and its aliases, or merged, so that a change would reach further"
            return Refusal(line=line_at(document.text, node.span.start), kind=OutcomeKind.AMBIGUOUS, why=why)
        value = value[in_data]  # type: ignore[index]  # it has this step, see `_step`
        steps.append(in_data)
        nodes.append(node)
    return Place(steps=tuple(steps), nodes=tuple(nodes), value=value, missing=())


@dataclass(frozen=True, kw_only=True)
class _Several:
    why: str


def _step(node: Node, value: object, part: str) -> tuple[Step, Step] | _Several | None:
    """The step in the data and the one in the tree; None where there is none."""
    if isinstance(value, list):
        index = _index(value, part)
        return index if isinstance(index, _Several | None) else (index, index)
    if not isinstance(value, dict):
        return None
    if part in node.repeated:
        return _Several(why="it is there twice")
    if part in node.children:
        in_data = next((key for key in value if key == part or str(key) == part), None)
        return None if in_data is None else (in_data, part)
    if part in value:
        return _Several(why="it comes from a merge with `<<`")
    return None


def _index(items: list[object], part: str) -> int | _Several | None:
    name, equals, wanted = part.partition("=")
    if not equals:
        return int(part) if part.isdecimal() and int(part) < len(items) else None
    found = [index for index, item in enumerate(items) if is_selected(item, name, wanted)]
    if len(found) > 1:
        return _Several(why=f"{len(found)} items have it")
    return found[0] if found else None


def is_selected(item: object, name: str, wanted: str) -> bool:
    """Tell whether `name=wanted` means an item of a list."""
    if isinstance(item, dict):
        return name in item and str(item[name]) == wanted
    return not name and not isinstance(item, list) and str(item) == wanted


def changed(data: object, steps: tuple[Step, ...], value: object) -> object:
    """Give data with another value at a place."""
    result = copy.deepcopy(data)
    _parent(result, steps)[steps[-1]] = copy.deepcopy(value)
    return result


def removed(data: object, steps: tuple[Step, ...]) -> object:
    """Give data without what stands at a place."""
    result = copy.deepcopy(data)
    del _parent(result, steps)[steps[-1]]
    return result


def _parent(data: object, steps: tuple[Step, ...]) -> dict[Step, object]:
    for step in steps[:-1]:
        data = data[step]  # type: ignore[index]
    return data  # type: ignore[return-value]  # a list takes the same two statements


def same(left: object, right: object) -> bool:
    """Tell whether two values are equal and of the same types; the order of keys does not count."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right) or (left != left and right != right)  # noqa: PLR0124  (nan)
