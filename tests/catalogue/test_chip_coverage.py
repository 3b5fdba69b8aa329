"""Which chips profiles claim, and what the torch of their locks has code for: both ways, in ours and in made-up ones."""

from __future__ import annotations

import dataclasses

import pytest
from shipped import CATALOGUE, PROFILES

from patchlock.model.policy import Unclaimed
from patchlock.operations import _chip_coverage

SCANNED = _chip_coverage.scanned_torch(CATALOGUE)
LEFT_OUT = CATALOGUE.rules().unclaimed


def test_chips_of_our_profiles_are_those_of_their_torch() -> None:
    assert {name for _, name in SCANNED} >= {"cuda128-linux", "cuda13-aarch64", "cuda13-thor-aarch64"}
    assert _chip_coverage.problems(PROFILES, CATALOGUE.cards(), SCANNED, LEFT_OUT) == ()


def test_chips_of_a_platform_without_locks_are_not_told() -> None:
    there = {key: archs for key, archs in SCANNED.items() if key[0] != "linux-aarch64"}
    assert "linux-aarch64" in {one.platform for one in LEFT_OUT}
    assert _chip_coverage.problems(PROFILES, CATALOGUE.cards(), there, LEFT_OUT) == ()


def _without(profile: str, chip: str) -> list[object]:
    def less(one: object) -> object:
        fits = tuple(dataclasses.replace(fit, archs=tuple(a for a in fit.archs if a != chip)) for fit in one.fits)
        return dataclasses.replace(one, fits=fits)

    return [less(one) if one.name == profile else one for one in PROFILES]


@pytest.mark.parametrize(
    ("profiles", "scanned", "left_out", "problem"),
    [
        pytest.param(
            PROFILES,
            SCANNED | {("linux-x86_64", "cuda128-linux"): frozenset({"sm_100"})},
            LEFT_OUT,
            "cuda128-linux is for sm_120, and the torch of its locks has no code that runs on it",
            id="claimed-without-code",
        ),
        pytest.param(
            _without("cuda128-linux", "sm_120"),
            SCANNED,
            LEFT_OUT,
            "the torch of cuda128-linux has code that runs on sm_120, and no profile is for it on linux-x86_64: add it to a "
            "[[fit]] or a [[trial]], or say in profiles/policy/unclaimed.toml why not",
            id="code-without-a-claim",
        ),
        pytest.param(
            PROFILES,
            SCANNED,
            (*LEFT_OUT, Unclaimed(platform="linux-aarch64", chip="sm_90", why="", source="")),
            "profiles/policy/unclaimed.toml leaves sm_90 out on linux-aarch64, where nothing has code for it or a profile "
            "claims it",
            id="left-out-and-claimed",
        ),
    ],
)
def test_what_does_not_agree_is_named(
    profiles: list[object], scanned: _chip_coverage.Scanned, left_out: tuple[Unclaimed, ...], problem: str
) -> None:
    assert _chip_coverage.problems(profiles, CATALOGUE.cards(), scanned, left_out) == (problem,)
