"""Holds what `--json` prints against the committed schemas of `docs/schemas/commands/`; every test's output is seen.

With `PATCHLOCK_WRITE_SNAPSHOTS=1` an output widens the schema instead: read the difference before you commit it.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "docs" / "schemas" / "commands"
WRITES = os.environ.get("PATCHLOCK_WRITE_SNAPSHOTS", "")
ACCEPT = "PATCHLOCK_WRITE_SNAPSHOTS=1 tests/run <this test>"
Schema = dict[str, Any]

FAILURE = "failure"
"""Names the schema of the lines that name no command with --json."""
TABLES = frozenset(
    {
        *("apps", "devices", "environment", "instead_of", "libraries", "optional", "overlays", "packages", "parts"),
        *("patched", "present", "reasons", "settings", "shared", "unverified", "variables", "versions"),
    }
)
"""Keys whose value, where it is a table, has keys that are data: names of apps, files, packages, variables."""
_KEY = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_PROBLEM = {
    "type": "object",
    "description": "One of many mistakes of a catalogue, or one thing that a machine lacks.",
    "properties": {
        "file": _TEXT,
        "line": {"type": "integer"},
        "key": _TEXT,
        "what": _TEXT,
        "remedy": _TEXT,
        "name": _TEXT,
        "stops": {"type": "boolean"},
        "packages": _TEXTS,
        "source": _TEXT,
    },
    "required": ["what", "remedy"],
    "additionalProperties": False,
}
ERROR: Schema = {
    "type": ["object", "null"],
    "description": "What is wrong; null where ok is true.",
    "properties": {
        "code": {"type": "string", "description": "See docs/errors.md."},
        "what": _TEXT,
        "where": _TEXT,
        "remedy": {"type": "string", "description": "What to do now."},
        "evidence": _TEXTS,
        "problems": {"type": "array", "items": _PROBLEM},
    },
    "required": ["code", "what", "where", "remedy", "evidence"],
    "additionalProperties": False,
}


def file(command: str) -> Path:
    """Name the schema of a command; `patch undo` has `patch-undo.json`."""
    return FOLDER / f"{command.replace(' ', '-')}.json"


def failure() -> Schema:
    """Give the schema of what is printed where a line names no command with --json: `patchlock help --json`."""
    schema = around("…", {"type": "null"})
    told = {
        "command": _TEXT,
        "ok": {"const": False},
        "error": {**ERROR, "type": "object", "description": "What is wrong."},
    }
    title = "What a line with --json prints that names no command, or one without --json"
    return {**schema, "title": title, "properties": {**schema["properties"], **told}}


def around(command: str, data: Schema) -> Schema:
    """Give the schema of a command's whole output, by that of its data."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"What `patchlock {command} --json` prints",
        "type": "object",
        "properties": {
            "patchlock": {"const": 1, "description": "Version of the envelope."},
            "command": {"const": command},
            "ok": {"type": "boolean", "description": "Whether the exit code is 0."},
            "data": data,
            "error": ERROR,
        },
        "required": ["patchlock", "command", "ok", "data", "error"],
        "additionalProperties": False,
    }


@functools.cache
def _validator(command: str) -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads(file(command).read_text(encoding="utf-8")))


def check(envelope: Any) -> None:
    """Hold an envelope against the schema of its command; a line that names none with --json can only fail."""
    command = envelope["command"]
    if WRITES and envelope["data"] is not None:
        _write(command, envelope["data"])
    if not file(command).is_file() and envelope["data"] is None:
        command = FAILURE
    assert file(command).is_file(), f"`{command} --json` has no schema: {ACCEPT}"
    wrong = [f"{list(one.absolute_path)}: {one.message}" for one in _validator(command).iter_errors(envelope)]
    assert wrong == [], f"`{command} --json` is not as {file(command)} says; if it should be: {ACCEPT}"


def check_output(words: Iterable[object], stdout: str) -> None:
    """Hold the output of a command line against its schema, if it is an envelope."""
    if "--json" in words and stdout.startswith("{"):
        check(json.loads(stdout))


# --- widening ---------------------------------------------------------------------------------------------------------


def _write(command: str, data: Any) -> None:
    known = json.loads(file(command).read_text(encoding="utf-8")) if file(command).is_file() else around(command, {})
    schema = known["properties"]["data"]
    before = json.dumps(known)
    for one in (data, None):
        widen(schema, one)
    wanted = around(command, schema)
    if not file(command).is_file() or json.dumps(wanted) != before:
        FOLDER.mkdir(parents=True, exist_ok=True)
        whole = file(command).with_suffix(f".{os.getpid()}")
        whole.write_text(json.dumps(wanted, indent=2) + "\n", encoding="utf-8")
        whole.replace(file(command))
        _validator.cache_clear()


def widen(schema: Schema, value: Any, name: str = "") -> None:
    """Let a schema accept a value, too; `name` is its key."""
    types = schema.get("type", [])
    kinds = {*([types] if isinstance(types, str) else types), _kind(value)}
    if "number" in kinds:
        kinds.discard("integer")
    listed = sorted(kinds, key=lambda kind: (kind == "null", kind))
    schema["type"] = listed[0] if len(listed) == 1 else listed
    if isinstance(value, list):
        for one in value:
            widen(schema.setdefault("items", {}), one)
    elif isinstance(value, dict) and name in TABLES:
        for one in value.values():
            widen(schema.setdefault("additionalProperties", {}), one)
    elif isinstance(value, dict):
        wrong = [key for key in value if not _KEY.fullmatch(key)]
        assert not wrong, f"{wrong} in {name} are no keys such as up_to_date; if they are data, put {name} into TABLES"
        required = schema.get("required", list(value) if "properties" not in schema else [])
        properties = schema.setdefault("properties", {})
        for key, one in value.items():
            widen(properties.setdefault(key, {}), one, key)
        schema["required"] = [key for key in required if key in value]
        schema["additionalProperties"] = False


def _kind(value: object) -> str:
    kinds = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return kinds.get(type(value), "object")
