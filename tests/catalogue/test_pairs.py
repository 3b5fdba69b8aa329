"""The pairs of a matrix: all that can be, and those that the catalogue refuses."""

from __future__ import annotations

from conftest import ROOT

from patchlock.catalogue.pairs import pairs
from patchlock.catalogue.reader import Catalogue

CATALOGUE = Catalogue(root=ROOT)


def test_refused_pairs_carry_their_reason() -> None:
    found = pairs([CATALOGUE.app("tts-service")], [CATALOGUE.profile("cpu")])
    assert [pair.platform.name for pair in found if not pair.refused] == ["linux-x86_64", "linux-aarch64"]
    assert [pair.platform.name for pair in found if "piper-phonemize" in pair.refused] == [
        "windows-amd64",
        "macos-arm64",
    ]
