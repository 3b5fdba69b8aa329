"""Which needs are meant for a pair, and how several of one resource are joined."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet

from patchlock.model.needs import Need, needs_for


def need(name: str, **fields: object) -> Need:
    return Need(name=name, why="w", source="s", **fields)


def test_needs_of_other_pairs_are_left_out() -> None:
    needs = (
        need("a"),
        need("b", platforms=("linux-x86_64",)),
        need("c", profiles=("cpu",)),
        need("d", platforms=("linux-x86_64",), profiles=("cuda-linux",)),
    )
    assert [one.name for one in needs_for(needs, "cpu", "linux-x86_64")] == ["a", "b", "c"]
    assert [one.name for one in needs_for(needs, "cuda-linux", "linux-x86_64")] == ["a", "b", "d"]
    assert [one.name for one in needs_for(needs, "cpu", "macos-arm64")] == ["a", "c"]


def test_required_needs_are_first_and_one_resource_is_one_need() -> None:
    needs = (
        need("a", required=False, versions=SpecifierSet(">=1")),
        need("b"),
        need("a", versions=SpecifierSet("<3")),
    )
    assert needs_for(needs, "cpu", "linux-x86_64") == (need("b"), need("a", versions=SpecifierSet(">=1,<3")))
