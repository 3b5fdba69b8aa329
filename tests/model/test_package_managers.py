"""Which command installs something on which system: os-release files as the distributions ship them."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchlock.core.bounded_files import FileReader
from patchlock.hardware._linux.system import os_release
from patchlock.model import package_managers
from patchlock.model.package_managers import System

PACKAGES = {
    "apt": ("espeak-ng",),
    "dnf": ("espeak-ng",),
    "rhel": (),
    "pacman": ("espeak-ng",),
    "zypper": ("espeak-ng",),
    "apk": ("espeak-ng",),
    "xbps": ("espeak-ng",),
    "emerge": ("app-accessibility/espeak-ng",),
    "nix": ("espeak-ng",),
    "winget": ("eSpeak-NG.eSpeak-NG",),
    "choco": ("espeak-ng",),
    "brew": ("espeak-ng",),
    "jetson": ("espeak-ng", "nvidia-jetpack"),
}

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n'
UBUNTU = 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian\n'
MINT = 'NAME="Linux Mint"\nVERSION="22 (Wilma)"\nID=linuxmint\nID_LIKE="ubuntu debian"\nPRETTY_NAME="Linux Mint 22"\n'
FEDORA = 'NAME="Fedora Linux"\nVERSION="41 (Workstation Edition)"\nID=fedora\nVERSION_ID=41\nVARIANT_ID=workstation\n'
SILVERBLUE = f"{FEDORA}VARIANT_ID=silverblue\nOSTREE_VERSION='41.20241109.0'\n"
ROCKY = 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n'
NOBARA = 'NAME="Nobara Linux"\nID=nobara\nID_LIKE="fedora"\n'
ARCH = 'NAME="Arch Linux"\nPRETTY_NAME="Arch Linux"\nID=arch\nBUILD_ID=rolling\n'
CACHYOS = '# a comment = no key\nNAME="CachyOS Linux"\nID=cachyos\nID_LIKE=arch\n'
STEAMOS = 'NAME="SteamOS"\nID=steamos\nID_LIKE=arch\nVERSION_ID=3.6.19\n'
TUMBLEWEED = 'NAME="openSUSE Tumbleweed"\nID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n'
MICROOS = 'NAME="openSUSE MicroOS"\nID="opensuse-microos"\nID_LIKE="suse opensuse opensuse-tumbleweed"\n'
ALPINE = 'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.20.3\n'
VOID = 'NAME="Void"\nID="void"\n'
GENTOO = "NAME=Gentoo\nID=gentoo\n"
NIXOS = 'ID=nixos\nNAME=NixOS\nVERSION="24.11 (Vicuna)"\n'


def _system(tmp_path: Path, release: str, *has: str, jetson: bool = False, is_root: bool = False) -> System:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(release)
    return System(
        os="linux",
        release=os_release(FileReader(tmp_path, "system")),
        is_jetson=jetson,
        is_root=is_root,
        has=frozenset(has),
    )


def _command(system: System, **commands: str) -> str:
    way = package_managers.way(system, PACKAGES, commands)
    return " && ".join(package_managers.commands([way], system)) if way else ""


@pytest.mark.parametrize(
    ("release", "command"),
    [
        pytest.param(DEBIAN, "sudo apt-get install espeak-ng", id="debian"),
        pytest.param(UBUNTU, "sudo apt-get install espeak-ng", id="ubuntu"),
        pytest.param(MINT, "sudo apt-get install espeak-ng", id="mint"),
        pytest.param(FEDORA, "sudo dnf install espeak-ng", id="fedora"),
        pytest.param(NOBARA, "sudo dnf install espeak-ng", id="nobara"),
        pytest.param(SILVERBLUE, "sudo rpm-ostree install espeak-ng && systemctl reboot", id="silverblue"),
        pytest.param(ROCKY, "", id="rocky-has-no-such-package"),
        pytest.param(ARCH, "sudo pacman -S espeak-ng", id="arch"),
        pytest.param(CACHYOS, "sudo pacman -S espeak-ng", id="cachyos"),
        pytest.param(STEAMOS, "sudo steamos-readonly disable && sudo pacman -S espeak-ng", id="steamos"),
        pytest.param(TUMBLEWEED, "sudo zypper install espeak-ng", id="tumbleweed"),
        pytest.param(MICROOS, "sudo transactional-update pkg install espeak-ng && sudo reboot", id="microos"),
        pytest.param(ALPINE, "sudo apk add espeak-ng", id="alpine"),
        pytest.param(VOID, "sudo xbps-install -S espeak-ng", id="void"),
        pytest.param(GENTOO, "sudo emerge app-accessibility/espeak-ng", id="gentoo"),
        pytest.param(NIXOS, "nix-shell -p espeak-ng", id="nixos"),
        pytest.param("ID=tinycore\n", "", id="unknown"),
        pytest.param("", "", id="empty"),
        pytest.param('ID="debian\n', "", id="a-quotation-mark-that-nothing-closes"),
    ],
)
def test_distribution_has_its_command(tmp_path: Path, release: str, command: str) -> None:
    assert _command(_system(tmp_path, release)) == command


def test_board_of_nvidia_s_has_packages_of_its_own(tmp_path: Path) -> None:
    assert _command(_system(tmp_path, UBUNTU, jetson=True)) == "sudo apt-get install espeak-ng nvidia-jetpack"


@pytest.mark.parametrize(
    ("has", "is_root", "command"),
    [
        pytest.param((), True, "apk add espeak-ng", id="root"),
        pytest.param(("doas",), False, "doas apk add espeak-ng", id="doas"),
        pytest.param(("doas", "sudo"), False, "sudo apk add espeak-ng", id="both"),
    ],
)
def test_rights_are_asked_for_as_the_system_does(
    tmp_path: Path, has: tuple[str, ...], is_root: bool, command: str
) -> None:
    assert _command(_system(tmp_path, ALPINE, *has, is_root=is_root)) == command


@pytest.mark.parametrize(
    ("os", "has", "command"),
    [
        pytest.param("windows", (), "winget install --exact --id eSpeak-NG.eSpeak-NG", id="windows"),
        pytest.param("windows", ("choco",), "choco install espeak-ng", id="windows-with-choco-alone"),
        pytest.param("windows", ("choco", "winget"), "winget install --exact --id eSpeak-NG.eSpeak-NG", id="both"),
        pytest.param("macos", (), "brew install espeak-ng", id="macos"),
    ],
)
def test_other_systems_have_their_command(os: str, has: tuple[str, ...], command: str) -> None:
    assert _command(System(os=os, release={}, has=frozenset(has))) == command


def test_command_of_a_distribution_wins_over_its_packages(tmp_path: Path) -> None:
    system = _system(tmp_path, UBUNTU, is_root=True)
    assert _command(system, ubuntu="sudo ubuntu-drivers install", linux="see there") == "ubuntu-drivers install"


def test_all_packages_are_one_command_and_own_commands_follow(tmp_path: Path) -> None:
    system = _system(tmp_path, MINT)
    ways = [
        package_managers.way(system, {"apt": ("ffmpeg",)}, {}),
        package_managers.way(system, {}, {"linux": "wsl.exe --update"}),
        package_managers.way(system, {"apt": ("espeak-ng", "ffmpeg")}, {}),
    ]
    found = package_managers.commands([way for way in ways if way], system)
    assert found == ("sudo apt-get install ffmpeg espeak-ng", "wsl.exe --update")


def test_winget_is_asked_for_one_package_at_a_time() -> None:
    system = System(os="windows", release={})
    ways = [package_managers.way(system, {"winget": (name,)}, {}) for name in ("A.A", "B.B")]
    found = package_managers.commands([way for way in ways if way], system)
    assert found == ("winget install --exact --id A.A", "winget install --exact --id B.B")
    assert package_managers.joined(found, system) == "; ".join(found)  # PowerShell 5.1 has no &&


def test_os_release_below_usr_counts_where_etc_has_none(tmp_path: Path) -> None:
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "usr/lib/os-release").write_text(f"{NIXOS}\n")
    assert os_release(FileReader(tmp_path, "system"))["VERSION"] == "24.11 (Vicuna)"
    assert os_release(FileReader(tmp_path / "nowhere", "system")) == {}
