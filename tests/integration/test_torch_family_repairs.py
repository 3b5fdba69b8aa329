"""Which torch is taken where a profile's index has no torchaudio for the one that an app gets."""

from __future__ import annotations

import pytest
from conftest import ROOT
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.catalogue.reader import Catalogue
from patchlock.operations import _pin_repairs

CATALOGUE = Catalogue(root=ROOT)
CPU = CATALOGUE.profile("cpu")
OFFER = _pin_repairs.Offers(CPU, tuple(CATALOGUE.index(name) for name in CPU.indexes), {})
TORCH = next(one for one in CATALOGUE.rules().families if one.head == "torch")


@pytest.mark.parametrize(("head", "moved"), [("2.4.1", "2.7.0"), ("2.7.1", "2.7.1"), ("2.7.0", "2.7.0")])
def test_nearest_torch_with_a_torchaudio_is_chosen(head: str, moved: str) -> None:
    found = _pin_repairs.head_with_member(Version(head), canonicalize_name("torchaudio"), TORCH, OFFER)
    assert found == Version(moved)


def test_a_torch_beyond_all_gets_the_newest_that_has_one() -> None:
    torchaudio = canonicalize_name("torchaudio")
    found = _pin_repairs.head_with_member(Version("99"), torchaudio, TORCH, OFFER)
    assert found is not None
    fitting = _pin_repairs.companions(found, torchaudio, [TORCH])
    assert fitting in OFFER.versions(torchaudio)


def test_a_member_that_the_index_lacks_moves_nothing() -> None:
    nothing = _pin_repairs.Offers(CPU, (), {})
    assert _pin_repairs.head_with_member(Version("2.4.1"), canonicalize_name("torchaudio"), TORCH, nothing) is None
