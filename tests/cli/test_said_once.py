"""What is true of many pairs or profiles is said once, with how many they are."""

from __future__ import annotations

import click
import pytest

from patchlock.cli import _check, _lock_table
from patchlock.operations.check_catalogue import CatalogueFinding


def test_problem_of_several_profiles_is_one_row() -> None:
    idle = "patches/bark/app.toml:9: no-cuda finds nothing to patch"
    found = [
        CatalogueFinding(what="sources", says="of the facts in 2 files"),
        CatalogueFinding(what="cpu at 1", says="", problems=(idle, "only here"), profile="cpu"),
        CatalogueFinding(what="cuda at 1", says="", problems=(idle,), profile="cuda"),
        CatalogueFinding(what="zluda at 1", says="", problems=(idle,), profile="zluda"),
    ]
    assert _check._rows(found) == [
        ("sources", "of the facts in 2 files"),
        ("all 3 profiles", idle),
        ("cpu at 1", "only here"),
    ]
    assert _check._summary(found) == "1 good, 2 wrong", "as many as there are rows"


@pytest.mark.parametrize(
    ("count", "of", "named"),
    [
        (1, 1, "p0 at 1"),
        (2, 3, "p0 at 1, p1 at 1"),
        (3, 4, "p0 at 1 and 2 more (--json names them)"),
        (3, 3, "all 3 profiles"),
    ],
)
def test_others_can_be_found_and_all_are_called_all(count: int, of: int, named: str) -> None:
    why = "the clone is incomplete"
    found = [
        CatalogueFinding(what=f"p{at} at 1", says="", profile=f"p{at}", not_checked=why if at < count else "")
        for at in range(of)
    ]
    good = [(f"p{at} at 1", "") for at in range(count, of)]
    assert _check._rows(found) == [*good, (named, f"not checked: {why}")]
    assert _check._summary(found) == f"{of - count} good, 0 wrong, 1 not checked"


def test_warning_of_several_pairs_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        _lock_table.Line(pair=f"app × {name}", file="f", state="fresh", detail="", warnings=("patched", name))
        for name in ("cpu", "cuda", "zluda")
    ]
    assert _lock_table.print_locks(lines, {}, check=False, as_json=False) == 0
    assert capsys.readouterr().err.splitlines() == [
        "warning: all 3 pairs: patched",
        "warning: app × cpu: cpu",
        "warning: app × cuda: cuda",
        "warning: app × zluda: zluda",
    ]


def test_pair_that_is_not_supported_is_none_of_all_locks() -> None:
    found = [
        CatalogueFinding(what=f"lockfiles/a/{name}.txt", says="stale", problems=("why",), profile=name)
        for name in ("cpu", "cuda")
    ]
    refused = CatalogueFinding(what="lockfiles/a/mps.txt", says="refused: no")
    assert _check._rows([*found, refused]) == [("lockfiles/a/mps.txt", "refused: no"), ("all 2 locks", "why")]


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([("a", "cpu", True), ("a", "cpu", False), ("b", "cpu", False)], ("a",)),
        ([("a", "cpu", True), ("a", "cuda", False), ("a", "zluda", True)], ("a --profile cpu --profile zluda",)),
        ([("a", "cpu", True), ("b", "cpu", True), ("b", "mps", False)], ("a", "b --profile cpu")),
        ([("a", "cpu", True), ("a", "", False)], ("a",)),
        ([("a", "cpu", False)], ()),
    ],
    ids=["all", "some", "each", "not-supported", "none"],
)
def test_locks_to_renew_are_those_that_need_it(pairs: list[tuple[str, str, bool]], words: tuple[str, ...]) -> None:
    with click.Context(click.Command("lock")):
        assert _lock_table.relocks(pairs) == words
