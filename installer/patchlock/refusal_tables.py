"""Turn the tables of pairs that cannot be into values, noting every mistake; reads no file."""

from __future__ import annotations

from patchlock.errors import nearest
from patchlock.model import RefusedPair
from patchlock.platforms import PLATFORMS
from patchlock.tables import Table


def refusals(root: Table, profiles: tuple[str, ...] | None) -> tuple[RefusedPair, ...]:
    """Read the `[[refused]]` tables of an app's file.

    Args:
        root: the whole file.
        profiles: names of the profiles that there are; None accepts any.
    """
    found = []
    for table in root.tables("refused"):
        profile = table.text("profile")
        if profile and profiles is not None and profile not in profiles:
            table.problem("profile", f'there is no profile "{profile}"', nearest(profile, profiles))
        platforms = table.texts("platforms", ())
        for name in platforms:
            if name not in PLATFORMS:
                table.problem("platforms", f'there is no platform "{name}"', nearest(name, PLATFORMS))
        found.append(
            RefusedPair(
                profile=profile,
                platforms=platforms,
                why=table.text("why"),
                source=table.text("source"),
            )
        )
        table.finish()
    return tuple(found)
