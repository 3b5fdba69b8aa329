"""Look at an app that the catalogue does not have, and propose its file, with patches that are proved to apply."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.proposals import (
    app_names,
    conda_packages,
    device_places,
    device_switches,
    documents,
    downloads,
    fetched_programs,
    findings,
    importers,
    launch_commands,
    module_names,
    module_repairs,
    narrowing,
    onnx_builds,
    own_metadata,
    project_facts,
    python_limits,
    reached_code,
    required_cuda,
    requirement_choice,
    requirement_repairs,
    shared_sets,
    system_needs,
)
from patchlock.catalogue.proposals import launch as proposals_launch
from patchlock.catalogue.proposals.device_switches import LeftOut
from patchlock.catalogue.proposals.downloads import Download
from patchlock.catalogue.proposals.findings import (
    AppMetadata,
    Issue,
    Launching,
    Proposal,
    ProposedPatch,
    RequirementFile,
    SystemNeed,
)
from patchlock.catalogue.proposals.importers import Importers
from patchlock.catalogue.proposals.imports import Imports
from patchlock.catalogue.proposals.launch_commands import LaunchCommand
from patchlock.catalogue.proposals.shared_sets import Asked, Tree
from patchlock.catalogue.proposals.system_needs import Locked
from patchlock.catalogue.reader import Catalogue
from patchlock.core import uv
from patchlock.distributions import index_client, project_links
from patchlock.locks.wheel_choice import marker_environment
from patchlock.model import backends
from patchlock.model.app import SharedSet
from patchlock.model.errors import RequirementsError
from patchlock.model.patch import Outcome, Patch
from patchlock.model.policy import IndexFile
from patchlock.model.profile import Profile
from patchlock.model.text_files import SourceText, decode
from patchlock.model.visible_text import is_utf8
from patchlock.operations import _pin_repairs, _sdist_builds
from patchlock.patches import import_graph
from patchlock.patches.evaluation import Evaluator, Memoized
from patchlock.patches.import_graph import Trees
from patchlock.patches.ops.requirements.ops import DropRequirement, RenameRequirement, SetRequirement
from patchlock.patches.postconditions import ENSURES
from patchlock.worktree import candidate_app
from patchlock.worktree.candidate_app import CandidateApp


@dataclass(frozen=True, kw_only=True)
class ProposalRequest:
    """What a person asked for."""

    catalogue: Catalogue
    cache: Path
    url: str
    name: str
    profile: Profile
    source: str | None = None
    """Where upstream is taken from, a path or a URL."""
    revision: str | None = None
    requirements: PurePosixPath | None = None
    """The requirement file that is meant."""
    for_all: bool = False
    """All profiles are meant, and not `profile` alone."""


@dataclass(frozen=True, kw_only=True)
class ProposalResult:
    """A proposal, and how its patches came out."""

    proposal: Proposal
    outcomes: tuple[Outcome, ...]
    date: str
    """Of the commit: RFC 3339, UTC."""
    problems: tuple[str, ...]
    """What is wrong with its patches; empty where all apply and keep what they promise."""
    clone: CandidateApp
    commands: tuple[LaunchCommand, ...]
    """With which it may be started, the likeliest first."""

    def downloads(self, launch: Launching) -> tuple[Download, ...]:
        """List the models that its code names, first those that are wanted as soon as it is started so."""
        files, trees = self.clone.files, self.clone.trees
        started, path = _started(trees, launch), launch.environment.get("PYTHONPATH", "")
        idle = reached_code.idle_lines(trees, started, launch.command, path) if started else {}
        return downloads.read(files, trees, started, launch.command, idle)

    @property
    def asked(self) -> Asked:
        """Give all requirements of its files, by name."""
        return requirement_repairs.located(self.clone.files, _all_files(self.clone, self.proposal.together))

    def needs(self, known: Collection[str], locked: Locked, launch: Launching) -> tuple[SystemNeed, ...]:
        """Name what it needs of the machine with a lock, started so; `known` are the names of `profiles/needs/`."""
        files = {**self.clone.files, **self.clone.documents}
        imports = Imports(self.clone.files, self.clone.trees)
        return system_needs.read(files, imports, self.asked, known, locked, _started(self.clone.trees, launch))

    def without_brought(self, remarks: Iterable[str], locked: Mapping[NormalizedName, Version]) -> tuple[str, ...]:
        """Leave out of remarks what its README installs, or another file asks for, and a lock brings."""
        files, imports = self.clone.files, Imports(self.clone.files, self.clone.trees)
        left = _of_readme(self.clone, self.proposal, {*self.asked, *locked}, imports)
        renewed = {one: "" for one in _of_readme(self.clone, self.proposal, self.asked, imports) if one not in left}
        for other in self.proposal.alternatives:
            before, now = (_of_other_file(files, self.asked, self.proposal, other, brought) for brought in ({}, locked))
            renewed[before] = now
        return tuple(now for one in remarks if (now := renewed.get(one, one)))

    def importers(self) -> Importers:
        """Read who imports what, and whether as the likeliest command starts."""
        first = next(iter(self.commands), None)
        command, environment = (first.command, first.environment) if first is not None else ((), {})
        return importers.read(self.clone.trees, command, environment.get("PYTHONPATH", ""))


def _all_files(clone: CandidateApp, together: Iterable[PurePosixPath]) -> tuple[PurePosixPath, ...]:
    """Name requirement files, and those that they name."""
    found = (path for one in together for path in requirement_repairs.all_files(clone.files, one))
    return tuple(dict.fromkeys(found))


def _started(trees: Trees, launch: Launching) -> tuple[PurePosixPath, ...]:
    """Name the files that a program comes to as it starts, in order."""
    path = launch.environment.get("PYTHONPATH", "")
    return import_graph.reached(trees.files, launch.command, path, trees).files


def propose(wanted: ProposalRequest, tell: Callable[[str], None] = lambda _: None) -> ProposalResult:
    """Propose an app's file.

    Raises:
        UpstreamError: upstream cannot be reached, or does not hold the commit.
        RequirementsError: no file says what the app requires.
    """
    tell(f"fetching {wanted.source or wanted.url}")
    chosen = wanted.requirements
    clone = candidate_app.read(
        wanted.name,
        wanted.url,
        cache=wanted.cache,
        source=wanted.source,
        revision=wanted.revision,
        more=[str(chosen)] if chosen is not None else [],
    )
    told = documents.told({**clone.files, **clone.documents})
    unread = requirement_choice.unread(clone.listed)
    repository = app_names.repository_of(wanted.url)
    ranked = requirement_choice.candidates(
        _only(clone, chosen), told, [chosen] if chosen is not None else [], unread, repository
    )
    if chosen is None:
        ranked = requirement_choice.fitting_machine(ranked, wanted.profile.name.partition("-")[0])
        beside = requirement_choice.together(ranked[0].path, told, clone.files)
    else:
        beside = (chosen,)
    others = tuple(one for one in ranked if one.path not in beside)
    alternatives = (*unread, *others)
    tell(f"looking at {len(clone.files)} files")
    evaluator = Memoized()
    draft, commands = _draft(wanted, clone, ranked[0], beside, alternatives, evaluator, tell)
    tell("trying the patches")
    sets = {name: wanted.catalogue.shared(name) for name in wanted.catalogue.shared_names()}
    names = dict.fromkeys((wanted.profile.name, *wanted.catalogue.profile_names()))
    fitted = narrowing.fit(
        draft.sets, draft.sections, sets, clone.files, tuple(map(str, beside)), tuple(names), evaluator
    )
    written = [section.written.patch for section in fitted.sections]
    choices = {one.name: one for one in fitted.sets}
    issues = tuple(
        kept
        for one in draft.issues
        for kept in (
            shared_sets.by_what_is_left(one, choices.get(one.name), written, clone.files)
            if one.name in sets
            else (one,)
        )
    )
    taken = tuple(shared_sets.with_more_changes(one, sets[one.name], issues, fitted.outcomes) for one in fitted.sets)
    proposal = dataclasses.replace(draft, sets=taken, sections=fitted.sections, issues=issues)
    return ProposalResult(
        proposal=proposal,
        outcomes=fitted.outcomes,
        date=clone.date,
        problems=fitted.problems,
        clone=clone,
        commands=commands,
    )


def _only(clone: CandidateApp, path: PurePosixPath | None) -> Mapping[PurePosixPath, bytes]:
    if path is None:
        return clone.files
    if path not in clone.files:
        raise RequirementsError(f"upstream has no file {path}", remedy="name one that it has with --requirements")
    return {PurePosixPath(path): clone.files[path]}


def _draft(
    wanted: ProposalRequest,
    clone: CandidateApp,
    chosen: RequirementFile,
    beside: tuple[PurePosixPath, ...],
    alternatives: tuple[RequirementFile, ...],
    evaluator: Evaluator,
    tell: Callable[[str], None],
) -> tuple[Proposal, tuple[LaunchCommand, ...]]:
    files = clone.files
    paths = _all_files(clone, beside)
    asked = requirement_repairs.located(files, paths)
    trees = clone.trees
    found = Imports(files, trees)
    profiles = [wanted.catalogue.profile(name) for name in wanted.catalogue.profile_names()]
    tell("following the imports of its programs")
    told_of = launch_commands.candidates({**files, **clone.documents}, trees)
    commands = tuple(one for one in told_of if is_utf8("".join((*one.command, *one.environment.values()))))
    launch = proposals_launch.launching(commands)
    started = _started(trees, launch)
    idle = reached_code.idle_lines(trees, started, launch.command, launch.environment.get("PYTHONPATH", ""))
    left_out = device_switches.left_out(trees, started, idle)
    tree = Tree(
        files=files,
        asked=asked,
        imports=found,
        requirement_files=tuple(map(str, paths)),
        started=started,
        left_out=[one.device for one in left_out],
        profile=wanted.profile.name,
        made=device_places.calls_of_classes(trees, idle),
        idle=functools.cache(
            lambda kind: device_places.idle_lines(
                kind, trees, started, launch.command, launch.environment.get("PYTHONPATH", ""), idle
            )
        ),
    )
    shared = [wanted.catalogue.shared(name) for name in wanted.catalogue.shared_names()]
    examined = shared_sets.examine(shared, tree, evaluator, tell)
    licence, licence_from = project_facts.licence(files)
    python, python_from = project_facts.python(files, beside)
    draft = Proposal(
        name=wanted.name,
        url=wanted.url,
        branch=clone.branch,
        commit=clone.commit,
        submodules=tuple(map(str, clone.joined)),
        facts=AppMetadata(
            title=project_facts.title(files, app_names.repository_of(wanted.url)),
            license=licence,
            license_from=licence_from,
            python=python,
            python_from=python_from,
            launch=launch,
            imports=(),
        ),
        requirements=chosen,
        together=beside,
        alternatives=alternatives,
        sets=tuple(choice for choice, _ in examined),
        sections=(),
        needs=system_needs.read(
            {**files, **clone.documents},
            found,
            asked,
            wanted.catalogue.resource_names(),
            started=started,
        ),
        issues=(),
    )
    ending = required_cuda.issues(trees)
    issues = (*ending, *(issue for _, issues in examined for issue in issues))
    issues = findings.of_program(issues, started, idle, paths) if commands else issues
    draft = dataclasses.replace(draft, issues=issues)
    to_cpu = [
        section
        for one in shared
        if one.name in {choice.name for choice in draft.sets}
        for section in _on_the_cpu(one.patches, left_out, draft)
    ]
    taken = {choice.name for choice in draft.sets}
    excluded = {rule.name for one in shared if one.name in taken for rule in one.rules.exclusions}
    tell(f"reading {len(asked)} requirements")
    lines = requirement_repairs.repair(
        files, paths, _on_index(files, paths), draft.link, excluded, profiles, _addresses
    )
    more = module_repairs.repair(lines.modules, found, files, draft.link, evaluator)
    told = [dataclasses.replace(one, is_at_start=one.name != "only-cuda" or bool(more)) for one in lines.issues]
    sources = [decode(path, files[path]) for path in paths if path.suffix in {".yml", ".yaml"}]
    conda = [conda_packages.repair(one, found, draft.link) for one in sources if isinstance(one, SourceText)]
    onnx = _onnx(asked, shared, files, evaluator, profiles, draft)
    left = {name: all_of for name, all_of in asked.items() if name not in excluded | _dropped(lines.sections)}
    offered = index_client.offered(
        name for name, all_of in asked.items() if any(one.requirement.url is None for one in all_of)
    )
    patches = [patch for one in shared if one.name in taken for patch in one.patches]
    patches += [section.written.patch for section in lines.sections]
    pins = _pins(asked, offered, wanted, profiles, patches, draft)
    told = [kept for one in told if (kept := _without_moved(one, pins[1])) is not None]
    sdists, builds = _sdist_builds.without_wheels(left, offered, draft, clone.date)
    own = own_metadata.repair(trees, files, launch.environment.get("PYTHONPATH", ""), draft.link)
    repairs = (*conda, onnx, pins, (more, ()), own)
    modules = proposals_launch.modules_to_import(files, left, draft.facts.launch, trees)
    whole = dataclasses.replace(
        draft,
        facts=dataclasses.replace(draft.facts, imports=modules),
        sections=(*lines.sections, *to_cpu, *(one for repaired in repairs for one in repaired[0])),
        issues=(*draft.issues, *told, *(one for repaired in repairs for one in repaired[1]), *sdists),
        tables=builds,
        remarks=(
            *_of_fork(wanted, clone),
            *lines.remarks,
            *_of_python(draft, wanted.profile),
            *python_limits.of_code(trees, idle if commands else {}, [one.python for one in profiles]),
            *_of_container(clone, draft, wanted.catalogue),
            *filter(None, (_of_other_file(files, asked, draft, one, {}) for one in alternatives)),
            *_of_readme(clone, draft, asked, found),
            *fetched_programs.read(trees),
            *device_switches.read(trees),
            *(
                f"{one.says}; {'the draft does the same: ' if to_cpu else ''}see whether that is still so"
                for one in left_out
            ),
            *device_switches.on_cpu_without_cuda(trees, idle if commands else ()),
        ),
    )
    return whole, commands


def _on_the_cpu(patches: Sequence[Patch], left_out: Iterable[LeftOut], draft: Proposal) -> Iterator[ProposedPatch]:
    """Give the machines of a device that upstream leaves out the processor, as upstream does."""
    devices = [one for one in patches if one.op_name == "device-literals"]
    for on_cpu in [one for one in devices if getattr(one.op, "device", "") == "cpu"][:1]:
        for one in left_out:
            for patch in (patch for patch in devices if shared_sets.is_left_out(patch, [one.device])):
                made = dataclasses.replace(
                    on_cpu,
                    id=f"cpu-instead-of-{one.device}",
                    why=one.says,
                    source=draft.link(one.found.path, one.found.line),
                    profiles=patch.profiles,
                )
                comment = f"In the place of {patch.id}: take that where {one.device} works for the app."
                ensures = tuple((ENSURES.word_of(type(ensure)) or "", ensure) for ensure in made.ensures)
                yield ProposedPatch(comment=comment, written=Written(patch=made, ensures=ensures))


def _onnx(
    asked: Asked,
    shared: Iterable[SharedSet],
    files: Mapping[PurePosixPath, bytes],
    evaluator: Evaluator,
    profiles: Collection[Profile],
    draft: Proposal,
) -> tuple[tuple[ProposedPatch, ...], tuple[Issue, ...]]:
    patches = [patch for one in shared if one.name == onnx_builds.SET for patch in one.patches]
    others = {name for name in asked if name != "onnxruntime" and backends.providers([name], "gpu")}
    located = () if others else asked.get(canonicalize_name("onnxruntime"), ())
    code = onnx_builds.Code(files=files, evaluator=evaluator, patches=patches)
    return onnx_builds.repair(located, code, profiles, draft.link, _holds, has_torch="torch" in asked)


def _holds(requirement: Requirement, profile: Profile) -> bool:
    """Tell whether a requirement's marker is true on a platform of a profile."""
    environments = (dict(marker_environment(one, profile.python)) | {"extra": ""} for one in profile.platforms)
    return requirement.marker is None or any(map(requirement.marker.evaluate, environments))


