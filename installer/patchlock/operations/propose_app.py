"""Look at an app that the catalogue does not have, and propose its file, with patches that are proved to apply."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.catalogue.proposals import (
    document,
    imports,
    module_repairs,
    narrowing,
    project_facts,
    requirement_choice,
    requirement_repairs,
    shared_sets,
    system_needs,
)
from patchlock.catalogue.proposals import launch as proposals_launch
from patchlock.catalogue.proposals.findings import AppMetadata, Finding, Issue, Proposal, ProposedPatch, RequirementFile
from patchlock.catalogue.proposals.shared_sets import LocatedRequirement, Tree
from patchlock.catalogue.reader import Catalogue
from patchlock.core import uv
from patchlock.distributions import index_client
from patchlock.distributions.policy.fitting import only_sdists
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import RequirementsError, UsageError
from patchlock.model.patch import Outcome
from patchlock.model.profile import Profile
from patchlock.model.text_files import SourceText, decode
from patchlock.patches import requirement_sources
from patchlock.patches.ops.requirements.ops import DropRequirement, RenameRequirement
from patchlock.patches.pip_requirements import RequirementLine
from patchlock.worktree import candidate_app
from patchlock.worktree.candidate_app import CandidateApp

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


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


@dataclass(frozen=True, kw_only=True)
class ProposalResult:
    """A proposal, and how its patches came out."""

    proposal: Proposal
    outcomes: tuple[Outcome, ...]
    date: str
    """Of the commit: RFC 3339, UTC."""
    problems: tuple[str, ...]
    """What is wrong with its patches; empty where all apply and keep what they promise."""


def name_of(url: str) -> str:
    """Call an app as its repository is called.

    Raises:
        UsageError: it is no address of a repository.
    """
    if Path(url).expanduser().exists() or not re.match(r"(?:https?|ssh|git)://[^/]+/.|[\w.-]+@[\w.-]+:.", url):
        raise UsageError(
            f'"{url}" is not the address of a repository',
            remedy="write it as https://github.com/OWNER/NAME; a clone that you have is named by --source",
        )
    if without_secrets(url) != url:
        raise UsageError(
            f"the address {url} has a user, a password or a query, which would stand in the app's file",
            remedy="leave it out; git asks its credential helper, or name a clone that you have with --source",
        )
    last = url.rstrip("/").removesuffix(".git").replace(":", "/").rpartition("/")[2]
    return "-".join(re.findall(r"[a-z0-9]+", last.lower()))


def require_name(name: str, catalogue: Catalogue) -> None:
    """Refuse a name that cannot be given.

    Raises:
        UsageError: it is no name, or an app has it.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f'the name "{name}" must be lower-case words joined by "-"', remedy="give one with --name")
    if name in catalogue.app_names() or (catalogue.root / "patches" / name).exists():
        raise UsageError(
            f'the catalogue has "{name}" already, and nothing is overwritten',
            where=f"patches/{name}",
            remedy="give another name with --name",
        )


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
    ranked = requirement_choice.candidates(_only(clone, chosen))
    if chosen is None:
        ranked = requirement_choice.fitting_machine(ranked, wanted.profile.name.partition("-")[0])
    alternatives = ranked[1:] if chosen is None else ()
    tell(f"looking at {len(clone.files)} files")
    draft = _draft(wanted, clone, ranked[0], alternatives)
    tell("trying the patches")
    sets = {name: wanted.catalogue.shared(name) for name in wanted.catalogue.shared_names()}
    fitted = narrowing.fit(
        draft.sets, draft.sections, sets, clone.files, (str(ranked[0].path),), (wanted.profile.name,)
    )
    proposal = dataclasses.replace(draft, sets=fitted.sets, sections=fitted.sections)
    return ProposalResult(proposal=proposal, outcomes=fitted.outcomes, date=clone.date, problems=fitted.problems)


def _only(clone: CandidateApp, path: PurePosixPath | None) -> Mapping[PurePosixPath, bytes]:
    if path is None:
        return clone.files
    if path not in clone.files:
        raise RequirementsError(f"upstream has no file {path}", remedy="name one that it has with --requirements")
    return {PurePosixPath(path): clone.files[path]}


