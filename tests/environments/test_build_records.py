"""What a build is known by: its inputs, what it used of the pins, and how its tools name themselves."""

from __future__ import annotations

import dataclasses

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.environments.builds import _records
from patchlock.environments.builds._records import BuildInputs, BuildRecord
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage

INPUTS = BuildInputs(
    what="delta==1.0",
    source={"sdist": Sha256("a" * 64)},
    recipe={"$CFLAGS": "-O1"},
    python="3.11",
    platform="linux-x86_64",
)
RECORD = BuildRecord(
    inputs=INPUTS.digest,
    requirements={"setuptools": Sha256("b" * 64)},
    tools={"cc": "cc (Debian) 12.2.0"},
    files={"delta-1.0-cp311-cp311-linux_x86_64.whl": Sha256("c" * 64)},
    seconds=1.5,
    made="2026-01-01T00:00:00Z",
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("what", "delta==1.1"),
        ("source", {"sdist": "d" * 64}),
        ("recipe", {"$CFLAGS": "-O2"}),
        ("recipe", {}),
        ("python", "3.12"),
        ("platform", "linux-aarch64"),
    ],
    ids=["version", "sdist", "flag", "no flag", "python", "platform"],
)
def test_every_input_changes_the_digest(field: str, value: object) -> None:
    assert dataclasses.replace(INPUTS, **{field: value}).digest != INPUTS.digest  # type: ignore[arg-type]


def test_order_of_variables_does_not_change_the_digest() -> None:
    both = [{"$A": "1", "$B": "2"}, {"$B": "2", "$A": "1"}]
    assert len({dataclasses.replace(INPUTS, recipe=one).digest for one in both}) == 1


def _pin(name: str, sha256: str) -> LockedPackage:
    return LockedPackage(name=canonicalize_name(name), version=Version("1"), url="", sha256=Sha256(sha256 * 64), why="")


@pytest.mark.parametrize(
    ("pins", "tools", "fits"),
    [
        pytest.param([("setuptools", "b")], RECORD.tools, True, id="the same"),
        pytest.param([("setuptools", "b"), ("wheel", "e")], RECORD.tools, True, id="a pin that it did not use"),
        pytest.param([("setuptools", "f")], RECORD.tools, False, id="other bytes of what it used"),
        pytest.param([], RECORD.tools, False, id="no longer pinned"),
        pytest.param([("setuptools", "b")], {"cc": "cc (Debian) 14.2.0"}, False, id="another compiler"),
        pytest.param([("setuptools", "b")], {"cc": ""}, True, id="no compiler, which could make no other"),
    ],
)
def test_build_is_used_again_only_if_it_would_use_the_same(
    pins: list[tuple[str, str]], tools: dict[str, str], fits: bool
) -> None:
    named = {canonicalize_name(name): _pin(name, sha256) for name, sha256 in pins}
    assert _records.is_up_to_date(RECORD, named, tools) == fits


def test_record_is_read_as_it_was_written() -> None:
    assert _records.parse(_records.render(RECORD, INPUTS)) == RECORD


@pytest.mark.parametrize("text", ["", "no = toml = at all", 'inputs = "x"\n'])
def test_record_of_another_format_is_none(text: str) -> None:
    assert _records.parse(text) is None
