"""In which keys a TOML, JSON or YAML file differs from another, in the words of `set-key` and `delete-key`; pure."""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from patchlock.model.patch import Refusal
from patchlock.model.text_files import SourceText
from patchlock.patches.ops._structured.documents import Document, is_selected, read, same
from patchlock.patches.ops._structured.tree import Node

_REQUIREMENTS = frozenset({"dependencies", "requires", "pip", "optional-dependencies", "dependency-groups"})
"""Keys of lists of requirements, or of tables of such lists, in pyproject.toml and in conda's environments."""
_SHORT = 100
"""Characters of a collection that still reads well on one line."""


@dataclass(frozen=True, kw_only=True)
class KeyChange:
    """A key that has another value, is new, or is gone."""

    key: tuple[str, ...]
    value: str | None
    """As the other file has it, on one line; None: the key is gone."""
    afterwards: tuple[str, ...] = ()
    """By which key the value is found then, where that is another."""


def compare(before: SourceText, after: SourceText) -> tuple[KeyChange, ...]:
    """Give the changes of keys, in the order of the files; nothing where either is no file with keys.

    What cannot be written on one line is left out.
    """
    old, new = read(before), read(after)
    if isinstance(old, Refusal) or isinstance(new, Refusal):
        return ()
    return tuple(_Comparison(new=new).nodes(old.root, new.root, old.data, new.data, ()))


def same_values(one: SourceText, other: SourceText) -> bool:
    """Tell whether two files hold the same values; the order of keys and requirements, and layout do not count."""
    left, right = read(one), read(other)
    if isinstance(left, Refusal) or isinstance(right, Refusal):
        return False
    return same(_ordered(left.data, ()), _ordered(right.data, ()))


def distance(one: SourceText, other: SourceText) -> int | None:
    """Count the values that only one of two files has, wherever in a list they stand; None where either has no keys."""
    left, right = read(one), read(other)
    if isinstance(left, Refusal) or isinstance(right, Refusal):
        return None
    here, there = (collections.Counter(_leaves(_ordered(document.data, ()), ())) for document in (left, right))
    return ((here - there) + (there - here)).total()


def _ordered(value: object, key: tuple[str, ...]) -> object:
    """Write the requirements of a list in one way, in alphabetical order: their own order means nothing."""
    if isinstance(value, dict):
        return {name: _ordered(inner, (*key, str(name))) for name, inner in value.items()}
    if not isinstance(value, list) or not _holds_requirements(key):
        return value
    if not all(isinstance(one, str) for one in value):
        return value
    try:
        return sorted(str(Requirement(one)) for one in value)
    except InvalidRequirement:
        return value


def _holds_requirements(key: tuple[str, ...]) -> bool:
    return bool(_REQUIREMENTS.intersection(key[-2:]))


def _is_of_one_name(*requirements: object) -> bool:
    try:
        return len({canonicalize_name(Requirement(str(one)).name) for one in requirements}) == 1
    except InvalidRequirement:
        return False


