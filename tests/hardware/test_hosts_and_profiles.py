"""Real profiles and the real table of devices against machines as they are reported: which profile, and why."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reported_machines import (
    CARDS,
    CEZANNE,
    DXG,
    GB10,
    KFD,
    NVIDIA,
    OUTLINES,
    RAPHAEL,
    RTX_3060,
    RTX_4090,
    THOR,
    VEGA_8,
    VMWARE,
    XT,
    chosen,
    linux,
    windows,
)

from patchlock.hardware import _device_variables
from patchlock.hardware.selection import choose, judge, rank
from patchlock.model.choice import Accepted, AppLimits, Rejected
from patchlock.model.errors import NoProfileFitsError
from patchlock.model.hosts import Device, Host, Node


@pytest.mark.parametrize(
    ("host", "profile", "why"),
    [
        pytest.param(linux(), "cpu", "no GPU found", id="no card"),
        pytest.param(
            linux(XT, RAPHAEL, nodes=(KFD,)),
            "rocm-linux",
            "this machine has Radeon RX 9070 XT (gfx1201), and the locked torch has code for it",
            id="9070 XT beside the processor's graphics, on Linux",
        ),
        pytest.param(
            linux(RAPHAEL, nodes=(KFD,)),
            "cpu",
            "no other profile fits Radeon 610M (gfx1036)",
            id="only the processor's graphics",
        ),
        pytest.param(
            windows(VEGA_8, XT),
            "rocm-windows",
            "this machine has Radeon RX 9070 XT (gfx1201), for which AMD builds torch with ROCm on Windows",
            id="9070 XT beside a Vega 8, on Windows",
        ),
        pytest.param(
            windows(VEGA_8),
            "directml-vega",
            "this machine has Radeon Vega 8 Graphics (gfx902), for which DirectML is the only option on Windows",
            id="Vega 8 whose driver calls it AMD Radeon(TM) Graphics",
        ),
        pytest.param(
            windows(Device(vendor="1002", device="15d8", revision="e4", name="AMD Radeon(TM) Graphics")),
            "directml-vega",
            "this machine has Ryzen Embedded R1102G with Radeon Vega Gfx (gfx902), for which DirectML is the only option on "
            "Windows",
            id="Raven2 under Picasso's id",
        ),
        pytest.param(
            windows(CEZANNE),
            "directml-vega",
            "this machine has Radeon Graphics of Cezanne (gfx90c), for which DirectML is the only option on Windows",
            id="Cezanne",
        ),
        pytest.param(
            linux(CEZANNE, nodes=(KFD,)),
            "cpu",
            "no other profile fits Radeon Graphics of Cezanne (gfx90c)",
            id="Cezanne on Linux",
        ),
        pytest.param(
            linux(RTX_3060, RTX_4090, nodes=(NVIDIA,)),
            "cuda-linux",
            "this machine has GeForce RTX 4090 (sm_89), and the locked torch has code for it",
            id="the larger of two cards",
        ),
        pytest.param(
            linux(Device(vendor="10de", name="NVIDIA GeForce RTX 3090", arch="sm_86"), nodes=(DXG,), is_wsl=True),
            "cuda-linux",
            "this machine has GeForce RTX 3090 (sm_86), and the locked torch has code for it",
            id="NVIDIA in WSL2, where no PCI id is seen",
        ),
        pytest.param(
            linux(Device(vendor="10de", device="ffff", arch="sm_86"), nodes=(NVIDIA,)),
            "cuda-linux",
            "this machine has an NVIDIA card (sm_86, 10de:ffff), and the locked torch has code for it",
            id="unknown id whose driver says the arch",
        ),
        pytest.param(
            windows(RTX_4090, Device(vendor="8086", device="a780")),
            "cuda-windows",
            "this machine has GeForce RTX 4090 (sm_89), and the locked torch has code for it",
            id="NVIDIA beside Intel's graphics, on Windows",
        ),
        pytest.param(
            windows(Device(vendor="10de", device="1b06", arch="sm_61")),
            "cuda126-windows",
            "this machine has GeForce GTX 1080 Ti (sm_61), and the locked torch has code for it",
            id="Pascal on Windows",
        ),
        pytest.param(
            linux(Device(vendor="10de", device="2b85", arch="sm_120"), nodes=(NVIDIA,)),
            "cuda128-linux",
            "this machine has GeForce RTX 5090 (sm_120), and the locked torch has code for it",
            id="Blackwell on Linux",
        ),
        pytest.param(
            GB10,
            "cuda13-aarch64",
            "this machine has GB10 (sm_121), and the locked torch has code for it",
            id="DGX Spark",
        ),
        pytest.param(
            THOR,
            "cuda13-thor-aarch64",
            "this machine has Jetson AGX Thor (sm_110), and the locked torch has code for sm_110",
            id="Thor",
        ),
        pytest.param(
            linux(Device(vendor="8086", device="a780"), VMWARE),
            "cpu",
            "no other profile fits UHD Graphics 770, a card (15ad:0405)",
            id="no card of a vendor that any profile is for",
        ),
    ],
)
def test_machine_gets_its_profile_without_a_doubt(host: Host, profile: str, why: str) -> None:
    found = chosen(host)
    assert (found.chosen.profile.name, found.why, found.doubts) == (profile, why, ())


def test_named_profile_takes_a_card_on_which_nobody_has_tried_it() -> None:
    cards = (RAPHAEL, Device(vendor="1002", device="73df", number="1"))
    host = linux(*cards, nodes=(Node(path="/dev/kfd", is_usable=False),))
    found = choose(OUTLINES.values(), host, CARDS, "rocm-linux")
    assert " ".join(found.notes) == (
        "rocm-linux is untested on Radeon RX 6700/6700 XT/6750 XT / 6800M/6850M XT (gfx1031): its code for gfx1030 runs "
        "on this card if HSA_OVERRIDE_GFX_VERSION=10.3.0 is set; what it lacks: this user may not open /dev/kfd"
    )
    assert _device_variables.select(found.chosen, host, CARDS).variables == {"HIP_VISIBLE_DEVICES": "1"}


def test_module_of_amds_own_makes_an_old_kernel_do() -> None:
    assert chosen(linux(XT, nodes=(KFD,), release="6.8.0", versions={"amdgpu": "6.12.12"})).doubts == ()


def test_of_two_cards_for_two_profiles_the_one_with_more_memory_decides() -> None:
    nodes = (KFD, NVIDIA)
    small = Device(vendor="10de", device="1c03", memory=6 << 30)
    for cards in ((XT, small), (small, XT)):
        assert chosen(linux(*cards, nodes=nodes)).chosen.profile.name == "rocm-linux"
    assert chosen(linux(XT, RTX_4090, nodes=nodes)).chosen.profile.name == "cuda-linux"


def test_successor_that_the_app_refuses_is_not_recommended() -> None:
    host = windows(XT)
    assert choose(OUTLINES.values(), host, CARDS, "zluda-rdna4").notes
    assert choose(OUTLINES.values(), host, CARDS, "zluda-rdna4", AppLimits(refused={"rocm-windows": "r"})).notes == ()


@pytest.mark.parametrize(
    ("rest", "doubt"),
    [
        pytest.param(
            {"release": "10.0.19045"}, "the system is Windows 10, and must be Windows 11 or later", id="Windows 10"
        ),
        pytest.param(
            {"release": "10.0.26100", "versions": {"adrenalin": "25.3.1"}},
            "AMD's driver is Adrenalin 25.3.1, and must be Adrenalin 26.2.2 or later",
            id="an old driver",
        ),
    ],
)
def test_old_driver_or_system_is_no_profiles_without_a_word(rest: dict[str, object], doubt: str) -> None:
    host = Host(os="windows", machine="amd64", devices=(XT,), **rest)  # type: ignore[arg-type]
    found = chosen(host)
    assert found.chosen.profile.name == "zluda-rdna4"
    assert found.doubts == (f"rocm-windows would fit Radeon RX 9070 XT (gfx1201), but {doubt}",)


def test_named_profile_is_taken_and_what_speaks_against_it_is_told() -> None:
    found = choose(OUTLINES.values(), linux(), CARDS, "cuda-linux")
    assert found.chosen.profile.name == "cuda-linux"
    assert found.notes == (
        (
            "cuda-linux was named, but this machine does not look like one of its kind: needs an NVIDIA GPU (sm_50, "
            "sm_52, sm_60, sm_61, sm_70, sm_75, sm_80, sm_86, sm_89, sm_90); none found"
        ),
    )


def test_better_profile_that_the_app_refuses_is_told() -> None:
    found = choose(
        OUTLINES.values(), windows(XT), CARDS, app=AppLimits(refused={"rocm-windows": "AMD has no hash of it"})
    )
    assert found.chosen.profile.name == "zluda-rdna4"
    assert found.notes == ("rocm-windows fits this machine better, but not the app: AMD has no hash of it",)


def test_profile_that_the_app_refuses_is_not_advised_beside_a_named_one() -> None:
    told = choose(OUTLINES.values(), windows(XT), CARDS, "zluda-rdna4").notes
    assert any(note.startswith("rocm-windows is better on this machine: ") for note in told)
    kept = choose(
        OUTLINES.values(),
        windows(XT),
        CARDS,
        "zluda-rdna4",
        AppLimits(refused={"rocm-windows": "it has no wheel there"}),
    ).notes
    assert [note for note in told if note not in kept] == [n for n in told if n.startswith("rocm-windows is better")]


def test_rejected_profile_has_every_reason() -> None:
    found = judge(OUTLINES["cuda13-thor-aarch64"], linux(RTX_4090, nodes=(NVIDIA,)), CARDS)
    assert isinstance(found, Rejected)
    assert found.reasons == (
        "needs linux-aarch64; this machine is linux-x86_64",
        "needs an NVIDIA GPU (sm_110); found GeForce RTX 4090 (sm_89)",
    )


@pytest.mark.parametrize(
    ("host", "variables", "note"),
    [
        pytest.param(linux(RTX_4090, nodes=(NVIDIA,)), {}, "", id="one card"),
        pytest.param(
            linux(RTX_4090, Device(vendor="10de", device="2684", address="0000:05:00.0"), nodes=(NVIDIA,)),
            {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0"},
            "",
            id="two whose memory is not known to be the same",
        ),
        pytest.param(
            linux(RTX_4090, Device(vendor="10de", device="2684", memory=RTX_4090.memory), nodes=(NVIDIA,)),
            {},
            "",
            id="two alike",
        ),
        pytest.param(
            linux(RTX_3060, RTX_4090, nodes=(NVIDIA,)),
            {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0"},
            "",
            id="by bus",
        ),
        pytest.param(
            linux(RTX_3060, RTX_4090, nodes=(NVIDIA,), variables={"CUDA_VISIBLE_DEVICES": "0,1"}),
            {},
            "CUDA_VISIBLE_DEVICES chooses the device, as you have set it",
            id="the user's own",
        ),
        pytest.param(
            linux(XT, RAPHAEL, nodes=(KFD,)),
            {},
            "which number Radeon RX 9070 XT (gfx1201) has among 2 devices is not known; if the app takes another one, set "
            "HIP_VISIBLE_DEVICES to the number of this one",
            id="HIP's number is not known",
        ),
        pytest.param(
            windows(RAPHAEL, Device(vendor="1002", device="7550", revision="c0", number="1", memory=17_095_983_104)),
            {"HIP_VISIBLE_DEVICES": "1"},
            "",
            id="HIP's number is known",
        ),
        pytest.param(windows(VEGA_8, RAPHAEL), {}, "", id="DirectML has no such variable"),
    ],
)
def test_launch_environment_names_the_device_of_several(host: Host, variables: dict[str, str], note: str) -> None:
    selected = _device_variables.select(chosen(host).chosen, host, CARDS)
    assert (dict(selected.variables), selected.note) == (variables, note)


_TEXT = st.text(max_size=12)
_DEVICES = st.builds(
    Device,
    vendor=st.sampled_from(["1002", "10de", "8086", "", "zz"]),
    device=st.sampled_from(["7550", "15d8", "2684", "2b00", "ffff", "", "x"]),
    revision=_TEXT,
    name=_TEXT,
    arch=st.sampled_from(["", "gfx1201", "sm_110", "gfx"]),
    memory=st.integers(min_value=-1, max_value=1 << 70),
    driver=_TEXT,
    trouble=_TEXT,
    number=_TEXT,
    is_hidden=st.booleans(),
)
_HOSTS = st.builds(
    Host,
    os=st.sampled_from(["linux", "windows", "macos", "plan9"]),
    machine=st.sampled_from(["x86_64", "aarch64", "amd64", "arm64", ""]),
    libc=st.sampled_from(["", "musl", "glibc ", "glibc 2.39", "glibc x", "glibc 2.17"]) | _TEXT,
    release=st.sampled_from(["", "6.14.0-24-generic", "9" * 5000, "6..8"]) | _TEXT,
    tegra=_TEXT,
    is_wsl=st.booleans(),
    devices=st.lists(_DEVICES, max_size=4).map(tuple),
    nodes=st.lists(st.builds(Node, path=st.sampled_from(["/dev/kfd", "/dev/dxg"]), is_usable=st.booleans())).map(tuple),
    versions=st.dictionaries(st.sampled_from(["nvidia-driver", "amdgpu"]), _TEXT),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(host=_HOSTS)
def test_every_machine_has_an_answer(host: Host) -> None:
    ranking = rank(OUTLINES.values(), host, CARDS)
    assert {one.profile.name for one in ranking} == set(OUTLINES)
    assert all(one.reasons for one in ranking if isinstance(one, Rejected))
    try:
        best = chosen(host).chosen
    except NoProfileFitsError:
        best = None
    names = [one.profile.name for one in ranking if isinstance(one, Accepted)]
    assert (best.profile.name in names) if best else (not names or len(names) > 1)
    if best is not None:
        _device_variables.select(best, host, CARDS)


def test_every_profile_but_cpu_demands_something() -> None:
    assert [name for name, outline in OUTLINES.items() if not outline.fits] == ["cpu"]


def test_profiles_of_one_specificity_share_no_device() -> None:
    """So that a tie needs two cards."""
    seen: set[tuple[int, str, str]] = set()
    for outline in OUTLINES.values():
        own = {
            (outline.specificity, platform.name, arch)
            for fit in outline.fits
            for platform in outline.platforms
            for arch in fit.archs
        }
        assert not own & seen, outline.name
        seen |= own
