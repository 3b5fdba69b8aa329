"""Turn the tables with which a profile or an app speaks to the resolver into values; reads no file."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.catalogue.table_reader import Table, distribution, requirement, version
from patchlock.model.errors import nearest
from patchlock.model.lock_rules import (
    WITHOUT_PYPROJECT,
    Build,
    Constraint,
    CutoffException,
    Exclusion,
    LockRules,
    Metadata,
    PatchedDistribution,
    PolicyException,
)
from patchlock.model.platforms import PLATFORMS
from patchlock.model.policy import EXCUSABLE

_DEFAULT_BUILD = tuple(map(Requirement, WITHOUT_PYPROJECT))
_NOTHING = canonicalize_name("nothing")


def rules(root: Table, profiles: tuple[str, ...] | None) -> LockRules:
    """Read all tables of rules of a file.

    Args:
        root: the whole file.
        profiles: names of the profiles that there are; None accepts any.
    """
    return LockRules(
        constraints=tuple(_constraints(root, "constraint", profiles)),
        overrides=tuple(_constraints(root, "override", profiles)),
        exclusions=tuple(_exclusions(root, profiles)),
        newer=tuple(_newer(root, profiles)),
        builds=tuple(_builds(root, profiles)),
        metadata=tuple(_metadata(root, profiles)),
        exceptions=tuple(_exceptions(root, profiles)),
        distributions=tuple(_distributions(root, profiles)),
    )


def _constraints(root: Table, key: str, profiles: tuple[str, ...] | None) -> Iterator[Constraint]:
    for table in root.tables(key):
        yield Constraint(
            requirement=table.parse("requirement", requirement, Requirement("nothing")),
            why=table.text("why"),
            source=table.text("source"),
            profiles=_profiles(table, profiles),
            origin=table.origin(),
        )
        table.finish()


def _exclusions(root: Table, profiles: tuple[str, ...] | None) -> Iterator[Exclusion]:
    for table in root.tables("exclude"):
        yield Exclusion(
            name=table.parse("name", distribution, _NOTHING),
            why=table.text("why"),
            source=table.text("source"),
            profiles=_profiles(table, profiles),
            origin=table.origin(),
        )
        table.finish()


def _newer(root: Table, profiles: tuple[str, ...] | None) -> Iterator[CutoffException]:
    for table in root.tables("newer"):
        yield CutoffException(
            name=table.parse("name", distribution, _NOTHING),
            until=table.parse("until", _time, "", ""),
            why=table.text("why"),
            source=table.text("source"),
            profiles=_profiles(table, profiles),
            origin=table.origin(),
        )
        table.finish()


def _builds(root: Table, profiles: tuple[str, ...] | None) -> Iterator[Build]:
    for table in root.tables("build"):
        if not table.texts("names", ()):
            table.problem("names", "it names no distribution")
        yield Build(
            names=table.each("names", distribution),
            why=table.text("why"),
            source=table.text("source"),
            profiles=_profiles(table, profiles),
            platforms=_platforms(table),
            origin=table.origin(),
        )
        table.finish()


def _metadata(root: Table, profiles: tuple[str, ...] | None) -> Iterator[Metadata]:
    for table in root.tables("metadata"):
        yield Metadata(
            name=table.parse("name", distribution, _NOTHING),
            version=table.parse("version", version, Version("0")),
            requires=table.each("requires", requirement),
            build=table.each("build", requirement) if table.has("build") else _DEFAULT_BUILD,
            why=table.text("why"),
            source=table.text("source"),
            profiles=_profiles(table, profiles),
            origin=table.origin(),
        )
        table.finish()


def _exceptions(root: Table, profiles: tuple[str, ...] | None) -> Iterator[PolicyException]:
    for table in root.tables("exception"):
        rule = table.text("rule")
        if rule not in EXCUSABLE:
            table.problem("rule", f'"{rule}" is no rule with exceptions', nearest(rule, EXCUSABLE))
        if not table.texts("distributions", ()):
            table.problem("distributions", "it names no distribution")
        yield PolicyException(
            rule=rule,
            distributions=table.each("distributions", distribution),
            why=table.text("why"),
            source=table.text("source"),
            profiles=_profiles(table, profiles),
            origin=table.origin(),
        )
        table.finish()


def _distributions(root: Table, profiles: tuple[str, ...] | None) -> Iterator[PatchedDistribution]:
    for table in root.tables("distribution"):
        yield PatchedDistribution(
            name=table.parse("name", distribution, _NOTHING),
            why=table.text("why"),
            source=table.text("source"),
            profiles=_profiles(table, profiles),
            origin=table.origin(),
        )
        table.finish()


def _profiles(table: Table, known: tuple[str, ...] | None) -> tuple[str, ...]:
    names = table.texts("profiles", ())
    for name in names:
        if known is not None and name not in known:
            table.problem("profiles", f'there is no profile "{name}"', nearest(name, known))
    return names


def _platforms(table: Table) -> tuple[str, ...]:
    names = table.texts("platforms", ())
    for name in names:
        if name not in PLATFORMS:
            table.problem("platforms", f'there is no platform "{name}"', nearest(name, PLATFORMS))
    return names


def _time(text: str) -> str:
    """Parse a time; without one, any file may be taken."""
    if text:
        try:
            datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.UTC)
        except ValueError as error:
            raise ValueError(f'"{text}" must be a time such as "2026-01-31T00:00:00Z"') from error
    return text
