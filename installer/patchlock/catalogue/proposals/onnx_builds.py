"""ONNX Runtime where upstream requires the build for the CPU alone: which build computes on a profile's GPU; pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.authoring.drafts import Draft, ensures, op, slug
from patchlock.catalogue.proposals import importers
from patchlock.catalogue.proposals.findings import Files, Finding, Issue, Proposal, ProposedPatch
from patchlock.catalogue.proposals.imports import Imports
from patchlock.catalogue.proposals.shared_sets import LocatedRequirement
from patchlock.model import backends
from patchlock.model.patch import Patch
from patchlock.model.profile import Profile
from patchlock.model.text_files import SourceText, decode
from patchlock.patches import targets
from patchlock.patches.evaluation import Evaluator
from patchlock.patches.ops.requirements.ops import RenameRequirement, SetRequirement

_EXTRAS = "[cuda,cudnn]"
SET = "onnxruntime-one-provider"
"""The shared set that says what becomes of onnxruntime-gpu on each profile."""
_CPU, _CUDA = canonicalize_name("onnxruntime"), canonicalize_name("onnxruntime-gpu")
_EVERY = b"get_available_providers"
_ONE_OF_EVERY = re.compile(rb"""["']\s+(?:not\s+)?in\s+[\w.]*get_available_providers""")
"""A question after one provider, which asks for none."""
_CORE_ML = "CoreMLExecutionProvider"
"""Of the build for the CPU, which has it on macOS. Source: https://onnxruntime.ai/docs/install/"""
_NO_CUDA = "onnxruntime-without-cuda"
_IMPORT = re.compile(r"import onnxruntime(?: as (\w+))?")
_PRELOAD_PAGE = "https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html#preload-dlls"


@dataclass(frozen=True, kw_only=True)
class Code:
    """The app's files, and whom to ask what patches find in them."""

    files: Files
    evaluator: Evaluator
    patches: Sequence[Patch]
    """Of the set."""

    def asks_for(self, provider: str, profile: Profile) -> bool:
        """Tell whether it asks for an execution provider, by itself or once the set's patches are applied."""
        of_profile = [one for one in self.patches if profile.name in one.profiles]
        rewriting = [one for one in of_profile if provider in str(getattr(one.op, "replacement", ""))]
        for path, data in self.files.items():
            if path.suffix != ".py":
                continue
            if provider.encode() in data or _EVERY in _ONE_OF_EVERY.sub(b"", data):
                return True
            for patch in rewriting:
                source = decode(path, data) if targets.mentions(data, patch.literal) else None
                if isinstance(source, SourceText) and self.evaluator.locate(patch.op, source).sites:
                    return True
        return False


def repair(
    located: Sequence[LocatedRequirement],
    code: Code,
    profiles: Iterable[Profile],
    link: Callable[..., str],
    holds: Callable[[Requirement, Profile], bool],
    *,
    has_torch: bool,
) -> tuple[tuple[ProposedPatch, ...], tuple[Issue, ...]]:
    """Take the build for a profile's GPU where the code asks for it; elsewhere say that the CPU computes.

    Args:
        located: the requirements of onnxruntime.
        code: of the app.
        profiles: of the catalogue.
        link: names a place of upstream as a reader can open it, by path and line.
        holds: tells whether a requirement's marker is true on a profile.
        has_torch: torch is required, too.
    """
    if not located:
        return (), ()
    taken: dict[str, list[str]] = {}
    staying: dict[str, list[str]] = {}
    for profile in profiles:
        lines = [one.requirement for one in located if holds(one.requirement, profile)]
        if not lines or profile.back_end == "cpu":
            continue
        is_metal = profile.back_end == "mps"
        build = lines[0] if is_metal else _build(profile, code.patches, lines, has_torch=has_torch)
        if isinstance(build, str):
            staying.setdefault(build, []).append(profile.name)
            continue
        (provider,) = (_CORE_ML,) if is_metal else backends.providers([canonicalize_name(build.name)], "gpu")
        if not code.asks_for(provider, profile):
            staying.setdefault(f"the code never asks for {provider}", []).append(profile.name)
        elif not is_metal:
            taken.setdefault(str(build), []).append(profile.name)
    told = [f"{build} takes its place on {', '.join(names)}" for build, names in taken.items()]
    told += [f"it stays on the CPU on {', '.join(names)}, as {why}" for why, names in staying.items()]
    issue = Issue(
        name="onnxruntime-on-cpu",
        title="the ONNX Runtime that upstream requires computes on the CPU alone",
        means="its ONNX models leave a GPU unused",
        found=tuple(one.found for one in located),
        remedy="; ".join(told),
        is_slower=True,
    )
    sections = tuple(_section(Requirement(to), names, located, link) for to, names in taken.items())
    alone = [name for build, names in taken.items() if _EXTRAS in build for name in names]
    loading = tuple(_loading(code, alone)) if alone else ()
    unloaded = dataclasses.replace(
        issue,
        name=_NO_CUDA,
        title="no line requires torch, which loads CUDA's libraries, and ONNX Runtime does not look for its own",
        remedy=f"call onnxruntime.preload_dlls() where the code imports it ({_PRELOAD_PAGE})",
        is_left=True,
    )
    return (*sections, *loading), ((issue, unloaded) if alone and not loading else (issue,))


