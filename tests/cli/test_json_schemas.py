"""The schemas of what `--json` prints: one for each command, keys in one case; `support/envelopes.py` uses them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import click
import envelopes
import jsonschema
import pytest
from conftest import ROOT

from patchlock.cli import _output
from patchlock.cli._commands import patchlock as every_command
from patchlock.hardware import host_overrides, report
from patchlock.model import hosts


def _names(group: click.Group, *before: str) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _names(command, *before, name)
        if command is not None and any(one.name == "as_json" for one in command.params):
            yield " ".join((*before, name))


COMMANDS = tuple(_names(every_command))


def _tables(schema: Any) -> Iterator[dict[str, Any]]:
    for one in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _tables(one)
    if isinstance(schema, dict) and "properties" in schema and "required" in schema:
        yield schema


def test_each_command_has_a_schema_and_failures_without_a_command_have_one() -> None:
    named = {envelopes.file(command).name for command in (*COMMANDS, envelopes.FAILURE)}
    assert named == {path.name for path in envelopes.FOLDER.iterdir()}
    failure = json.loads(envelopes.file(envelopes.FAILURE).read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(failure)
    assert failure == envelopes.failure()


@pytest.mark.parametrize("command", COMMANDS)
def test_schema_says_the_envelope_and_keys_in_one_case(command: str) -> None:
    schema = json.loads(envelopes.file(command).read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    assert schema == envelopes.around(command, schema["properties"]["data"])
    data = schema["properties"]["data"]
    assert "object" in data["type"]
    assert data["properties"]
    keys = [key for table in _tables(schema) for key in table["properties"]]
    assert [key for key in keys if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", key)] == []
    for table in _tables(data):
        assert table["additionalProperties"] is False
        assert set(table["required"]) <= set(table["properties"])


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"folder": "f", "trusted": True}, id="key-missing"),
        pytest.param({"folder": "f", "trusted": True, "changed": True, "more": 1}, id="key-unknown"),
        pytest.param({"folder": "f", "trusted": "yes", "changed": True}, id="another-type"),
    ],
)
def test_output_that_is_not_as_its_schema_fails_the_test_that_made_it(
    data: dict[str, object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(envelopes, "WRITES", "")
    right: dict[str, object] = {"folder": "f", "trusted": True, "changed": True}
    assert _output.succeed("trust", right) == 0
    assert json.loads(capsys.readouterr().out)["data"] == right
    with pytest.raises(AssertionError, match="`trust --json` is not as"):
        _output.succeed("trust", data)


def test_widened_schema_accepts_both_outputs() -> None:
    schema: dict[str, Any] = {}
    values = ({"a": 1, "b": [], "packages": {"x-y": "1"}}, {"a": None, "b": ["t"], "c": 1.5, "packages": {}}, None)
    for value in values:
        envelopes.widen(schema, value)
    assert [list(jsonschema.Draft7Validator(schema).iter_errors(value)) for value in values] == [[], [], []]
    assert not jsonschema.Draft7Validator(schema).is_valid({"a": "t", "b": [], "packages": {}})
    with pytest.raises(AssertionError, match="no keys such as up_to_date"):
        envelopes.widen(schema, {"as-of": 1})


def test_every_recorded_machine_is_as_the_schemas_of_detect_and_doctor_say() -> None:
    for path in sorted((ROOT / "tests" / "hardware" / "hosts").glob("*.json")):
        recording = hosts.from_json(json.loads(path.read_text(encoding="utf-8")), path.name)
        look = report.build_report(ROOT, host_overrides.ObservedHost(recording=recording))
        envelopes.check(_output.envelope("detect", report.data(look), None))
        told = {"findings": [], "unused": [], "recording": hosts.to_json(recording)}
        envelopes.check(_output.envelope("doctor", told, None))
