"""Say whether the catalogue holds for an app: its commit, its patches on that commit and on their cases, its locks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchlock.catalogue import fact_sources, optional_patches
from patchlock.catalogue.pairs import require_possible
from patchlock.catalogue.reader import Catalogue
from patchlock.distributions.policy import Rules
from patchlock.locks import relock
from patchlock.locks.lock_request import Request, lock_inputs, read_patched
from patchlock.model import lockfile
from patchlock.model.app import App, SharedSet
from patchlock.model.checks import ImportsCheck
from patchlock.model.errors import PatchlockError, UpstreamError
from patchlock.model.lockfile import Lock, LockedPackage
from patchlock.model.patch import Outcome
from patchlock.model.recipes import Recipe
from patchlock.operations import _chip_coverage, patch_test
from patchlock.operations.missing_imports import KnownModules
from patchlock.operations.patch_test import PatchTestRequest
from patchlock.patches import engine, outcomes


@dataclass(frozen=True, kw_only=True)
class CatalogueFinding:
    """One thing that was looked at."""

    what: str
    """For a person: `cases`, `cpu at 3f2a91c`, `lockfiles/demo/cpu.linux-x86_64.txt`."""
    says: str
    """How much was looked at; "" where that could not be done at all."""
    problems: tuple[str, ...] = ()
    """Clauses; empty where it holds."""
    warnings: tuple[str, ...] = ()
    """Clauses on what does no harm, and that nothing needs."""
    not_checked: str = ""
    """Why nobody knows whether it holds, a sentence; "" where it was looked at."""
    profile: str = ""
    """Whose patches or lock it is; "" for what belongs to no profile, and for a pair that is not supported."""
    needs_relock: bool = False
    """Whether making the lock again mends it, if the patches of its profile hold."""


def sources(root: Path) -> CatalogueFinding:
    """Look whether a reader can open the sources of all facts."""
    patches = (path for path in (root / "patches").glob("**/*.toml") if not _EXAMPLES & set(path.parts))
    files = sorted([*(root / "profiles").glob("**/*.toml"), *patches])
    problems = [
        str(one)
        for path in files
        for one in fact_sources.unsourced(
            path.relative_to(root).as_posix(), path.read_text("utf-8"), lambda place: (root / place).is_file()
        )
    ]
    return CatalogueFinding(what="sources", says=f"of the facts in {len(files)} files", problems=tuple(problems))


def chips(catalogue: Catalogue) -> CatalogueFinding | None:
    """Compare the chips of profiles with the wheels of their locks; None where no scan has looked into any."""
    scanned = _chip_coverage.scanned_torch(catalogue)
    if not scanned:
        return None
    of = len({profile for _, profile in scanned})
    wrong = _chip_coverage.problems(catalogue.read_all()[1], catalogue.cards(), scanned, catalogue.rules().unclaimed)
    return CatalogueFinding(what="chips", says=f"of {of} profiles, whose torch was scanned", problems=wrong)


_EXAMPLES = {"cases", "upstream"}
"""Folders of an app whose files are others', or as others write them."""


def cases(app: App, wanted: PatchTestRequest) -> CatalogueFinding:
    """Try the patches on the pairs beside them."""
    try:
        tried = patch_test.run_patch_tests(app, wanted)
    except PatchlockError as error:
        return CatalogueFinding(what="cases", says="", problems=(str(error),))
    problems = [f"{case.patch}/{case.name}: {problem}" for case in tried.cases for problem in case.problems]
    unexplained = [f"{patch}: its why or source is still to be written" for patch in tried.unexplained]
    with_case = len(app.patches) - len(tried.without_case)
    count = f"{len(tried.cases)} case{'' if len(tried.cases) == 1 else 's'}"
    return CatalogueFinding(
        what="cases",
        says=f"{count} of its own; {with_case} of {len(app.patches)} patches covered, those of shared sets included",
        problems=(*problems, *tried.together, *unexplained),
    )


def launch(app: App) -> CatalogueFinding | None:
    """Say what a draft leaves open: how the app is started, and what a check is of; None where nothing is."""
    open_ends = [
        f"[[check]] {one.id} names no module" for one in app.checks if isinstance(one, ImportsCheck) and one.is_empty
    ]
    if app.launch.is_placeholder:
        open_ends.insert(0, f"[launch] in {app.origin.file} names no program: write there how {app.name} is started")
    return CatalogueFinding(what="launch", says="", problems=tuple(open_ends)) if open_ends else None


def patches(request: Request) -> CatalogueFinding:
    """Apply the patches of a profile to upstream's commit, without and with all that can be chosen."""
    app = request.app
    name = request.profile.name
    of = CatalogueFinding(what=f"{name} at {app.upstream.commit[:12]}", says="", profile=name)
    options = tuple(option.name for option in optional_patches.of_patches(app, request.profile.name))
    try:
        for chosen in ((), options) if options else ((),):
            upstream = read_patched(dataclasses.replace(request, chosen=chosen))
    except PatchlockError as error:
        if isinstance(error, UpstreamError) and error.is_unreachable:
            return dataclasses.replace(of, not_checked=str(error))
        return dataclasses.replace(of, problems=(str(error),))
    found = upstream.patched.outcomes
    sets = [one for one in app.shared if _asked(one, found) and _asked(one, found) <= outcomes.gone(found)]
    says = f"patches: {len({outcome.patch for outcome in found})}, files: {len(upstream.patched.changes)}"
    return dataclasses.replace(
        of,
        says=says + (f"; not needed: {', '.join(one.name for one in sets)}" if sets else ""),
        problems=(
            *engine.left_out(upstream.patched),
            *map(outcomes.nothing_to_patch, outcomes.idle(app, found)),
            *(f"{one.name} finds nothing to patch, which {app.origin} expects" for one in sets if one.is_expected),
        ),
    )


