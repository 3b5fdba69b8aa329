"""The part of a condition that is about graphics cards: which of a machine's devices answer a description; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from patchlock.catalogue.table_reader import Table
from patchlock.model.devices import KnownDevice, UnknownDevice, shown_name
from patchlock.model.troubles import Observations, Test


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """What a device must be; what is None or empty is not asked."""

    vendors: tuple[str, ...]
    families: tuple[str, ...]
    arch: re.Pattern[str] | None
    name: re.Pattern[str] | None
    trouble: re.Pattern[str] | None
    is_integrated: bool | None
    is_hidden: bool | None

    def fits(self, one: KnownDevice | UnknownDevice) -> bool:
        card = one.card if isinstance(one, KnownDevice) else None
        return (
            (not self.vendors or one.device.vendor in self.vendors)
            and (not self.families or (card is not None and card.family in self.families))
            and (self.arch is None or self.arch.fullmatch(one.arch) is not None)
            and (self.name is None or self.name.search(one.device.name) is not None)
            and (self.trouble is None or self.trouble.search(one.device.trouble) is not None)
            and (self.is_integrated is None or (card is not None and card.is_integrated == self.is_integrated))
            and (self.is_hidden is None or one.device.is_hidden == self.is_hidden)
        )


def device_tests(table: Table, key: str, *, is_there: bool) -> Iterator[Test]:
    """Read the descriptions of a key: each must be answered by some device, or by none of them."""
    for row in table.tables(key):
        wanted = _Wanted(
            vendors=row.texts("vendor", ()),
            families=row.texts("family", ()),
            arch=_pattern(row, "arch"),
            name=_pattern(row, "name"),
            trouble=_pattern(row, "trouble"),
            is_integrated=row.boolean("integrated", False) if row.has("integrated") else None,
            is_hidden=row.boolean("hidden", False) if row.has("hidden") else None,
        )
        row.known(("integrated", "hidden"))
        row.finish()
        if is_there:
            yield lambda facts, wanted=wanted: _shown(wanted, facts)  # type: ignore[misc]
        else:
            yield lambda facts, wanted=wanted: None if _shown(wanted, facts) else ""  # type: ignore[misc]


def _pattern(row: Table, key: str) -> re.Pattern[str] | None:
    text = row.text(key, "")
    try:
        return re.compile(text) if text else None
    except re.error as error:
        row.problem(key, f'"{text}" is not a regular expression: {error}')
        return None


def _shown(wanted: _Wanted, facts: Observations) -> str | None:
    for one in facts.devices:
        if wanted.fits(one):
            trouble = f": {one.device.trouble}" if one.device.trouble else ""
            hidden = ", hidden by a variable" if one.device.is_hidden else ""
            return f"there is {device_label(one)}{f' ({one.arch})' if one.arch else ''}{hidden}{trouble}"
    return None


def device_label(one: KnownDevice | UnknownDevice) -> str:
    """Name a device as the table has it, else as its driver does, else by its ids or its maker."""
    device = one.device
    return shown_name(one) or (
        f"{device.vendor}:{device.device}" if device.device else _MAKERS.get(device.vendor, "a card")
    )


_MAKERS = {"1002": "an AMD card", "10de": "an NVIDIA card", "8086": "an Intel card"}
