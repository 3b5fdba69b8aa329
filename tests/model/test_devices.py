"""Devices in the table: ids, revisions and names decide in this order, and a device without a row stays unknown."""

from __future__ import annotations

import dataclasses

import pytest

from patchlock.model.devices import Card, KnownDevice, UnknownDevice, identify, shown_name
from patchlock.model.hosts import Device


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
    assert identify(device, CARDS) == KnownDevice(device=device, card=card, arch="gfx902")


@pytest.mark.parametrize(
    "device",
    [
        pytest.param(Device(vendor="1002", device="ffff", name="NVIDIA Thor"), id="an id that no row has"),
        pytest.param(Device(vendor="8086", device="15d8"), id="another vendor"),
        pytest.param(Device(vendor="10de", name="NVIDIA Thor 2"), id="a similar name"),
    ],
)
def test_unknown_device_is_not_taken_for_another(device: Device) -> None:
    assert identify(device, CARDS) == UnknownDevice(device=device, arch="")


def test_driver_knows_its_arch_better_than_the_table() -> None:
    found = identify(Device(vendor="1002", device="15d8", revision="c2", arch="gfx909"), CARDS)
    assert found.arch == "gfx909"


@pytest.mark.parametrize(
    "name",
    [
        "Radeon RX 580 Series",
        "AMD Radeon RX 580",
        "AMD Radeon(TM) RX 580",
        "radeon  rx 580",
        "Radeon\u2122 RX 580 Series",
    ],
)
def test_drivers_write_one_name_in_many_ways(name: str) -> None:
    card = _card("Radeon RX 580", names=("Radeon RX 580 Series",))
    assert identify(Device(vendor="1002", name=name), (card,)) == KnownDevice(
        device=Device(vendor="1002", name=name), card=card, arch="gfx902"
    )


def test_name_of_several_chips_names_them_all() -> None:
    rows = tuple(
        dataclasses.replace(_card("RTX", vendor="10de", names=("RTX",)), chip=chip) for chip in ("AD104", "AD106")
    )
    found = identify(Device(vendor="10de", name="NVIDIA RTX"), rows)
    assert isinstance(found, KnownDevice)
    assert found.card.chip == "AD104 or AD106"


def test_no_name_is_no_card() -> None:
    assert isinstance(identify(Device(vendor="1002"), (_card("c", names=("AMD",)),)), UnknownDevice)


def test_arch_alone_tells_the_family() -> None:
    rows = tuple(dataclasses.replace(_card(chip), chip=chip) for chip in ("Raven", "Picasso"))
    found = identify(Device(vendor="1002", arch="gfx902"), rows)
    assert isinstance(found, KnownDevice)
    assert (found.arch, found.card.chip, found.card.devices, shown_name(found)) == (
        "gfx902",
        "Raven or Picasso",
        (),
        "",
    )
    other = dataclasses.replace(rows[0], family="polaris")
    for arch, cards in (("gfx902", (*rows, other)), ("gfx909", rows), ("", rows)):
        assert isinstance(identify(Device(vendor="1002", arch=arch), cards), UnknownDevice)


@pytest.mark.parametrize(
    ("table", "driver", "shown"),
    [
        pytest.param("RX 6800/6800 XT / 6900 XT", "AMD Radeon RX 6800", "Radeon RX 6800", id="which of several models"),
        pytest.param("Graphics / 8060S", "AMD Radeon(TM) 8060S Graphics", "Radeon 8060S Graphics", id="trade marks"),
        pytest.param("Graphics / 8060S", "AMD Radeon(TM) Graphics", "Graphics / 8060S", id="driver says less"),
        pytest.param("RX 6800/6900", "Navi 21 [RX 6800/6900]", "RX 6800/6900", id="driver says as much"),
        pytest.param("Vega 8", "AMD Radeon(TM) Vega 8 Graphics", "Vega 8", id="one model"),
    ],
)
def test_person_reads_the_model(table: str, driver: str, shown: str) -> None:
    device = Device(vendor="1002", device="15d8", name=driver)
    assert shown_name(identify(device, (_card(table),))) == shown
