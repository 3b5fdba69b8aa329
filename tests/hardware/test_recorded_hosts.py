"""Recorded machines: each is told with its source and nobody's name, and what is concluded of it stands beside it.

`PATCHLOCK_WRITE_SNAPSHOTS=1 tests/run tests/hardware/test_recorded_hosts.py` writes the conclusions anew; read the diff before you commit it.
"""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter

import host_snapshots
import host_words
import pytest

NAMES = host_snapshots.names()
WRITES = os.environ.get("PATCHLOCK_WRITE_SNAPSHOTS", "")
ACCEPT = "PATCHLOCK_WRITE_SNAPSHOTS=1 tests/run tests/hardware/test_recorded_hosts.py"

_PERSONAL = re.compile(r"/home/\w|/Users/\w|[A-Z]:\\Users\\|[\w.]+@[\w.]+\.\w|\b\w+@\w+:", re.IGNORECASE)
"""Home folders that name somebody, addresses of mail, and prompts of shells."""


@pytest.mark.parametrize("name", NAMES)
def test_conclusions_are_those_that_were_read(name: str) -> None:
    path = host_snapshots.snapshot_path(name)
    now = host_snapshots.render(name)
    if WRITES:
        path.write_text(now, encoding="utf-8", newline="\n")
        return
    if not path.is_file():
        pytest.fail(f"{name}.json has no conclusions yet; write them, and read them: {ACCEPT}", pytrace=False)
    before = path.read_text("utf-8")
    if before != now:
        diff = difflib.unified_diff(before.splitlines(), now.splitlines(), "accepted", "now", lineterm="", n=2)
        pytest.fail("\n".join([f"{name}: other conclusions", *diff, f"if all of it is right: {ACCEPT}"]), pytrace=False)


@pytest.mark.parametrize("name", NAMES)
def test_machine_is_told_with_its_sources(name: str) -> None:
    told = host_snapshots.recording(name)
    assert told.title
    assert re.search(r"https://\S+", told.source)


@pytest.mark.parametrize("name", NAMES)
def test_machine_names_nobody(name: str) -> None:
    text = (host_snapshots.FOLDER / f"{name}.json").read_text("utf-8")
    assert not _PERSONAL.findall(text.replace("\\\\", "\\"))


@pytest.mark.parametrize("name", NAMES)
def test_machine_speaks_in_known_words(name: str) -> None:
    assert host_words.unknown_names(host_snapshots.recording(name).host) == []


def test_no_two_machines_are_the_same() -> None:
    seen = Counter(repr(host_snapshots.recording(name)) for name in NAMES)
    titles = Counter(host_snapshots.recording(name).title for name in NAMES)
    assert [title for title, times in titles.items() if times > 1] == []
    assert max(seen.values()) == 1


def test_every_conclusion_has_its_machine() -> None:
    assert sorted(path.stem for path in host_snapshots.FOLDER.glob("*.txt")) == NAMES


def test_no_machine_makes_two_profiles_equally_right() -> None:
    """A tie is an error of the catalogue, wherever it shows."""
    assert [name for name in NAMES if "equally well" in host_snapshots.render(name)] == []
