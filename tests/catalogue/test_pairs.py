"""The pairs of a matrix: all that can be, and those that the catalogue refuses."""

from __future__ import annotations

import pytest
from conftest import ROOT

from patchlock.catalogue.app_summaries import read_summary
from patchlock.catalogue.pairs import limits, pairs, require_possible
from patchlock.catalogue.reader import Catalogue
from patchlock.model.errors import RefusedError

CATALOGUE = Catalogue(root=ROOT)


def test_refused_pairs_carry_their_reason() -> None:
    found = pairs([CATALOGUE.app("xtts-webui")], [CATALOGUE.profile("cpu")])
    open_ = ["linux-x86_64", "windows-amd64", "macos-arm64"]
    assert sorted(pair.platform.name for pair in found if not pair.refused) == sorted(open_)
    assert [pair.platform.name for pair in found if "sudachipy" in pair.refused] == ["linux-aarch64"]


def test_the_profile_that_a_reason_advises_is_a_command_for_whoever_named_another() -> None:
    app, profile = CATALOGUE.app("demo"), CATALOGUE.profile("rocm-linux")
    with pytest.raises(RefusedError) as caught:
        require_possible(app, profile, profile.platforms[0])
    error = caught.value
    assert error.what == (
        "demo cannot run on rocm-linux on linux-x86_64: ONNX Runtime 1.23 and later have no ROCm provider"
    )
    assert error.remedy == "run `patchlock install demo --profile cpu`"
    assert limits(read_summary(ROOT, "demo"), [profile], profile.platforms[0]).refused == {
        "rocm-linux": "ONNX Runtime 1.23 and later have no ROCm provider"
    }


@pytest.mark.parametrize(
    ("app", "why"),
    [
        ("xtts-webui", {"directml-vega": "it needs stft, but DirectML does not support complex numbers"}),
        ("amphion", {"directml-vega": "it needs istft and irfft, but DirectML does not support complex numbers"}),
        ("diffrhythm2", {}),
    ],
)
def test_app_whose_models_are_all_checked_on_the_processor_computes_there(app: str, why: dict[str, str]) -> None:
    profile = CATALOGUE.profile("directml-vega")
    assert limits(read_summary(ROOT, app), [profile], profile.platforms[0]).on_processor == why


def test_no_reason_ends_with_advice() -> None:
    profiles = [CATALOGUE.profile(name) for name in CATALOGUE.profile_names()]
    found = pairs([CATALOGUE.app(name) for name in CATALOGUE.app_names()], profiles)
    assert [pair.refused for pair in found if "use the profile" in pair.refused] == []
