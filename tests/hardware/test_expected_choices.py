"""What each recorded machine has to be answered, told before the code that answers: `expected_choices.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import host_snapshots
import pytest

EXPECTED: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "expected_choices.toml").read_text("utf-8")
)


def test_every_recorded_machine_has_an_answer() -> None:
    assert sorted(EXPECTED) == host_snapshots.names()
    assert all(set(answer) <= {"profile", "device", "says"} for answer in EXPECTED.values())


def test_there_are_as_many_machines_as_we_say() -> None:
    assert len(EXPECTED) >= 160


@pytest.mark.parametrize("name", EXPECTED)
def test_machine_gets_the_answer_that_was_told_before(name: str) -> None:
    answer = EXPECTED[name]
    profile, device, said = host_snapshots.answer(name)
    assert (profile, device) == (answer["profile"], answer.get("device", ""))
    for part in answer.get("says", ()):
        assert any(part in sentence for sentence in said), part
    assert bool(said) == bool(answer.get("says"))
