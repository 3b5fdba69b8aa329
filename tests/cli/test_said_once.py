"""What is true of many pairs or profiles is said once, with how many they are."""

from __future__ import annotations

import pytest

from patchlock.cli import _check, _lock_table
from patchlock.operations.check_catalogue import CatalogueFinding


def test_problem_of_several_profiles_is_one_row() -> None:
    idle = "patches/bark/app.toml:9: no-cuda finds nothing to patch"
    found = [
        CatalogueFinding(what="sources", says="of the facts in 2 files"),
        CatalogueFinding(what="cpu at 1", says="", problems=(idle, "only here")),
        CatalogueFinding(what="cuda at 1", says="", problems=(idle,)),
        CatalogueFinding(what="zluda at 1", says="", problems=(idle,)),
    ]
    assert _check._rows(found) == [
        ("sources", "of the facts in 2 files"),
        ("cpu at 1 and 2 more", idle),
        ("cpu at 1", "only here"),
    ]


def test_warning_of_several_pairs_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        _lock_table.Line(pair=f"app × {name}", file="f", state="fresh", detail="", warnings=("patched", name))
        for name in ("cpu", "cuda", "zluda")
    ]
    assert _lock_table.print_locks(lines, {}, check=False, as_json=False) == 0
    assert capsys.readouterr().err.splitlines() == [
        "warning: app × cpu and 2 more: patched",
        "warning: app × cpu: cpu",
        "warning: app × cuda: cuda",
        "warning: app × zluda: zluda",
    ]
