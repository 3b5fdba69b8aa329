"""Which declared bounds, exclusions and exceptions do nothing: leftovers hide what a lock really needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from packaging.utils import NormalizedName

from patchlock.model.lock_rules import PolicyException
from patchlock.model.lockfile import LockedPackage
from patchlock.model.origins import Origin
from patchlock.model.policy import Violation

Kind = Literal["constraint", "exclude", "override", "newer", "build"]
_DOES = {
    "constraint": "bounds nothing",
    "exclude": "excludes nothing",
    "override": "overrides nothing",
    "newer": "lets nothing newer in",
    "build": "builds nothing",
}


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A table of an app's file that is about one distribution."""

    kind: Kind
    name: NormalizedName
    origin: Origin


def unused(
    declared: Iterable[Declared], packages: Iterable[LockedPackage], required: Collection[NormalizedName] | None
) -> list[Violation]:
    """Name every declaration that changes nothing.

    Args:
        declared: tables of the app; those of a profile serve other apps too, and are not judged by one lock. What
            upstream declares is not either: it is for its other groups and machines, too.
        packages: the lock.
        required: what the app's files and the locked wheels ask for, whatever the marker; None where it is not known:
            then exclusions are not judged.
    """
    locked = {package.name for package in packages}
    found = []
    for table in declared:
        if table.origin.is_upstreams:
            continue
        asked = required is None or table.name in required
        used = asked if table.kind in {"exclude", "override"} else table.name in locked
        if not used:
            found.append(
                Violation(
                    rule="unused",
                    distributions=(table.name,),
                    what=f"the [[{table.kind}]] on {table.name} in {table.origin} {_DOES[table.kind]}",
                    remedy="correct its name, or remove it",
                )
            )
    return found


def excused(
    violations: Iterable[Violation], exceptions: Iterable[PolicyException], *, judged: Collection[str]
) -> list[Violation]:
    """Leave out what an exception covers, and name the exceptions that cover nothing.

    Args:
        violations: what rules found.
        exceptions: of the app and the profile.
        judged: files whose unused exceptions are a violation; a profile's serve other apps too.
    """
    kept: list[Violation] = []
    used: set[int] = set()
    declared = list(exceptions)
    for violation in violations:
        covering = [number for number, one in enumerate(declared) if _covers(one, violation)]
        used.update(covering)
        if not covering:
            kept.append(violation)
    for number, one in enumerate(declared):
        if number not in used and one.origin.file in judged:
            kept.append(
                Violation(
                    rule="unused",
                    distributions=one.distributions,
                    what=f"the [[exception]] from {one.rule} for {', '.join(one.distributions)} in {one.origin} "
                    "excuses nothing",
                    remedy="remove it",
                )
            )
    return kept


def _covers(exception: PolicyException, violation: Violation) -> bool:
    return exception.rule == violation.rule and set(violation.distributions) <= set(exception.distributions)
