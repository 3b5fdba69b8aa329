"""The shared sets that we ship: each patch has a case of its own, each set an app that takes it, each fact a source."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest
from conftest import ROOT
from shipped import APPS, CATALOGUE, PROFILES

from patchlock.model.patch import Patch
from patchlock.model.text_files import decode, encode, splice

SETS = [CATALOGUE.shared(name) for name in CATALOGUE.shared_names()]


@pytest.mark.parametrize("one", SETS, ids=lambda one: one.name)
def test_an_app_takes_it(one: object) -> None:
    assert [app.name for app in APPS if one.name in {taken.name for taken in app.shared}]


@pytest.mark.parametrize("one", SETS, ids=lambda one: one.name)
def test_each_patch_has_a_case_in_which_it_works(one: object) -> None:
    folder = ROOT / "patches" / "shared" / "cases"
    without = [patch.id for patch in one.patches if not list((folder / patch.id).glob("*/after"))]
    assert without == []


def test_no_case_is_left_of_a_patch_that_is_gone() -> None:
    folders = {path.name for path in (ROOT / "patches" / "shared" / "cases").iterdir()}
    assert folders <= {patch.id for one in SETS for patch in one.patches}


@pytest.mark.parametrize("one", SETS, ids=lambda one: one.name)
def test_every_fact_has_a_source(one: object) -> None:
    rules = (*one.rules.constraints, *one.rules.overrides, *one.rules.exclusions)
    sources = [one.source, *(patch.source for patch in one.patches), *(rule.source for rule in rules)]
    assert all(source.startswith("https://") for source in sources)
    assert not re.search("TODO", " ".join(patch.why for patch in one.patches))


FILES = [
    (patch, path)
    for one in SETS
    for patch in one.patches
    for path in sorted((ROOT / "patches" / "shared" / "cases" / patch.id).glob("*/after/*"))
]


@pytest.mark.parametrize(("patch", "path"), FILES, ids=lambda value: getattr(value, "id", getattr(value, "name", "")))
def test_each_case_becomes_what_it_should_whatever_the_apps_leave_out(patch: Patch, path: Path) -> None:
    file = path.parents[1] / "before" / path.name
    before = decode(PurePosixPath(path.name), file.read_bytes() if file.exists() else b"")
    after = encode(splice(before, patch.op.locate(before).edits))
    assert after == path.read_bytes()
    assert [ensure.problems(PurePosixPath(path.name), after) for ensure in patch.ensures] == [()] * len(patch.ensures)


def test_each_back_end_of_a_profile_says_what_is_expected_to_fail() -> None:
    ends = {profile.back_end for profile in PROFILES}
    assert ends == {path.stem for path in (ROOT / "profiles" / "expectations").glob("*.toml")}
