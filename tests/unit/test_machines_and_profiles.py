"""Real profiles and the real table of devices against machines as they are reported: which profile, and why."""

from __future__ import annotations

import pytest
from conftest import ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchlock import device_choice, machine_tables
from patchlock.errors import NoProfileFitsError
from patchlock.fits import Accepted, Rejected
from patchlock.hosts import Device, Host, Node
from patchlock.selection import Choice, choose, judge, rank

CARDS = machine_tables.cards(ROOT)
OUTLINES = {outline.name: outline for outline in machine_tables.outlines(ROOT)}

KFD = Node(path="/dev/kfd", is_usable=True)
NVIDIA = Node(path="/dev/nvidiactl", is_usable=True)
DXG = Node(path="/dev/dxg", is_usable=True)
XT = Device(vendor="1002", device="7550", revision="c0", address="0000:03:00.0", arch="gfx1201", memory=17_095_983_104)
RAPHAEL = Device(vendor="1002", device="164e", revision="c1", address="0000:12:00.0", arch="gfx1036")
VEGA_8 = Device(vendor="1002", device="15d8", revision="c2", name="AMD Radeon(TM) Graphics")
CEZANNE = Device(vendor="1002", device="1638", revision="c8", name="AMD Radeon(TM) Graphics")
RTX_4090 = Device(vendor="10de", device="2684", address="0000:01:00.0", memory=25_757_220_864)
RTX_3060 = Device(vendor="10de", device="2504", address="0000:02:00.0", memory=12_884_901_888)
VMWARE = Device(vendor="15ad", device="0405")


def linux(*devices: Device, nodes: tuple[Node, ...] = (), release: str = "6.14.0-24-generic", **rest: object) -> Host:
    """Make an x86_64 machine with Linux."""
    return Host(
        os="linux",
        machine="x86_64",
        libc="glibc 2.39",
        release=release,
        devices=devices,
        nodes=nodes,
        **rest,  # type: ignore[arg-type]
    )


def windows(*devices: Device, **rest: object) -> Host:
    """Make a machine with Windows 11."""
    return Host(os="windows", machine="amd64", release="10.0.26100", devices=devices, **rest)  # type: ignore[arg-type]


def jetson(device: Device, tegra: str, board: str) -> Host:
    """Make a Jetson."""
    return Host(
        os="linux",
        machine="aarch64",
        libc="glibc 2.39",
        release="6.8.12-tegra",
        tegra=tegra,
        board=board,
        devices=(device,),
        versions={"nvidia-driver": "580.00"},
    )


THOR = jetson(Device(vendor="10de", device="2b00", name="NVIDIA Thor"), "38.4.0", "NVIDIA Jetson AGX Thor")
ORIN = jetson(Device(vendor="10de", name="Orin (nvgpu)"), "39.0.0", "NVIDIA Jetson AGX Orin")
GB10 = Host(
    os="linux",
    machine="aarch64",
    libc="glibc 2.39",
    release="6.14.0-1013-nvidia",
    devices=(Device(vendor="10de", device="2e12", arch="sm_121"),),
    nodes=(NVIDIA,),
    versions={"nvidia-driver": "580.95.05"},
)


def chosen(host: Host) -> Choice:
    """Choose for a machine without naming a profile."""
    return choose(OUTLINES.values(), host, CARDS)


@pytest.mark.parametrize(
    ("host", "profile", "why"),
    [
        pytest.param(linux(), "cpu", "no accelerator was seen", id="no card"),
        pytest.param(
            linux(XT, RAPHAEL, nodes=(KFD,)),
            "rocm-linux",
            "this machine has Radeon RX 9070 XT (gfx1201), and the locked torch has code for it",
            id="9070 XT beside the processor's graphics, on Linux",
        ),
        pytest.param(
            linux(RAPHAEL, nodes=(KFD,)),
            "cpu",
            "no other profile fits with Radeon 610M (gfx1036)",
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
            "this machine has Radeon Vega 8 Graphics (gfx902), for which DirectML is what there is on Windows",
            id="Vega 8 whose driver calls it AMD Radeon(TM) Graphics",
        ),
        pytest.param(
            windows(Device(vendor="1002", device="15d8", revision="e4", name="AMD Radeon(TM) Graphics")),
            "directml-vega",
            "this machine has Ryzen Embedded R1102G with Radeon Vega Gfx (gfx902), for which DirectML is what there is on "
            "Windows",
            id="Raven2 under Picasso's id",
        ),
        pytest.param(
            windows(CEZANNE),
            "directml-vega",
            "this machine has Radeon Graphics of Cezanne (gfx90c), for which DirectML is what there is on Windows",
            id="Cezanne",
        ),
        pytest.param(
            linux(CEZANNE, nodes=(KFD,)),
            "cpu",
            "no other profile fits with Radeon Graphics of Cezanne (gfx90c)",
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
            "this machine has a card of NVIDIA's (sm_86, 10de:ffff), and the locked torch has code for it",
            id="unknown id whose driver says the arch",
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
            "no other profile fits with UHD Graphics 770, a card (15ad:0405)",
            id="no card of a vendor that any profile is for",
        ),
    ],
)
def test_machine_gets_its_profile_without_a_doubt(host: Host, profile: str, why: str) -> None:
    found = chosen(host)
    assert (found.chosen.profile.name, found.why, found.doubts) == (profile, why, ())


