"""Turn `[[fit]]`, `[[trial]]` and `[successor]` of a profile into values, noting every mistake; reads no file."""

from __future__ import annotations

import re

from patchlock.catalogue.table_reader import Table
from patchlock.model.devices import FAMILIES, VENDORS
from patchlock.model.errors import nearest
from patchlock.model.fits import SELECTORS, Fit, ProfileSummary, Successor
from patchlock.model.platforms import PLATFORMS
from patchlock.model.version_bounds import Bounds

ARCH = re.compile(r"gfx[0-9a-f]{3,5}|sm_[0-9]{2,3}")
"""What compiled code can be for."""


def outline(root: Table, name: str) -> ProfileSummary:
    """Read of a profile's file what a choice looks at; its other keys are read elsewhere."""
    table = root.table("profile")
    platforms = table.texts("platforms")
    return ProfileSummary(
        name=name,
        title=table.text("title"),
        platforms=tuple(PLATFORMS[platform] for platform in platforms if platform in PLATFORMS),
        specificity=table.integer("specificity"),
        fits=fits(root),
        trials=fits(root, "trial"),
        successor=successor(root),
    )


def fits(root: Table, key: str = "fit") -> tuple[Fit, ...]:
    """Read the `[[fit]]` or `[[trial]]` tables of a profile's file."""
    return tuple(_fit(table) for table in root.tables(key))


def _fit(table: Table) -> Fit:
    read = Fit(
        vendor=table.text("vendor"),
        archs=table.texts("archs", ()),
        families=table.texts("families", ()),
        wsl=table.boolean("wsl") if table.has("wsl") else None,
        tegra=table.boolean("tegra") if table.has("tegra") else None,
        driver=table.parse("driver", Bounds, Bounds(), ""),
        kernel=table.parse("kernel", Bounds, Bounds(), ""),
        nodes=table.texts("nodes", ()),
        libraries=table.texts("libraries", ()),
        selects=table.text("selects", ""),
        why=table.text("why"),
        source=table.text("source"),
    )
    if read.selects and read.selects not in SELECTORS:
        table.problem("selects", f'there is no such variable as "{read.selects}"', nearest(read.selects, SELECTORS))
    if read.vendor and read.vendor not in VENDORS:
        table.problem("vendor", f'there is no vendor "{read.vendor}"', nearest(read.vendor, VENDORS))
    for arch in read.archs:
        if not ARCH.fullmatch(arch):
            table.problem("archs", f'"{arch}" is no arch such as "gfx1201" or "sm_89"')
    for family in read.families:
        if family not in FAMILIES:
            table.problem("families", f'there is no family "{family}"', nearest(family, FAMILIES))
    for node in read.nodes:
        if not node.startswith("/dev/"):
            table.problem("nodes", f'"{node}" is no device node such as "/dev/kfd"')
    if not read.archs and not read.families:
        table.problem("", "it names neither archs nor families", 'write archs = ["…"]')
    table.known(("wsl", "tegra"))
    table.finish()
    return read


def successor(root: Table) -> Successor | None:
    """Read the `[successor]` table of a profile's file; it may name a profile that is still to come."""
    if not root.has("successor"):
        root.known(("successor",))
        return None
    table = root.table("successor")
    read = Successor(name=table.text("name"), why=table.text("why"), source=table.text("source"))
    table.finish()
    return read
