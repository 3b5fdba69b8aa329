"""JSON Schemas of the catalogue's files, for editors: what the readers themselves ask of a table; reads no file."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import json
import re
import textwrap
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from patchlock.catalogue import (
    _apps_and_profiles,
    _devices,
    _indexes,
    _needs,
    distributions,
    expectations,
    policy,
    shared_sets,
)
from patchlock.catalogue._troubles import reader as troubles
from patchlock.catalogue.table_reader import NO_OWN, Declaration, Names, Own, Report, Table, declarations
from patchlock.model.origins import Origin
from patchlock.model.table_fields import Filled, Matches, OneOf

T = TypeVar("T")
Schema = dict[str, Any]

_WORDS = re.compile(r"\[\n\s+([^][{}]*?)\n\s+\]")
_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n     +.*)*)", re.MULTILINE)
_LINE_END = re.compile(r"\n\s+")

FOLDER = "docs/schemas"
"""From the root of a catalogue; one file for each kind of file, `<kind>.json`."""


@dataclass(frozen=True, kw_only=True)
class FileKind:
    """A kind of file of the catalogue."""

    name: str
    glob: str
    """POSIX, from the catalogue's root."""
    title: str
    read: Callable[[Table], object]


def _app(root: Table) -> None:
    shared_sets.taken(root, (), ())
    _apps_and_profiles.app(root, "app")


KINDS = (
    FileKind(name="app", glob="patches/*/app.toml", title="An app of the catalogue", read=_app),
    FileKind(
        name="shared-set",
        glob="patches/shared/*.toml",
        title="Patches against a problem of several apps",
        read=lambda root: shared_sets.shared_set(root, "set", None),
    ),
    FileKind(
        name="distribution",
        glob="patches/distributions/*/patch.toml",
        title="Patches of a third-party distribution",
        read=lambda root: distributions.distribution(root, "name", "folder", has_cases=True),
    ),
    FileKind(
        name="profile",
        glob="profiles/*.toml",
        title="A kind of machine",
        read=lambda root: _apps_and_profiles.profile(root, "profile", ()),
    ),
    FileKind(name="devices", glob="profiles/devices/*.toml", title="Graphics cards of a vendor", read=_devices.cards),
    FileKind(
        name="need",
        glob="profiles/needs/*.toml",
        title="What an app or a profile needs of a machine",
        read=lambda root: _needs.resource(root, "need"),
    ),
    FileKind(
        name="trouble",
        glob="profiles/troubles/*.toml",
        title="A known trouble of machines",
        read=lambda root: troubles.trouble(root, "trouble"),
    ),
    FileKind(
        name="expectations",
        glob="profiles/expectations/*.toml",
        title="Kernels that are known to fail on a back end",
        read=expectations.expectations,
    ),
    FileKind(
        name="index",
        glob="profiles/indexes/*.toml",
        title="A recorded index",
        read=lambda root: _indexes.index(root, "index"),
    ),
    FileKind(
        name="policy-family",
        glob="profiles/policy/*-family.toml",
        title="Distributions that are built for a version of another",
        read=lambda root: policy.family(root, "family.toml"),
    ),
    FileKind(
        name="policy-broken-pairs",
        glob="profiles/policy/broken-pairs.toml",
        title="Distributions that do not work together",
        read=policy.pairs,
    ),
    FileKind(
        name="policy-shared-folders",
        glob="profiles/policy/shared-folders.toml",
        title="Folders that several distributions write",
        read=policy.folders,
    ),
    FileKind(
        name="policy-wheels",
        glob="profiles/policy/wheels.toml",
        title="GPU architectures that were found in wheels",
        read=policy.wheels,
    ),
    FileKind(
        name="policy-arch-free",
        glob="profiles/policy/arch-free.toml",
        title="Distributions whose compiled GPU code no app runs",
        read=policy.arch_free,
    ),
    FileKind(
        name="policy-placeholders",
        glob="profiles/policy/placeholders.toml",
        title="Names that PyPI only holds for a vendor",
        read=policy.placeholders,
    ),
    FileKind(
        name="policy-unclaimed",
        glob="profiles/policy/unclaimed.toml",
        title="Chips that are left out on purpose",
        read=policy.unclaimed,
    ),
)


