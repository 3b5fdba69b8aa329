"""Say what brings a module that an app imports at its start and its lock lacks: an extra, another file, the index."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.authoring.drafts import Draft, ensures, op, slug
from patchlock.catalogue.proposals import module_names, onnx_builds, submodules
from patchlock.catalogue.proposals.findings import Proposal, ProposedPatch
from patchlock.locks.wheel_choice import marker_environment
from patchlock.model.app import OptionalLists, SharedSet
from patchlock.model.backends import BACK_ENDS
from patchlock.model.profile import Profile
from patchlock.model.text_files import SourceText, decode
from patchlock.patches import requirement_sources
from patchlock.patches.import_graph import ReachedImport
from patchlock.patches.ops.requirements.ops import AddRequirement, DropRequirement
from patchlock.patches.pip_requirements import RequirementLine
from patchlock.worktree.candidate_app import CandidateApp

_HARDWARE = (
    ("cpu", "cpu"),
    (r"gpu|cuda\d*|cu\d+|nvidia", "cuda"),
    (r"rocm\d*|amd|hip", "rocm"),
    ("dml|directml", "directml"),
    ("mps|metal|mac|macos|silicon|coreml", "mps"),
    ("xpu|intel|ipex|openvino", "xpu"),
)
"""Pattern of a part of an extra's name → the back end of the profiles that it is for."""


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What cures are judged by."""

    on_index: Callable[[NormalizedName], bool]
    """Says whether the index has a distribution."""
    has_wheel: Callable[[Requirement, Profile], bool]
    """Says whether a profile can have one that a requirement allows."""
    profiles: Collection[Profile]
    """Those of the catalogue."""
    sets: Mapping[str, SharedSet]
    """All shared sets."""


@dataclass(frozen=True, kw_only=True)
class Cure:
    """What brings a module."""

    proposal: Proposal
    """With it."""
    says: str
    """What was added, a clause."""


def cure(proposal: Proposal, missing: ReachedImport, clone: CandidateApp, look: Looked) -> Cure | None:
    """Add what brings a module; None where nothing is known to.

    An extra of the project comes first, then what another requirement file names, and last the index's distribution of
    that name, which a person has to look at. What lies in a submodule is none of these.

    Args:
        proposal: the app's.
        missing: the module.
        clone: the app.
        look: by what that is judged.
    """
    name = module_names.distribution_of(missing.module)
    if submodules.of_module(clone.submodules, missing.module) is not None:
        return None  # the index's distribution of that name would be another one
    if (extra := _extra(proposal, name, clone.files)) is not None:
        return _by_extra(proposal, extra, missing, clone, look)
    named = _named(proposal, name, clone.files)
    if named is not None:
        requirement, why = named
    elif look.on_index(name) and name not in _dropped(proposal):
        requirement, why = Requirement(name), f"the index has a {name}; see that it is the project that is meant"
        remark = f"{_says(missing)} and nothing requires it; {why}"
        proposal = dataclasses.replace(proposal, remarks=tuple(dict.fromkeys((*proposal.remarks, remark))))
    else:
        return None
    profiles = tuple(one.name for one in look.profiles if BACK_ENDS[one.back_end].device == missing.device)
    return _by_requirement(proposal, requirement, missing, why, profiles)


def _dropped(proposal: Proposal) -> set[NormalizedName]:
    """Name what the proposal takes out: what the index has by that name may be another project."""
    ops = [section.written.patch.op for section in proposal.sections]
    return {op.name for op in ops if isinstance(op, DropRequirement)}


def _says(missing: ReachedImport) -> str:
    return f"{missing.path}:{missing.line} imports {missing.module} {missing.when}"


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


def _by_extra(
    proposal: Proposal,
    extra: tuple[NormalizedName, PurePosixPath],
    missing: ReachedImport,
    clone: CandidateApp,
    look: Looked,
) -> Cure:
    """Take an extra; where others are called after other hardware, what each asks for, on the profiles of that."""
    name, path = extra
    source = decode(path, clone.files[path])
    named = {name: _hardware(name)}
    sections: tuple[ProposedPatch, ...] | None = None
    if isinstance(source, SourceText):
        listed = {one: _hardware(one) for one in sorted(requirement_sources.read(source).extras)}
        named |= {one: (rest, of) for one, (rest, of) in listed.items() if of and rest == named[name][0]}
        sections = _sections(proposal, source, named, name, missing, look) if len(named) > 1 else None
    others = ", ".join(f'"{one}"' for one in named)
    if sections is not None:
        return Cure(
            proposal=dataclasses.replace(proposal, sections=(*proposal.sections, *sections)),
            says=f"what the extras {others} of {path} ask for, each on its profiles: {_says(missing)}",
        )
    remark = f'the extra "{name}" is taken for every profile, though {path} has one for each hardware: {others}'
    added = dataclasses.replace(
        proposal,
        extras=(*proposal.extras, name),
        remarks=(*proposal.remarks, remark) if len(named) > 1 else proposal.remarks,
    )
    return Cure(proposal=added, says=f'extra "{name}" of {path}: {_says(missing)}')


def _hardware(extra: NormalizedName) -> tuple[tuple[str, ...], str]:
    """Split an extra's name into what else it says and the back end that it names; "" for none."""
    parts = extra.split("-")
    found = {part: end for part in parts for pattern, end in _HARDWARE if re.fullmatch(pattern, part)}
    return tuple(part for part in parts if part not in found), next(iter(found.values()), "")


