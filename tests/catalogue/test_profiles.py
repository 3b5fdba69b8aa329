"""The kinds of machine that we ship: which is chosen unnamed, and what each takes from where."""

from __future__ import annotations

import pytest
from shipped import APPS, CATALOGUE, PROFILES

from patchlock.hardware.selection import choose
from patchlock.locks.lock_request import Request, indexes_of
from patchlock.model.hosts import Host
from patchlock.model.platforms import PLATFORMS


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
def test_no_profile_with_an_accelerator_is_guessed(platform: object) -> None:
    host = Host(os=platform.os, machine=platform.machine, libc="glibc 2.39" if platform.os == "linux" else "")
    assert choose(PROFILES, host).chosen.profile.name == "cpu"
    fitting = [profile.name for profile in PROFILES if platform in profile.platforms]
    assert [choose(PROFILES, host, (), name).chosen.profile.name for name in fitting] == fitting


def test_recorded_files_are_passed_over_where_the_profile_says_so(tmp_path: object) -> None:
    profile = CATALOGUE.profile("zluda-rdna4")
    request = Request(
        app=APPS[0],
        profile=profile,
        platform=profile.platforms[0],
        catalogue=CATALOGUE,
        home=tmp_path,
        cache=tmp_path,
    )
    recorded = {wheel.name for wheel in CATALOGUE.index("pytorch-cu118").wheels}
    (offered,) = indexes_of(request)
    assert {wheel.name for wheel in offered.wheels} == recorded - {"torchaudio"}
    assert "torchaudio" in recorded


@pytest.mark.parametrize(
    ("platform", "is_built"),
    [
        pytest.param("windows-amd64", False, id="has-a-wheel"),
        pytest.param("linux-x86_64", True, id="has-none"),
    ],
)
def test_a_build_is_allowed_where_there_is_no_wheel(platform: str, is_built: bool) -> None:
    rules = CATALOGUE.app("amphion").rules.of("cpu").on(platform)
    assert ("pyworld" in rules.source_builds) is is_built