def _asked(one: SharedSet, found: Iterable[Outcome]) -> set[str]:
    """Name the patches of a shared set that were meant for the profile."""
    return {patch.id for patch in one.patches} & {outcome.patch for outcome in found}


_NO_LOCK = "there is no lock yet; where none can be made, a [[refused]] table says why"
"""The same words for all pairs, so that a draft with one lock has one thing wrong."""


def lock(request: Request, policy: Rules) -> CatalogueFinding:
    """Judge the lock of a pair, without any network."""
    status = relock.lock_status(request, policy, request.cache)
    holds = status.state in {"fresh", "refused"}
    reasons = (_NO_LOCK,) if status.state == "missing" else status.reasons
    return CatalogueFinding(
        what=request.lock_name,
        says=status.state + (f": {'; '.join(status.reasons)}" if status.state == "refused" else ""),
        problems=() if holds else reasons,
        profile="" if status.state == "refused" else request.profile.name,
        needs_relock=status.needs_relock,
    )


def imports(app: App, pairs: Sequence[Request]) -> tuple[CatalogueFinding, ...]:
    """Find locks that lack a module which the app's checks import, and which another of its locks has; asks nobody.

    A module that no lock has may be the app's own.
    """
    modules = sorted({name for one in app.checks if isinstance(one, ImportsCheck) for name in one.present})
    locks = {one.lock_name: lock for one in pairs if modules and is_possible(one) and (lock := relock.current(one))}
    cache = next((one.cache for one in pairs), Path())
    known = {name: KnownModules(lock.packages, cache) for name, lock in locks.items()}
    problems: dict[str, list[str]] = {}
    for module in modules:
        having = [name for name, one in known.items() if one.have(module)]
        for name in known.keys() - having if having else ():
            if known[name].lack(module):
                told = f"nothing in the lock brings {module}, which a [[check]] imports; {having[0]} has it"
                problems.setdefault(name, []).append(told)
    return tuple(
        CatalogueFinding(what=f"imports of {name}", says="", problems=tuple(problems[name]))
        for name in known
        if name in problems
    )


def strays(catalogue: Catalogue, requests: Sequence[Request]) -> CatalogueFinding | None:
    """Name the lockfiles of no pair; None where there is none."""
    found = relock.orphaned_lockfiles(catalogue, requests)
    problems = tuple(f"{file}: {relock.ORPHANED}" for file in found)
    return CatalogueFinding(what="lockfiles", says="", problems=problems) if found else None


def rules(requests: Sequence[Request]) -> CatalogueFinding:
    """Warn of the tables of an app that let something be built, or say what it requires, and that no lock uses.

    A table for one platform or profile is looked for in these locks alone; in none while one is missing or stale.
    """
    app = requests[0].app
    builds = [one for one in app.rules.builds if one.origin.file == app.origin.file]
    stated = [one for one in app.rules.metadata if one.origin.file == app.origin.file]
    locks = {(r.profile.name, r.platform.name): _of_today(r) for r in requests if is_possible(r)}
    unused: list[str] = []
    for build in builds:
        packages = _packages(locks, build.profiles, build.platforms)
        built = {one.name for one in packages or () if one.why.endswith("sdist")}
        idle = sorted(set(build.names) - built) if packages is not None else []
        unused += [f"[[build]] of {name} ({build.origin}): no lock has it as an sdist; remove it" for name in idle]
    for one in stated:
        packages = _packages(locks, one.profiles, ())
        # A resolver may ask for a version that it does not choose.
        if packages is not None and one.name not in {p.name for p in packages}:
            unused.append(f"[[metadata]] of {one.name} {one.version} ({one.origin}): no lock has it; remove it")
    for recipe in app.recipes:
        packages = _packages(locks, recipe.profiles, recipe.platforms)
        if packages is not None and not any(_is_built(one, recipe) for one in packages):
            unused.append(f"[[recipe]] of {recipe.name} ({recipe.origin}): no lock has what it builds; remove it")
    return CatalogueFinding(
        what="rules", says=f"{len(builds)} [[build]], {len(stated)} [[metadata]]", warnings=tuple(unused)
    )


def _is_built(package: LockedPackage, recipe: Recipe) -> bool:
    is_named = package.name == recipe.name and recipe.versions.contains(package.version, prereleases=True)
    return is_named and (recipe.archive is not None or package.why.endswith("sdist"))


def _of_today(request: Request) -> Lock | None:
    """Read a lock; None where there is none that was made from the files as they are."""
    lock = relock.current(request)
    if lock is None:
        return None
    inputs = lock_inputs(request, None)
    python = str(request.profile.python)
    return (
        None
        if lockfile.staleness_reasons(lock, commit=request.app.upstream.commit, python=python, inputs=inputs)
        else lock
    )


def _packages(
    locks: Mapping[tuple[str, str], Lock | None], profiles: tuple[str, ...], platforms: tuple[str, ...]
) -> list[LockedPackage] | None:
    """List the packages of all locks of some profiles and platforms, empty: of all; None where one is missing."""
    chosen = [
        lock
        for (profile, platform), lock in locks.items()
        if (not profiles or profile in profiles) and (not platforms or platform in platforms)
    ]
    return None if None in chosen else [package for lock in chosen if lock for package in lock.packages]


def is_possible(request: Request) -> bool:
    """Say whether the catalogue has the pair at all."""
    try:
        require_possible(request.app, request.profile, request.platform)
    except PatchlockError:
        return False
    return True
