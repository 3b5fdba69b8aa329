"""The keys of the executed ensure `smoke-import`, and which patches it is run for."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from patchlock.model.checks import SmokeImport
from patchlock.model.origins import Origin
from patchlock.model.patch import Expect, Outcome, OutcomeKind, Patch
from patchlock.patches import outcomes as patches_outcomes
from patchlock.patches.ops.optional_import._op import OptionalImport

MISTAKES = [
    pytest.param((), (), 60, "`modules` is empty", id="no-module"),
    pytest.param(("a", "b-c"), (), 60, "`b-c` is not the name of a module", id="module"),
    pytest.param(("a.",), (), 60, "`a.` is not the name of a module", id="module-that-ends-with-a-dot"),
    pytest.param(("a",), ("b.c",), 60, "`b.c` is not the name of a top-level package", id="submodule-blocked"),
    pytest.param(("a",), (), 0, "`timeout` must be a number of seconds above 0", id="no-time"),
]


@pytest.mark.parametrize(("modules", "blocked", "timeout", "error"), MISTAKES)
def test_mistake_in_a_field_is_one_clause(
    modules: tuple[str, ...], blocked: tuple[str, ...], timeout: int, error: str
) -> None:
    with pytest.raises(ValueError) as raised:
        SmokeImport(modules=modules, blocked=blocked, timeout=timeout)
    assert str(raised.value) == error


def patch(name: str, *executed: SmokeImport) -> Patch:
    return Patch(
        id=name,
        why="",
        source="",
        paths=("a.py",),
        literal=(),
        profiles=(),
        op_name="optional-import",
        op=OptionalImport(package="deepspeed"),
        ensures=(),
        executed=executed,
        expect=Expect(),
        after=(),
        origin=Origin(file="a.toml", line=1),
    )


def outcome(name: str, kind: OutcomeKind) -> Outcome:
    return Outcome(patch=name, op="optional-import", kind=kind, path=PurePosixPath("a.py"), sites=(), detail="")


def test_only_patches_that_changed_something_are_executed() -> None:
    smoke = SmokeImport(modules=("a",))
    changed = ["NEEDED", "ALREADY_OURS", "PARTLY_FIXED", "MOVED", "NEW_SITES"]
    patches = [patch(kind.name, smoke) for kind in OutcomeKind]
    outcomes = [outcome(kind.name, kind) for kind in OutcomeKind]
    assert [check.id for check in patches_outcomes.smoke_checks(patches, outcomes)] == [
        f"{name}/smoke-import" for name in changed
    ]


def test_each_executed_ensure_has_an_id_of_its_own() -> None:
    one, two = SmokeImport(modules=("a",)), SmokeImport(modules=("b",))
    checks = patches_outcomes.smoke_checks([patch("p", one, two)], [outcome("p", OutcomeKind.NEEDED)] * 2)
    assert [(check.id, check.smoke) for check in checks] == [("p/smoke-import", one), ("p/smoke-import-2", two)]
