"""Platforms: which machine is which, and which wheel is preferred there."""

from __future__ import annotations

import re
import subprocess

import packaging.tags
import pytest
from packaging.tags import Tag
from packaging.version import Version

from patchlock.core import uv
from patchlock.model.hosts import Host
from patchlock.model.platforms import PLATFORMS, platform_of, wheel_rank


@pytest.mark.parametrize(
    ("os", "machine", "name"),
    [
        ("linux", "x86_64", "linux-x86_64"),
        ("linux", "amd64", "linux-x86_64"),
        ("linux", "x64", "linux-x86_64"),
        ("linux", "aarch64", "linux-aarch64"),
        ("linux", "arm64", "linux-aarch64"),
        ("windows", "amd64", "windows-amd64"),
        ("windows", "x86_64", "windows-amd64"),
        ("macos", "arm64", "macos-arm64"),
        ("macos", "aarch64", "macos-arm64"),
    ],
)
def test_platform_of_every_spelling(os: str, machine: str, name: str) -> None:
    assert platform_of(Host(os=os, machine=machine, libc="")) == PLATFORMS[name]


@pytest.mark.parametrize(
    ("os", "machine"),
    [
        ("linux", "riscv64"),
        ("linux", "i686"),
        ("linux", ""),
        ("windows", "arm64"),
        ("macos", "x86_64"),
        ("sunos", "x86_64"),
    ],
)
def test_unknown_machine_has_no_platform(os: str, machine: str) -> None:
    assert platform_of(Host(os=os, machine=machine, libc="")) is None


def test_platforms_are_known_by_their_names() -> None:
    assert {name: platform.name for name, platform in PLATFORMS.items()} == {
        name: name for name in ("linux-x86_64", "linux-aarch64", "windows-amd64", "macos-arm64")
    }


def test_uv_knows_every_platform() -> None:
    command = [uv.find(), "pip", "compile", "--python-platform", "nonsense", "requirements.txt"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    known = re.findall(r"[\w-]+", done.stderr.partition("possible values:")[2])
    assert {platform.uv for platform in PLATFORMS.values()} - set(known) == set()


@pytest.mark.parametrize(
    ("name", "python", "best_first"),
    [
        pytest.param(
            "linux-x86_64",
            "3.11",
            (
                *("cp311-cp311-manylinux_2_28_x86_64", "cp311-cp311-manylinux_2_27_x86_64"),
                *("cp311-cp311-manylinux_2_17_x86_64", "cp311-cp311-manylinux2014_x86_64"),
                *("cp311-cp311-manylinux_2_12_x86_64", "cp311-cp311-manylinux2010_x86_64"),
                *("cp311-cp311-manylinux_2_5_x86_64", "cp311-cp311-manylinux1_x86_64", "cp311-cp311-linux_x86_64"),
                *("cp311-abi3-manylinux_2_28_x86_64", "cp38-abi3-manylinux_2_28_x86_64", "cp38-abi3-manylinux1_x86_64"),
                *("py3-none-manylinux_2_28_x86_64", "py3-none-linux_x86_64", "cp311-none-any", "py3-none-any"),
            ),
            id="linux-x86_64",
        ),
        pytest.param(
            "linux-aarch64",
            "3.11",
            (
                "cp311-cp311-manylinux_2_28_aarch64",
                "cp311-cp311-manylinux2014_aarch64",
                "cp39-abi3-manylinux2014_aarch64",
            ),
            id="linux-aarch64",
        ),
        pytest.param(
            "windows-amd64", "3.10", ("cp310-cp310-win_amd64", "cp37-abi3-win_amd64", "py3-none-any"), id="windows"
        ),
        pytest.param(
            "macos-arm64",
            "3.12",
            ("cp312-cp312-macosx_13_0_arm64", "cp312-cp312-macosx_11_0_arm64", "cp312-cp312-macosx_11_0_universal2"),
            id="macos",
        ),
    ],
)
def test_wheels_are_preferred_in_this_order(name: str, python: str, best_first: tuple[str, ...]) -> None:
    ranks = wheel_rank(PLATFORMS[name], Version(python))
    numbers = [ranks[Tag(*tag.split("-"))] for tag in best_first]
    assert numbers == sorted(set(numbers))
    assert ranks[Tag(*best_first[0].split("-"))] == 0


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("linux-x86_64", "cp310-cp310-manylinux_2_28_x86_64"),
        ("linux-x86_64", "cp312-cp312-manylinux_2_28_x86_64"),
        ("linux-x86_64", "cp312-abi3-manylinux_2_28_x86_64"),
        ("linux-x86_64", "cp311-cp311-manylinux_2_31_x86_64"),
        ("linux-x86_64", "cp311-cp311-musllinux_1_2_x86_64"),
        ("linux-x86_64", "cp311-cp311-manylinux_2_28_aarch64"),
        ("linux-aarch64", "cp311-cp311-manylinux1_aarch64"),
        ("windows-amd64", "cp311-cp311-win32"),
        ("macos-arm64", "cp311-cp311-macosx_14_0_arm64"),
        ("macos-arm64", "cp311-cp311-macosx_11_0_x86_64"),
    ],
)
def test_wheels_that_do_not_run_have_no_rank(name: str, tag: str) -> None:
    assert Tag(*tag.split("-")) not in wheel_rank(PLATFORMS[name], Version("3.11"))


def test_tags_of_macos_are_those_of_packaging() -> None:
    assert PLATFORMS["macos-arm64"].tags == tuple(packaging.tags.mac_platforms((13, 0), "arm64"))
