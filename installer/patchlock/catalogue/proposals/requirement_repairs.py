"""Patches for requirement lines that no lock can be made from, or that only an NVIDIA card has a use for; pure."""

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

from patchlock.catalogue.proposals import _gpu_packages
from patchlock.catalogue.proposals._line_patches import LinePatcher, MissingModule, Repair
from patchlock.catalogue.proposals.findings import Files, Finding, Issue, ProposedPatch, excerpt
from patchlock.catalogue.proposals.shared_sets import LocatedRequirement
from patchlock.model.profile import Profile
from patchlock.model.text_files import SourceText, Undecodable, decode
from patchlock.patches import requirement_sources, requirements_for_locks
from patchlock.patches.pip_requirements import Line, LocationLine, OptionLine, RequirementLine, Span, Unreadable

_SAME = {r"faiss-gpu(?:-cu\d+)?": "faiss-cpu", r"tensorflow-gpu": "tensorflow", r"jax-cuda.*": "jax"}
"""Pattern of the name of a build for CUDA → the same library without it."""
_REPUBLISHED: Mapping[tuple[str, ...], tuple[NormalizedName, str]] = {
    ("github.com", "openai", "clip"): (canonicalize_name("clip-anytorch"), "a fork that publishes it for any torch"),
    ("github.com", "openai", "whisper"): (canonicalize_name("openai-whisper"), "which names it as its own"),
}
"""Repository → the index's distribution of it under another name, and what that is.

Source: README and METADATA of clip-anytorch 2.6.0, METADATA of openai-whisper 20250625 on PyPI, read 2026-11-23.
"""
_COMMIT = re.compile(r"@([0-9a-f]{7,40})(?:#|$)")
_TORCH = ("torch", "torchaudio", "torchvision", "torchcodec", "torchtext")
OnIndex = Callable[[NormalizedName], bool]
Addresses = Callable[[NormalizedName], tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Repairs:
    """What is wrong with requirement lines, and the patches."""

    sections: tuple[ProposedPatch, ...]
    issues: tuple[Issue, ...]
    modules: Mapping[str, MissingModule]
    """Top-level modules that are not there on some profiles any more."""
    remarks: tuple[str, ...]


_INCLUDES = frozenset({"--requirement", "--constraint"})
_INDEXES = frozenset({"--extra-index-url", "--find-links", "--index-url", "--no-index", "--trusted-host"})
_KINDS: Mapping[str, tuple[str, str, str]] = {
    "other-index": (
        "another index is named",
        "a lock asks one index and the recorded ones; most often the CUDA build of torch is meant",
        "the line is dropped",
    ),
    "pip-option": (
        "an option for pip stands among the requirements",
        "a lock says itself which files are installed, and what is built",
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
    "only-cuda": (
        "it needs a GPU",
        "without one that it supports it does nothing, or cannot be installed",
        "it is left out on the profiles without such a GPU",
    ),
    "needs-compiler": (
        "its build asks for CUDA's compiler",
        "few machines have that, and the app starts without it",
        "it is left out, and what uses it fails there",
    ),
    "standard-library": (
        "it is part of Python",
        "what the index has of that name is never imported, and may not install",
        "the line is dropped",
    ),
    "unreadable": ("no installer can read it", "no lock can be made", "the line is dropped: read it"),
    "torch-pin": (
        "the version of torch is pinned",
        "the channel of this machine may have other versions, and its companions must be of the same",
        "the lock is tried with it as it stands",
    ),
}


def names_of_places(source: SourceText) -> tuple[NormalizedName, ...]:
    """Name what repositories and archives seem to install, so that the index can be asked for these."""
    names = {name: None for line in requirement_sources.lines(source) if (name := _name_of_place(source, line))}
    others = [other for (*_, repository), (other, _) in _REPUBLISHED.items() if repository in names]
    return (*names, *others)


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
    profiles: Collection[Profile],
    addresses: Addresses = lambda _: (),
) -> Repairs:
    """Look at each line of some requirement files.

    Args:
        files: of the tree.
        paths: the requirement files.
        on_index: says whether the index has a distribution.
        link: names a place of upstream as a reader can open it, by path and line.
        excluded: distributions that shared sets leave out.
        profiles: those of the catalogue.
        addresses: gives those that the index's distribution names as its own.
    """
    looking = _Looking(on_index=on_index, link=link, profiles=profiles, addresses=addresses)
    found = [one for path in paths for one in _of_file(files, path, looking) if one.name not in excluded]
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
        modules={one.module.name: one.module for one in found if one.module is not None},
        remarks=tuple(one.remark for one in found if one.remark),
    )


