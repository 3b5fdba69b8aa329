"""Write the smallest edits that resolve a conflict into a draft, for the profiles that have it."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.catalogue import pairs
from patchlock.catalogue.authoring import drafts
from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.proposals.findings import Proposal, ProposedPatch
from patchlock.catalogue.proposals.importers import Importers
from patchlock.locks import relock
from patchlock.locks.conflicts import edits, explanation
from patchlock.locks.conflicts.explanation import Explanation, Tried
from patchlock.locks.conflicts.model import Member
from patchlock.model.fits import Platform
from patchlock.model.patch import Patch
from patchlock.model.profile import Profile
from patchlock.operations import proposal_scratch
from patchlock.operations.proposal_scratch import LockSettings

_SAME_SECONDS = 20
"""For finding out whether another profile has the conflict too."""


def mended(
    proposal: Proposal, found: Explanation, trying: LockSettings, *, may_drop: bool
) -> tuple[Proposal, list[str]] | None:
    """Write the smallest edits that were found; None where there is none that a patch can do.

    An app that goes without what it requires is the last resort: files of a later day come before.
    """
    fitting = [one for one in found.tried if not one.remedy.by_hand and (may_drop or not _drops(one))]
    chosen = next(iter(fitting), None)
    if chosen is None:
        return None
    words = " ".join(word for conflict in found.conflicts for word in conflict.words)
    return _with(proposal, chosen, trying, _profiles_in_need(proposal, found, chosen, trying), words)


def _profiles_in_need(
    proposal: Proposal, found: Explanation, chosen: Tried, trying: LockSettings
) -> dict[NormalizedName, list[str]]:
    """Name by distribution the profile that was tried, and those with such a conflict that need its edit too."""

    def needed_on(profile: Profile, platform: Platform) -> tuple[NormalizedName, ...]:
        request = proposal_scratch.request_for(
            proposal, dataclasses.replace(trying, profile=profile, platform=platform)
        )
        if pairs.refusal_reason(request.app, profile, platform) is not None:
            return ()
        order, raw = relock.collect_inputs(request, relock.Kept())
        is_in = (explanation.is_in(order, raw, one, seconds=_SAME_SECONDS) for one in found.conflicts)
        return explanation.needed_edits(order, raw, chosen) if any(is_in) else ()

    profiles = {name: [trying.profile.name] for name in edits.names(chosen.remedy)}
    for profile in map(trying.catalogue.profile, trying.catalogue.profile_names()):
        first, *more = sorted(profile.platforms, key=lambda one: one != trying.platform)
        needed = needed_on(profile, first) if profile != trying.profile else ()
        if needed:  # a patch is for all platforms of a profile
            needed += tuple(name for platform in more for name in needed_on(profile, platform))
        for name in dict.fromkeys(needed):
            profiles[name].append(profile.name)
    return profiles


def _drops(tried: Tried) -> tuple[NormalizedName, ...]:
    return tuple(one.member.name for one in tried.remedy.changes if one.member is not None and not one.after)


def _bounds_only(table: str, names: Collection[NormalizedName], others: Collection[str]) -> bool:
    """Tell whether a table bounds one of some distributions, and nothing on other profiles."""
    return any(
        canonicalize_name(Requirement(one["requirement"]).name) in names
        and set(one.get("profiles", others)).isdisjoint(others)
        for one in tomllib.loads(table).get("constraint", [])
    )


def _with(
    proposal: Proposal,
    chosen: Tried,
    trying: LockSettings,
    profiles: Mapping[NormalizedName, Sequence[str]],
    words: str,
) -> tuple[Proposal, list[str]]:
    """Add the patches of a set of edits for some profiles; one that replaces another by its id stands in its place.

    What bounds a distribution that is dropped goes with it: it would bound nothing.

    Args:
        proposal: what is edited.
        chosen: the edits.
        trying: of the pair that was tried.
        profiles: for which each edit is, by the distribution.
        words: uv's about the conflict.
    """
    app = trying.catalogue.app(proposal_scratch.write(proposal, trying.catalogue.root).parent.name)
    remedies = []
    for edited, those in profiles.items():
        others = [one for one in trying.catalogue.profile_names() if one not in those]
        remedy = edits.only(chosen.remedy, [edited])
        remedies.append(edits.bounded(remedy, app.patches, sorted(those), others) if others else remedy)
    own = {section.written.patch.id: section for section in proposal.sections}
    theirs = {patch.id: name for name, one in trying.sets.items() for patch in one.patches}
    taken = {one.name: one for one in proposal.sets}
    added = []
    for written in (one for remedy in remedies for one in remedy.written):
        patch = written.patch
        same = next((one.written.patch for one in own.values() if _is_same_elsewhere(one.written.patch, patch)), None)
        if same is not None:
            patch = dataclasses.replace(same, profiles=(*same.profiles, *patch.profiles))
            own[same.id] = dataclasses.replace(own[same.id], written=dataclasses.replace(written, patch=patch))
            added.append(f"patch {patch.id}, for {', '.join(written.patch.profiles)} too")
            continue
        if patch.id in theirs and theirs[patch.id] in taken:
            name = theirs[patch.id]
            taken[name] = dataclasses.replace(taken[name], without=(*taken[name].without, patch.id))
        if patch.id in own and patch.op != own[patch.id].written.patch.op:  # its reason was that of another version
            patch = dataclasses.replace(patch, why=chosen.remedy.anew.get(patch.id) or drafts.WHY, source=drafts.SOURCE)
        own[patch.id] = _section(proposal, dataclasses.replace(written, patch=patch))
        scope = f", for {', '.join(patch.profiles)}" if patch.profiles else ""
        added.append(f"patch {patch.id}{scope}: {own[patch.id].written.patch.why}")
    changes = {change.member.requester.place: change for change in chosen.remedy.changes if change.member is not None}
    dropped = _drops(chosen)
    importers = trying.importers() if dropped else Importers()
    listed = [
        f"{c.member.requirement} → {c.after or f'(dropped: {importers.told(c.member.name)})'}"
        for c in changes.values()
        if c.member is not None
    ]
    where = f"{trying.profile.name} on {trying.platform.name}"
    remark = f"edits that were tried with uv for {where}: {'; '.join(listed)}; look whether the app works with them"
    members = [one.member for one in changes.values() if one.member is not None and one.member.name in chosen.versions]
    older = [one.name for one in members if _is_older(one, chosen.versions[one.name])]
    remark += "".join(f", or without {one}" for one in _forcing(older, words, chosen, trying))
    return (
        dataclasses.replace(
            proposal,
            sections=tuple(own.values()),
            sets=tuple(taken.values()),
            tables=tuple(one for one in proposal.tables if not _bounds_only(one, dropped, others)),
            remarks=tuple(dict.fromkeys((*proposal.remarks, remark))),
        ),
        added,
    )


def _is_older(member: Member, version: Version) -> bool:
    """Tell whether a version is below what a requirement asks for."""
    floors = [one for one in member.requirement.specifier if one.operator in {"==", ">=", ">", "~="}]
    return any(version < Version(one.version.removesuffix(".*")) for one in floors)


def _forcing(older: Collection[NormalizedName], words: str, chosen: Tried, trying: LockSettings) -> Iterator[str]:
    """Name what keeps distributions old, each with what uv says of its versions and who imports it."""
    asking: dict[NormalizedName, list[str]] = {}
    for name in older:
        bound = rf"{re.escape(name)}(?![\w-])[^\s,]*(?:,[<>=!~]\S*)?"
        for said in re.finditer(rf"(?<!\S)(?:all versions of )?([\w.-]+)\S* depends? on {bound}", words):
            if (by := canonicalize_name(said[1])) in chosen.versions and by not in older:
                asking.setdefault(by, []).append(said[0].rstrip(",."))
    for by, clauses in asking.items():
        who = trying.importers().told(by)
        yield f"{by} ({chosen.versions[by]} is locked): {', '.join(dict.fromkeys(clauses))}; {who}"


def _is_same_elsewhere(known: Patch, new: Patch) -> bool:
    """Tell whether a patch does for other profiles what a new one does."""
    is_same = (known.op, known.paths) == (new.op, new.paths) and known.id != new.id
    return is_same and bool(known.profiles and new.profiles)


def _section(proposal: Proposal, written: Written) -> ProposedPatch:
    patch = written.patch
    path = patch.paths[0] if patch.paths else ""
    source = proposal.link(PurePosixPath(path)) if patch.source == drafts.SOURCE else patch.source
    why = "the lock cannot be made with what upstream asks for" if patch.why == drafts.WHY else patch.why
    made = dataclasses.replace(written, patch=dataclasses.replace(patch, why=why, source=source))
    return ProposedPatch(
        comment="The smallest edit with which uv resolves; look whether the app works with it.", written=made
    )
