"""What gradio_client must make of JSON schemas that are `true` or `false`, as pydantic 2.11 writes them.

Each `case_` fails where the patch is needed; each `control_` gives the same value before and after.
Source: https://json-schema.org/draft/2020-12/json-schema-core#section-4.3.2
"""

from gradio_client import utils

FILE = {"path": {"type": "string"}, "meta": {"type": "object", "properties": {"_type": {"const": "gradio.FileData"}}}}
UPLOAD = {
    "path": {"type": "string"},
    "url": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "orig_name": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "mime_type": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "is_stream": {"type": "boolean"},
    "meta": {"type": "object", "default": {"_type": "gradio.FileData"}},
}
"""A file, as gradio 4 describes it with pydantic 2.10."""
SCHEMAS = {
    "string": {"type": "string"},
    "any": {},
    "enum": {"enum": ["a", "b"]},
    "const": {"const": "a"},
    "list": {"type": "array", "items": {"type": "integer"}},
    "tuple": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
    "object": {"type": "object", "properties": {"a": {"type": "integer", "description": "how many"}, "b": {}}},
    "mapping": {"type": "object", "additionalProperties": {"type": "number"}},
    "union": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "all": {"allOf": [{"type": "string"}, {"type": "integer"}]},
    "reference": {"$ref": "#/$defs/A", "$defs": {"A": {"type": "boolean"}}},
    "file": {"type": "object", "properties": FILE},
    "upload": {"type": "object", "properties": UPLOAD},
}


def _told(schema: object) -> str:
    return utils.json_schema_to_python_type(schema)


def case_additional_properties_true() -> None:
    """The crash of gradio 4.28 to 5.21 with pydantic 2.11; mended upstream in 1.8.0."""
    assert _told({"type": "object", "additionalProperties": True}).lower() in {"dict()", "dict(str, any)"}
    assert not utils.value_is_file({"type": "object", "additionalProperties": True})


def case_additional_properties_false() -> None:
    assert _told({"type": "object", "additionalProperties": False}).lower() == "dict()"
    assert not utils.value_is_file({"type": "object", "additionalProperties": False})


def case_property() -> None:
    told = _told({"type": "object", "properties": {"a": True, "b": {"type": "string"}, "c": False}})
    assert "a: Any" in told
    assert "b: str" in told
    assert "c: Any" in told


def case_items() -> None:
    assert _told({"type": "array", "items": True}).lower() == "list[any]"
    assert _told({"type": "array", "items": False}).lower() == "list[any]"


def case_items_beside_a_tuple() -> None:
    told = _told({"type": "array", "prefixItems": [{"type": "integer"}, True], "items": False})
    assert told.lower() == "tuple[int, any]"


def case_member_of_a_union() -> None:
    assert _told({"anyOf": [True, {"type": "string"}]}) == "Any | str"
    assert _told({"oneOf": [{"type": "string"}, False]}) == "str | Any"
    assert _told({"allOf": [{"type": "string"}, True]}) == "All[str, Any]"


def case_definition() -> None:
    assert _told({"$ref": "#/$defs/A", "$defs": {"A": True}}) == "Any"


def case_whole_schema() -> None:
    assert _told(True) == "Any"
    assert _told(False) == "Any"
    assert not utils.value_is_file(True)


def case_nested() -> None:
    schema = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "array", "items": True}}}}
    assert "any" in _told(schema).lower()


def case_file_is_still_a_file() -> None:
    """Through 1.7.2 a file is known by the text of its type, which `true` must not change."""
    old = {"type": "object", "properties": UPLOAD}
    new = {"type": "object", "properties": {**UPLOAD, "meta": {**UPLOAD["meta"], "additionalProperties": True}}}
    assert _told({"anyOf": [old, True]}).endswith(" | Any")
    if _told(old) == "filepath":
        assert _told({"anyOf": [new, True]}) == "filepath | Any"
        assert utils.value_is_file({"anyOf": [new, True]})


def case_where_a_file_could_be() -> None:
    """Newer versions know a file by its properties `path` and `meta`."""
    for meta in (True, {"type": "object", "properties": {"_type": True}}, {"$ref": "#/$defs/A"}):
        schema = {"type": "object", "properties": {"path": {"type": "string"}, "meta": meta}, "$defs": {"A": True}}
        assert "path: str" in _told(schema)
        assert not utils.value_is_file(schema)


def control_types() -> dict[str, str]:
    return {name: _told(schema) for name, schema in SCHEMAS.items()}


def control_files() -> dict[str, bool]:
    return {name: utils.value_is_file(schema) for name, schema in SCHEMAS.items()}
