"""Devices in the table: ids, revisions and names decide in this order, and a device without a row stays unknown."""

from __future__ import annotations

import pytest

from patchlock.devices import Card, Known, Unknown, identify
from patchlock.hosts import Device


def _card(name: str, *, vendor: str = "1002", devices: tuple[str, ...] = ("15d8",), **rest: tuple[str, ...]) -> Card:
    return Card(
        vendor=vendor,
        devices=devices,
        name=name,
        chip="c",
        arch="gfx902",
        family="f",
        is_integrated=True,
        source="s",
        **rest,
    )


PICASSO = _card("Vega 8", revisions=("c2", "d9"))
RAVEN2 = _card("Vega 3")
THOR = _card("Thor", vendor="10de", devices=("2b00",), names=("NVIDIA Thor",))
CARDS = (RAVEN2, PICASSO, THOR)


@pytest.mark.parametrize(
    ("device", "card"),
    [
        pytest.param(Device(vendor="1002", device="15d8", revision="c2"), PICASSO, id="revision decides"),
        pytest.param(Device(vendor="1002", device="15d8", revision="e7"), RAVEN2, id="another revision"),
        pytest.param(Device(vendor="10de", name="nvidia thor"), THOR, id="only a name"),
    ],
)
def test_device_is_found(device: Device, card: Card) -> None:
    assert identify(device, CARDS) == Known(device=device, card=card, arch="gfx902")


@pytest.mark.parametrize(
    "device",
    [
        pytest.param(Device(vendor="1002", device="ffff", name="NVIDIA Thor"), id="an id that no row has"),
        pytest.param(Device(vendor="8086", device="15d8"), id="another vendor"),
        pytest.param(Device(vendor="10de", name="NVIDIA Thor 2"), id="a similar name"),
    ],
)
def test_unknown_device_is_not_taken_for_another(device: Device) -> None:
    assert identify(device, CARDS) == Unknown(device=device, arch="")


def test_driver_knows_its_arch_better_than_the_table() -> None:
    found = identify(Device(vendor="1002", device="15d8", revision="c2", arch="gfx909"), CARDS)
    assert found.arch == "gfx909"
