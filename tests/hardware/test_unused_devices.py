"""A card that the chosen profile leaves unused is a doubt that is told, except where nothing could be done with it."""

from __future__ import annotations

import dataclasses

import pytest
from reported_machines import (
    CARDS,
    DXG,
    GB10,
    KFD,
    NVIDIA,
    ORIN,
    OUTLINES,
    RTX_4090,
    VEGA_8,
    XT,
    chosen,
    linux,
    unused,
    windows,
)

from patchlock.hardware.selection import choose
from patchlock.model.choice import AppLimits
from patchlock.model.errors import NoProfileFitsError
from patchlock.model.hosts import Device, Host, Node

OTHER = (
    "no profile of patchlock uses it yet on linux-x86_64. If cpu will do, choose it (--profile cpu); ask for one in an issue "
    "with what `patchlock detect --json` prints"
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
            unused(
                "Radeon RX 9070 XT (gfx1201)",
                "rocm-linux would fit it, but the kernel is 6.8.0-31-generic, and must be 6.12 or later; ask `patchlock doctor`",
            ),
            id="Ubuntu 24.04's first kernel",
        ),
        pytest.param(
            linux(XT, nodes=(Node(path="/dev/kfd", is_usable=False, group="render"),)),
            unused(
                "Radeon RX 9070 XT (gfx1201)",
                "rocm-linux would fit it, but this user may not open /dev/kfd, only the group render may; ask `patchlock doctor`",
            ),
            id="not in the group render",
        ),
        pytest.param(
            linux(XT, container="docker"),
            unused(
                "Radeon RX 9070 XT (gfx1201)",
                "rocm-linux would fit it, but /dev/kfd is not there; ask `patchlock doctor`",
            ),
            id="container that shows the card and has no node",
        ),
        pytest.param(
            linux(XT, is_wsl=True, nodes=(DXG,)),
            unused(
                "Radeon RX 9070 XT (gfx1201)",
                "rocm-linux would fit it, but this is WSL2, which has no /dev/kfd; ask `patchlock doctor`",
            ),
            id="Radeon in WSL2",
        ),
        pytest.param(
            linux(
                Device(vendor="10de", device="2684", is_hidden=True),
                nodes=(NVIDIA,),
                variables={"CUDA_VISIBLE_DEVICES": ""},
            ),
            unused(
                "GeForce RTX 4090 (sm_89)",
                "cuda-linux would fit it, but it is hidden by CUDA_VISIBLE_DEVICES; ask `patchlock doctor`",
            ),
            id="hidden by an empty variable",
        ),
        pytest.param(
            linux(RTX_4090, nodes=(NVIDIA,), versions={"nvidia-driver": "470.256.02"}),
            unused(
                "GeForce RTX 4090 (sm_89)",
                "cuda-linux would fit it, but the driver is 470.256.02, and must be 525.60.13 or later; ask `patchlock doctor`",
            ),
            id="old driver",
        ),
        pytest.param(
            windows(Device(vendor="1002", device="7590", revision="c0", trouble="ConfigManagerErrorCode 43")),
            unused(
                "Radeon RX 9060 XT (gfx1200)",
                "rocm-windows, zluda-rdna4 and directml-onnx would fit it, but it does not work (ConfigManagerErrorCode 43); ask `patchlock doctor`",
            ),
            id="stopped by Windows",
        ),
        pytest.param(
            linux(Device(vendor="1002", device="9999")),
            f'An AMD card (1002:9999) {SEND} "unknown AMD card 1002:9999"',
            id="unknown card",
        ),
        pytest.param(
            linux(Device(vendor="1002", name="AMD Radeon(TM) Graphics")),
            f'AMD Radeon(TM) Graphics {SEND} "unknown AMD card AMD Radeon(TM) Graphics"',
            id="a name that many cards have, and no id",
        ),
        pytest.param(linux(Device(vendor="10de")), f'An NVIDIA card {SEND} "unknown NVIDIA card"', id="nothing known"),
        pytest.param(
            linux(Device(vendor="10de", is_hidden=True), nodes=(NVIDIA,), variables={"CUDA_VISIBLE_DEVICES": ""}),
            unused(
                "NVIDIA card",
                "it is hidden by CUDA_VISIBLE_DEVICES; unset the variable, or choose --profile cpu",
            ),
            id="hidden, and nothing known",
        ),
        pytest.param(
            ORIN,
            unused(
                "Jetson Orin (sm_87)",
                "no profile supports it on linux-aarch64. You can try `patchlock install APP --profile cuda13-aarch64` (untested: JetPack 7.2 brings CUDA 13, and torch's code for sm_80 runs on this chip)",
            ),
            id="Orin on Thor's JetPack",
        ),
        pytest.param(
            dataclasses.replace(GB10, nodes=()),
            unused(
                "GB10 (sm_121)", "cuda13-aarch64 would fit it, but /dev/nvidiactl is not there; ask `patchlock doctor`"
            ),
            id="DGX Spark whose driver is not there",
        ),
        pytest.param(
            linux(Device(vendor="1002", name="Radeon 860M", arch="gfx1152"), nodes=(KFD,)),
            unused("Radeon 860M (gfx1152)", OTHER),
            id="Krackan Point",
        ),
        pytest.param(
            linux(Device(vendor="1002", device="74a1"), Device(vendor="1002", device="74a1"), nodes=(KFD,)),
            unused(
                "Instinct MI300X (gfx942)",
                "no profile supports it on linux-x86_64. You can try `patchlock install APP --profile rocm-linux` (untested: its torch has code for this card)",
            ),
            id="Instinct, which torch has code for",
        ),
        pytest.param(
            linux(Device(vendor="1002", device="738c"), container="docker"),
            unused(
                "Instinct MI100 (gfx908)",
                "no profile supports it on linux-x86_64. You can try `patchlock install APP --profile rocm-linux` (untested: its torch has code for this card; it lacks: /dev/kfd is not there)",
            ),
            id="Instinct that nobody may open",
        ),
        pytest.param(
            linux(Device(vendor="1002", device="73df", name="AMD Radeon RX 6700 XT"), nodes=(KFD,)),
            unused(
                "Radeon RX 6700 XT (gfx1031)",
                "no profile supports it on linux-x86_64. You can try `patchlock install APP --profile rocm-linux` (untested: its code for gfx1030 runs on this card if HSA_OVERRIDE_GFX_VERSION=10.3.0 is set)",
            ),
            id="brother of a chip that torch has code for",
        ),
        pytest.param(
            windows(Device(vendor="10de", device="25a2", trouble="ConfigManagerErrorCode 43")),
            unused(
                "GeForce RTX 3050 Laptop GPU / GeForce RTX 3050 Ti Laptop GPU / GeForce RTX 3060 Laptop GPU (sm_86)",
                "cuda-windows and directml-onnx would fit it, but it does not work (ConfigManagerErrorCode 43); ask `patchlock doctor`",
            ),
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
    assert doubt == f'3 × AMD card (1002:9999) {SEND} "unknown AMD card 1002:9999"'


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
    assert polaris.notes == (note.format("directml-onnx", "Radeon RX 580 Series (gfx803)"),)


def test_unknown_card_beside_the_processors_graphics_is_a_doubt() -> None:
    found = chosen(windows(VEGA_8, Device(vendor="1002", device="9999", name="Radeon RX 9999")))
    assert found.chosen.profile.name == "directml-vega"
    (doubt,) = found.doubts
    hope = "(untested: DirectML runs on every DirectX 12 GPU)"
    assert doubt == (
        f'Radeon RX 9999 (1002:9999) {SEND} "unknown AMD card 1002:9999". You can try `patchlock install APP --profile directml-onnx` {hope}'
    )


def test_unknown_card_on_windows_is_told_what_runs_on_every_card() -> None:
    arc = Device(vendor="8086", device="fffe", name="Intel Arc Z990")
    (doubt,) = chosen(windows(arc)).doubts
    hope = "(untested: DirectML runs on every DirectX 12 GPU)"
    assert doubt.endswith(
        f"You can try `patchlock install APP --profile directml-vega` {hope}, "
        f"or `patchlock install APP --profile directml-onnx` {hope}"
    )
    limits = AppLimits(name="demo", refused={"directml-vega": "no"})
    (doubt,) = choose(OUTLINES.values(), windows(arc), CARDS, app=limits).doubts
    assert doubt.endswith(f"You can try `patchlock install demo --profile directml-onnx` {hope}")
    assert "You can try" not in chosen(linux(arc)).doubts[0]


def test_app_on_the_processor_names_the_app_the_card_and_what_can_be_tried() -> None:
    limits = AppLimits(
        name="demo",
        refused={"directml-onnx": "r", "rocm-windows": "torch 2.9 is too new for it"},
        trials={"zluda-rdna4": "t"},
    )
    found = choose(OUTLINES.values(), windows(XT), CARDS, app=limits)
    assert found.chosen.profile.name == "cpu"
    (told,) = (*found.doubts, *found.warnings)
    assert told == (
        "demo will run on the CPU; your Radeon RX 9070 XT (gfx1201) will not be used. Reason: rocm-windows would fit "
        "this card, but not demo: torch 2.9 is too new for it. You can try `patchlock install demo --profile zluda-rdna4` "
        "(fails in part: t), or `patchlock install demo --profile directml-vega` (untested: DirectML runs on every DirectX 12 GPU)"
    )
    found = choose(OUTLINES.values(), windows(Device(vendor="1002", device="73ff")), CARDS, app=limits)
    assert "zluda" not in (*found.doubts, *found.warnings)[0]  # nobody has tried it there, and it fails elsewhere
    named = choose(OUTLINES.values(), windows(XT), CARDS, "zluda-rdna4", limits)
    assert named.warnings == ("demo is known to fail in part on zluda-rdna4: t",)


def test_app_on_the_processor_of_a_cards_profile_leaves_the_card_unused() -> None:
    limits = AppLimits(name="demo", on_processor={"directml-vega": "it needs stft"})
    told = "demo will run on the CPU; your Radeon Vega 8 Graphics (gfx902) will not be used. Reason: it needs stft"
    for name in (None, "directml-vega"):
        found = choose(OUTLINES.values(), windows(VEGA_8), CARDS, name, limits)
        assert (found.chosen.profile.name, found.device) == ("directml-vega", None)
        assert (found.doubts, found.warnings) == ((), (told,))


def test_profile_that_leaves_the_app_on_the_processor_is_not_offered() -> None:
    refused = {"directml-onnx": "r", "rocm-windows": "r", "zluda-rdna4": "r"}
    limits = AppLimits(name="demo", refused=refused, on_processor={"directml-vega": "it needs stft"})
    for card in (XT, Device(vendor="8086", device="fffe", name="Intel Arc Z990")):
        found = choose(OUTLINES.values(), windows(card), CARDS, app=limits)
        assert "You can try" not in " ".join((*found.doubts, *found.warnings))


def test_onnx_alone_on_a_card_gives_the_apps_own_reason() -> None:
    limits = AppLimits(name="demo", refused={"rocm-windows": "torch 2.9 is too new for it", "zluda-rdna4": "r"})
    found = choose(OUTLINES.values(), windows(XT), CARDS, app=limits)
    assert found.chosen.profile.name == "directml-onnx"
    (told,) = (*found.doubts, *found.warnings)
    assert told.startswith(
        "Only ONNX models of demo will run on your Radeon RX 9070 XT (gfx1201); the rest, with torch, will run on the CPU. "
        "Reason: rocm-windows would fit this card, but not demo: torch 2.9 is too new for it."
    )


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


def test_card_of_a_profile_that_the_app_refuses_is_a_warning() -> None:
    found = choose(
        OUTLINES.values(),
        linux(XT, nodes=(KFD,)),
        CARDS,
        app=AppLimits(refused={"rocm-linux": "it has no lock for it"}),
    )
    assert (found.chosen.profile.name, found.doubts) == ("cpu", ())
    assert found.warnings == (
        unused("Radeon RX 9070 XT (gfx1201)", "rocm-linux would fit this card, but not the app: it has no lock for it"),
    )


def test_graphics_in_the_processor_beside_a_card_that_stays_unused_are_not_told_too() -> None:
    raphael = Device(vendor="1002", device="164e", revision="c1")
    outlines = [one for one in OUTLINES.values() if not one.name.startswith(("zluda", "directml-vega"))]
    app = AppLimits(refused={"directml-onnx": "it has no ONNX model", "rocm-windows": "r"})
    found = choose(outlines, windows(Device(vendor="1002", device="73bf", revision="c1"), raphael), CARDS, app=app)
    assert [one.partition(" (")[0] for one in (*found.doubts, *found.warnings)] == [
        "Apps will run on the CPU; your Radeon RX 6800 XT"
    ]
    alone = choose(outlines, windows(raphael), CARDS, app=app)
    assert len((*alone.doubts, *alone.warnings)) == 1


def test_profile_that_might_run_on_a_card_is_not_said_to_fit_it() -> None:
    phoenix = linux(Device(vendor="1002", device="15bf"), nodes=(KFD,))
    found = choose(OUTLINES.values(), phoenix, CARDS, app=AppLimits(refused={"rocm-linux": "r", "rocm72-linux": "r"}))
    (told,) = (*found.doubts, *found.warnings)
    assert told == unused(
        "Radeon 740M / 760M / 780M Graphics (gfx1103)", "rocm-linux might fit this card, but not the app: r"
    )


@pytest.mark.parametrize(
    ("card", "named"),
    [
        pytest.param(Device(vendor="1002", device="687f"), "Radeon RX Vega 56/64 (gfx900)", id="Vega 64"),
        pytest.param(
            Device(vendor="1002", device="731f", revision="c1"), "Radeon RX 5700 XT (gfx1010)", id="RX 5700 XT"
        ),
    ],
)
def test_owner_of_a_card_on_windows_hears_of_what_nobody_has_tried(card: Device, named: str) -> None:
    tries = (
        "You can try `patchlock install APP --profile directml-vega` (untested: DirectML runs on every DirectX 12 GPU)"
    )
    found = chosen(windows(card))
    assert (found.chosen.profile.name, found.doubts) == ("directml-onnx", ())
    (warning,) = found.warnings
    assert warning == (
        f"Only ONNX models will run on your {named}; the rest, with torch, will run on the CPU. Reason: no profile "
        f"with torch is known to work on this card on windows-amd64 yet. {tries}"
    )
    limits = AppLimits(refused={"directml-onnx": "it has no ONNX model"})
    refused = choose(OUTLINES.values(), windows(card), CARDS, app=limits)
    assert refused.chosen.profile.name == "cpu"
    assert refused.doubts == (
        unused(named, f"directml-onnx would fit this card, but not the app: it has no ONNX model. {tries}"),
    )


@pytest.mark.parametrize(
    ("card", "why"),
    [
        pytest.param(Device(vendor="1002", device="73bf"), "has code for this card", id="RX 6800"),
        pytest.param(Device(vendor="1002", device="73ff"), "third-party rocBLAS files", id="RX 6600"),
        pytest.param(Device(vendor="1002", device="7480"), "has code for this card", id="RX 7600"),
    ],
)
def test_zluda_is_offered_for_radeons_that_the_hip_sdk_reaches(card: Device, why: str) -> None:
    (warning,) = chosen(windows(card)).warnings
    offered, _, others = warning.partition(" --profile zluda-rdna4` (untested: ")[2].partition("), or ")
    assert why in offered
    assert " --profile directml-vega`" in others


def test_intels_graphics_do_not_come_before_a_card() -> None:
    found = chosen(windows(Device(vendor="8086", device="a780"), Device(vendor="10de", device="2786")))
    assert found.why == "this machine has GeForce RTX 4070 (sm_89), and the locked torch has code for it"


def test_card_that_does_not_work_is_a_doubt_beside_one_that_does() -> None:
    broken = Device(vendor="10de", device="2684", trouble="ConfigManagerErrorCode 43")
    found = chosen(windows(broken, Device(vendor="10de", device="2786")))
    (doubt,) = found.doubts
    reason = "directml-onnx would fit it, but it does not work (ConfigManagerErrorCode 43); ask `patchlock doctor`"
    assert doubt == unused("GeForce RTX 4090 (sm_89)", reason, "GeForce RTX 4070 (sm_89)")


STEAM_DECK = Device(vendor="1002", device="163f")


def test_chip_that_computes_wrong_numbers_is_refused_with_its_source() -> None:
    host = linux(STEAM_DECK, nodes=(KFD,))
    found = chosen(host)
    assert (found.chosen.profile.name, found.doubts) == ("cpu", ())
    (warning,) = found.warnings
    assert "computes wrong numbers" in warning
    assert "https://github.com/" in warning
    with pytest.raises(
        NoProfileFitsError, match=r"^the profile \"rocm-linux\" does not fit this machine: Custom GPU 0405"
    ):
        choose(OUTLINES.values(), host, CARDS, "rocm-linux")
    beside = choose(OUTLINES.values(), linux(STEAM_DECK, XT, nodes=(KFD,)), CARDS, "rocm-linux")
    assert beside.chosen.device is not None
    assert beside.chosen.device.device == XT


def test_mac_too_old_for_metal_is_told_why() -> None:
    host = Host(
        os="macos", machine="arm64", distribution="macos 12.6", devices=(Device(vendor="106b", name="Apple M1"),)
    )
    found = choose(OUTLINES.values(), host, CARDS)
    assert found.chosen.profile.name == "cpu"
    (doubt,) = found.doubts
    reason = (
        "mps-macos would fit it, but the system is macOS 12.6, and must be macOS 13 or later; ask `patchlock doctor`"
    )
    assert doubt == unused("Apple M1", reason).replace("your Apple", "the GPU of your Apple")
    newer = choose(OUTLINES.values(), dataclasses.replace(host, distribution="macos 15.1"), CARDS)
    assert newer.chosen.profile.name == "mps-macos"


MI300X = Device(vendor="1002", device="74a1")


def test_app_that_refuses_the_profiles_of_a_card_asks_nothing() -> None:
    host = linux(MI300X, nodes=(KFD,))
    assert chosen(host).doubts
    found = choose(OUTLINES.values(), host, CARDS, app=AppLimits(refused={"rocm-linux": "r"}))
    assert (found.doubts, len(found.warnings)) == ((), 1)
    assert len(choose(OUTLINES.values(), host, CARDS, app=AppLimits(refused={"cuda-linux": "r"})).doubts) == 1
