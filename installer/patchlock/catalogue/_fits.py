"""Turn `[[fit]]`, `[[trial]]` and `[successor]` of a profile into values, noting every mistake; reads no file."""

from __future__ import annotations

from patchlock.catalogue.table_reader import Table
from patchlock.model.fits import Fit, ProfileSummary, Successor
from patchlock.model.platforms import PLATFORMS


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
        python=table.text("python", ""),
        back_end=table.text("back-end", "cpu"),
    )


def fits(root: Table, key: str = "fit") -> tuple[Fit, ...]:
    """Read the `[[fit]]` or `[[trial]]` tables of a profile's file."""
    found = []
    for table, fit in root.rows(key, Fit):
        if not fit.archs and not fit.families:
            table.problem("", "it names neither archs nor families", 'write archs = ["…"]')
        found.append(fit)
    return tuple(found)


def successor(root: Table) -> Successor | None:
    """Read the `[successor]` table of a profile's file; it may name a profile that is still to come."""
    return root.optional("successor", Successor)
