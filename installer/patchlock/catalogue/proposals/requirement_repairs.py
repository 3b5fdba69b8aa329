"""Patches for requirement lines that no lock can be made from, or that only a card of NVIDIA's has a use for; pure."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.catalogue.proposals._line_patches import PROCESSOR, LinePatcher, Repair
from patchlock.catalogue.proposals.findings import Files, Finding, Issue, ProposedPatch
from patchlock.model.text_files import SourceText, Undecodable, decode
from patchlock.patches import requirement_sources, requirements_for_locks
from patchlock.patches.pip_requirements import Line, LocationLine, OptionLine, RequirementLine, Unreadable

_ONLY_CUDA: Mapping[str, tuple[str, str]] = {
    "apex": ("apex", "it is compiled by CUDA's compiler when it is installed"),
    "causal-conv1d": ("causal_conv1d", "it is compiled by CUDA's compiler when it is installed"),
    "deepspeed": ("deepspeed", "it is compiled by CUDA's compiler when it is installed"),
    "flash-attn": ("flash_attn", "it is compiled by CUDA's compiler when it is installed"),
    "mamba-ssm": ("mamba_ssm", "it is compiled by CUDA's compiler when it is installed"),
    "pycuda": ("pycuda", "it is linked against CUDA"),
    "sageattention": ("sageattention", "its kernels are for CUDA alone"),
    "tensorrt": ("tensorrt", "it is NVIDIA's and needs a card of theirs"),
    "tensorrt-llm": ("tensorrt_llm", "it is NVIDIA's and needs a card of theirs"),
    "triton": ("triton", "it compiles for CUDA and ROCm; torch asks for the one that it needs"),
    "triton-windows": ("triton", "it compiles for CUDA"),
    "vllm": ("vllm", "its wheels are for CUDA"),
    "xformers": ("xformers", "its kernels are for CUDA and ROCm, and it asks for one exact torch"),
}
"""Distribution → module, and why it is left out on a processor."""
_SAME = {"faiss-gpu": "faiss-cpu", "tensorflow-gpu": "tensorflow", "cupy-cuda12x": "", "cupy-cuda11x": ""}
_TORCH = ("torch", "torchaudio", "torchvision", "torchcodec", "torchtext")
OnIndex = Callable[[NormalizedName], bool]


@dataclass(frozen=True, kw_only=True)
class Repairs:
    """What is wrong with requirement lines, and the patches."""

    sections: tuple[ProposedPatch, ...]
    issues: tuple[Issue, ...]
    modules: Mapping[str, str]
    """Top-level modules that are not there on a processor any more → why."""
    remarks: tuple[str, ...]


_KINDS: Mapping[str, tuple[str, str, str]] = {
    "other-index": (
        "another index is named",
        "a lock asks one index and the recorded ones; most often the CUDA build of torch is meant",
        "the line is dropped",
    ),
    "editable": ("a folder is installed", "the app runs from its clone", "the line is dropped"),
    "vcs-requirement": (
        "a repository stands for a distribution",
        "it has no hash, and may be another one tomorrow",
        "the index's release of that name is taken, where it has one",
    ),
    "local-version": (
        "one build of a version is pinned",
        "the build for CUDA is asked for by name, which no other machine has",
        "the version stays, the build goes",
    ),
    "only-cuda": ("it is for CUDA alone", "it cannot be installed, or does nothing", "it is left out on a processor"),
    "standard-library": (
        "it is part of Python",
        "what the index has of that name is never imported, and may not install",
        "the line is dropped",
    ),
    "unreadable": ("no installer can read it", "no lock can be made", "the line is dropped: look it through"),
    "torch-pin": (
        "the version of torch is pinned",
        "the channel of this machine may have other versions, and its companions must be of the same",
        "the lock is tried with it as it stands",
    ),
}


def names_of_places(source: SourceText) -> tuple[NormalizedName, ...]:
    """Name what repositories and archives seem to install, so that the index can be asked for these."""
    return tuple(name for line in requirement_sources.lines(source) if (name := _name_of_place(source, line)))


def _name_of_place(source: SourceText, line: Line) -> NormalizedName | None:
    match line:
        case RequirementLine(requirement=Requirement(url=str()) as one) if (
            requirements_for_locks.pin(source, line) is None
        ):
            return canonicalize_name(one.name)
        case LocationLine(target=target) if "://" in target:
            return canonicalize_name(re.sub(r"\.git$", "", _path(target).rpartition("/")[2]) or "unnamed")
        case _:
            return None


def _path(target: str) -> str:
    return urlsplit(target.removeprefix("git+")).path.partition("@")[0].rstrip("/")


def repair(
    files: Files,
    paths: Sequence[PurePosixPath],
    on_index: OnIndex,
    link: Callable[..., str],
    excluded: Collection[NormalizedName],
) -> Repairs:
    """Look at each line of some requirement files.

    Args:
        files: of the tree.
        paths: the requirement files.
        on_index: says whether the index has a distribution.
        link: names a place of upstream as a reader can open it, by path and line.
        excluded: distributions that shared sets leave out.
    """
    found = [one for path in paths for one in _of_file(files, path, on_index, link) if one.name not in excluded]
    sections: dict[str, ProposedPatch] = {}
    for one in (one.section for one in found if one.section is not None):
        known = sections.get(one.written.patch.id)
        sections[one.written.patch.id] = one if known is None else _joined(known, one)
    issues = tuple(
        Issue(name=kind, title=title, means=means, found=places, remedy=remedy)
        for kind, (title, means, remedy) in _KINDS.items()
        if (places := tuple(one.finding for one in found if one.kind == kind))
    )
    return Repairs(
        sections=tuple(sections.values()),
        issues=issues,
        modules=dict(one.module for one in found if one.module is not None),
        remarks=tuple(one.remark for one in found if one.remark),
    )


def _joined(one: ProposedPatch, other: ProposedPatch) -> ProposedPatch:
    """Make one patch of two that do the same in two files."""
    patch = one.written.patch
    paths = tuple(dict.fromkeys((*patch.paths, *other.written.patch.paths)))
    both = dataclasses.replace(one.written, patch=dataclasses.replace(patch, paths=paths))
    return ProposedPatch(comment=f"{one.comment}; {other.comment}", written=both)


def _of_file(files: Files, path: PurePosixPath, on_index: OnIndex, link: Callable[..., str]) -> Iterator[Repair]:
    source = decode(path, files[path])
    if isinstance(source, Undecodable):
        return
    for line in requirement_sources.lines(source):
        shown = source.text[line.span.start : line.span.end].strip() or _written(line)
        finding = Finding(path=path, line=line.line, text=" ".join(shown.split())[:100])
        made = LinePatcher(source=source, line=line, finding=finding, link=link(path, line.line))
        match line:
            case OptionLine(options=options) if not {name for name, _ in options} & {"--requirement", "--constraint"}:
                yield made.dropped("other-index", "A lock asks the machine's index and the recorded ones alone.")
            case LocationLine(target=target):
                yield from _location(made, target, on_index)
            case Unreadable(why=why):
                yield made.dropped("unreadable", f"It cannot be read: {why}.", remark=f"{finding}: {why}")
            case RequirementLine(editable=True):
                yield made.dropped("editable", "The app runs from its clone.")
            case RequirementLine(requirement=requirement):
                yield from _requirement(made, requirement, on_index)
            case _:
                pass


def _written(line: Line) -> str:
    match line:
        case RequirementLine(requirement=requirement):
            return str(requirement)
        case LocationLine(target=target):
            return target
        case Unreadable(text=text):
            return text
        case _:
            return ""


def _location(made: LinePatcher, target: str, on_index: OnIndex) -> Iterator[Repair]:
    name = _name_of_place(made.source, made.line)
    if name is None:
        yield made.dropped("editable", "It is a folder of the clone, or of one machine.")
    elif on_index(name):
        comment = f"The index has a {name}; see that it is the same project as {target}."
        yield made.replaced("vcs-requirement", name, comment)
    else:
        remark = f"{made.finding}: the index has no {name}; the app may not work without it"
        yield made.dropped("vcs-requirement", f"The index has no {name}.", remark=remark)


def _requirement(made: LinePatcher, requirement: Requirement, on_index: OnIndex) -> Iterator[Repair]:
    name = canonicalize_name(requirement.name)
    local = [one for one in requirement.specifier if "+" in one.version]
    if requirement.url and requirements_for_locks.pin(made.source, made.line) is None:  # type: ignore[arg-type]
        if on_index(name):
            comment = f"The index has a {name}; see that it is the same project as {requirement.url}."
            yield made.set("vcs-requirement", name, SpecifierSet(), comment)
        else:
            remark = f"{made.finding}: the index has no {name}; the app may not work without it"
            yield made.without("vcs-requirement", name, f"The index has no {name}.", remark=remark)
    elif name in _ONLY_CUDA:
        module, why = _ONLY_CUDA[name]
        yield made.without("only-cuda", name, f"{why[0].upper()}{why[1:]}.", profiles=PROCESSOR, module=(module, why))
    elif _SAME.get(name):
        yield made.renamed("only-cuda", name, Requirement(_SAME[name]))
    elif name.replace("-", "_") in sys.stdlib_module_names:
        comment = f"Python has a module {name} of its own, which wins over any that is installed."
        yield made.without("standard-library", name, comment)
    elif local:
        public = SpecifierSet(
            ",".join(f"{one.operator}{one.version.partition('+')[0]}" for one in requirement.specifier)
        )
        yield made.set("local-version", name, public, "Each profile has a build of its own of that version.")
    elif name in _TORCH and any(one.operator == "==" for one in requirement.specifier):
        yield Repair(kind="torch-pin", finding=made.finding)


def all_files(files: Files, first: PurePosixPath) -> tuple[PurePosixPath, ...]:
    """List a requirement file and those that it includes and that are there, each once."""
    found: list[PurePosixPath] = []
    waiting = [first]
    while waiting:
        path = waiting.pop(0)
        source = decode(path, files[path]) if path in files else None
        if path in found or not isinstance(source, SourceText):
            continue
        found.append(path)
        options = [
            option
            for line in requirement_sources.lines(source)
            if isinstance(line, OptionLine)
            for option in line.options
        ]
        included = (
            requirements_for_locks.resolve_include(path, value)
            for name, value in options
            if name in requirement_sources.INCLUDES
        )
        waiting += [path for path in included if path is not None]
    return tuple(found)