OTHER = (
    "if that will do, name it (--profile cpu), and ask for one in an issue with what `patchlock detect --json` prints"
)
SEND = (
    "is unknown to this patchlock; please open an issue with what `patchlock detect --json` prints (it has no names of "
    "you or of this computer), titled"
)


@pytest.mark.parametrize(
    ("host", "doubt"),
    [
        pytest.param(
            linux(XT, nodes=(KFD,), release="6.8.0-31-generic"),
            "rocm-linux would be for Radeon RX 9070 XT (gfx1201), but the kernel is 6.8.0-31-generic, and must be 6.12 or "
            "later",
            id="Ubuntu 24.04's first kernel",
        ),
        pytest.param(
            linux(XT, nodes=(Node(path="/dev/kfd", is_usable=False, group="render"),)),
            "rocm-linux would be for Radeon RX 9070 XT (gfx1201), but this user may not open /dev/kfd, only the group "
            "render may",
            id="not in the group render",
        ),
        pytest.param(
            linux(XT, container="docker"),
            "rocm-linux would be for Radeon RX 9070 XT (gfx1201), but /dev/kfd is not there",
            id="container that shows the card and has no node",
        ),
        pytest.param(
            linux(XT, is_wsl=True, nodes=(DXG,)),
            "rocm-linux would be for Radeon RX 9070 XT (gfx1201), but this is WSL2, which has no /dev/kfd",
            id="Radeon in WSL2",
        ),
        pytest.param(
            linux(
                Device(vendor="10de", device="2684", is_hidden=True),
                nodes=(NVIDIA,),
                variables={"CUDA_VISIBLE_DEVICES": ""},
            ),
            "cuda-linux would be for GeForce RTX 4090 (sm_89), but it is hidden by CUDA_VISIBLE_DEVICES",
            id="hidden by an empty variable",
        ),
        pytest.param(
            linux(RTX_4090, nodes=(NVIDIA,), versions={"nvidia-driver": "470.256.02"}),
            "cuda-linux would be for GeForce RTX 4090 (sm_89), but the driver is 470.256.02, and must be 525.60.13 or later",
            id="old driver",
        ),
        pytest.param(
            windows(Device(vendor="1002", device="7590", revision="c0", trouble="ConfigManagerErrorCode 43")),
            tuple(
                f"{name} would be for Radeon RX 9060 XT (gfx1200), but it does not work (ConfigManagerErrorCode 43)"
                for name in ("directml-onnx", "rocm-windows", "zluda-rdna4")
            ),
            id="stopped by Windows",
        ),
        pytest.param(
            linux(Device(vendor="1002", device="9999")),
            f'a card of AMD\'s (1002:9999) {SEND} "unknown AMD card 1002:9999"',
            id="unknown card",
        ),
        pytest.param(
            linux(Device(vendor="1002", name="AMD Radeon(TM) Graphics")),
            f'AMD Radeon(TM) Graphics {SEND} "unknown AMD card AMD Radeon(TM) Graphics"',
            id="a name that many cards have, and no id",
        ),
        pytest.param(
            linux(Device(vendor="10de")), f'a card of NVIDIA\'s {SEND} "unknown NVIDIA card"', id="nothing known"
        ),
        pytest.param(
            linux(Device(vendor="10de", is_hidden=True), nodes=(NVIDIA,), variables={"CUDA_VISIBLE_DEVICES": ""}),
            "a card of NVIDIA's is hidden by CUDA_VISIBLE_DEVICES, and cpu leaves it unused; take the variable away, or name "
            "--profile cpu",
            id="hidden, and nothing known",
        ),
        pytest.param(
            linux(Device(vendor="10de", device="2b85", arch="sm_120"), nodes=(NVIDIA,)),
            f"no profile is for GeForce RTX 5090 (sm_120) on linux-x86_64, and cpu leaves it unused; {OTHER}",
            id="Blackwell, for which the locked torch has no code",
        ),
        pytest.param(
            ORIN,
            f"no profile is for Jetson Orin (sm_87) on linux-aarch64, and cpu leaves it unused; {OTHER}",
            id="Orin on Thor's JetPack",
        ),
        pytest.param(
            GB10,
            f"no profile is for GB10 (sm_121) on linux-aarch64, and cpu leaves it unused; {OTHER}",
            id="DGX Spark",
        ),
        pytest.param(
            linux(Device(vendor="1002", device="1586", name="Radeon 8060S"), nodes=(KFD,)),
            f"no profile is for Radeon 8060S (gfx1151) on linux-x86_64, and cpu leaves it unused; {OTHER}",
            id="Strix Halo",
        ),
        pytest.param(
            linux(Device(vendor="1002", device="74a1"), Device(vendor="1002", device="74a1"), nodes=(KFD,)),
            "no profile is for Instinct MI300X (gfx942) on linux-x86_64, and cpu leaves it unused; rocm-linux may run there, "
            "as its torch has code for this card, but nobody has tried: --profile rocm-linux",
            id="Instinct, which torch has code for",
        ),
        pytest.param(
            linux(Device(vendor="1002", device="738c"), container="docker"),
            "no profile is for Instinct MI100 (gfx908) on linux-x86_64, and cpu leaves it unused; rocm-linux may run there, "
            "as its torch has code for this card, but nobody has tried: --profile rocm-linux (what it lacks: /dev/kfd is "
            "not there)",
            id="Instinct that nobody may open",
        ),
        pytest.param(
            linux(Device(vendor="1002", device="73df", name="AMD Radeon RX 6700 XT"), nodes=(KFD,)),
            "no profile is for Radeon RX 6700 XT (gfx1031) on linux-x86_64, and cpu leaves it unused; rocm-linux may run "
            "there, as its code for gfx1030 runs on this card where HSA_OVERRIDE_GFX_VERSION=10.3.0 is set, but nobody has "
            "tried: --profile rocm-linux",
            id="brother of a chip that torch has code for",
        ),
        pytest.param(
            windows(Device(vendor="10de", device="25a2", trouble="ConfigManagerErrorCode 43")),
            "directml-onnx would be for GeForce RTX 3050 Laptop GPU / GeForce RTX 3050 Ti Laptop GPU / GeForce RTX 3060 "
            "Laptop GPU (sm_86), but it does not work (ConfigManagerErrorCode 43)",
            id="stopped by Windows",
        ),
    ],
)
def test_missed_card_is_a_doubt(host: Host, doubt: str | tuple[str, ...]) -> None:
    found = chosen(host)
    assert (found.chosen.profile.name, found.doubts) == ("cpu", (doubt,) if isinstance(doubt, str) else doubt)


