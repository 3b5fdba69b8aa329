"""The pairs of a matrix: all that can be, and of these the ones that a changed file concerns."""

from __future__ import annotations

import pytest
from conftest import ROOT

from patchlock.catalogue.pairs import is_affected_by, pairs
from patchlock.catalogue.reader import Catalogue

CATALOGUE = Catalogue(root=ROOT)
DEMO = next(pair for pair in pairs([CATALOGUE.app("demo")], [CATALOGUE.profile("cpu")]))
LOCK = "lockfiles/demo/cpu.linux-x86_64.txt"


def test_refused_pairs_carry_their_reason() -> None:
    found = pairs([CATALOGUE.app("tts-service")], [CATALOGUE.profile("cpu")])
    assert [pair.platform.name for pair in found if not pair.refused] == ["linux-x86_64", "linux-aarch64"]
    assert [pair.platform.name for pair in found if "piper-phonemize" in pair.refused] == [
        "windows-amd64",
        "macos-arm64",
    ]


@pytest.mark.parametrize(
    ("file", "is_concerned"),
    [
        (LOCK, True),
        ("lockfiles/demo/cpu.linux-x86_64.build.txt", True),
        ("patches/demo/app.toml", True),
        ("patches/demo/upstream/requirements.txt", True),
        ("profiles/cpu.toml", True),
        ("profiles/indexes/pytorch-cpu.toml", True),
        ("lockfiles/patchlock.txt", True),
        ("installer/patchlock/locking.py", True),
        ("patches/demo/cases/x/before/requirements.txt", False),
        ("patches/demo2/app.toml", False),
        ("profiles/other.toml", False),
        ("profiles/indexes/other.toml", False),
        ("lockfiles/demo/cpu.macos-arm64.txt", False),
        ("lockfiles/demo/cpu.macos-arm64.build.txt", False),
        ("README.md", False),
    ],
)
def test_pair_is_concerned_by_what_its_lock_is_made_from(file: str, is_concerned: bool) -> None:
    assert is_affected_by(DEMO, file, LOCK) == is_concerned