def _joined(one: ProposedPatch, other: ProposedPatch) -> ProposedPatch:
    """Make one patch of two that do the same in two files."""
    patch = one.written.patch
    paths = tuple(dict.fromkeys((*patch.paths, *other.written.patch.paths)))
    both = dataclasses.replace(one.written, patch=dataclasses.replace(patch, paths=paths))
    return ProposedPatch(comment=f"{one.comment}; {other.comment}", written=both)


@dataclass(frozen=True, kw_only=True)
class _Looking:
    """What the lines are judged by; as for `repair`."""

    on_index: OnIndex
    link: Callable[..., str]
    profiles: Collection[Profile]
    addresses: Addresses


def _of_file(files: Files, path: PurePosixPath, looking: _Looking) -> Iterator[Repair]:
    source = decode(path, files[path])
    if isinstance(source, Undecodable):
        return
    for line in requirement_sources.lines(source):
        shown = source.text[line.span.start : line.span.end].strip() or _written(line)
        said = [one for one in _said(source, line) if one not in shown] if _name_of_place(source, line) else []
        finding = Finding(path=path, line=line.line, text="  # ".join(map(excerpt, (shown, *said))))
        made = LinePatcher(source=source, line=line, finding=finding, link=looking.link(path, line.line))
        match line:
            case OptionLine(options=options) if names := {name for name, _ in options} - _INCLUDES:
                if names & _INDEXES:
                    yield made.dropped("other-index", "A lock asks the machine's index and the recorded ones alone.")
                else:
                    yield made.dropped("pip-option", "A lock says itself which files are installed.")
            case LocationLine(target=target):
                yield from _location(made, target, looking)
            case Unreadable(remedy=remedy) if key := _key_to_drop(remedy):
                yield made.without_key(
                    "other-index", key, "A lock asks the machine's index and the recorded ones alone."
                )
            case Unreadable(why=why):
                yield made.dropped("unreadable", f"It cannot be read: {why}.", remark=f"{finding}: {why}")
            case RequirementLine(editable=True, requirement=Requirement(url=str(url))) if _is_remote(url):
                yield from _place(made, canonicalize_name(line.requirement.name), url, looking)
            case RequirementLine(editable=True):
                yield made.dropped("editable", "The app runs from its clone.")
            case RequirementLine(requirement=requirement):
                yield from _requirement(made, requirement, looking)
            case _:
                pass
    if requirement_sources.is_pip(path):
        return
    for one in requirement_sources.read(source).from_indexes:
        finding = Finding(path=path, line=one.line, text=f"{one.name} from {one.url}")
        line = Unreadable(line=one.line, span=Span(start=0, end=0), text="", why="")
        made = LinePatcher(source=source, line=line, finding=finding, link=looking.link(path, one.line))
        yield made.without_key("other-index", one.key, "Each profile has an index for it, or takes it from PyPI.")


def _said(source: SourceText, line: Line) -> Iterator[str]:
    """Give upstream's comment above a line, where it is a sentence, and the one beside it."""
    *_, above, here = ["", *source.text.splitlines()[: line.line]]
    if (found := re.fullmatch(r"\s*#\s*(\w+(?: [^\s=]+){2,})\s*", above)) is not None:
        yield found[1]
    if (found := re.search(r"\s#\s*(\S.*)", here)) is not None:
        yield found[1]


def _key_to_drop(remedy: str) -> str:
    """Read which key of a TOML file a remedy wants to have dropped, where that changes no version; "" for none."""
    found = re.search(r'delete-key, key = "((?:tool\.uv|tool\.poetry)[^"]*(?:index|source|sources)[^"]*)"', remedy)
    return found[1] if found else ""


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


def _location(made: LinePatcher, target: str, looking: _Looking) -> Iterator[Repair]:
    name = _name_of_place(made.source, made.line)
    if name is None:
        yield made.dropped("editable", "It is a folder of the clone, or of one machine.")
    else:
        yield from _place(made, name, target, looking)


def _is_remote(url: str) -> bool:
    return "://" in url and not url.startswith("file:")


def _place(made: LinePatcher, name: NormalizedName, target: str, looking: _Looking) -> Iterator[Repair]:
    """Take the index's distribution in the place of a repository, where it is the same project."""
    if (other := _republished(target, looking)) is not None:
        yield made.replaced("vcs-requirement", other[0], other[1], remark=f"{made.finding}: {other[1]}")
    elif not (why := _not_taken(name, target, looking)):
        told, remark = _taken(made, name, target, looking)
        yield made.replaced("vcs-requirement", name, told, remark=remark)
    else:
        remark = f"{made.finding}: {why}; the app may not work without it"
        yield made.dropped("vcs-requirement", f"{why[0].upper()}{why[1:]}.", remark=remark)


