"""Bounds of versions of kernels and drivers: what they hold, how people read them, what is none."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from patchlock.model.version_bounds import Bounds, leading


@pytest.mark.parametrize(
    ("bounds", "version", "holds"),
    [
        (">=6.12", "6.12", True),
        (">=6.12", "6.12.0-31-generic", True),
        (">=6.12", "6.8.12-tegra", False),
        (">=6.12", "6.9", False),
        (">=580", "580.65.06", True),
        (">=525.60.13", "525.60", False),
        ("<7", "7.0.0", False),
        ("<=7", "7.0.0", True),
        (">7", "7.0.0", False),
        (" >= 6.12 , <7", "6.18", True),
        (">=6.12,<7", "7.1", False),
        ("", "1", True),
        (">=6.12", "", True),
        (">=6.12", "unknown", True),
    ],
)
def test_leading_numbers_are_held_against_every_bound(bounds: str, version: str, holds: bool) -> None:
    assert Bounds(bounds).hold(version) is holds


@pytest.mark.parametrize("bound", [">=6.12", "<6.12", "<=6.12.0", ">6", ">=525.60.13,<580"])
@pytest.mark.parametrize("version", ["6", "6.0", "6.9", "6.12", "6.12.0", "6.12.1", "6.120", "525.60.13", "580.0.0"])
def test_plain_versions_are_compared_as_those_of_python_are(bound: str, version: str) -> None:
    assert Bounds(bound).hold(version) == SpecifierSet(bound).contains(version)


@pytest.mark.parametrize("text", ["6.12", "==6", "~=6.1", ">=6.x", ">=6,", "new", ">=6 <7", ">= "])
def test_what_is_no_bound_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a bound of a version such as") as raised:
        Bounds(text)
    assert str(raised.value) == f'"{text}" is not a bound of a version such as ">=6.12" or ">=6.12,<7"'


def test_bounds_are_values_that_people_can_read() -> None:
    assert (Bounds(">= 580").words, Bounds(">=6,<7").words, str(Bounds(">= 6, <7"))) == (
        "580 or later",
        "6 or later but before 7",
        ">=6,<7",
    )
    assert Bounds(">=6") == Bounds(" >=6 ") != Bounds(">=7")
    assert {Bounds(">=6"): 1}[Bounds(">=6")] == 1


def test_zeros_at_the_end_make_no_difference() -> None:
    assert (leading("6.12.0-31-generic"), leading("6.10"), leading("new")) == ((6, 12), (6, 10), None)


@pytest.mark.parametrize(
    ("text", "is_too_new"), [("580.95", False), ("590.44.01", True), ("595", True), ("470", False), ("", False)]
)
def test_version_above_the_upper_bound_is_too_new(text: str, is_too_new: bool) -> None:
    assert Bounds(">=525,<590").is_too_new(text) is is_too_new
