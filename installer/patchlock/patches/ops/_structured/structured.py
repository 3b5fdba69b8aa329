"""Ops on TOML, JSON and YAML: set a key, or delete it, by characters; nothing outside the change is written again."""

from __future__ import annotations

import json
from dataclasses import dataclass

from patchlock.model.patch import Located, OutcomeKind, Refusal, Site
from patchlock.model.text_files import Edit, SourceText, splice
from patchlock.patches.ops._structured import enclosed, toml_tree
from patchlock.patches.ops._structured.documents import (
    Document,
    Place,
    changed,
    find,
    literal,
    load,
    read,
    removed,
    same,
)
from patchlock.patches.ops._structured.tree import Child, Node, Unparsable, line_at, whole_lines
from patchlock.patches.pip_requirements import Span


@dataclass(frozen=True, kw_only=True)
class SetKey:
    """Give a key one value; the key is made where only its last part is missing, its parents never.

    Attributes:
        key: keys from the top; in a list an index, `name=value` for the one table whose `name` is `value`, or
            `=value` for the one text or number. As the last part, `=value` is what stands there before.
        value: as it is written in the file's language, on one line.
    """

    key: tuple[str, ...]
    value: str

    def __post_init__(self) -> None:
        _require_key(self.key)
        if not self.value.strip() or "\n" in self.value or "\r" in self.value:
            raise ValueError("`value` is not one line as it would stand in the file")

    def locate(self, source: SourceText) -> Located:
        """Find the key where its value is another, or the mapping that lacks it."""
        document = read(source)
        if isinstance(document, Refusal):
            return Located(refusals=(document,))
        value = literal(document.language, self.value)
        if isinstance(value, Unparsable):
            return _refused(1, f"`{self.value}` is not a {document.language} value")
        place = find(document, self.key)
        if isinstance(place, Refusal):
            return Located(refusals=(place,))
        target = place.nodes[-1]
        if not place.missing:
            if same(place.value, value):
                return Located(settled=(_site(document, _child(place).span),))
            if target.kind != "scalar" and not target.enclosed and document.language == "TOML":
                return _refused(line_at(source.text, target.span.start), "it is a table with a header; set its keys")
            edit = _replaced(document, _child(place), self.value)
            wanted = changed(document.data, place.steps, value)
            return _proved(document, source, (edit,), _child(place).span, wanted)
        if target.kind == "sequence" and self.key[-1].startswith("="):
            done = find(document, (*self.key[:-1], f"={value}"))
            if not isinstance(done, Refusal) and not done.missing and same(done.value, value):
                return Located(settled=(_site(document, _child(done).span),))
        if len(place.missing) > 1 or target.kind != "mapping":
            return _refused(line_at(source.text, target.span.start), _absent(place, self.key))
        added = _added(document, target, place.missing[0], self.value, source.newline)
        if added is None:
            return _refused(line_at(source.text, target.span.start), f"there is no place for `{place.missing[0]}`")
        wanted = changed(document.data, (*place.steps, place.missing[0]), value)
        return _proved(document, source, (added,), Span(start=added.start, end=added.start), wanted)


@dataclass(frozen=True, kw_only=True)
class DeleteKey:
    """Remove a key with its value, or an item of a list; with its lines and their comments where it has them alone."""

    key: tuple[str, ...]
    """As in `SetKey`."""

    def __post_init__(self) -> None:
        _require_key(self.key)

    def locate(self, source: SourceText) -> Located:
        """Find the key."""
        document = read(source)
        if isinstance(document, Refusal):
            return Located(refusals=(document,))
        place = find(document, self.key)
        if isinstance(place, Refusal):
            return Located(refusals=(place,))
        if place.missing:
            return Located()
        child = _child(place)
        if isinstance(place.steps[-1], int) and "=" not in self.key[-1]:
            why = f"item {self.key[-1]} would be another one afterwards; name it by `key=value`, or `=value` for a text"
            return _refused(line_at(source.text, child.span.start), why)
        parent = place.nodes[-2]
        if document.language == "YAML" and not parent.enclosed and len(parent.children) == 1 and len(self.key) > 1:
            why = f"`{self.key[-2]}` would be left with nothing; delete that, or set it"
            return _refused(line_at(source.text, child.span.start), why)
        edits = _deleted(document, parent, child)
        return _proved(document, source, edits, child.span, removed(document.data, place.steps))


