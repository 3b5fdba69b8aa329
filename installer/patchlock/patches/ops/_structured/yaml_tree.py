"""Find where the keys and values of a YAML file stand, by ruamel.yaml, which is imported only for such a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from patchlock.patches.ops._structured.tree import Child, Node, Step, Unparsable
from patchlock.patches.pip_requirements import Span

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node as Composed

_COLON = re.compile(r"\s*:")


def load(text: str) -> object | Unparsable:
    """Read a YAML text of one document as plain values, or say on which line it cannot be."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        value: object = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, RecursionError, ValueError, TypeError, AttributeError) as error:
        return _unparsable(error)
    return value


def tree(text: str) -> Node | None:
    """Find the places in a text that `load` accepts; None where it is empty."""
    from ruamel.yaml import YAML

    composed = YAML(typ="safe", pure=True).compose(text)
    if composed is None:
        return None
    made: dict[int, Node] = {}
    return _node(text, composed, made)


def _node(text: str, composed: Composed, made: dict[int, Node]) -> Node:
    from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

    if id(composed) in made:  # an alias leads to the node of its anchor
        made[id(composed)].shared = True
        return made[id(composed)]
    start, end = composed.start_mark.index, composed.end_mark.index
    node = made[id(composed)] = Node(span=Span(start=start, end=end), kind="scalar")
    if isinstance(composed, ScalarNode):
        node.span = Span(start=start, end=_content_end(text, start, end))
        return node
    if isinstance(composed, SequenceNode | MappingNode):
        node.enclosed = bool(composed.flow_style)
    if isinstance(composed, SequenceNode):
        node.kind = "sequence"
        for index, item in enumerate(composed.value):
            value = _node(text, item, made)
            node.children[index] = Child(span=value.span, key=None, node=value)
    elif isinstance(composed, MappingNode):
        node.kind = "mapping"
        for key, item in composed.value:
            _member(text, node, key, _node(text, item, made))
    if not node.enclosed and node.children:
        last = list(node.children.values())[-1]
        node.span = Span(start=start, end=max(last.span.end, start))
        node.home = node.span.end
    return node


def _member(text: str, mapping: Node, key: Composed, value: Node) -> None:
    name: Step = str(key.value)
    if name in mapping.children:
        mapping.repeated.add(name)
    start = key.start_mark.index
    span = Span(start=start, end=max(value.span.end, key.end_mark.index))
    if value.span.start < start:  # an alias: its anchor stands elsewhere
        span = Span(start=start, end=key.end_mark.index)
    elif value.span.start == value.span.end:  # nothing is written, the mark is that of the next word
        colon = _COLON.match(text, key.end_mark.index)
        end = colon.end() if colon else key.end_mark.index
        value.span = Span(start=end, end=end)
        span = Span(start=start, end=end)
    mapping.children[name] = Child(span=span, key=Span(start=start, end=key.end_mark.index), node=value)


def _content_end(text: str, start: int, end: int) -> int:
    """The end of what is written; the mark behind a block scalar stands where the next word begins."""
    return start + len(text[start:end].rstrip())


def _unparsable(error: Exception) -> Unparsable:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    first = str(problem).strip().splitlines()[0]
    line = mark.line + 1 if mark is not None else 1
    return Unparsable(line=line, why=f"it is not one YAML document that can be read: {first}")