def test_unknown_cards_are_one_sentence_however_many_they_are() -> None:
    (doubt,) = chosen(linux(*(Device(vendor="1002", device=f"9{number:03x}") for number in range(1000)))).doubts
    shown = ", ".join(f"1002:900{number}" for number in range(10))
    assert (
        doubt
        == f"1000 cards {SEND.replace('is unknown', 'are unknown').replace('patchlock;', f'patchlock ({shown}, and 990 more);', 1).removesuffix(', titled')}"
    )
    (doubt,) = chosen(linux(*[Device(vendor="1002", device="9999")] * 3)).doubts
    assert doubt == f'3 × a card of AMD\'s (1002:9999) {SEND} "unknown AMD card 1002:9999"'


def test_radeon_in_wsl_is_told_what_there_is_on_windows_itself() -> None:
    note = "on Windows itself, outside WSL, {} can use {}: install there"
    radeon = chosen(linux(XT, is_wsl=True, nodes=(DXG,)))
    assert radeon.notes[0] == note.format("rocm-windows, zluda-rdna4 and directml-onnx", "Radeon RX 9070 XT (gfx1201)")
    vega = chosen(linux(Device(vendor="1002", name="AMD Radeon(TM) Vega 8 Graphics"), is_wsl=True, nodes=(DXG,)))
    assert (vega.doubts, vega.notes[:1]) == (
        (),
        (note.format("directml-vega and directml-onnx", "Radeon Vega 8 Graphics (gfx902)"),),
    )
    assert not any("outside WSL" in each for each in chosen(linux(XT, nodes=(KFD,))).notes)
    polaris = chosen(linux(Device(vendor="1002", name="Radeon RX 580"), is_wsl=True, nodes=(DXG,)))
    assert polaris.notes == ()


def test_unknown_card_beside_the_processors_graphics_is_a_doubt() -> None:
    found = chosen(windows(VEGA_8, Device(vendor="1002", device="9999", name="Radeon RX 9999")))
    assert found.chosen.profile.name == "directml-vega"
    assert found.doubts == (f'Radeon RX 9999 (1002:9999) {SEND} "unknown AMD card 1002:9999"',)


