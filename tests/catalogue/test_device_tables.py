"""The table of devices: what is strict about its files, and that the one of the catalogue holds."""

from __future__ import annotations

import tomllib

import pytest
from conftest import ROOT

from patchlock.catalogue import _devices, profile_summaries
from patchlock.catalogue.table_reader import Report, Table
from patchlock.model.devices import FAMILIES, UNKNOWN, Card, KnownDevice, identify
from patchlock.model.hosts import Device

CARDS = profile_summaries.cards(ROOT)


def _read(text: str) -> tuple[tuple[Card, ...], list[str]]:
    report = Report(file="devices/amd.toml", text=text)
    table = Table(tomllib.loads(text), report)
    found = _devices.cards(table)
    table.finish()
    return found, [str(problem) for problem in report.problems]


GOOD = """\
vendor = "1002"
maker = "AMD"

[[chip]]
name = "Navi 48"
arch = "gfx1201"
family = "rdna4"
source = "https://example.org"

[chip.devices]
7550 = "Radeon RX 9070 series"
7550-c0 = "Radeon RX 9070 XT"
7551 = "Radeon AI PRO R9700"
"""


def test_ids_and_revisions_become_cards() -> None:
    found, problems = _read(GOOD)
    assert problems == []
    assert [(card.devices, card.revisions, card.name) for card in found] == [
        (("7550",), (), "Radeon RX 9070 series"),
        (("7551",), (), "Radeon AI PRO R9700"),
        (("7550",), ("c0",), "Radeon RX 9070 XT"),
    ]
    assert {(card.vendor, card.chip, card.arch, card.family, card.is_integrated) for card in found} == {
        ("1002", "Navi 48", "gfx1201", "rdna4", False)
    }
    assert found[2].names == ("Radeon RX 9070 XT", "AMD Radeon RX 9070 XT")


def test_chip_that_computes_wrong_numbers_says_where_and_who_says_so() -> None:
    wrong = '[chip.wrong]\nback-ends = ["rocm"]\nwhy = "computes wrong numbers"\nsource = "https://example.org/w"\n'
    found, problems = _read(GOOD + wrong)
    assert problems == []
    assert {(one.wrong.back_ends, one.wrong.source) for one in found if one.wrong} == {
        (("rocm",), "https://example.org/w")
    }
    assert _read(GOOD + wrong.replace("rocm", "rocn").replace("why", "wyh"))[1]
    named = {card.arch or card.chip for card in CARDS if card.wrong}
    assert named == {"gfx803", "gfx1033", "gfx1035", "virtual"}
    assert all("https://" in card.wrong.source for card in CARDS if card.wrong)


def test_all_mistakes_are_told_at_once() -> None:
    _, problems = _read("""\
vendor = "1003"
maker = "AMD"

[[chip]]
name = "Navi 48"
arch = "rdna"
family = "rdna44"
sorce = "x"

[chip.devices]
0x7550 = "a"
7550-C0 = "b"

[[chip]]
name = "Navi 44"
family = "rdna4"
source = "s"

[chip.devices]
7590 = "c"

[[chip]]
name = "Navi 4"
arch = ""
family = "rdna4"
source = "s"

[chip.devices]
7590 = "d"

[[chip]]
name = "nothing"
arch = ""
family = "rdna4"
source = "s"
""")
    at = "devices/amd.toml:"
    assert problems == [
        f'{at}1: vendor: there is no vendor "1003"; did you mean "1002"?',
        f'{at}4: chip[0].source: the key "source" is missing; write source = "a text"',
        f'{at}6: chip[0].arch: "rdna" is not an arch such as "gfx1201" or "sm_89"',
        f'{at}7: chip[0].family: there is no family "rdna44"; did you mean "rdna4"?',
        f'{at}10: chip[0].devices: "0x7550" is not a PCI id such as 7550, or 7550-c0 with a revision',
        f'{at}10: chip[0].devices: "7550-C0" is not a PCI id such as 7550, or 7550-c0 with a revision',
        f'{at}8: chip[0].sorce: the key "sorce" is unknown; did you mean "source"?',
        f'{at}14: chip[1].arch: the key "arch" is missing; write arch = "" where nobody compiles for it ahead of time',
        f"{at}28: chip[2].devices: 7590 is taken by Navi 44",
        f'{at}31: chip[3].devices: it is empty, and so is called; write 7550 = "Radeon RX 9070"',
    ]


def test_every_card_has_a_source_that_can_be_opened() -> None:
    assert [card.name for card in CARDS if "https://" not in card.source or not card.name or not card.chip] == []


def test_no_id_stands_twice() -> None:
    seen: dict[tuple[str, str, str], str] = {}
    for card in CARDS:
        for device in card.devices:
            for revision in card.revisions or ("",):
                assert seen.setdefault((card.vendor, device, revision), card.name) == card.name
    ids = [(card.vendor, device) for card in CARDS if not card.revisions for device in card.devices]
    assert len(ids) == len(set(ids)) > 600


def test_no_name_stands_for_two_archs() -> None:
    archs: dict[str, set[str]] = {}
    for card in CARDS:
        for name in card.names:
            archs.setdefault(name.lower(), set()).add(card.arch)
    assert {name for name, found in archs.items() if len(found) > 1} == set()
    assert not any("AMD Radeon(TM) Graphics" in card.names for card in CARDS)


def test_every_family_has_cards() -> None:
    assert {card.family for card in CARDS} == set(FAMILIES) - {UNKNOWN}


