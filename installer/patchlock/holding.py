"""Say whether the catalogue holds for an app: its commit, its patches on that commit and on their cases, its locks."""

from __future__ import annotations

import dataclasses

from patchlock import gathering, patching, planning, relocking, trying
from patchlock.errors import PatchlockError
from patchlock.gathering import Request
from patchlock.model import App, OutcomeKind
from patchlock.policy import Rules
from patchlock.trying import Wanted


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    """For a person: `cases`, `cpu at 3f2a91c`, `lockfiles/demo/cpu.linux-x86_64.txt`."""
    says: str
    problems: tuple[str, ...] = ()
    """Clauses; empty where it holds."""


def cases(app: App, wanted: Wanted) -> Finding:
    """Try the patches on the pairs beside them."""
    try:
        tried = trying.attempt(app, wanted)
    except PatchlockError as error:
        return Finding(what="cases", says="", problems=(str(error),))
    problems = [f"{case.patch}/{case.name}: {problem}" for case in tried.cases for problem in case.problems]
    unexplained = [f"{patch}: its why or source is still to be written" for patch in tried.unexplained]
    with_case = len(app.patches) - len(tried.without_case)
    return Finding(
        what="cases",
        says=f"{len(tried.cases)} cases, for {with_case} of {len(app.patches)} patches",
        problems=(*problems, *tried.together, *unexplained),
    )


def patches(request: Request) -> Finding:
    """Apply the patches of a profile to upstream's commit, which is fetched if need be."""
    what = f"{request.profile.name} at {request.app.upstream.commit[:12]}"
    try:
        upstream = gathering.read_upstream(request)
        patching.require_complete(upstream.patched, f"{request.app.name} at {upstream.snapshot.commit[:12]}")
    except PatchlockError as error:
        return Finding(what=what, says="", problems=(str(error),))
    outcomes = upstream.patched.outcomes
    idle = {outcome.patch for outcome in outcomes} - {o.patch for o in outcomes if o.kind is not OutcomeKind.GONE}
    return Finding(
        what=what,
        says=f"{len({outcome.patch for outcome in outcomes})} patches, {len(upstream.patched.changes)} files",
        problems=tuple(f"{patch} finds nothing to patch" for patch in sorted(idle)),
    )


def lock(request: Request, rules: Rules) -> Finding:
    """Judge the lock of a pair, without any network."""
    path = request.catalogue.lock_path(request.app, request.profile, request.platform)
    standing = relocking.standing(request, rules, request.cache)
    holds = standing.state in {"fresh", "refused"}
    return Finding(
        what=path.relative_to(request.catalogue.root).as_posix(),
        says=standing.state + (f": {'; '.join(standing.reasons)}" if standing.state == "refused" else ""),
        problems=() if holds else standing.reasons,
    )


def is_possible(request: Request) -> bool:
    """Say whether the catalogue has the pair at all."""
    try:
        planning.require_possible(request.app, request.profile, request.platform)
    except PatchlockError:
        return False
    return True