def _build(
    profile: Profile, patches: Iterable[Patch], lines: Iterable[Requirement], *, has_torch: bool
) -> Requirement | str:
    """Give the build for a profile's GPU, or say why there is none, a clause.

    Where nothing requires torch, which brings CUDA's libraries, its extras do.
    """
    for patch in patches:
        if profile.name not in patch.profiles:
            continue
        match patch.op:
            case RenameRequirement(name=name, to=to) if name == _CUDA and canonicalize_name(to.name) != _CPU:
                clauses = sorted({str(clause) for one in lines for clause in one.specifier})
                return Requirement(f"{to.name}{','.join(clauses)}")
            case SetRequirement(name=name, specifier=specifier) if name == _CUDA:
                pins = [one.version for one in specifier if one.operator == "=="]
                if all(one.specifier.contains(pin) for one in lines for pin in pins):
                    return Requirement(f"{_CUDA}{'' if has_torch else _EXTRAS}{specifier}")
                return f"upstream's versions leave out {_CUDA}{specifier}"
            case _:
                pass
    return f'the shared set "{SET}" has no other build there'


def of_profile(requirement: Requirement, profile: Profile, patches: Iterable[Patch]) -> Requirement:
    """Give the build of ONNX Runtime for CUDA as a profile can have it, by the set's patches; all else as it is."""
    for patch in patches if canonicalize_name(requirement.name) == _CUDA else ():
        match patch.op:
            case RenameRequirement(name=name, to=to) if name == _CUDA and profile.name in patch.profiles:
                return Requirement(f"{to.name}{requirement.specifier}")
            case SetRequirement(name=name, specifier=specifier) if name == _CUDA and profile.name in patch.profiles:
                return Requirement(f"{requirement.name}{specifier}")
            case _:
                pass
    return requirement


def with_torch(proposal: Proposal) -> Proposal:
    """Leave the extras out where a library requires torch, which brings CUDA's libraries, and the lock shows it."""
    issues = (
        dataclasses.replace(one, remedy=one.remedy.replace(_EXTRAS, ""))
        for one in proposal.issues
        if one.name != _NO_CUDA
    )
    sections = (one for one in proposal.sections if one.written.patch.source != _PRELOAD_PAGE)
    return dataclasses.replace(proposal, sections=tuple(map(_plain, sections)), issues=tuple(issues))


def _plain(section: ProposedPatch) -> ProposedPatch:
    patch = section.written.patch
    if not isinstance(patch.op, RenameRequirement) or patch.op.name != _CPU:
        return section
    op = dataclasses.replace(patch.op, to=Requirement(str(patch.op.to).replace(_EXTRAS, "")))
    written = dataclasses.replace(section.written, patch=dataclasses.replace(patch, op=op))
    return dataclasses.replace(section, written=written)


def _section(
    to: Requirement, profiles: Sequence[str], located: Sequence[LocatedRequirement], link: Callable[..., str]
) -> ProposedPatch:
    made = op("rename-requirement", name=_CPU, to=to)
    if made is None:
        raise ValueError(f"rename-requirement does not take {to}")  # a mistake of this module
    checks = ensures(("no-requirement", {"name": _CPU}))
    draft = Draft(op_name="rename-requirement", op=made, slug=slug(f"{to.name}-for-{_CPU}"), ensures=checks)
    first = located[0].found
    patch = dataclasses.replace(
        draft.patch(draft.slug, dict.fromkeys(one.found.path for one in located)),
        why=f"{_CPU} computes on the CPU alone, and the code asks for this profile's GPU",
        source="https://onnxruntime.ai/docs/install/",
        profiles=tuple(profiles),
    )
    comment = f"{first}; {link(first.path, first.line)}"
    return ProposedPatch(comment=comment, written=Written(patch=patch, ensures=checks))


def _loading(code: Code, profiles: Sequence[str]) -> Iterator[ProposedPatch]:
    """Have the code load CUDA's libraries where it imports ONNX Runtime, for each name that it gives it."""
    places: dict[str, list[Finding]] = {}
    for one in Imports(code.files).of([_CPU]):
        if _IMPORT.fullmatch(one.found.text) and not importers.is_no_part(one.found.path):
            places.setdefault(one.found.text, []).append(one.found)
    for text, found in places.items():
        name = text.split()[-1]
        made = op("insert-statement", statement=f"{name}.preload_dlls()", below=text)
        if made is None:
            raise ValueError(f"insert-statement does not take {text}")  # a mistake of this module
        checks = ensures(("calls", {"callee": "onnxruntime.preload_dlls"}))
        draft = Draft(
            op_name="insert-statement", op=made, slug=slug(name, "loads-cuda-first"), ensures=checks, sites=len(found)
        )
        patch = dataclasses.replace(
            draft.patch(draft.slug, dict.fromkeys(one.path for one in found)),
            why="ONNX Runtime does not look for CUDA and cuDNN among Python's packages unless it is told to",
            source=_PRELOAD_PAGE,
            literal=(_CPU,),
            profiles=tuple(profiles),
        )
        yield ProposedPatch(comment="; ".join(map(str, found)), written=Written(patch=patch, ensures=checks))