def _pins(
    asked: Asked,
    offered: Mapping[NormalizedName, tuple[IndexFile, ...]],
    wanted: ProposalRequest,
    profiles: Iterable[Profile],
    patches: Collection[Patch],
    draft: Proposal,
) -> tuple[tuple[ProposedPatch, ...], tuple[Issue, ...]]:
    offers = [
        _pin_repairs.Offers(
            profile,
            tuple(wanted.catalogue.index(name) for name in profile.indexes),
            offered,
            _replaced(patches, profile.name),
        )
        for profile in profiles
        if profile.name == wanted.profile.name or wanted.for_all
    ]
    return _pin_repairs.repair(asked, offers, wanted.catalogue.rules().families, draft.link)


def _replaced(patches: Iterable[Patch], profile: str) -> frozenset[NormalizedName]:
    """Name the distributions whose version patches choose on a profile, or that they take out there."""
    ops = (patch.op for patch in patches if not patch.profiles or profile in patch.profiles)
    return frozenset(op.name for op in ops if isinstance(op, DropRequirement | RenameRequirement | SetRequirement))


def _without_moved(issue: Issue, moved: Iterable[Issue]) -> Issue | None:
    """Leave out pins of torch that move, of which it is not so that they are tried as they stand; None if all do."""
    if issue.name != "torch-pin":
        return issue
    places = {(place.path, place.line) for one in moved for place in one.found}
    left = tuple(place for place in issue.found if (place.path, place.line) not in places)
    return dataclasses.replace(issue, found=left) if left else None


