"""Every fact of the catalogue names where a reader finds it, and a reader can open that."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

from patchlock.catalogue import fact_sources
from patchlock.catalogue.reader import Catalogue
from patchlock.model.errors import CatalogueError
from patchlock.operations import check_catalogue


def test_every_fact_of_the_catalogue_has_a_source_that_can_be_opened() -> None:
    found = check_catalogue.sources(ROOT)
    assert found.problems == ()
    assert int(re.findall(r"\d+", found.says)[0]) > 100


@pytest.mark.parametrize(
    ("source", "opens"),
    [
        pytest.param("https://github.com/microsoft/DirectML/issues/704", True, id="page"),
        pytest.param("its list of builds: https://docs.example.org/a", True, id="page within words"),
        pytest.param("bghira/SimpleTuner@feb631e3702c:poetry.lock", True, id="file of a commit"),
        pytest.param("docling-project/docling-serve:uv.lock", True, id="file of a repository"),
        pytest.param("PyPI: torch 2.11.0, METADATA", True, id="distribution"),
        pytest.param("README of torchcodec 0.17.0", True, id="readme of a distribution"),
        pytest.param("profiles/here.toml", True, id="file of the catalogue"),
        pytest.param("profiles/here.toml: line 3", True, id="line of a file of the catalogue"),
        pytest.param("profiles/gone.toml; profiles/here.toml", True, id="files of the catalogue"),
        pytest.param("profiles/gone.toml", False, id="file that is not there"),
        pytest.param("everybody knows", False, id="hearsay"),
        pytest.param("https://", False, id="no page"),
        pytest.param("https://github.com", False, id="everybody's host"),
        pytest.param("https://example.com/", False, id="nobody's host"),
        pytest.param("PyPI", False, id="the whole index"),
        pytest.param("PyPI: everybody", False, id="a distribution, and nothing of it"),
        pytest.param("README of wisdom", False, id="readme of no version"),
        pytest.param("its METADATA: my uncle", False, id="metadata without a figure"),
        pytest.param("foo/bar:baz", False, id="no file of a repository"),
        pytest.param("tried on 2026-11-20", False, id="somebody's word"),
        pytest.param("github.com/microsoft/DirectML", False, id="address without a scheme"),
    ],
)
def test_source_opens_or_is_named(source: str, *, opens: bool) -> None:
    text = f'[profile]\n\n[[constraint]]\nwhy = "w"\nsource = "{source}"\n'
    found = fact_sources.unsourced("patches/x/app.toml", text, {"profiles/here.toml"}.__contains__)
    assert [(one.line, source in one.what) for one in found] == ([] if opens else [(5, True)])


def test_sources_of_lists_and_inline_tables_are_looked_at() -> None:
    text = (
        'sources = ["https://a.example", "rumour"]\n[[member]]\nneeds = [\n  { version = "1", source = "gossip" },\n]\n'
    )
    found = fact_sources.unsourced("profiles/policy/x.toml", text, lambda _: False)
    assert [(one.line, one.what.rpartition(" ")[2]) for one in found] == [(1, '"rumour"'), (4, '"gossip"')]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("[environment]\n# why. Source: https://a.example/b\nA = '1'\n", [], id="comment above"),
        pytest.param(
            "# Source: https://a.example\n[overlay.environment]\nA = '1'\nB = '2'\n", [], id="above the table"
        ),
        pytest.param("[environment]\nA = '1'\n", [2], id="none"),
        pytest.param("[environment]\n# because\nA = '1'\n", [3], id="a reason is not a source"),
        pytest.param("[environment]\n# https://a.example\nA = '1'\nB = '2'\n", [4], id="of the one before"),
        pytest.param("[environment]\nPATCHLOCK_A = '1'\nB = '2'\n", [3], id="our own, which our patches read"),
        pytest.param("[[overlay.library]]\nmember = 'a.dll'\n", [], id="no variables"),
    ],
)
def test_variable_of_a_profile_has_a_source_in_a_comment(text: str, lines: list[int]) -> None:
    assert [one.line for one in fact_sources.unsourced("profiles/x.toml", text, lambda _: False)] == lines


def _kinds(path: Path) -> Iterator[tuple[str, str]]:
    """Give each kind of table in a file that has a source, and the file's text without that of the first of them."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    head, seen = "", set[str]()
    for number, line in enumerate(lines):
        head = line.strip() if line.startswith("[") else head
        if line.startswith("source = ") and head not in seen:
            seen.add(head)
            yield head, "".join(lines[:number] + lines[number + 1 :])


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        *(pytest.param("profiles", path.stem, id=path.stem) for path in sorted((ROOT / "profiles").glob("*.toml"))),
        pytest.param("profiles/indexes", "amd-rocm-windows-7.2.1", id="index"),
        pytest.param("profiles/needs", "ffmpeg", id="need"),
        pytest.param("patches", "diffrhythm2", id="app"),
    ],
)
def test_fact_without_a_source_is_no_catalogue(folder: str, name: str, tmp_path: Path) -> None:
    for part in ("profiles", "patches/shared", "patches/diffrhythm2"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("cases", "devices"))
    catalogue = Catalogue(root=tmp_path)
    path = tmp_path / folder / (f"{name}/app.toml" if folder == "patches" else f"{name}.toml")
    read = {"profiles": catalogue.profile, "profiles/indexes": catalogue.index, "profiles/needs": catalogue.resource}
    whole, kinds = path.read_text("utf-8"), list(_kinds(path))
    assert kinds
    for head, text in kinds:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(CatalogueError, match="source"):
            read.get(folder, catalogue.app)(name)
        assert head
    path.write_text(whole, encoding="utf-8")
    read.get(folder, catalogue.app)(name)