def schema(kind: FileKind) -> Schema:
    """Make the schema of a kind of file.

    What only the reader can judge (names of other files, mistakes across keys) is left to it: whatever it accepts fits
    the schema, and not the other way round.
    """
    passes = []
    for has_all in (True, False):  # what is asked for in any case, and what only where a key is there
        node = _Node()
        kind.read(_Question(node, has_all=has_all))
        passes.append(node.schema())
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": kind.title}
    return head | _shared(_merged(*passes))


def write(root: Path) -> None:
    """Write the schemas into a catalogue that has none, for the editors that its files name them to."""
    for kind in KINDS:
        file = root / FOLDER / f"{kind.name}.json"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(render(kind), encoding="utf-8")


def render(kind: FileKind) -> str:
    """Write the schema of a kind of file as the text that is committed."""
    text = json.dumps(schema(kind), indent=2)
    # A list of words in one line: a third of the length.
    return _WORDS.sub(lambda found: "[" + _LINE_END.sub(" ", found[1]) + "]", text) + "\n"


# --- a table that notes what it is asked ------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _Node:
    """What was asked of one table."""

    keys: dict[str, Schema | _Node | list[_Node]] = dataclasses.field(default_factory=dict)
    """Key → what it must be: a schema, a table, or a list of tables."""
    required: set[str] = dataclasses.field(default_factory=set)
    others: Schema | None = None
    """What a key of another name must be; None: there may be none."""
    variants: dict[str, dict[str, tuple[str, _Node]]] = dataclasses.field(default_factory=dict)
    """Key → its word → what the class says, and what is asked of the table with that word."""
    description: str = ""

    def schema(self) -> Schema:
        """Write it down."""
        properties = {key: _written(value) for key, value in self.keys.items()}
        conditions = []
        for key, words in self.variants.items():
            for word, (_, node) in words.items():
                own = node.schema()
                then = {"properties": own["properties"], "required": own.get("required", [])}
                allowed = sorted({*self.keys, *node.keys, key})
                conditions.append(
                    {
                        "if": {"properties": {key: {"const": word}}, "required": [key]},
                        "then": then | {"propertyNames": {"enum": allowed}},
                    }
                )
                for name, one in own["properties"].items():  # so that an editor offers the keys of all
                    known = properties.get(name)
                    properties[name] = one if known is None else _either(known, one)
            described = {"docs": {"enumValues": [text for text, _ in words.values()]}}
            properties[key] = {"enum": list(words), "x-taplo": described}
            self.required.add(key)
        made: Schema = {"type": "object"}
        if self.description:
            made["description"] = self.description
        made["properties"] = properties
        if self.required:
            made["required"] = sorted(self.required)
        made["additionalProperties"] = self.others if self.others is not None else False
        return made | ({"allOf": conditions} if conditions else {})


def _written(value: Schema | _Node | list[_Node]) -> Schema:
    match value:
        case _Node():
            return value.schema()
        case list():
            return {"type": "array", "items": value[0].schema()}
        case _:
            return value


