"""Try an app's patches: on their cases, on its upstream as far as that is at hand, and on upstream's history."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from patchlock.catalogue import optional_patches, pairs, patch_cases
from patchlock.catalogue.reader import Catalogue
from patchlock.model.app import App, EmbeddedUpstream, GitUpstream
from patchlock.model.errors import UsageError, nearest
from patchlock.model.patch import Outcome, Patch
from patchlock.patches import engine, outcomes, trials
from patchlock.patches.evaluation import Memoized
from patchlock.patches.trials import Survival
from patchlock.worktree import histories, upstream_cache


@dataclass(frozen=True, kw_only=True)
class PatchTestRequest:
    """What a maintainer asked for."""

    catalogue: Catalogue
    cache: Path
    profile: str | None = None
    patch: str | None = None
    source: str | None = None
    """Where upstream is taken from, a path or a URL."""
    revision: str | None = None
    """Where the history ends; otherwise upstream's branch there, as fetched, or HEAD of the source.

    Without a history, HEAD of the source is what is tried, or, of a fork, the commit that the catalogue names."""
    since: str | None = None
    every: bool = False


@dataclass(frozen=True, kw_only=True)
class TriedCase:
    """One case and what is wrong with it."""

    patch: str
    name: str
    problems: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PatchTestResult:
    """All that was found out about the patches of an app."""

    app: str
    cases: tuple[TriedCase, ...]
    without_case: tuple[str, ...]
    unexplained: tuple[str, ...]
    """Patches whose `why` or `source` is still to be written."""
    tree: str
    """On what the patches were tried together, for a person."""
    together: tuple[str, ...]
    """What is wrong with them together."""
    idle: tuple[str, ...] = ()
    """The app's own patches that find nothing on that tree, and what that means, a clause each."""
    survival: tuple[Survival, ...] = ()
    commits: int = 0
    merged: int = 0
    """Commits that came in by merges, and were not tried."""
    states: int = 0

    @property
    def good_cases(self) -> int:
        """Count the cases that came out as written."""
        return sum(not case.problems for case in self.cases)

    @property
    def is_good(self) -> bool:
        """No case failed, and nothing was silent."""
        return self.good_cases == len(self.cases) and not self.together and not any(s.silent for s in self.survival)


def run_patch_tests(app: App, wanted: PatchTestRequest) -> PatchTestResult:
    """Try the patches of an app.

    Raises:
        UsageError: it has no such patch.
        CatalogueError: a case has a mistake.
        UpstreamError: upstream cannot be had.
    """
    if wanted.profile is not None:
        wanted.catalogue.profile(wanted.profile)  # so that a wrong name is told
    patches = _chosen(app, wanted)
    by_id = {patch.id: patch for patch in patches}
    read = [case for case in patch_cases.read(wanted.catalogue.root, app) if case.patch in by_id]
    shared = {patch.id for one in app.shared for patch in one.patches}  # their cases know nothing of this app's patches
    evaluator = Memoized()
    together = [
        f"{case.patch}/{case.name}: {problem}"
        for case in read
        if case.patch not in shared
        for group in _groups(app, patches, wanted)
        for problem in trials.problems_together(group, case.before, evaluator)
    ]
    tried = PatchTestResult(
        app=app.name,
        cases=tuple(
            TriedCase(patch=case.patch, name=case.name, problems=trials.problems_of_case(by_id[case.patch], case))
            for case in read
        ),
        without_case=tuple(
            patch.id
            for patch in patches
            if patch.id not in {case.patch for case in read}
            and not (patch.id in shared and (wanted.catalogue.root / patch_cases.SHARED / patch.id).is_dir())
        ),
        unexplained=tuple(p.id for p in patches if p.why.startswith("TODO") or p.source.startswith("TODO")),
        tree="not tried on upstream: add --source CLONE",
        together=tuple(dict.fromkeys(together)),
    )
    if wanted.source is None and wanted.since is None and not isinstance(app.upstream, EmbeddedUpstream):
        return tried
    return _on_upstream(app, wanted, patches, tried)