def _of_fork(wanted: ProposalRequest, clone: CandidateApp) -> tuple[str, ...]:
    if not candidate_app.lacks(wanted.url, clone.commit, wanted.source):
        return ()
    told = (
        f"commit {clone.commit[:12]} is on no branch of {wanted.url} that the clone knows, so others cannot get it "
        "there: push it and run new-app with the address of the fork, or give --source to every command"
    )
    return (told,)


def _of_python(draft: Proposal, profile: Profile) -> tuple[str, ...]:
    if SpecifierSet(draft.facts.python).contains(profile.python):
        return ()
    return (f"upstream allows Python {draft.facts.python}, and {profile.name} has {profile.python}",)


def _of_container(clone: CandidateApp, draft: Proposal, catalogue: Catalogue) -> tuple[str, ...]:
    """Name what a Dockerfile installs of the system and no need of the proposal brings: the app may not do without."""
    known = {package for need in draft.needs for package in catalogue.resource(need.name).packages.get("apt", ())}
    every = documents.apt_packages(clone.documents)
    chosen = draft.requirements.why.partition(":")[0]  # the Dockerfile that installs what is taken, if one says so
    is_said = any(str(found.path) == chosen for found, _ in every)
    return tuple(
        f"{found.path}:{found.line} installs {', '.join(left)} with apt: add a [[need]] for each that the app needs"
        for found, names in every
        if (str(found.path) == chosen or not is_said) and (left := [name for name in names if name not in known])
    )


