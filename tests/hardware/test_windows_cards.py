"""From records of Windows to cards: recorded machines, odd values, and what only one source knows."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from windows_machines import NAMES, load

from patchlock.hardware._windows import cards as windows_cards
from patchlock.hardware._windows.records import (
    DISPLAY_CLASS,
    DISPLAY_KEY,
    DriverCard,
    Plugged,
    Value,
    number,
    pci_address,
    pci_id,
    text,
)
from patchlock.model.hosts import Device

RAPHAEL = Device(
    vendor="1002",
    device="164e",
    revision="c1",
    name="AMD Radeon(TM) Graphics",
    address="0000:11:00.0",
    memory=536870912,
    driver="32.0.21025.10016",
)
NAVI = Device(
    vendor="1002",
    device="7550",
    revision="c0",
    name="AMD Radeon RX 9070 XT",
    address="0000:03:00.0",
    memory=17095983104,
    driver="32.0.21025.10016",
)
BASIC = "Microsoft's basic display driver runs it, which computes nothing: the maker's driver is missing"


def _short(device: Device) -> str:
    words = (f"{device.vendor}:{device.device}", device.revision, device.name, str(device.memory >> 20), device.trouble)
    return " | ".join(words)


@pytest.mark.parametrize(
    ("machine", "cards"),
    [
        (
            "rx-9070-xt-and-raphael",
            [
                "1002:7550 | c0 | AMD Radeon RX 9070 XT | 16304 | ",
                "1002:164e | c1 | AMD Radeon(TM) Graphics | 512 | ",
            ],
        ),
        ("vega-8-cezanne", ["1002:1638 | c5 | AMD Radeon(TM) Graphics | 512 | "]),
        ("lucienne", ["1002:164c | c2 | AMD Radeon(TM) Graphics | 512 | "]),
        ("vega-8-15d8", ["1002:15d8 | c2 | AMD Radeon(TM) Vega 8 Graphics | 2048 | "]),
        ("raven2-r1606g", ["1002:15d8 | 91 | AMD Radeon(TM) Graphics | 2048 | "]),
        (
            "rtx-laptop-and-uhd",
            [
                "8086:9bc4 | 05 | Intel(R) UHD Graphics | 1024 | ",
                "10de:2c58 | a1 | NVIDIA GeForce RTX 5090 Laptop GPU | 24564 | ",
            ],
        ),
        (
            "code-43",
            ["1002:1636 | c2 | AMD Radeon(TM) Graphics | 512 | ConfigManagerErrorCode 43 (CM_PROB_FAILED_POST_START)"],
        ),
        ("basic-driver-german", [f"1002:67ff | cf | Microsoft Basic Display-Adapter | 0 | {BASIC}"]),
        (
            "no-driver-japanese",
            ["1002:7550 | c0 | ビデオ コントローラー | 0 | ConfigManagerErrorCode 28 (CM_PROB_FAILED_INSTALL)"],
        ),
        ("remote-and-virtual", [": |  | Qualcomm(R) Adreno(TM) X1-85 GPU | 0 | "]),
    ],
)
def test_recorded_machine_has_these_cards(machine: str, cards: list[str]) -> None:
    assert [_short(device) for device in windows_cards.devices(*load(machine))] == cards


def test_every_recorded_machine_has_its_cards_in_a_test() -> None:
    mark = next(mark for mark in test_recorded_machine_has_these_cards.pytestmark if mark.name == "parametrize")
    assert sorted(case[0] for case in mark.args[1]) == NAMES


def test_all_that_is_known_of_a_card_is_said() -> None:
    assert windows_cards.devices(*load("rx-9070-xt-and-raphael")) == (NAVI, RAPHAEL)


def test_cards_that_windows_remembers_count_where_nothing_says_which_are_there() -> None:
    registry, _ = load("rx-9070-xt-and-raphael")
    names = [device.name for device in windows_cards.devices(registry, None)]
    assert names == ["AMD Radeon(TM) Graphics", "Radeon RX 580 Series", "AMD Radeon RX 9070 XT"]


def test_no_card_in_the_display_class_is_no_failure() -> None:
    assert windows_cards.devices({}, ()) == windows_cards.devices({}, None) == ()


def test_card_that_wine_makes_up_is_none() -> None:
    one = Plugged(id=r"PCI\VEN_0000&DEV_0000&SUBSYS_00000000&REV_00\00000000", driver=rf"{DISPLAY_CLASS}\0000")
    assert windows_cards.devices({rf"{DISPLAY_KEY}\0000": {"DriverDesc": "Wine Adapter"}}, (one,)) == ()


@pytest.mark.parametrize(
    ("problem", "trouble"),
    [
        (0, ""),
        (22, "ConfigManagerErrorCode 22 (CM_PROB_DISABLED)"),
        (43, "ConfigManagerErrorCode 43 (CM_PROB_FAILED_POST_START)"),
        (999, "ConfigManagerErrorCode 999"),
    ],
)
def test_what_the_device_manager_says_is_the_trouble(problem: int, trouble: str) -> None:
    (device,) = windows_cards.devices({}, (Plugged(id=r"PCI\VEN_1002&DEV_7550", problem=problem),))
    assert device.trouble == trouble


@pytest.mark.parametrize("problem", [24, 45])
def test_card_that_is_not_plugged_in_is_none(problem: int) -> None:
    assert windows_cards.devices({}, (Plugged(id=r"PCI\VEN_1002&DEV_7550", problem=problem),)) == ()


@pytest.mark.parametrize(
    ("values", "memory"),
    [
        ({"HardwareInformation.qwMemorySize": 17095983104}, 17095983104),
        ({"HardwareInformation.qwMemorySize": (17095983104).to_bytes(8, "little")}, 17095983104),
        ({"HardwareInformation.MemorySize": 536870912}, 536870912),
        ({"HardwareInformation.MemorySize": bytes.fromhex("00000020")}, 536870912),
        ({"HardwareInformation.MemorySize": bytes.fromhex("0000f0ff")}, 0),
        ({"HardwareInformation.MemorySize": 4293918720}, 0),
        ({"HardwareInformation.qwMemorySize": 0, "HardwareInformation.MemorySize": 536870912}, 536870912),
        ({"HardwareInformation.qwMemorySize": b"\xff" * 8}, 0),
        ({"HardwareInformation.qwMemorySize": b"\x01\x02\x03"}, 0),
        ({"HardwareInformation.qwMemorySize": "16 GB"}, 0),
        ({}, 0),
    ],
    ids=["qword", "eight bytes", "dword", "four bytes", "capped bytes", "capped", "0", "ff", "odd", "text", "none"],
)
def test_memory_is_read_however_a_driver_wrote_it(values: dict[str, Value], memory: int) -> None:
    one = Plugged(id=r"PCI\VEN_1002&DEV_7550", driver=rf"{DISPLAY_CLASS.upper()}\0000")
    (device,) = windows_cards.devices({rf"{DISPLAY_KEY}\0000": values}, (one,))
    assert device.memory == memory


def test_hundreds_of_entries_and_devices_are_a_matter_of_milliseconds() -> None:
    registry: dict[str, dict[str, Value]] = {
        rf"{DISPLAY_KEY}\{i:04}": {"DriverDesc": f"card {i}", "MatchingDeviceId": rf"PCI\VEN_10DE&DEV_{i:04X}"}
        for i in range(800)
    }
    plugged = [Plugged(id=rf"PCI\VEN_10DE&DEV_{i:04X}\{i}", driver=rf"{DISPLAY_CLASS}\{i:04}") for i in range(800)]
    names = [device.name for device in windows_cards.devices(registry, plugged)]
    assert (len(names), names[799]) == (800, "card 799")
    assert len(windows_cards.devices(registry, None)) == 800


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "ids"),
    [
        (r"PCI\VEN_1002&DEV_15D8&SUBSYS_3E0D19E5&REV_C1\4&35feb52a&0&0041", ("1002", "15d8", "c1")),
        (r"pci\ven_1002&dev_7550&rev_c0", ("1002", "7550", "c0")),
        (r"PCI\VEN_10DE&DEV_2C58", ("10de", "2c58", "")),
        (r"PCI\VEN_8086", ("8086", "", "")),
        (r"PCI\CC_0300", None),
        (r"ROOT\BasicDisplay\0000", None),
        (r"USB\VID_17E9&PID_6006", None),
        ("", None),
    ],
)
def test_ids_are_read_from_instances_and_matching_ids(said: str, ids: tuple[str, str, str] | None) -> None:
    found = pci_id(said)
    assert (found and dataclasses.astuple(found)) == ids


@pytest.mark.parametrize(
    ("bus", "address", "written"),
    [(3, 0, "0000:03:00.0"), (0, 0x00020000, "0000:00:02.0"), (1, 1, "0000:01:00.1"), (300, 0, ""), (0, -1, "")],
)
def test_address_is_written_as_on_linux(bus: int, address: int, written: str) -> None:
    assert pci_address(bus, address) == written


@given(st.one_of(st.binary(max_size=40), st.text(max_size=20), st.integers(), st.tuples(st.text(max_size=3))))
def test_no_value_of_the_registry_is_too_odd(value: Value) -> None:
    assert isinstance(text({"x": value}, "x"), str)
    assert isinstance(number({"x": value}, "x"), int | None)
    one = Plugged(id=r"PCI\VEN_1002&DEV_7550", driver=rf"{DISPLAY_CLASS}\0000")
    (device,) = windows_cards.devices(
        {rf"{DISPLAY_KEY}\0000": dict.fromkeys(("DriverDesc", "DriverVersion"), value)}, (one,)
    )
    assert device.device == "7550"


def test_name_may_be_bytes_of_utf_16() -> None:
    assert text({"x": "Wine Adapter\0rest".encode("utf-16-le")}, "x") == "Wine Adapter"


# --- versions, and what drivers add -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("windows", "own"),
    [
        ("32.0.16.1692", "616.92"),
        ("32.0.15.7283", "572.83"),
        ("27.21.14.5671", "456.71"),
        ("32.0.15", ""),
        ("32.0.x.y", ""),
        ("", ""),
    ],
)
def test_nvidia_version_is_the_last_five_digits(windows: str, own: str) -> None:
    assert windows_cards.nvidia_version(windows) == own


@pytest.mark.parametrize(
    ("machine", "versions"),
    [
        ("rtx-laptop-and-uhd", {"nvidia-driver": "581.29"}),
        ("rx-9070-xt-and-raphael", {"adrenalin": "25.9.2"}),
        ("vega-8-cezanne", {}),
    ],
)
def test_versions_belong_to_cards_that_are_there(machine: str, versions: dict[str, str]) -> None:
    registry, plugged = load(machine)
    devices = windows_cards.devices(registry, plugged)
    assert windows_cards.versions(devices, registry, plugged) == versions


def test_adrenalin_of_older_installers_is_below_their_own_key() -> None:
    registry, plugged = load("vega-8-cezanne")
    registry = {**registry, r"HKLM\SOFTWARE\AMD\CN": {"RadeonSoftwareVersion": "23.11.1"}}
    assert windows_cards.versions((), registry, plugged) == {"adrenalin": "23.11.1"}


NAVI_TOLD = DriverCard(name="AMD Radeon RX 9070 XT", arch="gfx1201", address="0000:03:00.0", memory=1)
RAPHAEL_TOLD = DriverCard(name="AMD Radeon(TM) Graphics", arch="gfx1036", address="0000:11:00.0", memory=2)


def test_driver_tells_the_arch_of_the_card_at_its_address() -> None:
    found = windows_cards.add_driver_data((NAVI, RAPHAEL), "1002", (RAPHAEL_TOLD, NAVI_TOLD))
    assert found == (dataclasses.replace(NAVI, arch="gfx1201"), dataclasses.replace(RAPHAEL, arch="gfx1036"))


def test_driver_without_addresses_tells_by_names() -> None:
    nameless = [dataclasses.replace(one, address="") for one in (RAPHAEL_TOLD, NAVI_TOLD)]
    assert [one.arch for one in windows_cards.add_driver_data((NAVI, RAPHAEL), "1002", nameless)] == [
        "gfx1201",
        "gfx1036",
    ]


def test_driver_that_tells_two_things_of_one_name_tells_nothing() -> None:
    twice = [dataclasses.replace(NAVI_TOLD, address="", arch=arch) for arch in ("gfx1200", "gfx1201")]
    assert windows_cards.add_driver_data((NAVI,), "1002", twice) == (NAVI,)


def test_driver_tells_nothing_of_other_vendors_cards() -> None:
    intel = Device(vendor="8086", name=NAVI.name, address=NAVI.address)
    assert windows_cards.add_driver_data((intel,), "1002", (NAVI_TOLD,)) == (intel,)


def test_memory_of_the_driver_counts_where_the_registry_has_none() -> None:
    (found,) = windows_cards.add_driver_data((dataclasses.replace(NAVI, memory=0),), "1002", (NAVI_TOLD,))
    assert found.memory == 1


def test_key_of_a_card_that_cim_named_is_found_by_ids_and_name() -> None:
    registry, plugged = load("rx-9070-xt-and-raphael")
    bare = [dataclasses.replace(one, driver="") for one in plugged]
    assert [windows_cards.with_key(one, registry).number for one in bare] == ["0000", "0003", ""]


def test_key_is_not_guessed_where_two_fit() -> None:
    key: dict[str, Value] = {"DriverDesc": "A", "MatchingDeviceId": r"PCI\VEN_1002&DEV_7550"}
    registry = {rf"{DISPLAY_KEY}\0000": key, rf"{DISPLAY_KEY}\0001": key}
    assert windows_cards.with_key(Plugged(id=r"PCI\VEN_1002&DEV_7550\1", name="A"), registry).number == ""