def _draft(
    wanted: ProposalRequest, clone: CandidateApp, chosen: RequirementFile, alternatives: tuple[RequirementFile, ...]
) -> Proposal:
    files = clone.files
    paths = requirement_repairs.all_files(files, chosen.path)
    asked = _asked(files, paths)
    found = imports.read(files)
    tree = Tree(files=files, asked=asked, imports=found, requirement_files=tuple(map(str, paths)))
    shared = [wanted.catalogue.shared(name) for name in wanted.catalogue.shared_names()]
    examined = shared_sets.examine(shared, tree)
    launch = proposals_launch.launching(files)
    licence, licence_from = project_facts.licence(files)
    python, python_from = project_facts.python(files)
    draft = Proposal(
        name=wanted.name,
        url=wanted.url,
        branch=clone.branch,
        commit=clone.commit,
        facts=AppMetadata(
            title=project_facts.title(files, wanted.name),
            license=licence,
            license_from=licence_from,
            python=python,
            python_from=python_from,
            launch=launch,
            imports=(),
        ),
        requirements=chosen,
        alternatives=alternatives,
        sets=tuple(choice for choice, _ in examined),
        sections=(),
        needs=system_needs.read(files, found, wanted.catalogue.resource_names()),
        issues=tuple(issue for _, issue in examined),
    )
    taken = {choice.name for choice in draft.sets}
    excluded = {rule.name for one in shared if one.name in taken for rule in one.rules.exclusions}
    lines = requirement_repairs.repair(files, paths, _on_index(files, paths), draft.link, excluded)
    more = module_repairs.repair(lines.modules, found, draft.link)
    left = {name: all_of for name, all_of in asked.items() if name not in excluded | _dropped(lines.sections)}
    sdists, builds = _sdists(left, draft)
    modules = proposals_launch.modules_to_import(files, found, left, draft.facts.launch)
    return dataclasses.replace(
        draft,
        facts=dataclasses.replace(draft.facts, imports=modules),
        sections=(*lines.sections, *more),
        issues=(*draft.issues, *lines.issues, *sdists),
        tables=builds,
        remarks=(*lines.remarks, *_of_python(draft, wanted.profile)),
    )


def _of_python(draft: Proposal, profile: Profile) -> tuple[str, ...]:
    if SpecifierSet(draft.facts.python).contains(profile.python):
        return ()
    return (f"upstream allows Python {draft.facts.python}, and {profile.name} has {profile.python}",)


def _asked(
    files: Mapping[PurePosixPath, bytes], paths: tuple[PurePosixPath, ...]
) -> dict[NormalizedName, tuple[LocatedRequirement, ...]]:
    """Gather all requirements of some files, by name."""
    found: dict[NormalizedName, tuple[LocatedRequirement, ...]] = {}
    for path in paths:
        source = decode(path, files[path])
        for line in requirement_sources.lines(source) if isinstance(source, SourceText) else ():
            if isinstance(line, RequirementLine):
                name = canonicalize_name(line.requirement.name)
                place = Finding(path=path, line=line.line, text=str(line.requirement))
                found[name] = (*found.get(name, ()), LocatedRequirement(requirement=line.requirement, found=place))
    return found


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
    known = index_client.read_all(names) if index_client.is_asked(online=uv.is_online()) else {}
    return lambda name: bool(known.get(name))


def _dropped(sections: tuple[ProposedPatch, ...]) -> set[NormalizedName]:
    """Name the distributions that patches take out of the requirement files, on some machine at least."""
    ops = [section.written.patch.op for section in sections]
    return {op.name for op in ops if isinstance(op, DropRequirement | RenameRequirement)}


def _sdists(
    asked: Mapping[NormalizedName, tuple[LocatedRequirement, ...]], draft: Proposal
) -> tuple[tuple[Issue, ...], tuple[str, ...]]:
    """Find what the index has as sdists alone, and allow it to be built."""
    if not index_client.is_asked(online=uv.is_online()):
        return (), ()
    wanted = [one.requirement for all_of in asked.values() for one in all_of if one.requirement.url is None]
    offered = index_client.read_all(canonicalize_name(one.name) for one in wanted)
    found = dict(only_sdists(wanted, offered))
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
    why = "the index has no wheel of these that fits what upstream asks for"
    return (issue,), (document.build_table(found, why=why, source=draft.link(first.path, first.line)),)
