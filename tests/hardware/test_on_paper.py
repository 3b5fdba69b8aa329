"""What a recording says of a machine's needs: versions that are too old, nodes, libraries, and the steps by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from patchlock.catalogue.reader import Catalogue
from patchlock.hardware import on_paper, preflight
from patchlock.hardware.preflight import NOTHING, UNKNOWN, DetectedResource
from patchlock.model.conditions import VERSIONED, Condition
from patchlock.model.hosts import Device, Host, Node
from patchlock.model.needs import Finding, Need, Resource
from patchlock.model.package_managers import Way
from patchlock.model.version_bounds import Bounds

ROOT = Path(__file__).resolve().parents[2]
LINUX = Host(os="linux", machine="x86_64", distribution="ubuntu 24.04", release="6.8.0-45-generic")
WINDOWS = Host(os="windows", machine="amd64", release="10.0.19045", distribution="windows 10 22H2")
CARD = Device(vendor="10de", device="2684", driver="535.183.01")


def _resources() -> dict[str, Resource]:
    catalogue = Catalogue(root=ROOT)
    names = (path.stem for path in (ROOT / "profiles/needs").glob("*.toml"))
    return {name: catalogue.resource(name) for name in names}


def _condition(name: str, versions: str) -> Condition:
    return Condition(name=name, versions=Bounds(versions), source="https://example.org")


@pytest.mark.parametrize(
    ("host", "device", "name", "versions", "found", "reason"),
    [
        (LINUX, None, "kernel", ">=6.8", "6.8.0-45-generic", ""),
        (LINUX, None, "kernel", ">=6.12", "6.8.0-45-generic", "the kernel is 6.8.0-45-generic, and must be 6.12 or later"),
        (dataclasses.replace(LINUX, versions={"amdgpu": "6.12.12"}), None, "kernel", ">=6.12", "", ""),
        (LINUX, CARD, "nvidia-driver", ">=550", "535.183.01", "the driver is 535.183.01, and must be 550 or later"),
        (dataclasses.replace(LINUX, versions={"nvidia-driver": "580.65.06"}), CARD, "nvidia-driver", ">=550", "580.65.06", ""),
        (dataclasses.replace(LINUX, is_wsl=True), None, "nvidia-driver", ">=550", "", ""),
        (WINDOWS, None, "windows", ">=11", "Windows 10", "the system is Windows 10, and must be Windows 11 or later"),
        (dataclasses.replace(WINDOWS, release="10.0.26100"), None, "windows", ">=11", "Windows 11", ""),
        (dataclasses.replace(WINDOWS, release=""), None, "windows", ">=11", "Windows 10", None),
        (WINDOWS, None, "adrenalin", ">=26.2.2", "", ""),
        (WINDOWS, None, "kernel", ">=6.12", "", ""),
        (dataclasses.replace(LINUX, tegra="36.4.3"), None, "jetson-linux", ">=38", "Jetson Linux 36.4.3", None),
    ],
)  # fmt: skip
def test_versions_are_read_and_held_against_bounds(
    host: Host, device: Device | None, name: str, versions: str, found: str, reason: str | None
) -> None:
    condition = _condition(name, versions)
    assert condition.found(host, device) == found
    assert bool(condition.reason(host, device)) is not condition.is_met(host, device)
    if reason is not None:
        assert condition.reason(host, device) == reason


def test_each_version_has_a_file_that_says_how_to_get_a_newer_one() -> None:
    resources = _resources()
    versions = {name: one for name, one in resources.items() if one.kind == "version"}
    assert set(versions) == set(VERSIONED)
    for name, one in versions.items():
        assert one.restart, name
        assert not VERSIONED[name].os or set(one.find) == {VERSIONED[name].os}, name


def _versions(host: Host, *conditions: Condition) -> tuple[Finding, ...]:
    resources = _resources()
    return tuple(preflight.versions(conditions, host, CARD, resources, on_paper.system(host)))


def test_old_one_stops_and_an_unseen_one_is_told() -> None:
    old, unseen = (
        _versions(LINUX, _condition("kernel", ">=6.12")),
        _versions(WINDOWS, _condition("adrenalin", ">=26.2")),
    )
    assert [(one.name, one.stops, one.restart) for one in (*old, *unseen)] == [
        ("kernel", True, True),
        ("adrenalin", False, True),
    ]
    assert 'sudo apt-get install --yes "linux-generic-hwe-$(lsb_release -rs)"' in old[0].remedy
    assert _versions(LINUX, _condition("kernel", ">=6.8")) == ()
    assert _versions(LINUX, _condition("windows", ">=11")) == (), "nothing of another system is asked"


@pytest.mark.parametrize(
    ("where", "remedy"),
    [
        ({"is_wsl": True}, "in Windows, see https://www.nvidia.com/drivers"),
        ({"container": "docker"}, "on the machine that runs the container, see https://www.nvidia.com/drivers"),
        ({}, "sudo ubuntu-drivers install, or see https://www.nvidia.com/drivers"),
    ],
)
def test_driver_is_mended_where_it_is(where: dict[str, Any], remedy: str) -> None:
    host = dataclasses.replace(LINUX, versions={"nvidia-driver": "472.12"}, **where)
    (finding,) = _versions(host, _condition("nvidia-driver", ">=550"))
    assert finding.remedy == remedy


def test_steps_come_in_order_with_one_restart_after_what_needs_one() -> None:
    def finding(name: str, kind: str, *, restart: bool = False) -> Finding:
        return Finding(name=name, what=name, remedy="do", stops=True, kind=kind, restart=restart)  # type: ignore[arg-type]

    found = (
        finding("ffmpeg", "program"),
        finding("nvidia-driver", "version", restart=True),
        finding("hip-sdk", "variable"),
        finding("windows", "version", restart=True),
    )
    told = preflight.steps(found)
    assert [step.partition(":")[0].split(";")[0].strip() for step in told][2] == "restart the machine"
    assert [next(word for word in ("windows", "nvidia", "restart", "hip", "ffmpeg") if word in step) for step in told] == [
        "windows", "nvidia", "restart", "hip", "ffmpeg",
    ]  # fmt: skip
    assert preflight.steps(()) == ()
    windows = Finding(name="git", what="git", remedy="do", stops=True, way=Way(manager="winget", packages=("Git.Git",)))
    assert preflight.steps((windows,)) == ("git; do", "open a new PowerShell window for what follows")


def test_recording_lists_nodes_and_known_libraries_completely_and_nothing_else() -> None:
    resources = _resources()
    node = Node(path="/dev/kfd", is_usable=False, group="render")
    listed = dataclasses.replace(LINUX, nodes=(node,), libraries={"libcuda.so.1": "/usr/lib/libcuda.so.1"})
    assert on_paper.detect(resources["kfd"], LINUX) == NOTHING
    assert on_paper.detect(resources["kfd"], listed).group == "render"
    usable = dataclasses.replace(LINUX, nodes=(dataclasses.replace(node, is_usable=True),))
    assert on_paper.detect(resources["kfd"], usable) == DetectedResource(where="/dev/kfd")
    assert on_paper.detect(resources["ffmpeg"], listed) == UNKNOWN
    assert on_paper.detect(resources["libsndfile"], listed) == UNKNOWN, "no recording lists that one"


def test_facts_are_those_of_the_recording_whatever_this_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.Popen", None)
    monkeypatch.setenv("PATH", "")
    facts = on_paper.facts(WINDOWS, {})
    assert (facts.system.os, facts.git, facts.user) == ("windows", UNKNOWN, "")
    with_git = dataclasses.replace(LINUX, versions={"git": "2.20.1"})
    assert on_paper.facts(with_git, {}).git.version == "2.20.1"


def test_driver_that_has_dropped_a_card_is_to_be_replaced_by_an_older_one() -> None:
    host = dataclasses.replace(LINUX, versions={"nvidia-driver": "595.58.03"})
    (finding,) = _versions(host, _condition("nvidia-driver", ">=525.60.13,<590"))
    assert finding.what == "the driver is 595.58.03, and must be 525.60.13 or later but before 590"
    assert finding.remedy == "take an older one: ask `patchlock doctor` for the commands, or see https://example.org"
    assert (finding.stops, finding.way) == (True, None)


@pytest.mark.parametrize(
    ("host", "name", "remedy"),
    [
        (
            WINDOWS,
            "msvc-runtime",
            "install it in PowerShell as administrator: `winget install --exact --id Microsoft.VCRedist.2015+.x64`",
        ),
        (
            WINDOWS,
            "espeak-ng",
            "install it in PowerShell as administrator: `winget install --exact --id eSpeak-NG.eSpeak-NG`",
        ),
        (LINUX, "espeak-ng", "install it: `sudo apt-get install espeak-ng`"),
    ],
    ids=["C++", "eSpeak", "Linux"],
)
def test_what_only_an_administrator_can_install_on_windows_says_so(host: Host, name: str, remedy: str) -> None:
    resource = _resources()[name]
    need = Need(name=name, why="torch needs it", source="https://example.org")
    facts = on_paper.facts(host, {name: resource})
    told = preflight.judge(facts, [need], {name: resource}, python=Version("3.11"))
    (found,) = (one for one in told if one.name == name)
    assert found.remedy == remedy


@pytest.mark.parametrize(
    ("host", "places"),
    [
        (
            WINDOWS,
            [r"$env:LOCALAPPDATA\patchlock\demo@cpu", r"$env:USERPROFILE\.cache\huggingface", "/elsewhere/models"],
        ),
        (LINUX, ["~/.local/share/patchlock/demo@cpu", "~/.cache/huggingface", "/elsewhere/models"]),
    ],
    ids=["Windows", "Linux"],
)
def test_places_are_those_of_the_recorded_machine(host: Host, places: list[str]) -> None:
    home = Path("/installed")
    paths = [home / "demo@cpu", Path.home() / ".cache/huggingface", Path("/elsewhere/models")]
    assert [on_paper.place(host, path, home) for path in paths] == places
