"""The JSON Schemas of the catalogue's files: current, true of every file, and of none with a mistake in its shape.

`PATCHLOCK_WRITE_SNAPSHOTS=1 tests/run tests/catalogue/test_schemas.py` writes them anew.
"""

from __future__ import annotations

import copy
import functools
import os
import tomllib
from collections.abc import Iterator
from typing import Any

import jsonschema
import miniature
import pytest
from conftest import ROOT

from patchlock.catalogue import _apps_and_profiles, schemas
from patchlock.catalogue.schemas import KINDS, FileKind
from patchlock.catalogue.table_reader import Report, Table

WRITES = os.environ.get("PATCHLOCK_WRITE_SNAPSHOTS", "")
ACCEPT = "PATCHLOCK_WRITE_SNAPSHOTS=1 tests/run tests/catalogue/test_schemas.py"
FILES = {str(file.relative_to(ROOT)): kind for kind in KINDS for file in sorted(ROOT.glob(kind.glob))}
SHORTEST = [
    pytest.param(kind, min(ROOT.glob(kind.glob), key=lambda file: file.stat().st_size), id=kind.name) for kind in KINDS
]


@functools.cache
def _validator(name: str) -> jsonschema.Draft7Validator:
    made = schemas.schema(next(kind for kind in KINDS if kind.name == name))
    jsonschema.Draft7Validator.check_schema(made)
    return jsonschema.Draft7Validator(made)


def _mistakes(name: str, values: object) -> list[str]:
    return [f"{list(error.absolute_path)}: {error.message}" for error in _validator(name).iter_errors(values)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_committed_schema_is_what_the_readers_ask(kind: FileKind) -> None:
    file = ROOT / schemas.FOLDER / f"{kind.name}.json"
    if WRITES:
        file.write_text(schemas.render(kind), encoding="utf-8")
    assert file.read_text(encoding="utf-8") == schemas.render(kind), f"write it: {ACCEPT}"


def test_every_file_of_the_catalogue_has_a_schema_in_editors() -> None:
    there = {
        str(file.relative_to(ROOT))
        for folder in ("profiles", "patches")
        for file in (ROOT / folder).rglob("*.toml")
        if not {"upstream", "cases"} & {*file.relative_to(ROOT).parts}
    }
    assert set(FILES) == there
    rules = tomllib.loads((ROOT / ".taplo.toml").read_text(encoding="utf-8"))["rule"]
    wanted = [{"include": [one.glob], "schema": {"path": f"{schemas.FOLDER}/{one.name}.json"}} for one in KINDS]
    assert rules == wanted


@pytest.mark.parametrize(("file", "kind"), FILES.items(), ids=FILES)
def test_file_of_the_catalogue_fits_its_schema(file: str, kind: FileKind) -> None:
    assert _mistakes(kind.name, tomllib.loads((ROOT / file).read_text(encoding="utf-8"))) == []


def test_a_catalogue_of_the_tests_fits() -> None:
    assert _mistakes("app", tomllib.loads(miniature.APP)) == []
    assert _mistakes("profile", tomllib.loads(miniature.PROFILE)) == []


def test_shortest_app_of_the_reference_reads_and_fits() -> None:
    page = (ROOT / "docs" / "formats" / "apps.md").read_text(encoding="utf-8")
    text = page.partition("```toml\n")[2].partition("```")[0]
    report = Report(file="app.toml", text=text)
    table = Table(tomllib.loads(text), report)
    app = _apps_and_profiles.app(table, "sings")
    table.finish()
    assert report.problems == []
    assert app.launch.command == ("python", "app.py")
    assert _mistakes("app", tomllib.loads(text)) == []


def _places(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _places(one, *path, key)


def _at(values: Any, path: tuple[Any, ...]) -> Any:
    return functools.reduce(lambda one, key: one[key], path, values)


@pytest.mark.parametrize(("kind", "file"), SHORTEST)
def test_unknown_key_fits_nowhere(kind: FileKind, file: Any) -> None:
    values = tomllib.loads(file.read_text(encoding="utf-8"))
    tables = [path for path in _places(values) if isinstance(_at(values, path), dict)]
    assert tables
    for path in tables:
        broken = copy.deepcopy(values)
        _at(broken, path)["no-such-key"] = []
        assert _mistakes(kind.name, broken), path


@pytest.mark.parametrize(("kind", "file"), SHORTEST)
def test_value_of_another_type_fits_nowhere(kind: FileKind, file: Any) -> None:
    values = tomllib.loads(file.read_text(encoding="utf-8"))
    for path in list(_places(values))[1:]:
        broken = copy.deepcopy(values)
        _at(broken, path[:-1])[path[-1]] = 1.5
        assert _mistakes(kind.name, broken), path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('op = "set-key"', 'op = "set-kee"', id="op-that-is-none"),
        pytest.param('op = "set-key"', 'op = "delete-key"', id="key-of-another-op"),
        pytest.param('key = ["a", "b"]\n', "", id="key-of-the-op-missing"),
        pytest.param('check = "lacks"', 'check = "lack"', id="check-that-is-none"),
        pytest.param('text = "x"\n', "", id="key-of-the-check-missing"),
        pytest.param('kind = "imports"', 'kind = "command"', id="key-of-another-kind-of-check"),
        pytest.param('id = "one"', 'id = "One!"', id="id-that-is-no-word"),
        pytest.param('why = "w"\n', "", id="why-missing"),
        pytest.param('why = "w"', 'why = ""', id="why-empty"),
        pytest.param('paths = ["a.json"]', "paths = []", id="no-paths"),
        pytest.param('platforms = ["linux-x86_64"]', 'platforms = ["plan9"]', id="platform-that-is-none"),
        pytest.param("[launch]", "[lunch]", id="table-missing"),
        pytest.param("port = 7860", 'port = "7860"', id="port-as-text"),
    ],
)
def test_mistake_in_the_shape_of_an_app_fits_not(old: str, new: str) -> None:
    text = """
        [app]
        title = "t"
        license = "MIT"
        source = "https://example.com"
        python = ">=3.10"
        requirements = ["requirements.txt"]
        [upstream]
        url = "https://example.com/a.git"
        commit = "0000000000000000000000000000000000000000"
        [launch]
        command = ["python", "app.py"]
        [launch.listens]
        port = 7860
        source = "https://example.com"
        [[refused]]
        profile = "cpu"
        platforms = ["linux-x86_64"]
        why = "r"
        source = "https://example.com"
        [[patch]]
        id = "one"
        why = "w"
        source = "https://example.com"
        op = "set-key"
        paths = ["a.json"]
        key = ["a", "b"]
        value = "c"
        [[patch.ensure]]
        check = "lacks"
        text = "x"
        [[check]]
        id = "imports"
        kind = "imports"
        present = ["a"]
        absent = []
    """.replace("        ", "")
    assert _mistakes("app", tomllib.loads(text)) == []
    assert text.count(old) == 1
    assert _mistakes("app", tomllib.loads(text.replace(old, new)))