@pytest.mark.parametrize(
    ("ids", "name", "arch", "family"),
    [
        # as AMD, NVIDIA and Intel publish them
        ("1002:15dd:c4", "Radeon Vega 8 Graphics", "gfx902", "vega-integrated"),
        ("1002:15d8:c2", "Radeon Vega 8 Graphics", "gfx902", "vega-integrated"),
        ("1002:15d8:c4", "Radeon Vega 3 Graphics", "gfx902", "vega-integrated"),
        ("1002:15d8:77", "Radeon Vega of Picasso or Raven2", "gfx902", "vega-integrated"),
        ("1002:1636:c1", "Radeon Graphics of Renoir", "gfx90c", "vega-integrated"),
        ("1002:164c:c1", "Radeon Graphics of Lucienne", "gfx90c", "vega-integrated"),
        ("1002:15e7:c1", "Radeon Graphics of Barcelo", "gfx90c", "vega-integrated"),
        ("1002:7550:c0", "Radeon RX 9070 XT", "gfx1201", "rdna4"),
        ("1002:7550:c2", "Radeon RX 9070 GRE", "gfx1201", "rdna4"),
        ("1002:7550:c3", "Radeon RX 9070", "gfx1201", "rdna4"),
        ("1002:7551:c0", "Radeon AI PRO R9700", "gfx1201", "rdna4"),
        ("1002:7590:c0", "Radeon RX 9060 XT", "gfx1200", "rdna4"),
        ("1002:744c:c8", "Radeon RX 7900 XTX", "gfx1100", "rdna3"),
        ("1002:747e:c8", "Radeon RX 7800 XT", "gfx1101", "rdna3"),
        ("1002:7480:cf", "Radeon RX 7600", "gfx1102", "rdna3"),
        ("1002:15bf:c4", "Radeon 780M Graphics", "gfx1103", "rdna3-integrated"),
        ("1002:150e:c1", "Radeon 890M Graphics", "gfx1150", "rdna3.5"),
        ("1002:1586:c1", "Radeon 8060S Graphics", "gfx1151", "rdna3.5"),
        ("1002:73bf:c1", "Radeon RX 6800 XT", "gfx1030", "rdna2"),
        ("1002:73df:c1", "Radeon RX 6700 XT", "gfx1031", "rdna2"),
        ("1002:73ff:c7", "Radeon RX 6600", "gfx1032", "rdna2"),
        ("1002:743f:c1", "Radeon RX 6500 XT", "gfx1034", "rdna2"),
        ("1002:164e:c1", "Radeon 610M", "gfx1036", "rdna2-integrated"),
        ("1002:731f:c1", "Radeon RX 5700 XT", "gfx1010", "rdna1"),
        ("1002:687f:c1", "Radeon RX Vega", "gfx900", "vega"),
        ("1002:74a1:00", "Instinct MI300X", "gfx942", "cdna3"),
        ("10de:13c2:a1", "GeForce GTX 970", "sm_52", "maxwell"),
        ("10de:1b80:a1", "GeForce GTX 1080", "sm_61", "pascal"),
        ("10de:1db4:a1", "Tesla V100 PCIe 16GB", "sm_70", "volta"),
        ("10de:2184:a1", "GeForce GTX 1660", "sm_75", "turing"),
        ("10de:1e07:a1", "GeForce RTX 2080 Ti", "sm_75", "turing"),
        ("10de:1eb8:a1", "Tesla T4", "sm_75", "turing"),
        ("10de:20b0:a1", "A100-SXM4-40GB", "sm_80", "ampere"),
        ("10de:2204:a1", "GeForce RTX 3090", "sm_86", "ampere"),
        ("10de:2684:a1", "GeForce RTX 4090", "sm_89", "ada"),
        ("10de:27b8:a1", "L4", "sm_89", "ada"),
        ("10de:26b9:a1", "L40S", "sm_89", "ada"),
        ("10de:2330:a1", "H100 80GB HBM3", "sm_90", "hopper"),
        ("10de:2335:a1", "H200", "sm_90", "hopper"),
        ("10de:2901:a1", "B200", "sm_100", "blackwell"),
        ("10de:2b85:a1", "GeForce RTX 5090", "sm_120", "blackwell"),
        ("10de:2c05:a1", "GeForce RTX 5070 Ti", "sm_120", "blackwell"),
        ("10de:2b00:a1", "Jetson AGX Thor", "sm_110", "thor"),
        ("10de:2e12:a1", "GB10", "sm_121", "gb10"),
        ("8086:56a0:08", "Arc A770", "dg2", "arc"),
        ("8086:e20b:00", "Arc B580", "bmg", "arc"),
        ("8086:3e92:00", "UHD Graphics 630", "", "intel-integrated"),
        ("8086:a780:04", "UHD Graphics 770", "", "intel-integrated"),
    ],
)
def test_known_cards(ids: str, name: str, arch: str, family: str) -> None:
    vendor, device, revision = ids.split(":")
    found = identify(Device(vendor=vendor, device=device, revision=revision), CARDS)
    assert isinstance(found, KnownDevice)
    assert (found.card.name, found.arch, found.card.family) == (name, arch, family)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("NVIDIA Thor", "thor"),
        ("Orin (nvgpu)", "orin"),
        ("NVIDIA GB10", "gb10"),
        ("NVIDIA GeForce RTX 4090", "ada"),
        ("NVIDIA GeForce GTX 1080 Ti", "pascal"),
    ],
)
def test_cards_that_only_a_driver_names(name: str, family: str) -> None:
    found = identify(Device(vendor="10de", name=name), CARDS)
    assert isinstance(found, KnownDevice)
    assert found.card.family == family
