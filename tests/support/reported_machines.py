"""Machines as they are reported, and what our catalogue says of cards and profiles."""

from __future__ import annotations

from conftest import ROOT

from patchlock.catalogue import profile_summaries
from patchlock.hardware.selection import Choice, choose
from patchlock.model.hosts import Device, Host, Node

CARDS = profile_summaries.cards(ROOT)
OUTLINES = {outline.name: outline for outline in profile_summaries.read_summaries(ROOT)}

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


def unused(card: str, reason: str, place: str = "the CPU") -> str:
    """Give the sentence of a card that stays unused."""
    return f"Apps will run on {place}; your {card} will not be used. Reason: {reason}"