def _not_taken(name: NormalizedName, url: str, looking: _Looking) -> str:
    """Say why the index's distribution of that name does not stand for a repository, a clause; "" where it may."""
    if not looking.on_index(name):
        return f"the index has no {name}"
    named = looking.addresses(name)
    if named and not any(_repository(one)[-1:] == _repository(url)[-1:] for one in named):
        return f"the {name} of the index is another project ({named[0]})"
    return ""


def _taken(made: LinePatcher, name: NormalizedName, url: str, looking: _Looking) -> tuple[str, str]:
    """Say that the index's distribution is taken, and what a person has to look at; "" where it is the same."""
    own = next((one for one in looking.addresses(name) if _repository(one) == _repository(url)), "")
    if own:
        told = f"the index has a {name}, which names {own} as its own"
        if commit := _COMMIT.search(url):
            told += f", and the app's is of commit {commit[1][:12]}"
            return f"{told[0].upper()}{told[1:]}.", f"{made.finding}: {told}; see that the app works with a release"
        return f"{told[0].upper()}{told[1:]}.", ""
    same_name = (one for one in looking.addresses(name) if _repository(one)[-1:] == _repository(url)[-1:])
    if (origin := next(same_name, "")) != "":
        told = f"the index has a {name} of {origin}, and the app's is of {url}: what only that one has is missing"
        return f"{told[0].upper()}{told[1:]}.", f"{made.finding}: {told}; see that the app works with it"
    return (
        f"The index has a {name}; see that it is the same project as {url}.",
        f"{made.finding}: the index has a {name}, which does not name this repository; see that it is the same project",
    )


def _republished(url: str, looking: _Looking) -> tuple[NormalizedName, str] | None:
    """Find the index's distribution of a repository under another name, and say what it is."""
    name, what = _REPUBLISHED.get(_repository(url), (None, ""))
    if name is None or not looking.on_index(name):
        return None
    return name, f"the index has this repository as {name}, {what}"


def _repository(url: str) -> tuple[str, ...]:
    """Name host, owner and name of a repository, lower case; empty for another address."""
    parts = urlsplit(url.removeprefix("git+"))
    path = re.sub(r"\.git$", "", parts.path.partition("@")[0].rstrip("/")).strip("/").lower().split("/")
    host = (parts.hostname or "").removeprefix("www.")
    return (host, path[0], path[1].removesuffix(".git")) if len(path) > 1 else ()


def _requirement(made: LinePatcher, requirement: Requirement, looking: _Looking) -> Iterator[Repair]:
    name = canonicalize_name(requirement.name)
    same = next((other for pattern, other in _SAME.items() if re.fullmatch(pattern, name)), None)
    local = [one for one in requirement.specifier if "+" in one.version]
    if requirement.url and requirements_for_locks.pin(made.source, made.line) is None:  # type: ignore[arg-type]
        if (other := _republished(str(requirement.url), looking)) is not None:
            to, comment = Requirement(other[0]), other[1]
            yield made.renamed("vcs-requirement", name, to, (), comment=comment, remark=f"{made.finding}: {comment}")
        elif not (why := _not_taken(name, requirement.url, looking)):
            told, remark = _taken(made, name, requirement.url, looking)
            yield made.set("vcs-requirement", name, SpecifierSet(), told, remark=remark)
        else:
            remark = f"{made.finding}: {why}; the app may not work without it"
            yield made.without("vcs-requirement", name, f"{why[0].upper()}{why[1:]}.", remark=remark)
    elif same is not None:
        without = _gpu_packages.profiles_without("nvidia", looking.profiles)
        comment = f"{same} is the same library without CUDA."
        yield made.renamed("only-cuda", name, Requirement(same), without, comment=comment)
    elif (needs := _gpu_packages.find(name, requirement.specifier)) is not None:
        kind = "needs-compiler" if needs.needs == "compiler" else "only-cuda"
        without = () if kind != "only-cuda" else _gpu_packages.profiles_without(needs.needs, looking.profiles)
        module = MissingModule(name=needs.module, why=needs.why, profiles=without)
        yield made.without(kind, name, f"{needs.why[0].upper()}{needs.why[1:]}.", profiles=without, module=module)
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


def located(files: Files, paths: Sequence[PurePosixPath]) -> dict[NormalizedName, tuple[LocatedRequirement, ...]]:
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