def _require_key(key: tuple[str, ...]) -> None:
    if not key or not all(key):
        raise ValueError("`key` is empty or has an empty part")


def _child(place: Place) -> Child:
    parent, node = place.nodes[-2:]
    return next(child for child in parent.children.values() if child.node is node)


def _replaced(document: Document, child: Child, value: str) -> Edit:
    node, text = child.node, document.text
    is_block = node.kind != "scalar" and not node.enclosed
    if child.key and document.language == "YAML" and (is_block or node.span.start == node.span.end):
        colon = text.find(":", child.key.end) + 1  # where there is none, the proof fails
        return Edit(start=colon, end=max(colon, node.span.end), text=f" {value}")
    return Edit(start=node.span.start, end=node.span.end, text=value)


def _added(document: Document, mapping: Node, name: str, value: str, newline: str) -> Edit | None:
    """Put a new member behind the last one of a mapping."""
    text, spans = document.text, mapping.spans()
    member = f"{_written_key(document, name)}{' = ' if document.language == 'TOML' else ': '}{value}"
    if mapping.enclosed:
        if document.language == "TOML" and "\n" not in text[mapping.span.start : mapping.span.end] and not spans:
            member = f" {member} "
        return enclosed.appended(text, mapping.span, spans, member, newline)
    if document.language == "TOML" and mapping is document.root and mapping.home is None:
        at = whole_lines(text, spans[0]).start if spans else len(text)
        return Edit(start=at, end=at, text=f"{member}{newline}")
    if mapping.home is None:
        return None
    at = _end_of_line(text, mapping.home)
    indent = ""
    if spans and document.language == "YAML":
        first = spans[0].start
        indent = " " * (first - whole_lines(text, Span(start=first, end=first)).start)
    return Edit(start=at, end=at, text=f"{newline}{indent}{member}")


def _written_key(document: Document, name: str) -> str:
    is_bare = name.isascii() and all(letter.isalnum() or letter in "-_" for letter in name)
    is_bare = is_bare and document.language != "JSON"
    return name if is_bare else json.dumps(name, ensure_ascii=False)


def _deleted(document: Document, parent: Node, child: Child) -> tuple[Edit, ...]:
    text = document.text
    if parent.enclosed:
        index = list(parent.children.values()).index(child)
        return enclosed.without(text, parent.spans(), {index})
    if document.language == "TOML":
        return tuple(Edit(start=span.start, end=span.end, text="") for span in toml_tree.removed(text, child))
    return (_deleted_block(text, parent, child),)


def _deleted_block(text: str, parent: Node, child: Child) -> Edit:
    """Take a member or an item of a block collection of YAML out, with its lines."""
    lines = whole_lines(text, child.span)
    before = text[lines.start : child.span.start]
    children = list(parent.children.values())
    following = children[children.index(child) + 1 :]
    is_item = child.key is None and before.rstrip().endswith("-")
    lead = before.rstrip()[:-1] if is_item else before
    if lead.strip() and following:  # it begins on the line of the dash of its own mapping
        end = following[0].span.start
        if is_item:
            end = text.rindex("-", child.span.end, end)
        return Edit(start=lines.start + len(lead), end=end, text="")
    return Edit(start=lines.start, end=lines.end, text="")


def _end_of_line(text: str, at: int) -> int:
    while at < len(text) and text[at] not in "\r\n":
        at += 1
    return at


def _proved(document: Document, source: SourceText, edits: tuple[Edit, ...], span: Span, wanted: object) -> Located:
    """Give edits only if the file they make reads as the old one with this change."""
    after = load(document.language, splice(source, edits).text)
    if isinstance(after, Unparsable) or not same(after, wanted):
        return _refused(line_at(document.text, span.start), "it cannot be changed there without changing more")
    return Located(edits=edits, sites=(_site(document, span),))


def _absent(place: Place, key: tuple[str, ...]) -> str:
    missing = ".".join(key[: len(key) - len(place.missing) + 1])
    return f"`{missing}` is not there; only the last part of a key is made, in a table that is there"


def _refused(line: int, why: str) -> Located:
    return Located(refusals=(Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=why),))


def _site(document: Document, span: Span) -> Site:
    line = whole_lines(document.text, Span(start=span.start, end=span.start))
    return Site(line=line_at(document.text, span.start), text=document.text[line.start : line.end].strip())
