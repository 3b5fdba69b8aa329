"""The codemods that the catalogue ships: two-sided, free of patchlock, and run by LibCST's own tool as upstream would."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest
from conftest import ROOT
from shipped import APPS, CATALOGUE

from patchlock.catalogue import patch_cases
from patchlock.catalogue.codemods import BoundCodemod
from patchlock.model.patch import Located, OutcomeKind, Patch
from patchlock.model.text_files import SourceText, decode, splice
from patchlock.patches.trials import Case


@dataclass(frozen=True, kw_only=True)
class Shipped:
    folder: Path
    patch: Patch
    op: BoundCodemod
    cases: tuple[Case, ...]

    @property
    def file(self) -> Path:
        return self.folder / self.op.declared.module


def _shipped() -> list[Shipped]:
    found = []
    for app in APPS:
        cases = patch_cases.read(ROOT, app)
        for patch in app.patches:
            if isinstance(patch.op, BoundCodemod):
                own = tuple(case for case in cases if case.patch == patch.id)
                found.append(Shipped(folder=ROOT / "patches" / app.name, patch=patch, op=patch.op, cases=own))
    return found


CODEMODS = _shipped()
[SCHEMA] = [p.op for p in CATALOGUE.distribution("gradio-client").patches if isinstance(p.op, BoundCodemod)]
each = pytest.mark.parametrize("one", [pytest.param(one, id=one.patch.id) for one in CODEMODS])


def test_there_are_some() -> None:
    assert len(CODEMODS) >= 6


@each
def test_cases_show_both_sides(one: Shipped) -> None:
    assert [case for case in one.cases if case.after is not None]
    assert [case for case in one.cases if case.outcome in {"ambiguous", "fixed upstream", "gone"}]


@each
def test_codemod_imports_nothing_but_libcst(one: Shipped) -> None:
    imported = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(ast.parse(one.op.code))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert {name.partition(".")[0] for name in imported} <= {"libcst", "ast"}
    assert f"-m libcst.tool codemod -x --no-format {one.file.stem}.{one.op.declared.command} " in one.op.code


@each
def test_upstream_runs_it_with_libcst_alone(one: Shipped, tmp_path: Path) -> None:
    for case in one.cases:
        for path, data in case.before.items():
            file = tmp_path / case.name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    command = f"{one.file.stem}.{one.op.declared.command}"
    done = subprocess.run(
        [sys.executable, "-m", "libcst.tool", "codemod", "-x", "--no-format", command, "."],
        cwd=tmp_path,
        env={"PYTHONPATH": str(one.folder), "PATH": "", "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    warned = {case.name for case in one.cases if f"{tmp_path / case.name}/" in _warnings(done.stderr)}
    assert warned == {case.name for case in one.cases if any(_refuses(one, *file) for file in case.before.items())}
    assert warned <= {case.name for case in one.cases if case.outcome == OutcomeKind.AMBIGUOUS.value}
    for case in one.cases:
        for path, data in (case.after or case.before).items():
            assert (tmp_path / case.name / path).read_bytes() == data


def _refuses(one: Shipped, path: PurePosixPath, data: bytes) -> bool:
    source = decode(path, data)
    return isinstance(source, SourceText) and bool(one.op.locate(source).refusals)


def _warnings(said: str) -> str:
    return "\n".join(line for line in said.splitlines() if "with warnings" in line)


DESCRIBE = """
def _json_schema_to_python_type(schema, defs):
    if schema == {}:
        return "Any"
    if "prefixItems" in (schema.get("items", [])):
        return "tuple"

    def get_desc(v):
        return f" ({v.get('description')})" if v.get("description") else ""

    if "additionalProperties" in schema:
        BODY
    return "dict"


def json_schema_to_python_type(schema):
    return _json_schema_to_python_type(schema, schema.get("$defs"))


def value_is_file(api_info):
    return bool(api_info.get("$defs"))


def elsewhere(schema, meta):
    return schema == {} or meta.get("path")
"""
DESCRIBED = """des = [f"str, {_json_schema_to_python_type(schema['additionalProperties'], defs)}"]"""
ASSIGNED = 'additional_properties = schema["additionalProperties"]'


def _located(text: str) -> tuple[Located, str]:
    source = decode(Path("utils.py"), text.encode())
    assert isinstance(source, SourceText)
    located = SCHEMA.locate(source)
    return located, splice(source, located.edits).text


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        (DESCRIBED, 'if isinstance(schema.get("additionalProperties"), dict):'),
        (ASSIGNED, 'if schema.get("additionalProperties", False) is not False:'),
    ],
    ids=["before-1.8", "since-1.8"],
)
def test_schemas_that_are_booleans_are_borne(body: str, asked: str) -> None:
    text = DESCRIBE.replace("BODY", body)
    located, after = _located(text)
    assert [site.line for site in located.sites] == [3, 9, 11, 17, 21]
    expected = (
        text.replace("if schema == {}:", "if schema in ({}, True, False):")
        .replace('if v.get("description")', 'if isinstance(v, dict) and v.get("description")')
        .replace('if "additionalProperties" in schema:', asked)
        .replace('schema.get("$defs")', '(schema if isinstance(schema, dict) else {}).get("$defs")')
        .replace('api_info.get("$defs")', '(api_info if isinstance(api_info, dict) else {}).get("$defs")')
    )
    assert after == expected
    again, twice = _located(after)
    assert twice == after
    assert again.sites == again.refusals == ()
    assert [site.line for site in again.settled] == [3, 9, 11, 17, 21]


def test_other_uses_of_a_schema_are_refused() -> None:
    located, _ = _located(DESCRIBE.replace("BODY", "return str(schema)"))
    assert [(one.line, one.why) for one in located.refusals] == [
        (11, "it does not describe `additionalProperties` as upstream did so far")
    ]
    twice = DESCRIBE.replace("BODY", DESCRIBED).replace('return "tuple"', 'return "Any" if schema == {} else "tuple"')
    located, _ = _located(twice)
    assert [(one.line, one.why) for one in located.refusals] == [(6, "`_json_schema_to_python_type` asks this twice")]