class _Question(Table):
    """An empty table that takes every question of a reader for an answer to what may stand in it."""

    def __init__(self, node: _Node, *, has_all: bool) -> None:
        super().__init__({}, Report(file="", text=""))
        self._node = node
        self._has_all = has_all

    def _note(self, key: str, schema: Schema, *, required: bool) -> None:
        known = self._node.keys.get(key)
        if known is None or known == {}:
            self._node.keys[key] = schema
        elif isinstance(known, dict) and schema != {}:
            self._node.keys[key] = known if "description" in known else known | schema
        if required:
            self._node.required.add(key)

    def has(self, key: str) -> bool:
        self._note(key, {}, required=False)
        return self._has_all

    def known(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._note(key, {}, required=False)

    def text(self, key: str, default: str | None = None) -> str:
        least = {"minLength": 1} if default is None else {}
        self._note(key, {"type": "string"} | least, required=default is None)
        return default or ""

    def integer(self, key: str, default: int | None = None) -> int:
        self._note(key, {"type": "integer"}, required=default is None)
        return default or 0

    def boolean(self, key: str, default: bool | None = None) -> bool:
        self._note(key, {"type": "boolean"}, required=default is None)
        return bool(default)

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        self._note(key, {"type": "array", "items": {"type": "string"}}, required=default is None)
        return default or ()

    def texts_named_here(self, key: str) -> tuple[str, ...]:  # noqa: ARG002 - a word of some file
        self._node.others = {"type": "array", "items": {"type": "string"}, "minItems": 1}
        return ()

    def mapping(self, key: str) -> Mapping[str, str]:
        self._note(key, {"type": "object", "additionalProperties": {"type": "string"}}, required=False)
        return {}

    def parse(self, key: str, parser: Callable[[str], T], fallback: T, default: str | None = None) -> T:  # noqa: ARG002 - there is no text
        self.text(key, default)
        return fallback

    def table(self, key: str, required: bool = True) -> Table:
        node = self._node.keys.get(key)
        if not isinstance(node, _Node):
            node = self._node.keys[key] = _Node()
        if required:
            self._node.required.add(key)
        return _Question(node, has_all=self._has_all)

    def tables(self, key: str) -> tuple[Table, ...]:
        nodes = self._node.keys.get(key)
        if not isinstance(nodes, list):
            nodes = self._node.keys[key] = [_Node()]
        return (_Question(nodes[0], has_all=self._has_all),)

    def variant(self, key: str, kinds: Mapping[str, type[T]], own: Own[T] = NO_OWN) -> None:
        words = self._node.variants.setdefault(key, {})
        for word, cls in kinds.items():
            node = _Node()
            question = _Question(node, has_all=self._has_all)
            if word in own:
                own[word](question)
            else:
                question.record(cls)
            words[word] = (_summary(cls), node)

    def read(self, cls: type[T], known: Names | None = None, **given: object) -> T:
        self._node.description = self._node.description or _summary(cls)
        texts = _field_texts(cls)  # type: ignore[arg-type]  # a class has a hash
        fields = {}
        for one in declarations(cls, frozenset(given)):  # type: ignore[arg-type]  # a class has a hash
            fields[one.name] = self._declared(one, known or {})
            described = self._node.keys.get(one.key)
            if isinstance(described, dict) and one.name in texts:
                described.setdefault("description", texts[one.name])
        return cls(**fields, **given)

    def _declared(self, one: Declaration, known: Names) -> Any:
        if one.hint is Origin or _tables_in(one.hint):
            value = super()._declared(dataclasses.replace(one, is_required=True), known)
            if not one.is_required:
                self._node.required.discard(one.key)
            return value
        self._note(one.key, _declared_schema(one), required=one.is_required)
        if not one.is_required:
            return one.default()
        if typing.get_origin(one.hint) is tuple:
            return ()
        if typing.get_origin(one.hint) is Mapping:
            return {}
        if one.parser is not None:
            return one.parser[1]
        return "" if one.hint not in {int, bool} else one.hint()

    def record(self, cls: type[T]) -> None:
        texts = _field_texts(cls)  # type: ignore[arg-type]  # a class has a hash
        hints = typing.get_type_hints(cls)
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]  # a class of the vocabulary
            key, hint = field.name.replace("_", "-"), hints[field.name]
            required = field.default is dataclasses.MISSING and typing.get_origin(hint) is not Mapping
            described = {"description": texts[field.name]} if field.name in texts else {}
            self._note(key, _schema_of(hint) | described, required=required)


def _tables_in(hint: Any) -> bool:
    item = typing.get_args(hint)[0] if typing.get_origin(hint) is tuple else hint
    return dataclasses.is_dataclass(item)


def _schema_of(hint: Any) -> Schema:
    if hint is int:
        return {"type": "integer"}
    if hint is bool:
        return {"type": "boolean"}
    if typing.get_origin(hint) is tuple:
        return {"type": "array", "items": {"type": "string"}}
    if typing.get_origin(hint) is Mapping:
        return {"type": "object", "additionalProperties": {"type": "string"}}
    return {"type": "string"}


