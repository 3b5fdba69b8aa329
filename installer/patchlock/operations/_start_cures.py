"""Say what brings a module that an app imports at its start and its lock lacks: an extra, another file, the index."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.authoring.drafts import Draft, ensures, op, slug
from patchlock.catalogue.proposals import module_names, submodules
from patchlock.catalogue.proposals.findings import Proposal, ProposedPatch
from patchlock.model import backends
from patchlock.model.app import OptionalLists
from patchlock.model.text_files import SourceText, decode
from patchlock.patches import requirement_sources
from patchlock.patches.import_graph import ReachedImport
from patchlock.patches.ops.requirements.ops import DropRequirement
from patchlock.patches.pip_requirements import RequirementLine
from patchlock.worktree.candidate_app import CandidateApp


@dataclass(frozen=True, kw_only=True)
class Cure:
    """What brings a module."""

    proposal: Proposal
    """With it."""
    says: str
    """What was added, a clause."""


def cure(proposal: Proposal, missing: ReachedImport, clone: CandidateApp, on_index: OnIndex) -> Cure | None:
    """Add what brings a module; None where nothing is known to.

    An extra of the project comes first, then what another requirement file names, and last the index's distribution of
    that name, which a person has to look at. What lies in a submodule is none of these.

    Args:
        proposal: the app's.
        missing: the module.
        clone: the app.
        on_index: says whether the index has a distribution.
    """
    name = module_names.distribution_of(missing.module)
    if submodules.of_module(clone.submodules, missing.module) is not None:
        return None  # the index's distribution of that name would be another one
    if (extra := _extra(proposal, name, clone.files)) is not None:
        return _by_extra(proposal, extra, missing, _for_cards(proposal, clone.files))
    named = _named(proposal, name, clone.files)
    if named is not None:
        requirement, why = named
    elif on_index(name) and name not in _dropped(proposal):
        requirement, why = Requirement(name), f"the index has a {name}; see that it is the project that is meant"
        remark = f"{missing.path}:{missing.line} imports {missing.module} at the start and nothing requires it; {why}"
        proposal = dataclasses.replace(proposal, remarks=tuple(dict.fromkeys((*proposal.remarks, remark))))
    else:
        return None
    return _by_requirement(proposal, requirement, missing, why)


OnIndex = Callable[[NormalizedName], bool]


def _dropped(proposal: Proposal) -> set[NormalizedName]:
    """Name what the proposal takes out: what the index has by that name may be another project."""
    ops = [section.written.patch.op for section in proposal.sections]
    return {op.name for op in ops if isinstance(op, DropRequirement)}


def _says(missing: ReachedImport) -> str:
    return f"{missing.path}:{missing.line} imports {missing.module} at the start"


def _extra(
    proposal: Proposal, name: NormalizedName, files: Mapping[PurePosixPath, bytes]
) -> tuple[NormalizedName, PurePosixPath] | None:
    """Find the smallest extra that asks for a distribution."""
    found: list[tuple[int, NormalizedName, PurePosixPath]] = []
    for path in proposal.together:
        source = decode(path, files[path])
        if not isinstance(source, SourceText) or requirement_sources.is_pip(path):
            continue
        for extra in requirement_sources.read(source).extras - set(proposal.extras):
            lines = requirement_sources.lines(source, OptionalLists(extras=(extra,)))
            names = {canonicalize_name(line.requirement.name) for line in lines if isinstance(line, RequirementLine)}
            if name in names:
                found.append((len(names), extra, path))
    return min(found)[1:] if found else None


def _for_cards(proposal: Proposal, files: Mapping[PurePosixPath, bytes]) -> dict[NormalizedName, str]:
    """Name the extras that ask for an ONNX Runtime of a card, and which."""
    found: dict[NormalizedName, str] = {}
    for path in proposal.together:
        source = decode(path, files[path])
        if not isinstance(source, SourceText) or requirement_sources.is_pip(path):
            continue
        for extra in sorted(requirement_sources.read(source).extras):
            for line in requirement_sources.lines(source, OptionalLists(extras=(extra,))):
                name = canonicalize_name(line.requirement.name) if isinstance(line, RequirementLine) else ""
                if name and set(backends.providers([canonicalize_name(name)], "gpu")) - {"CPUExecutionProvider"}:
                    found.setdefault(extra, name)
    return found


def _by_extra(
    proposal: Proposal,
    extra: tuple[NormalizedName, PurePosixPath],
    missing: ReachedImport,
    for_cards: Mapping[NormalizedName, str],
) -> Cure:
    added = dataclasses.replace(proposal, extras=(*proposal.extras, extra[0]))
    others = ", ".join(f'"{name}" ({build})' for name, build in for_cards.items() if name != extra[0])
    if others and extra[0] not in for_cards and missing.module.partition(".")[0] == "onnxruntime":
        remark = (
            f'the extra "{extra[0]}" is taken for every profile, and its ONNX Runtime computes on the CPU alone; '
            f"{extra[1]} has others for cards: {others}"
        )
        added = dataclasses.replace(added, remarks=tuple(dict.fromkeys((*added.remarks, remark))))
    return Cure(proposal=added, says=f'extra "{extra[0]}" of {extra[1]}: {_says(missing)}')


def _named(
    proposal: Proposal, name: NormalizedName, files: Mapping[PurePosixPath, bytes]
) -> tuple[Requirement, str] | None:
    """Find another requirement file of the repository that asks for a distribution."""
    for one in proposal.alternatives:
        if one.path not in files:  # upstream's own lock
            continue
        source = decode(one.path, files[one.path])
        for line in requirement_sources.lines(source) if isinstance(source, SourceText) else ():
            if isinstance(line, RequirementLine) and canonicalize_name(line.requirement.name) == name:
                if line.requirement.url is not None:
                    continue
                return line.requirement, f"{one.path}:{line.line} asks for it"
    return None


def _by_requirement(proposal: Proposal, requirement: Requirement, missing: ReachedImport, why: str) -> Cure | None:
    path = proposal.together[0]
    made = op("add-requirement", requirement=requirement)
    word = slug(f"{requirement.name}-at-the-start")
    if made is None or any(one.written.patch.id == word for one in proposal.sections):
        return None
    name = canonicalize_name(requirement.name)
    checks = ensures(("requirement", {"name": name, "specifier": requirement.specifier}))
    draft = Draft(op_name="add-requirement", op=made, slug=word, ensures=checks)
    patch = dataclasses.replace(
        draft.patch(draft.slug, [path]),
        why=f"the program imports {missing.module} at its start, and nothing requires it; {why}",
        source=proposal.link(missing.path, missing.line),
    )
    section = ProposedPatch(comment=f"{_says(missing)}.", written=Written(patch=patch, ensures=checks))
    added = dataclasses.replace(proposal, sections=(*proposal.sections, section))
    return Cure(proposal=added, says=f"requirement {requirement}: {_says(missing)}; {why}")


def names_wanted(missing: Iterable[ReachedImport]) -> Collection[NormalizedName]:
    """Name the distributions that the index may have to be asked for."""
    return {module_names.distribution_of(one.module) for one in missing}