def _sections(
    proposal: Proposal,
    source: SourceText,
    named: Mapping[NormalizedName, tuple[tuple[str, ...], str]],
    default: NormalizedName,
    missing: ReachedImport,
    look: Looked,
) -> tuple[ProposedPatch, ...] | None:
    """Require what extras ask for, each on the profiles of its hardware; None where that cannot be written."""
    builds = look.sets[onnx_builds.SET].patches if onnx_builds.SET in look.sets else ()
    theirs = [patch for one in proposal.sets for patch in look.sets[one.name].patches]
    wanted: dict[str, list[tuple[str, NormalizedName, int]]] = {}
    for profile in look.profiles:
        back_end = "directml" if "DmlExecutionProvider" in profile.computes_on else profile.back_end
        extra = next((one for one, (_, of) in named.items() if of == back_end), default)
        added = {
            canonicalize_name(one.op.requirement.name)
            for one in theirs
            if isinstance(one.op, AddRequirement) and (not one.profiles or profile.name in one.profiles)
        }
        asked = [*_listed(source, extra, profile)]
        if not asked or not all(look.has_wheel(one, profile) for _, one in asked):
            extra, asked = default, [*_listed(source, default, profile)]
        for line, requirement in asked:
            if canonicalize_name(requirement.name) not in added:
                text = str(onnx_builds.of_profile(requirement, profile, builds))
                wanted.setdefault(text, []).append((profile.name, extra, line))
    found = []
    for text, users in wanted.items():
        extras = ", ".join(f'"{one}"' for one in dict.fromkeys(extra for _, extra, _ in users))
        made = _required(
            proposal,
            Requirement(text),
            source.path,
            why=f"the program imports {missing.module} {missing.when}, and upstream has it in an extra: {extras}",
            source=proposal.link(source.path, users[0][2]),
            comment=f"{_says(missing)}.",
            profiles=tuple(profile for profile, *_ in users) if len(users) < len(look.profiles) else (),
        )
        if made is None or made.written.patch.op.locate(source).refusals:
            return None
        found.append(made)
    return tuple(found)


def _listed(source: SourceText, extra: NormalizedName, profile: Profile) -> Iterator[tuple[int, Requirement]]:
    """Give what an extra asks for on a profile, without a marker that holds there everywhere."""
    own = {str(line.requirement) for line in requirement_sources.lines(source) if isinstance(line, RequirementLine)}
    environments = [marker_environment(one, profile.python) for one in profile.platforms]
    for line in requirement_sources.lines(source, OptionalLists(extras=(extra,))):
        if isinstance(line, RequirementLine) and str(line.requirement) not in own:
            requirement = Requirement(str(line.requirement))
            holds = [requirement.marker is None or requirement.marker.evaluate(dict(one)) for one in environments]
            requirement.marker = None if all(holds) else requirement.marker
            if any(holds):
                yield line.line, requirement


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


def _by_requirement(
    proposal: Proposal, requirement: Requirement, missing: ReachedImport, why: str, profiles: tuple[str, ...]
) -> Cure | None:
    section = _required(
        proposal,
        requirement,
        proposal.together[0],
        why=f"the program imports {missing.module} {missing.when}, and nothing requires it; {why}",
        source=proposal.link(missing.path, missing.line),
        comment=f"{_says(missing)}.",
        profiles=profiles,
    )
    if section is None:
        return None
    added = dataclasses.replace(proposal, sections=(*proposal.sections, section))
    return Cure(proposal=added, says=f"requirement {requirement}: {_says(missing)}; {why}")


def _required(
    proposal: Proposal,
    requirement: Requirement,
    path: PurePosixPath,
    *,
    why: str,
    source: str,
    comment: str,
    profiles: tuple[str, ...] = (),
) -> ProposedPatch | None:
    """Write the patch that adds a requirement; None where it is there, or cannot be written."""
    made = op("add-requirement", requirement=requirement)
    word = slug(requirement.name, str(requirement.specifier) if profiles else "at-the-start")
    if made is None or any(one.written.patch.id == word for one in proposal.sections):
        return None
    name = canonicalize_name(requirement.name)
    checks = ensures(("requirement", {"name": name, "specifier": requirement.specifier}))
    draft = Draft(op_name="add-requirement", op=made, slug=word, ensures=checks)
    patch = dataclasses.replace(draft.patch(draft.slug, [path]), why=why, source=source, profiles=profiles)
    return ProposedPatch(comment=comment, written=Written(patch=patch, ensures=checks))


def names_wanted(missing: Iterable[ReachedImport]) -> Collection[NormalizedName]:
    """Name the distributions that the index may have to be asked for."""
    return {module_names.distribution_of(one.module) for one in missing}
