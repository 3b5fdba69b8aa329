"""The pairs of a matrix: all that can be, and those that the catalogue refuses."""

from __future__ import annotations

from conftest import ROOT

from patchlock.catalogue.pairs import pairs
from patchlock.catalogue.reader import Catalogue

CATALOGUE = Catalogue(root=ROOT)


def test_refused_pairs_carry_their_reason() -> None:
    found = pairs([CATALOGUE.app("xtts-webui")], [CATALOGUE.profile("cpu")])
    open_ = ["linux-x86_64", "windows-amd64", "macos-arm64"]
    assert sorted(pair.platform.name for pair in found if not pair.refused) == sorted(open_)
    assert [pair.platform.name for pair in found if "sudachipy" in pair.refused] == ["linux-aarch64"]
