"""The before/after pairs beside the patches that we ship: each comes out as written, and every demo patch has one."""

from __future__ import annotations

import json

import pytest
from conftest import ROOT, Patchlock
from shipped import APPS

COMPLETE = ("demo", "tts-service")
"""Apps of which every patch has a case."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    sorted(app.name for app in APPS if app.shared or (ROOT / "patches" / app.name / "cases").is_dir()),
    ids=lambda name: name,
)
def test_patches_of_an_app_do_what_their_cases_say(name: str, patchlock: Patchlock) -> None:
    done = patchlock("patch", "test", name, "--json")
    (tried,) = json.loads(done.stdout)["data"]["apps"]
    assert [case for case in tried["cases"] if case["problems"]] == []
    assert tried["together"] == []
    app = next(app for app in APPS if app.name == name)
    if name in COMPLETE:
        assert tried["without_case"] == []
    assert {patch.id for patch in app.patches if patch.op_name == "codemod"}.isdisjoint(tried["without_case"])
    shared = {patch.id for one in app.shared for patch in one.patches}
    assert {case["patch"] for case in tried["cases"]} >= shared
    assert done.returncode == 0


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_every_patch_says_why(app: object) -> None:
    assert [patch.id for patch in app.patches if "TODO" in patch.why + patch.source] == []
