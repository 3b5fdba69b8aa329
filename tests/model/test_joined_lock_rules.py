"""Which rules of locks are meant for a profile and a platform, and how those of a profile and an app are joined."""

from __future__ import annotations

import dataclasses

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.model.lock_rules import Build, Constraint, CutoffException, Exclusion, LockRules, Metadata
from patchlock.model.origins import Origin

ORIGIN = Origin(file="x", line=1)
NAME = canonicalize_name("av")


def rules(word: str, *profiles: str) -> LockRules:
    """Make a rule of each of several kinds for some profiles."""
    said = {"why": word, "source": "s", "profiles": profiles, "origin": ORIGIN}
    return LockRules(
        constraints=(Constraint(requirement=Requirement("av<12"), **said),),
        overrides=(Constraint(requirement=Requirement("av>1"), **said),),
        exclusions=(Exclusion(name=NAME, **said),),
        newer=(CutoffException(name=NAME, **said),),
        builds=(Build(names=(canonicalize_name(word), NAME), **said),),
        metadata=(Metadata(name=NAME, version=Version("1"), **said),),
    )


def words(found: LockRules) -> set[tuple[str, ...]]:
    """Give the reasons of the rules of each kind."""
    kinds = (getattr(found, field.name) for field in dataclasses.fields(found))
    return {tuple(rule.why for rule in kind) for kind in kinds if kind}


def test_rules_are_for_their_profiles() -> None:
    both = rules("all") + rules("some", "cpu", "cuda") + rules("other", "rocm")
    assert words(both.of("cpu")) == {("all", "some")}
    assert words(both.of("rocm")) == {("all", "other")}
    assert words(both.of("zluda")) == {("all",)}


def test_builds_are_for_their_platforms() -> None:
    (build,) = rules("b").builds
    some = LockRules(builds=(build, dataclasses.replace(build, why="linux", platforms=("linux-x86_64",))))
    assert [one.why for one in some.on("linux-x86_64").builds] == ["b", "linux"]
    assert [one.why for one in some.on("macos-arm64").builds] == ["b"]
    assert (some + rules("c")).source_builds == ("av", "b", "c")