def _declared_schema(one: Declaration) -> Schema:
    made = _schema_of(one.hint)
    item = made["items"] if made["type"] == "array" else made
    for mark in one.marks:
        match mark:
            case OneOf():
                item["enum"] = [*mark.words, *([] if one.is_required or item is not made else [""])]
            case Matches():
                item["pattern"] = f"^({mark.pattern.pattern})$"
                if not one.is_required and item is made:
                    item["pattern"] = f"^({mark.pattern.pattern})?$"
            case Filled():
                made["minItems"] = 1
    if made["type"] == "string" and one.is_required and "enum" not in made:
        made["minLength"] = 1
    return made


# --- two answers as one -----------------------------------------------------------------------------------------------


def _merged(one: Schema, other: Schema) -> Schema:
    """Join what was asked where all keys are there and where none is: a key is required where it is in both."""
    if one == other or not other:
        return one
    if not one:
        return other
    if one.get("type") == other.get("type") == "array":
        return one | {"items": _merged(one["items"], other["items"])}
    if "properties" in one and "properties" in other:
        keys = dict.fromkeys([*one["properties"], *other["properties"]])
        properties = {key: _merged(one["properties"].get(key, {}), other["properties"].get(key, {})) for key in keys}
        required = sorted({*one.get("required", ())} & {*other.get("required", ())})
        made = one | {"properties": properties, "required": required}
        if not required:
            del made["required"]
        if "allOf" in one:
            pairs = zip(one["allOf"], other["allOf"], strict=True)
            made["allOf"] = [{"if": a["if"], "then": _merged_then(a["then"], b["then"])} for a, b in pairs]
        return made
    # A text that may be empty where it is no key of its own.
    return {key: value for key, value in one.items() if key == "description" or other.get(key) == value}


def _merged_then(one: Schema, other: Schema) -> Schema:
    names = sorted({*one["propertyNames"]["enum"], *other["propertyNames"]["enum"]})
    required = sorted({*one["required"]} & {*other["required"]})
    keys = dict.fromkeys([*one["properties"], *other["properties"]])
    properties = {key: _merged(one["properties"].get(key, {}), other["properties"].get(key, {})) for key in keys}
    return {"properties": properties, "required": required, "propertyNames": {"enum": names}}


def _either(one: Schema, other: Schema) -> Schema:
    """Accept what either accepts."""
    plain = [{key: value for key, value in part.items() if key != "description"} for part in (one, other)]
    if plain[0] == plain[1]:
        return one if one.get("description") == other.get("description") else plain[0]
    known = one["anyOf"] if "anyOf" in one else [plain[0]]
    return {"anyOf": known if plain[1] in known else [*known, plain[1]]}


def _shared(whole: Schema) -> Schema:
    """Say once, under `definitions`, what stands in several places: the patches of an app and those of its recipes."""
    seen: dict[str, int] = {}

    def count(part: object) -> None:
        for one in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            count(one)
        if isinstance(part, dict) and "allOf" in part:
            text = json.dumps(part)
            seen[text] = seen.get(text, 0) + 1

    def replace(part: Any) -> Any:
        if isinstance(part, list):
            return [replace(one) for one in part]
        if not isinstance(part, dict):
            return part
        if "allOf" in part and (text := json.dumps(part)) in names:
            return {"$ref": f"#/definitions/{names[text]}"}
        return {key: replace(one) for key, one in part.items()}

    count(whole)
    several = [text for text, number in seen.items() if number > 1]
    names = {text: f"table-{number}" for number, text in enumerate(several, start=1)}
    if not names:
        return whole
    inside = {name: {key: replace(one) for key, one in json.loads(text).items()} for text, name in names.items()}
    shared: Schema = {"definitions": inside} | replace(whole)
    return shared


# --- what the types say of themselves ---------------------------------------------------------------------------------


def _summary(cls: type[Any]) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]


@functools.cache
def _field_texts(cls: type[Any]) -> Mapping[str, str]:
    """Field → the text below it in the source, or among the attributes of its class, in one line."""
    listed = (inspect.getdoc(cls) or "").partition("\nAttributes:\n")[2]
    found = {name: " ".join(words.split()) for name, words in _ATTRIBUTE.findall(listed)}
    for base in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        statements = body.body if isinstance(body, ast.ClassDef) else []
        for field, text in itertools.pairwise(statements):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    found[name] = " ".join(words.split())
                case _:
                    pass
    return found