@pytest.mark.parametrize(
    "host",
    [
        pytest.param(linux(Device(vendor="1002", device="67df"), nodes=(KFD,)), id="Polaris on Linux"),
        pytest.param(linux(Device(vendor="8086", device="a780")), id="graphics of an Intel processor"),
        pytest.param(linux(Device(vendor="1002", device="1636", is_hidden=True)), id="hidden graphics of a processor"),
        pytest.param(linux(Device(vendor="1002", device="1636", trouble="t")), id="broken graphics of a processor"),
        pytest.param(
            linux(Device(vendor="1002", device="1636"), Device(vendor="1002", is_hidden=True)), id="one chosen"
        ),
    ],
)
def test_card_that_nothing_computes_on_is_no_doubt(host: Host) -> None:
    found = chosen(host)
    assert (found.chosen.profile.name, found.doubts) == ("cpu", ())


def test_card_is_no_doubt_where_another_is_used() -> None:
    assert chosen(linux(RTX_4090, MI300X, nodes=(NVIDIA, KFD))).doubts == ()


def test_card_of_a_profile_that_the_app_refuses_is_no_doubt() -> None:
    found = choose(
        OUTLINES.values(), linux(XT, nodes=(KFD,)), CARDS, refused={"rocm-linux": "the app has no lock for it"}
    )
    assert (found.chosen.profile.name, found.doubts) == ("cpu", ())
    assert found.notes == ("rocm-linux fits this machine better, but the app has no lock for it",)


MI300X = Device(vendor="1002", device="74a1")


def test_card_is_no_doubt_where_the_app_refuses_all_profiles_of_its_maker() -> None:
    host = linux(MI300X, nodes=(KFD,))
    assert choose(OUTLINES.values(), host, CARDS, refused={"rocm-linux": "r"}).doubts == ()
    assert len(choose(OUTLINES.values(), host, CARDS, refused={"cuda-linux": "r"}).doubts) == 1


def test_app_that_refuses_the_profiles_of_a_card_asks_nothing() -> None:
    assert chosen(linux(MI300X, nodes=(KFD,))).doubts
    assert choose(OUTLINES.values(), linux(MI300X, nodes=(KFD,)), CARDS, refused={"rocm-linux": "r"}).doubts == ()


def test_named_profile_takes_a_card_on_which_nobody_has_tried_it() -> None:
    cards = (RAPHAEL, Device(vendor="1002", device="73df", number="1"))
    host = linux(*cards, nodes=(Node(path="/dev/kfd", is_usable=False),))
    found = choose(OUTLINES.values(), host, CARDS, "rocm-linux")
    assert " ".join(found.notes) == (
        "nobody has tried rocm-linux on Radeon RX 6700/6700 XT/6750 XT / 6800M/6850M XT (gfx1031); its code for gfx1030 runs "
        "on this card where HSA_OVERRIDE_GFX_VERSION=10.3.0 is set; what it lacks: this user may not open /dev/kfd"
    )
    assert device_choice.select(found.chosen, host, CARDS).variables == {"HIP_VISIBLE_DEVICES": "1"}


def test_module_of_amds_own_makes_an_old_kernel_do() -> None:
    assert chosen(linux(XT, nodes=(KFD,), release="6.8.0", versions={"amdgpu": "6.12.12"})).doubts == ()


def test_two_cards_for_two_profiles_are_a_tie_that_names_both() -> None:
    with pytest.raises(NoProfileFitsError, match=r"^the profiles cuda-linux and rocm-linux fit this machine equally"):
        chosen(linux(XT, RTX_4090, nodes=(KFD, NVIDIA)))


def test_named_profile_is_taken_and_what_speaks_against_it_is_told() -> None:
    found = choose(OUTLINES.values(), linux(), CARDS, "cuda-linux")
    assert found.chosen.profile.name == "cuda-linux"
    assert found.notes == (
        (
            "cuda-linux is taken, though as far as can be seen this machine is none of its kind: it is for NVIDIA's sm_50, "
            "sm_52, sm_60, sm_61, sm_70, sm_75, sm_80, sm_86, sm_89, sm_90; no card of NVIDIA's was seen"
        ),
    )


def test_better_profile_that_the_app_refuses_is_told() -> None:
    found = choose(OUTLINES.values(), windows(XT), CARDS, refused={"rocm-windows": "AMD has no hash of it"})
    assert found.chosen.profile.name == "zluda-rdna4"
    assert found.notes == ("rocm-windows fits this machine better, but AMD has no hash of it",)


def test_rejected_profile_has_every_reason() -> None:
    found = judge(OUTLINES["cuda13-thor-aarch64"], linux(RTX_4090, nodes=(NVIDIA,)), CARDS)
    assert isinstance(found, Rejected)
    assert found.reasons == (
        "it is for linux-aarch64; this is linux-x86_64",
        "it is for NVIDIA's sm_110; this machine has GeForce RTX 4090 (sm_89)",
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
    selected = device_choice.select(chosen(host).chosen, host, CARDS)
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
        device_choice.select(best, host, CARDS)


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
