"""The rules of a lock that no resolver knows. Pure: they judge values, which `wheel_facts` gathers.

In: the packages of a lock, facts about their files, tables of the catalogue. Out: violations and notices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.distributions.policy import _families, _owners, declared, fitting
from patchlock.distributions.policy._families import Offer, Takeable
from patchlock.distributions.policy.declared import Declared
from patchlock.model import gpu_archs
from patchlock.model.fits import Platform
from patchlock.model.lock_rules import PolicyException
from patchlock.model.lockfile import LockedPackage
from patchlock.model.policy import Facts, Rules, Violation
from patchlock.model.recorded_index import RecordedIndex

__all__ = ["Declared", "Facts", "PolicyException", "Rules", "Violation", "told", "violations", "written_twice"]


def violations(
    packages: tuple[LockedPackage, ...],
    facts: Facts,
    rules: Rules,
    *,
    platform: Platform,
    python: Version,
    arch: str = "",
    tables: Iterable[Declared] = (),
    required: Collection[NormalizedName] | None = None,
    exceptions: Iterable[PolicyException] = (),
    judged: Collection[str] = (),
    indexes: Collection[RecordedIndex] = (),
    takeable: Takeable = lambda _: None,
) -> tuple[Violation, ...]:
    """Judge a lock by every rule.

    Args:
        packages: the lock.
        facts: what is known about its files; nothing is held against a file that nothing is known about.
        rules: the tables of the catalogue.
        platform: where it is installed.
        python: under which Python, two numbers.
        arch: GPU architecture that compiled code must run on, such as `sm_110` or `gfx1201`; "" for none.
        tables: constraints, exclusions and the like of the app.
        required: see `declared.unused`.
        exceptions: of the app and the profile.
        judged: files whose exceptions must all be used: the app's.
        indexes: recorded ones that it was resolved from; what is advised is in them.
        takeable: gives the versions that the lock may have of a distribution, by its cut-off and by what the app asks
            for; None where that is not known. It is asked only for advice.
    """
    offer = Offer(platform=platform, python=python, indexes=indexes, takeable=takeable)
    found = [
        *fitting.foreign_wheels(packages, platform, python),
        *_families.misfits(packages, rules.families, offer),
        *fitting.broken_pairs(packages, rules.pairs, platform),
        *_owners.overwriting(packages, facts, rules.folders, platform, python),
        *(gpu_archs.wrong_archs(packages, rules, arch) if arch else ()),
        *_owners.leaving(packages, facts),
        *fitting.placeholders(packages, rules.placeholders),
        *fitting.changed_artifacts(packages, facts),
        *fitting.mislabelled(packages, facts),
    ]
    return (
        *declared.excused(found, exceptions, judged=judged),
        *declared.unused(tables, packages, required),
    )


def written_twice(
    paths: Mapping[str, Iterable[NormalizedName]],
    packages: Iterable[LockedPackage],
    exceptions: Iterable[PolicyException],
) -> tuple[Violation, ...]:
    """Judge the files of an environment that several distributions have written, by the rule `one-owner`.

    Args:
        paths: file from site-packages → who wrote other bytes there than the others.
        packages: the lock that was installed.
        exceptions: of the app and the profile.
    """
    return tuple(declared.excused(_owners.written_twice(paths, packages), exceptions, judged=()))


def notices(packages: tuple[LockedPackage, ...], facts: Facts, back_end: str = "") -> tuple[str, ...]:
    """Tell what is no violation and should be known, one clause each.

    Args:
        packages: the lock.
        facts: what is known about its files.
        back_end: of the profile; "" where that does not matter.
    """
    libraries = fitting.without_cuda_libraries(packages) if back_end == "cuda" else ()
    refused = fitting.refused_by_pip(packages, facts)
    return (*fitting.yanked(packages, facts), *refused, *_owners.unread(packages, facts), *libraries)
