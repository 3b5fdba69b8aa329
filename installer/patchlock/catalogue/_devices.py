"""Turn the files of `profiles/devices/` into cards, noting every mistake; reads no file."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping

from patchlock.catalogue.table_reader import Table
from patchlock.model.devices import ARCH, FAMILIES, VENDORS, Card, WrongNumbers, plain_name
from patchlock.model.errors import nearest

_KEY = re.compile(r"(?P<device>[0-9a-f]{4})(?:-(?P<revision>[0-9a-f]{2}))?")


def cards(root: Table) -> tuple[Card, ...]:
    """Read one vendor's file; each id, and each id with a revision, once."""
    vendor, maker = root.text("vendor"), root.text("maker")
    if vendor and vendor not in VENDORS:
        root.problem("vendor", f'there is no vendor "{vendor}"', nearest(vendor, VENDORS))
    seen: dict[str, str] = {}
    return tuple(card for chip in root.tables("chip") for card in _chip(chip, vendor, maker, seen))


def _chip(table: Table, vendor: str, maker: str, seen: dict[str, str]) -> Iterator[Card]:
    name = table.text("name")
    title = table.text("title", name)
    chip = Card(
        vendor=vendor,
        devices=(),
        names=table.texts("called", ()),
        name=title,
        chip=name,
        arch=table.text("arch", "") if table.has("arch") else _arch_missing(table),
        family=table.text("family"),
        is_integrated=table.boolean("integrated", False),
        source=table.text("source"),
        wrong=table.optional("wrong", WrongNumbers),
    )
    if chip.arch and not ARCH.fullmatch(chip.arch):
        table.problem("arch", f'"{chip.arch}" is not an arch such as "gfx1201" or "sm_89"')
    if chip.family and chip.family not in FAMILIES:
        table.problem("family", f'there is no family "{chip.family}"', nearest(chip.family, FAMILIES))
    devices = table.mapping("devices")
    if not devices and not chip.names:
        table.problem("devices", "it is empty, and so is called", 'write 7550 = "Radeon RX 9070"')
    for key in devices:
        if not _KEY.fullmatch(key):
            table.problem("devices", f'"{key}" is not a PCI id such as 7550, or 7550-c0 with a revision')
        elif key in seen:
            table.problem("devices", f"{key} is taken by {seen[key]}")
        seen.setdefault(key, name)
    table.finish()
    if chip.names:
        yield chip
    yield from _rows(chip, devices, maker)


def _arch_missing(table: Table) -> str:
    table.problem("arch", 'the key "arch" is missing', 'write arch = "" where nobody compiles for it ahead of time')
    return ""


def _rows(chip: Card, devices: Mapping[str, str], maker: str) -> Iterator[Card]:
    """Make one card of all ids with one name, and one of all revisions of an id with one name."""
    ids: dict[str, list[str]] = {}
    revisions: dict[tuple[str, str], list[str]] = {}
    for key, name in devices.items():
        if (found := _KEY.fullmatch(key)) is None:
            continue
        if found["revision"]:
            revisions.setdefault((found["device"], name), []).append(found["revision"])
        else:
            ids.setdefault(name, []).append(found["device"])
    for name, same in ids.items():
        yield _named(chip, name, maker, devices=tuple(same))
    for (device, name), same in revisions.items():
        yield _named(chip, name, maker, devices=(device,), revisions=tuple(same))


def _named(chip: Card, name: str, maker: str, *, devices: tuple[str, ...], revisions: tuple[str, ...] = ()) -> Card:
    called = (name, f"{maker} {name}")
    return dataclasses.replace(chip, devices=devices, revisions=revisions, names=called, name=name)


def without_ambiguous_names(cards: Iterable[Card]) -> tuple[Card, ...]:
    """Take the names away that cards of several archs share: by such a name alone nobody knows the arch."""
    rows = list(cards)
    archs: dict[str, set[tuple[str, str]]] = {}
    for card in rows:
        for name in card.names:
            archs.setdefault(plain_name(name), set()).add((card.vendor, card.arch))
    return tuple(
        dataclasses.replace(card, names=tuple(name for name in card.names if len(archs[plain_name(name)]) == 1))
        for card in rows
    )
