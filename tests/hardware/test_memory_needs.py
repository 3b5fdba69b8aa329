"""What an app takes of memory against what a machine has, and the sentence that a person gets."""

from __future__ import annotations

import dataclasses

import pytest

from patchlock.hardware import memory_needs
from patchlock.model.devices import Card, KnownDevice, UnknownDevice
from patchlock.model.hosts import Device, Host
from patchlock.model.needs import MemoryNeed

GB = 10**9
HOST = Host(os="linux", machine="x86_64", memory=16 * GB)
CARD = UnknownDevice(device=Device(vendor="10de", name="GeForce RTX 4060", memory=8 * GB), arch="sm_89")
SPEECH = MemoryNeed(what="speech", ram=5 * GB, device=13 * GB, source="https://example.org/speech")


def _told(
    need: MemoryNeed, host: Host | None = HOST, device: UnknownDevice | KnownDevice | None = CARD, **options: bool
) -> list[str]:
    verdicts = memory_needs.judge([need], host, device, **{"on_processor": False} | options)
    return [f"{verdict} ({verdict.is_enough})" for verdict in verdicts]


def test_card_and_machine_are_judged_by_themselves() -> None:
    assert _told(SPEECH) == [
        "speech: 4.7 GiB of memory; this machine has 14.9 GiB (True)",
        "speech: 12.1 GiB of the card's memory; GeForce RTX 4060 has 7.5 GiB, which is too little (False)",
    ]


def test_on_the_processor_all_of_it_is_the_machines() -> None:
    assert _told(SPEECH, on_processor=True) == [
        "speech: 12.1 GiB of memory (known only for a graphics card); this machine has 14.9 GiB (True)"
    ]


def test_graphics_in_the_processor_share_the_machines_memory(integrated: KnownDevice) -> None:
    assert _told(SPEECH, device=integrated) == [
        "speech: 12.1 GiB of memory (known only for a graphics card); this machine has 14.9 GiB (True)"
    ]


@pytest.mark.parametrize(
    "device", [None, dataclasses.replace(CARD, device=Device(vendor="10de"))], ids=["none", "silent"]
)
def test_what_nobody_has_seen_is_not_known(device: UnknownDevice | None) -> None:
    assert _told(SPEECH, host=None, device=device) == [
        "speech: 4.7 GiB of memory; how much this machine has is not known (None)",
        "speech: 12.1 GiB of the card's memory; how much the card has is not known (None)",
    ]


def test_only_what_is_certainly_too_little_is_warned_of() -> None:
    small = dataclasses.replace(HOST, memory=4 * GB)
    verdicts = memory_needs.judge([SPEECH], small, None, on_processor=False)
    (finding,) = memory_needs.findings(verdicts)
    assert not finding.stops
    assert str(finding) == (
        "speech: 4.7 GiB of memory; this machine has 3.7 GiB, which is too little; close what else uses memory, or begin with a short text or sound"
    )


@pytest.fixture
def integrated() -> KnownDevice:
    card = Card(
        vendor="1002",
        devices=("15d8",),
        name="Radeon Vega 8",
        chip="Picasso",
        arch="gfx902",
        family="vega-integrated",
        is_integrated=True,
        source="s",
    )
    return KnownDevice(device=Device(vendor="1002", device="15d8"), card=card, arch="gfx902")