def _leaves(value: object, key: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*key, str(name)))
    elif isinstance(value, list) and value:
        for inner in value:
            yield from _leaves(inner, (*key, "[]"))
    else:
        yield key, repr(value)


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    new: Document

    def nodes(self, old: Node, new: Node, was: object, now: object, key: tuple[str, ...]) -> Iterator[KeyChange]:
        if same(was, now):
            return
        if isinstance(was, dict) and isinstance(now, dict) and "mapping" == old.kind == new.kind:
            yield from self._mappings(old, new, was, now, key)
        elif isinstance(was, list) and isinstance(now, list) and "sequence" == old.kind == new.kind:
            yield from self._lists(old, new, was, now, key)
        else:
            yield from self._set(new, key)

    def _mappings(
        self, old: Node, new: Node, was: dict[object, object], now: dict[object, object], key: tuple[str, ...]
    ) -> Iterator[KeyChange]:
        old_names, new_names = ({str(name): name for name in data} for data in (was, now))
        for part in old.children:
            if part not in new.children:
                yield KeyChange(key=(*key, str(part)), value=None)
        for part, child in new.children.items():
            if part not in old.children:
                yield from self._set(child.node, (*key, str(part)), now.get(new_names.get(str(part))))
            elif str(part) in old_names and str(part) in new_names:
                one, other = was[old_names[str(part)]], now[new_names[str(part)]]
                yield from self.nodes(old.children[part].node, child.node, one, other, (*key, str(part)))

    def _lists(
        self, old: Node, new: Node, was: list[object], now: list[object], key: tuple[str, ...]
    ) -> Iterator[KeyChange]:
        if len(was) == len(now):
            yield from self._items(old, new, was, now, key)
            return
        if _holds_requirements(key):
            return  # upstream adds others, and gives them versions: only the ops on requirements know them again
        gone = [one for one in was if one not in now]
        if [one for one in was if one in now] == now and not any(isinstance(one, dict | list) for one in gone):
            for one in gone:
                yield KeyChange(key=(*key, f"={one}"), value=None)
            return
        if was and now and "=" in _named(was, 0) and "=" in _named(now, 0):
            yield from self._named_items(old, new, was, now, key)
            return
        yield from self._set(new, key)

    def _items(
        self, old: Node, new: Node, was: list[object], now: list[object], key: tuple[str, ...]
    ) -> Iterator[KeyChange]:
        """Compare lists of one length; an item is named by what it is, as upstream may put others before it."""
        changed = [index for index in range(len(was)) if not same(was[index], now[index])]
        parts = {index: _selector(was, now, index) for index in changed}
        if _holds_requirements(key) and not all(_is_of_one_name(was[index], now[index]) for index in changed):
            return
        if all(parts.values()):
            for index, part in parts.items():
                one, other = was[index], now[index]
                for change in self.nodes(old.children[index].node, new.children[index].node, one, other, (*key, part)):
                    is_item = change.key == (*key, part)
                    yield dataclasses.replace(change, afterwards=(*key, f"={other}")) if is_item else change
        elif not _holds_requirements(key) and not any(isinstance(one, dict) for one in (*was, *now)):
            yield from self._set(new, key)

    def _named_items(
        self, old: Node, new: Node, was: list[object], now: list[object], key: tuple[str, ...]
    ) -> Iterator[KeyChange]:
        """Compare the items that both lists have, by their names; of the rest, only what is gone can be said."""
        before, after = ({_named(items, index): index for index in range(len(items))} for items in (was, now))
        for part in before:
            if part not in after:
                yield KeyChange(key=(*key, part), value=None)
        for part, index in after.items():
            if part in before:
                first = before[part]
                yield from self.nodes(
                    old.children[first].node, new.children[index].node, was[first], now[index], (*key, part)
                )

    def _set(self, node: Node, key: tuple[str, ...], value: object = None) -> Iterator[KeyChange]:
        text = self.new.text[node.span.start : node.span.end].strip()
        is_written_there = node.kind == "scalar" or node.enclosed
        if value is not None and self.new.language == "YAML" and ("\n" in text or not is_written_there):
            is_written_there, text = True, _on_one_line(value)
        if key and is_written_there and text and "\n" not in text and "\r" not in text:
            yield KeyChange(key=key, value=text)


def _on_one_line(value: object) -> str:
    """Write what a new key of YAML holds as JSON, which YAML reads too; "" where it is no short value."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except TypeError:  # a date
        return ""
    return text if len(text) <= _SHORT else ""


def _selector(was: list[object], now: list[object], index: int) -> str:
    """Name an item that two lists have at one place by what only it is there; "" where nothing tells it."""
    one, other = was[index], now[index]
    if isinstance(one, dict) and isinstance(other, dict):
        kept = [name for name, value in one.items() if isinstance(value, str) and value and other.get(name) == value]
        parts = [f"{name}={one[name]}" for name in sorted(kept, key=lambda name: name not in {"name", "id"})]
        return next((part for part in parts if _count(was, part) == _count(now, part) == 1), "")
    if isinstance(one, dict | list) or isinstance(other, dict | list):
        return ""
    return f"={one}" if (_count(was, f"={one}"), _count(was, f"={other}")) == (1, 0) else ""


def _count(items: list[object], part: str) -> int:
    name, _, wanted = part.partition("=")
    return sum(is_selected(item, name, wanted) for item in items)


def _named(items: list[object], index: int) -> str:
    """Name an item of a list of tables by its `name` or `id`, if no other has the same; else by its place."""
    for key in ("name", "id"):
        names = [item.get(key) for item in items if isinstance(item, dict)]
        are_texts = len(names) == len(items) and all(isinstance(one, str) and one for one in names)
        if are_texts and len(set(names)) == len(names):
            return f"{key}={names[index]}"
    return str(index)