def _of_other_file(
    files: Mapping[PurePosixPath, bytes],
    asked: Asked,
    draft: Proposal,
    other: RequirementFile,
    locked: Mapping[NormalizedName, Version],
) -> str:
    """Name what another file asks for that says what the app requires, and neither those taken nor a lock bring."""
    told = requirement_choice.differences(asked, other.path, files, locked)
    action = "add a patch (add-requirement or set-requirement) for each that the app needs"
    return f"{told}, and {draft.requirements.path} does not: {action}" if told else ""


_OF_REPOSITORY = ", as a release of the index or an archive with its sha256, as no lock takes a repository"


def _of_readme(
    clone: CandidateApp, draft: Proposal, brought: Collection[NormalizedName], imports: Imports
) -> tuple[str, ...]:
    """Name what the README installs with pip beside the app, its code imports, and what is taken does not bring."""
    packages = {path.parent for path in clone.files if path.name == "__init__.py"}
    own = {canonicalize_name(one.name) for one in packages if one.parent not in packages}
    own.add(canonicalize_name(project_facts.name(clone.files)))
    left = {name: one for name, one in documents.pip_packages(clone.documents).items() if name not in {*brought, *own}}
    imported = {module_names.distribution_of(one.top) for one in imports.all()} if left else set()
    silent = f"{' and '.join(map(str, draft.together))} do{'es' * (len(draft.together) == 1)} not ask for"
    others = _all_files(clone, (one.path for one in draft.alternatives if one.path in clone.files)) if left else ()
    elsewhere = {
        name: f" ({first.found.path}:{first.found.line} does)"
        for name, (first, *_) in requirement_repairs.located(clone.files, others).items()
    }
    return tuple(
        f"{one.found.path}:{one.found.line} installs {one.requirement} with pip{', as optional' * one.is_optional}, "
        f"which its code imports and {silent}{elsewhere.get(name, '')}: "
        "add it with a patch (add-requirement) if the app needs it"
        f"{_OF_REPOSITORY if one.requirement.url else ''}"
        for name, one in left.items()
        if name in imported
    )


def _on_index(
    files: Mapping[PurePosixPath, bytes], paths: tuple[PurePosixPath, ...]
) -> Callable[[NormalizedName], bool]:
    """Ask the index which of the distributions that come from repositories it has, where it may be asked."""
    names = [
        name
        for path in paths
        if isinstance(source := decode(path, files[path]), SourceText)
        for name in requirement_repairs.names_of_places(source)
    ]
    known = index_client.offered(names)
    return lambda name: bool(known.get(name))


@functools.cache
def _addresses(name: NormalizedName) -> tuple[str, ...]:
    """Ask the index what a distribution names as its own, where it may be asked."""
    return project_links.read(name) if index_client.is_asked(online=uv.is_online()) else ()


def _dropped(sections: tuple[ProposedPatch, ...]) -> set[NormalizedName]:
    """Name the distributions that patches take out of the requirement files, on some machine at least."""
    ops = [section.written.patch.op for section in sections]
    return {op.name for op in ops if isinstance(op, DropRequirement | RenameRequirement)}
