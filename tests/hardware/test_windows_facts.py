"""From Windows' registry to versions and settings: what each key means, and what its absence does not."""

from __future__ import annotations

import pytest

from patchlock.hardware._windows import facts
from patchlock.hardware._windows.records import Registry, Value

NT = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion"
DEFENDER = r"HKLM\SOFTWARE\Microsoft\Windows Defender"
POLICY = r"HKLM\SOFTWARE\Policies\Microsoft\Windows Defender"
WORKING: Registry = {
    rf"{DEFENDER}\Real-Time Protection": {},
    r"HKLM\SYSTEM\CurrentControlSet\Services\WinDefend": {"Start": 2},
}


@pytest.mark.parametrize(
    ("values", "build", "name"),
    [
        ({"ProductName": "Windows 10 Pro", "DisplayVersion": "24H2"}, 26100, "windows 11 24H2"),
        ({"ProductName": "Windows 10 Home", "DisplayVersion": "22H2"}, 19045, "windows 10 22H2"),
        ({"ProductName": "Windows 10 Home", "ReleaseId": "1909"}, 18363, "windows 10 1909"),
        (
            {"ProductName": "Windows Server 2022 Datacenter", "InstallationType": "Server"},
            20348,
            "windows server 2022",
        ),
        ({"InstallationType": "Server Core"}, 26100, "windows server"),
        ({"CurrentBuildNumber": "7601", "DisplayVersion": "7"}, 18362, "windows 10"),
        ({}, 22000, "windows 11"),
        ({"DisplayVersion": b"\xff\xd8"}, 22000, "windows 11 \ufffd"),
    ],
    ids=str,
)
def test_build_decides_which_windows_it_is(values: dict[str, Value], build: int, name: str) -> None:
    assert facts.distribution({NT: values}, build) == name


@pytest.mark.parametrize(
    ("state", "said"), [(0, "off"), (1, "on"), (2, "evaluation"), (7, None), (None, None), ("on", None)]
)
def test_smart_app_control_is_a_number(state: Value | None, said: str | None) -> None:
    key = r"HKLM\SYSTEM\CurrentControlSet\Control\CI\Policy"
    registry: Registry = {} if state is None else {key: {"VerifiedAndReputablePolicyState": state}}
    assert facts.settings(registry).get("smart-app-control") == said


@pytest.mark.parametrize(("value", "said"), [(1, "on"), (0, "off"), (None, "off")])
def test_long_paths_are_off_unless_switched_on(value: int | None, said: str) -> None:
    key = r"HKLM\SYSTEM\CurrentControlSet\Control\FileSystem"
    registry: Registry = {} if value is None else {key: {"LongPathsEnabled": value}}
    assert facts.settings(registry)["long-paths"] == said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "on"),
        ({rf"{DEFENDER}\Real-Time Protection": {"DisableRealtimeMonitoring": 0}}, "on"),
        ({rf"{DEFENDER}\Real-Time Protection": {"DisableRealtimeMonitoring": 1}}, "off"),
        ({rf"{POLICY}\Real-Time Protection": {"DisableRealtimeMonitoring": 1}}, "off"),
        ({POLICY: {"DisableAntiSpyware": 1}}, "off"),
        ({DEFENDER: {"PassiveMode": 1}}, None),
        ({r"HKLM\SYSTEM\CurrentControlSet\Services\WinDefend": {"Start": 3}}, None),
    ],
    ids=["works", "zero", "off", "policy", "no defender", "passive", "another scanner"],
)
def test_defender_is_on_only_where_nothing_says_otherwise(more: Registry, said: str | None) -> None:
    assert facts.settings({**WORKING, **more}).get("defender-realtime") == said


def test_nothing_known_of_defender_is_left_out() -> None:
    assert facts.settings({}) == {"long-paths": "off"}


@pytest.mark.parametrize(
    ("machine", "version"), [("amd64", {"msvc-runtime": "14.44.35211"}), ("arm64", {"msvc-runtime": "14.40.33810"})]
)
def test_runtime_is_the_one_of_this_processor(machine: str, version: dict[str, str]) -> None:
    runtimes = r"HKLM\SOFTWARE\Microsoft\VisualStudio\14.0\VC\Runtimes"
    registry: Registry = {
        rf"{runtimes}\X64": {"Installed": 1, "Version": "v14.44.35211.00"},
        rf"{runtimes}\ARM64": {"Installed": 1, "Version": "v14.40.33810.00"},
    }
    assert facts.versions(registry, machine) == version


def test_removed_runtime_is_none() -> None:
    key = r"HKLM\SOFTWARE\Microsoft\VisualStudio\14.0\VC\Runtimes\X64"
    assert facts.versions({key: {"Installed": 0, "Version": "v14.44.35211.00"}}, "amd64") == {}


def test_git_and_docker_tell_their_versions() -> None:
    registry: Registry = {
        r"HKCU\SOFTWARE\GitForWindows": {"CurrentVersion": "2.47.1.windows.1"},
        r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Uninstall\Docker Desktop": {"DisplayVersion": "4.43.2"},
    }
    assert facts.versions(registry, "amd64") == {"git": "2.47.1", "docker-desktop": "4.43.2"}


@pytest.mark.parametrize(
    ("maker", "product", "board"),
    [
        ("ASUSTeK COMPUTER INC.", "ROG Strix G15", "ASUSTeK COMPUTER INC. ROG Strix G15"),
        ("System manufacturer", "System Product Name", ""),
        ("To Be Filled By O.E.M.", "To Be Filled By O.E.M.", ""),
        ("Gigabyte", "Default string", "Gigabyte"),
    ],
)
def test_board_is_what_its_maker_filled_in(maker: str, product: str, board: str) -> None:
    key = r"HKLM\HARDWARE\DESCRIPTION\System\BIOS"
    assert facts.board({key: {"SystemManufacturer": maker, "SystemProductName": product}}) == board


def test_processor_is_written_with_single_spaces() -> None:
    key = r"HKLM\HARDWARE\DESCRIPTION\System\CentralProcessor\0"
    name = "AMD Ryzen 7 5700G with Radeon Graphics         "
    assert facts.processor({key: {"ProcessorNameString": name}}) == name.strip()


@pytest.mark.parametrize(
    ("folders", "chosen", "version"),
    [
        (["5.7", "6.2", "6.10"], "", "6.10"),
        (["5.7", "6.4"], "C:\\Program Files\\AMD\\ROCm\\5.7\\", "5.7"),
        (["v12.4", "v13.0"], r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4", "12.4"),
        (["6.4", "backup", "6.4.old"], "", "6.4"),
        (["6.4"], r"C:\ai\venv\Lib\site-packages\_rocm_sdk_devel", "6.4"),
        ([], r"C:\ai\venv\Lib\site-packages\_rocm_sdk_devel", ""),
        ([], "", ""),
    ],
)
def test_toolkit_is_the_chosen_one_or_the_newest(folders: list[str], chosen: str, version: str) -> None:
    assert facts.toolkit(folders, chosen) == version


def test_nothing_that_is_read_names_a_person_or_a_machine() -> None:
    words = {name.lower() for names in facts.WANTED.values() for name in names}
    assert not words & {"registeredowner", "productid", "digitalproductid", "computername", "hostname", "username"}
