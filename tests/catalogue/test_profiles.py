"""The kinds of machine that we ship: which is chosen unnamed, and what each takes from where."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

from patchlock.catalogue.reader import Catalogue
from patchlock.hardware.selection import choose
from patchlock.locks.lock_request import Request, indexes_of
from patchlock.model.gpu_archs import runs
from patchlock.model.hosts import Host
from patchlock.model.platforms import PLATFORMS

CATALOGUE = Catalogue(root=ROOT)
APPS, PROFILES = CATALOGUE.read_all()


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


UNCLAIMED = {
    ("linux-aarch64", "sm_75"): "no library of torch itself has code for it, only CUDA's that its wheel brings",
    ("linux-aarch64", "sm_87"): "Jetson Orin, which has CUDA of its own up to JetPack 6",
}
"""What the scanned torch of a platform seems to run on, and no profile there is for."""


def _scanned_torch() -> dict[tuple[str, str], tuple[str, ...]]:
    """Find what the torch of a profile's locks has code for, by platform and profile, where a scan has looked."""
    known = CATALOGUE.rules().wheels
    found = {}
    for profile in PROFILES:
        for path in sorted((ROOT / "lockfiles").glob(f"*/{profile.name}*.txt")):
            for sha256 in re.findall(r"(?m)^torch(?:==| @ ).*?--hash=sha256:([0-9a-f]{64})", path.read_text("utf-8")):
                if sha256 in known and any(fit.archs for fit in profile.fits):
                    found[profile.platforms[0].name, profile.name] = known[sha256].archs
    return found


def test_each_chip_that_a_profile_is_for_runs_its_torch() -> None:
    scanned = _scanned_torch()
    assert {name for _, name in scanned} >= {"cuda128-linux", "cuda13-aarch64", "cuda13-thor-aarch64"}
    for (_, name), found in scanned.items():
        claimed = {arch for fit in CATALOGUE.profile(name).fits for arch in fit.archs}
        assert [arch for arch in sorted(claimed) if not runs(found, arch)] == [], name


def test_each_chip_that_a_scanned_torch_runs_on_has_a_profile() -> None:
    unclaimed = set()
    for (platform, _), found in _scanned_torch().items():
        # What is part of a processor of NVIDIA's own is never in an x86 machine.
        cards = (card for card in CATALOGUE.cards() if not card.is_integrated or platform == "linux-aarch64")
        chips = {card.arch for card in cards if card.arch.startswith("sm_")}
        there = [profile for profile in PROFILES if platform in {one.name for one in profile.platforms}]
        claimed = {arch for profile in there for fit in profile.fits for arch in fit.archs}
        unclaimed |= {(platform, chip) for chip in chips - claimed if runs(found, chip)}
    assert sorted(unclaimed) == sorted(UNCLAIMED)