def _on_upstream(
    app: App, wanted: PatchTestRequest, patches: tuple[Patch, ...], tried: PatchTestResult
) -> PatchTestResult:
    snapshot, why = _snapshot(app, wanted)
    contents = histories.contents(snapshot, patches)
    seen, evaluator = histories.seen(snapshot, patches, app.upstream.commit), Memoized()
    problems: list[str] = []
    became: list[Outcome] = []
    for group in _groups(app, patches, wanted):
        patched = engine.apply(group, contents, seen, evaluator)
        became += patched.outcomes
        wrong = engine.incomplete_error(patched, snapshot.commit)
        problems += wrong.evidence if wrong is not None else ()
        problems += trials.problems_together(group, contents, evaluator)
    tried = dataclasses.replace(
        tried,
        tree=f"together on commit {snapshot.commit[:12]}{why}",
        together=tuple(dict.fromkeys([*tried.together, *problems])),
        idle=tuple(map(_idle, outcomes.idle(app, became))),
    )
    if wanted.since is None:
        return tried
    commits, all_commits = (histories.commits(snapshot, wanted.since, every=every) for every in (wanted.every, True))
    survival, states = histories.survival(snapshot, _groups(app, patches, wanted), commits, app.upstream.commit)
    order = [patch.id for patch in patches]
    survival = tuple(sorted(survival, key=lambda one: order.index(one.patch)))
    merged = len(all_commits) - len(commits)
    return dataclasses.replace(tried, survival=survival, commits=len(commits), merged=merged, states=states)


def _idle(patch: Patch) -> str:
    return (
        f"{outcomes.nothing_to_patch(patch)}: upstream no longer has what it changes there, or its paths or the names "
        "in it are wrong; correct it, or remove it"
    )


def _snapshot(app: App, wanted: PatchTestRequest) -> tuple[upstream_cache.Snapshot, str]:
    """Take upstream from a clone on this machine as it is, or bring it into the cache; say why not HEAD of a fork."""
    is_open = wanted.since is not None or wanted.source is not None
    revision, why = wanted.revision, ""
    if revision is None and is_open and isinstance(app.upstream, GitUpstream):
        place = (wanted.source or "", app.upstream.url, app.branch)
        if wanted.since is not None and wanted.source is not None:
            revision = histories.newest(*place)
        elif histories.lacks(*place, "HEAD", app.upstream.commit):  # a fork has the edits that the patches make
            revision = app.upstream.commit
            why = f", the catalogue's, as HEAD of {wanted.source} has commits that upstream lacks"
        else:
            revision = "HEAD"
    is_one = wanted.source is not None and not app.submodules
    local = histories.in_place(str(wanted.source), revision or "HEAD", app.directory) if is_one else None
    return local or upstream_cache.fetch(
        app, catalogue=wanted.catalogue.root, cache=wanted.cache, source=wanted.source, revision=revision
    ), why


def _chosen(app: App, wanted: PatchTestRequest) -> tuple[Patch, ...]:
    options = optional_patches.names(app.patches)
    patches = app.patches if wanted.profile is None else engine.for_profile(app.patches, wanted.profile, options)
    if wanted.patch is None:
        return patches
    ids = [patch.id for patch in patches]
    if wanted.patch not in ids:
        raise UsageError(f'{app.name} has no patch "{wanted.patch}"', remedy=nearest(wanted.patch, ids))
    return tuple(patch for patch in patches if patch.id == wanted.patch)


def _groups(app: App, patches: tuple[Patch, ...], wanted: PatchTestRequest) -> list[tuple[Patch, ...]]:
    """Give the patches as they are ever applied together: those of each profile that the app does not refuse.

    Of each profile, without the optional ones and with all; patches that are for no such profile, on their own.
    """
    names = [wanted.profile] if wanted.profile is not None else _possible_profiles(app, wanted.catalogue)
    choices = ((), optional_patches.names(patches))
    groups = [engine.for_profile(patches, name, chosen) for name in names for chosen in choices]
    return [group for group in dict.fromkeys(groups) if group] or [patches]


def _possible_profiles(app: App, catalogue: Catalogue) -> list[str]:
    profiles = [catalogue.profile(name) for name in catalogue.profile_names()]
    return list(dict.fromkeys(pair.profile.name for pair in pairs.pairs((app,), profiles) if not pair.refused))
