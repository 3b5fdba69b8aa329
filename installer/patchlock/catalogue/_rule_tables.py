"""Turn the tables with which a profile or an app speaks to the resolver into values; reads no file."""

from __future__ import annotations

from typing import TypeVar

from patchlock.catalogue.table_reader import Allowed, Table
from patchlock.model.lock_rules import (
    Build,
    Constraint,
    CutoffException,
    Exclusion,
    LockRules,
    Metadata,
    PatchedDistribution,
    PolicyException,
)

T = TypeVar("T")


def rules(root: Table, profiles: Allowed) -> LockRules:
    """Read all tables of rules of a file."""

    def read(key: str, cls: type[T]) -> tuple[T, ...]:
        return tuple(rule for _, rule in root.rows(key, cls, {"profiles": profiles}))

    return LockRules(
        constraints=read("constraint", Constraint),
        overrides=read("override", Constraint),
        exclusions=read("exclude", Exclusion),
        newer=read("newer", CutoffException),
        builds=read("build", Build),
        metadata=read("metadata", Metadata),
        exceptions=read("exception", PolicyException),
        distributions=read("distribution", PatchedDistribution),
    )
