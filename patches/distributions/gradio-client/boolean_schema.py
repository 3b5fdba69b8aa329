"""Make gradio-client bear JSON schemas that are `true` or `false`, wherever it takes a schema for a table.

On a checkout of gradio, with LibCST installed:

    export PYTHONPATH=<this folder>
    python -m libcst.tool codemod -x --no-format boolean_schema.BooleanSchema client/python/gradio_client

A place that upstream has repaired in these words is settled. A place that is there twice, or whose use is another one
than upstream's so far, is told by a warning and left.
"""

import ast

import libcst as cst
from libcst import matchers as m
from libcst.codemod import VisitorBasedCodemodCommand
from libcst.metadata import PositionProvider

DESCRIBE = "_json_schema_to_python_type"


def _text(value):
    return m.SimpleString(value=m.MatchIfTrue(lambda code: ast.literal_eval(code) == value))


def _has(key, name):
    return m.Comparison(_text(key), [m.ComparisonTarget(m.In(), m.Name(name))])


def _get(name):
    return m.Attribute(m.Name(name), m.Name("get"))


def _get_of_table(name):
    return f"({name} if isinstance({name}, dict) else {{}}).get"


IS_EMPTY = m.Comparison(m.Name("schema"), [m.ComparisonTarget(m.Equal(), m.Dict([]))])
REPAIRS = (  # function, what stands there, what it becomes, whether it is there once
    # true and false stand for any value; every other test of the function takes the schema for a table.
    (DESCRIBE, IS_EMPTY, "schema in ({}, True, False)", True),
    # `items` that are true or false hold no `prefixItems`.
    (DESCRIBE, _has("prefixItems", "items"), '"prefixItems" in (items if isinstance(items, dict) else ())', True),
    # A schema that is true or false as a whole defines nothing, and is no file.
    ("json_schema_to_python_type", _get("schema"), _get_of_table("schema"), True),
    ("value_is_file", _get("api_info"), _get_of_table("api_info"), True),
    # The versions that look for the properties `path` and `meta` of a file; `meta`, and `_type` in it, may be true.
    ("_is_file_schema", _get("meta"), _get_of_table("meta"), False),
    ("_is_file_schema", _get("type_schema"), _get_of_table("type_schema"), False),
    # A schema that is true or false refers to none.
    ("_resolve_ref", _has("$ref", "schema"), '"$ref" in (schema if isinstance(schema, dict) else ())', True),
)
# A property that is true or false has no description.
HAS_DESCRIPTION = m.Call(_get("v"), [m.Arg(_text("description"))])
OF_TABLE_ALONE = 'isinstance(v, dict) and v.get("description")'
HAS_ADDITIONAL = _has("additionalProperties", "schema")
ADDITIONAL = m.Subscript(m.Name("schema"), [m.SubscriptElement(m.Index(_text("additionalProperties")))])
# Before 1.8.0. As if the key were not there, which says the same in JSON Schema: gradio knows its own files by the text
# of their type, `meta: Dict()`, and with `Dict(str, Any)`, as 1.8.0 writes, would take none for a file any more.
DESCRIBED = m.Call(m.Name(DESCRIBE), [m.Arg(ADDITIONAL), m.ZeroOrMore()])
OF_TABLE = 'isinstance(schema.get("additionalProperties"), dict)'
# From 1.8.0 on; what upstream makes of true stays. `additionalProperties` that are false have nothing to describe.
ASSIGNED = m.Assign([m.AssignTarget(m.Name("additional_properties"))], ADDITIONAL)
NOT_FALSE = 'schema.get("additionalProperties", False) is not False'


class BooleanSchema(VisitorBasedCodemodCommand):
    DESCRIPTION = "Make gradio-client bear JSON schemas that are true or false."
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, context):
        super().__init__(context)
        self.functions = []
        self.seen = set()

    def on_visit(self, node):
        """Pass what is repaired already: its inside looks like what is to be repaired."""
        if isinstance(node, cst.BaseExpression) and self._is_settled(node):
            self.context.scratch.setdefault("settled", []).append(self._line(node))
            return False
        return super().on_visit(node)

    def on_leave(self, original_node, updated_node):
        updated_node = super().on_leave(original_node, updated_node)
        for number, (function, wanted, new, is_once) in enumerate(REPAIRS):
            if function in self.functions and m.matches(original_node, wanted):
                if is_once and number in self.seen:
                    self.warn(f"line {self._line(original_node)}: `{function}` asks this twice")
                    return updated_node
                self.seen.add(number)
                return _expression(new, original_node)
        return updated_node

    def visit_FunctionDef(self, node):
        self.functions.append(node.name.value)

    def leave_FunctionDef(self, original_node, updated_node):
        self.functions.pop()
        return updated_node

    def leave_IfExp(self, original_node, updated_node):
        if "get_desc" not in self.functions or not m.matches(original_node.test, HAS_DESCRIPTION):
            return updated_node
        return updated_node.with_changes(test=_expression(OF_TABLE_ALONE, original_node.test))

    def leave_If(self, original_node, updated_node):
        """Ask for a table, or for anything but false, as what follows does."""
        if DESCRIBE not in self.functions or not m.matches(original_node.test, HAS_ADDITIONAL):
            return updated_node
        if m.findall(original_node.body, ASSIGNED):
            new = NOT_FALSE
        elif m.findall(original_node.body, DESCRIBED):
            new = OF_TABLE
        else:
            self.warn(
                f"line {self._line(original_node)}: it does not describe `additionalProperties` as upstream did so far"
            )
            return updated_node
        return updated_node.with_changes(test=_expression(new, original_node.test))

    def _is_settled(self, node):
        wanted = [new for function, _, new, _ in REPAIRS if function in self.functions]
        wanted += [OF_TABLE, NOT_FALSE] if DESCRIBE in self.functions else []
        wanted += [OF_TABLE_ALONE] if "get_desc" in self.functions else []
        return bool(wanted) and cst.Module([]).code_for_node(node) in wanted

    def _line(self, node):
        return self.get_metadata(PositionProvider, node).start.line


def _expression(code, instead):
    new = cst.parse_expression(code)
    return new.with_changes(lpar=[*instead.lpar, *new.lpar], rpar=[*new.rpar, *instead.rpar])
