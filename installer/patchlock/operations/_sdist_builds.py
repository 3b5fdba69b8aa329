"""Builds of what has no wheel: all of it, or the versions that a proposed app would have by pip."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, parse_wheel_filename
from packaging.version import Version

from patchlock.catalogue.proposals import document
from patchlock.catalogue.proposals.findings import Issue, Proposal
from patchlock.catalogue.proposals.shared_sets import Asked
from patchlock.distributions import index_client
from patchlock.distributions.policy.fitting import only_sdists, uploaded_until
from patchlock.model.lockfile import LockedPackage
from patchlock.model.policy import IndexFile, wheel_tags
from patchlock.operations import _lock_repairs
from patchlock.operations.lock_trials import LockResult, renew, try_lock
from patchlock.operations.proposal_scratch import LockSettings


def without_wheels(
    asked: Asked,
    offered: Mapping[NormalizedName, tuple[IndexFile, ...]],
    draft: Proposal,
    date: str,
) -> tuple[tuple[Issue, ...], tuple[str, ...]]:
    """Find what the index has as sdists alone, and allow it to be built, in the version of the commit's day."""
    wanted = [one.requirement for all_of in asked.values() for one in all_of if one.requirement.url is None]
    # A pin without a wheel moves to a version that has one, where there is any.
    listed = {name: files for name, files in offered.items() if name in asked}
    never = {name for name, files in listed.items() if not any(file.filename.endswith(".whl") for file in files)}
    found = dict(only_sdists(wanted, {n: uploaded_until(offered[n], date) or offered[n] for n in never}))
    if not found:
        return (), ()
    places = tuple(one.found for name in found for one in asked[name])
    issue = Issue(
        name="sdist-only",
        title="there is no wheel",
        means="it is built where it is installed, which may need a compiler",
        found=places,
        remedy="its build is allowed",
    )
    first = places[0]
    why = "the index has no wheel that fits what upstream asks for"
    return (issue,), (document.build_table(found, why=why, source=draft.link(first.path, first.line)),)


def as_new_as_pips(made: LockResult, trying: LockSettings) -> LockResult:
    """Allow the builds that bring what pip would take: it takes the newest there is.

    What has no plain wheel stays: its build takes a compiler. So does what is bound to the old version by others.
    """
    if made.lock is None:
        return made
    made = _with_builds(made, dict(made.lock.builds_for_newer), trying)
    plain = {one.name: one.version for one in _packages(made) if (wheel_tags(one) or "").endswith("none-any")}
    offered = index_client.offered(plain)
    newer = [_without_wheels(name, plain[name], files) for name, files in offered.items()]
    return _with_builds(made, {n: v for n, v in only_sdists(newer, offered) if not v.is_prerelease}, trying)


def _with_builds(made: LockResult, found: Mapping[NormalizedName, Version], trying: LockSettings) -> LockResult:
    """Allow builds, as far as the lock then has them, and nothing where it has none."""
    before = {one.name: one.version for one in _packages(made)}
    is_tried = bool(found)
    while found:
        table, says = _lock_repairs.build_tables(found, {}, trying.platform.name, "")
        wanted = dataclasses.replace(made.proposal, tables=(*made.proposal.tables, table))
        tried = try_lock(wanted, trying, [*made.edits, says])
        locked = {one.name: one.version for one in _packages(tried)}
        moved = {name: locked[name] for name in found if locked.get(name, before.get(name)) != before.get(name)}
        if moved == found:
            return tried
        found = moved
    return dataclasses.replace(made, lock=renew(made.proposal, trying)) if is_tried else made


def _packages(made: LockResult) -> tuple[LockedPackage, ...]:
    return made.lock.packages if made.lock is not None else ()


def _versions_of_wheels(files: Iterable[IndexFile]) -> Iterator[Version]:
    for file in files:
        if file.filename.endswith(".whl") and file.yanked is None:
            yield parse_wheel_filename(file.filename)[1]


def _without_wheels(name: str, locked: Version, files: Iterable[IndexFile]) -> Requirement:
    """Ask for what is newer than a version, up to the next wheel, which the cut-off or a bound has kept away."""
    above = min((version for version in _versions_of_wheels(files) if version > locked), default=None)
    return Requirement(f"{name}>{locked.public}" + (f",<{above.public}" if above is not None else ""))
