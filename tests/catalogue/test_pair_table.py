"""The matrix of apps and machines: what stands in a cell, and which reasons are told."""

from __future__ import annotations

import dataclasses

import pytest
from conftest import ROOT
from packaging.specifiers import SpecifierSet

from patchlock.catalogue import app_summaries, pair_table
from patchlock.catalogue.pair_table import PairState, Reason
from patchlock.catalogue.reader import Catalogue
from patchlock.model.origins import Origin
from patchlock.model.refusals import RefusedPair

CATALOGUE = Catalogue(root=ROOT)
CPU, CARD = CATALOGUE.profile("cpu"), CATALOGUE.profile("directml-vega")
PLATFORMS = tuple(platform.name for platform in CPU.platforms)
HERE = Origin(file="patches/demo/app.toml", line=1)
REFUSALS = (
    RefusedPair(profile="cpu", platforms=PLATFORMS[:2], why="no wheel | there", source="https://a.test/x", origin=HERE),
    RefusedPair(
        profile="directml-vega", platforms=(), why="too small", source="patches/demo/upstream/README.md", origin=HERE
    ),
)
DEMO = dataclasses.replace(app_summaries.read_summary(ROOT, "demo"), name="one", refusals=REFUSALS)
OTHER = dataclasses.replace(DEMO, name="other", refusals=(), python=SpecifierSet("<3.4"))
FREE = dataclasses.replace(DEMO, name="free", refusals=())


def _is_locked(app: str, profile: str, platform: str) -> bool:
    return (app, profile, platform) != ("free", "cpu", PLATFORMS[0])


FOUND = pair_table.pair_states([DEMO, OTHER, FREE], [CPU, CARD], _is_locked)


def test_each_platform_of_each_pair_stands_somewhere() -> None:
    assert [(one.app, one.platform, one.state) for one in FOUND if one.profile == "cpu" and one.app != "other"] == [
        *(("one", name, "refused") for name in PLATFORMS[:2]),
        *(("one", name, "locked") for name in PLATFORMS[2:]),
        ("free", PLATFORMS[0], "missing"),
        *(("free", name, "locked") for name in PLATFORMS[1:]),
    ]


def test_rows_are_machines_and_columns_are_apps() -> None:
    found = pair_table.pair_states([dataclasses.replace(FREE, on_processor={CARD.name: "w"})], [CARD], _is_locked)
    assert pair_table.rows(found)[1:] == [[CARD.name, "locked (CPU)"]]
    tried = dataclasses.replace(FREE, trials=(RefusedPair(profile=CARD.name, why="w", source="s", origin=HERE),))
    found = pair_table.pair_states([tried], [CARD], _is_locked)
    assert pair_table.rows(found)[1:] == [[CARD.name, "fails in part"]]
    assert [(one.trial, one.source) for one in found] == [("w", "s")]
    assert pair_table.rows(FOUND) == [
        ["", "one", "other", "free"],
        ["cpu", "locked 2 of 4", "not supported", "locked 3 of 4"],
        ["directml-vega", "not supported", "not supported", "locked"],
    ]


def test_a_reason_is_told_once_for_all_platforms_it_holds_for() -> None:
    told = pair_table.reasons(FOUND)
    first = Reason(app="one", profile="cpu", platforms=PLATFORMS[:2], why="no wheel | there", source="https://a.test/x")
    assert told[0] == first
    assert [(one.app, one.profile, one.platforms) for one in told[1:]] == [
        ("one", "directml-vega", ()),
        ("other", "cpu", ()),
        ("other", "directml-vega", ()),
    ]
    assert told[2].why == f"it needs Python <3.4, and the profile has {CPU.python}"
    assert pair_table.pair(first) == f"one × cpu × {PLATFORMS[0]}, {PLATFORMS[1]}"


def test_markdown_has_the_matrix_and_links_to_the_sources() -> None:
    lines = pair_table.markdown(FOUND).splitlines()
    assert lines[:4] == [
        "|  | one | other | free |",
        "| --- | --- | --- | --- |",
        "| `cpu` | locked 2 of 4 | not supported | locked 3 of 4 |",
        "| `directml-vega` | not supported | not supported | locked |",
    ]
    assert f"| one × cpu × {PLATFORMS[0]}, {PLATFORMS[1]} | no wheel \\| there | [source](https://a.test/x) |" in lines
    assert lines[-1].endswith(" | [source](patches/demo/app.toml) |")


def test_columns_are_aligned() -> None:
    head, first, _ = pair_table.text(FOUND).splitlines()
    assert head.index("other") == first.index("not supported")


@pytest.mark.parametrize(
    ("states", "word"),
    [
        (["locked", "locked"], "locked"),
        (["refused"], "not supported"),
        (["missing", "missing"], "no lockfile"),
        (["missing", "refused", "locked"], "locked 1 of 3"),
        (["missing", "refused"], "locked 0 of 2"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else value,
)
def test_a_cell_says_how_many_platforms_are_locked(states: list[str], word: str) -> None:
    found = [PairState(app="a", profile="p", platform=str(n), state=state) for n, state in enumerate(states)]
    assert pair_table.cell(found) == word
