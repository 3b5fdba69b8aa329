"""Which of a tree's files says what the app requires when it runs, and why not the others; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.catalogue.proposals import requirement_repairs
from patchlock.catalogue.proposals.documents import Told
from patchlock.catalogue.proposals.findings import Files, Finding, RequirementFile
from patchlock.catalogue.proposals.shared_sets import Asked
from patchlock.model.errors import RequirementsError
from patchlock.model.text_files import Undecodable, decode
from patchlock.model.visible_text import is_utf8
from patchlock.patches import import_graph, requirement_sources
from patchlock.patches.pip_requirements import EmptyLine, LocationLine, OptionLine, RequirementLine, Unreadable

_PIP = re.compile(r"(?i)(?:.*[-_.])?(?:requir\w*ments?|reqs?)(?:[-_.].*)?\.(?:txt|in)")
"""Misspelt ones, too."""
_CONDA = re.compile(r"(?i)(?:environment|conda|env)[^/]*\.ya?ml")
_INSTALLERS = frozenset({"pip", "pip3", "uv", "conda", "mamba", "micromamba", "pip.exe"})
_PROJECT = ("pyproject.toml", "setup.cfg", "setup.py")
_PLAIN = frozenset({"requirements.txt", "requirements.in"})
_OTHER_PURPOSE = re.compile(
    r"(?i)(?:^|[-_./])(dev|develop|test|tests|doc|docs|train|training|lint|ci|build|example|examples|notebook|notebooks|"
    r"bench|benchmark|eval|evaluation|third_party|vendor|extra|extras|optional)(?=[-_./]|$)"
)
_OTHER_MACHINE = re.compile(
    r"(?i)(?:^|[-_./])(cuda|cu\d+|gpu|nvidia|rocm|amd|dml|directml|ipex|xpu|mac|macos|osx|mps|npu|docker|colab|jetson|"
    r"trt|tensorrt)(?=[-_./\d]|$)"
)
_TESTED = (
    "it holds the versions that upstream tested, for its own machines; every lock is resolved anew from what the app "
    "asks for, and a [[constraint]] keeps one of these versions"
)
_UNREAD = (
    *(
        (name, _TESTED)
        for name in ("uv.lock", "poetry.lock", "pdm.lock", "pixi.lock", "Pipfile.lock", "conda-lock.yml")
    ),
    ("Pipfile", f"it is not read: {requirement_sources.OF_PIPFILE}"),
)
"""Files and why they are not read."""
"""Requirements in one sentence."""
_SPELLED = {
    "colab": "Colab",
    "directml": "DirectML",
    "docker": "Docker",
    "gpu": "GPUs",
    "jetson": "Jetson",
    "mac": "macOS",
    "macos": "macOS",
    "osx": "macOS",
    "rocm": "ROCm",
    "tensorrt": "TensorRT",
}


def unread(listed: Iterable[PurePosixPath]) -> tuple[RequirementFile, ...]:
    """List the files at the root, and every Pipfile, that hold requirements, too, and are not read, with the reason.

    Args:
        listed: every file of the tree.
    """
    return tuple(
        RequirementFile(path=path, count=0, why=why)
        for name, why in _UNREAD
        for path in sorted(listed)
        if path.name == name and (len(path.parts) == 1 or name == "Pipfile")
    )


def is_candidate(path: PurePosixPath) -> bool:
    """Tell by its name whether a file may say what an app requires; an app's file names none that is not UTF-8."""
    if not is_utf8(str(path)):
        return False
    in_folder = path.parent.name.lower() in {"requirements", "reqs"} and path.suffix in {".txt", ".in"}
    return bool(_PIP.fullmatch(path.name) or in_folder or _CONDA.fullmatch(path.name) or path.name in _PROJECT)


def named(told: Iterable[Told], files: Files) -> tuple[tuple[PurePosixPath, Finding], ...]:
    """List the files that people are told to install from, in that order, each with its first place."""
    found: dict[PurePosixPath, Finding] = {}
    for line in told:
        words = line.words
        if not _INSTALLERS.intersection(word.rpartition("/")[2] for word in words[:6]):
            continue
        for before, word in zip(("", *words), words, strict=False):
            name = before.startswith(("-r", "-f", "--requirement", "--file")) and word
            name = name or (re.match(r"(?:-r|--requirement=|--file=)(.+)", word) or ["", ""])[1]
            plain = PurePosixPath(str(name).replace("\\", "/").removeprefix("./"))
            page = line.found.path
            beside = page.parent if page.name.lower().startswith("readme") and line.folder == PurePosixPath() else None
            folders = (*filter(None, [beside]), line.folder, PurePosixPath())
            path = next((path for path in (one / plain for one in folders) if path in files), None)
            if path is not None:
                found.setdefault(path, line.found)
    return tuple(found.items())


def _projects(told: Iterable[Told], files: Files, repository: str) -> dict[PurePosixPath, Finding]:
    """List the project files that people are told to install, each with that place; they clone into `repository`."""
    folders = {PurePosixPath(), PurePosixPath(repository)}
    place = next(
        (one.found for one in told if one.folder in folders and _installs_project(one.words, repository)), None
    )
    return {path: place for path in map(PurePosixPath, _PROJECT) if place is not None and path in files}


def _installs_project(words: Sequence[str], repository: str) -> bool:
    """Tell whether a command installs what the project file of its folder says, or of the repository itself."""
    itself = re.compile(rf"(?i)\./?(?:\[.*\])?|git\+\S+/{re.escape(repository)}(?:\.git)?/?(?:[@#]\S*)?")
    match words[2:] if words[1:2] == ("-m",) else words:
        case ["uv", "pip", "install", *more] | ["pip" | "pip3", "install", *more]:
            return any(map(itself.fullmatch, more))
        case [_, "setup.py", "install" | "develop", *_] | ["uv", "sync", *_] | ["poetry" | "pdm", "install", *_]:
            return True
        case _:
            return False


def differences(
    taken: Asked, path: PurePosixPath, files: Files, locked: Mapping[NormalizedName, Version] = MappingProxyType({})
) -> str:
    """Say what another file of the root, for whoever starts the app, asks for and those taken do not; "" for none.

    Args:
        taken: the requirements that the lock is made of.
        path: the other file.
        files: of the tree.
        locked: what a lock brings anyway.
    """
    if path not in files or str(path) not in {*_PROJECT, *_PLAIN}:
        return ""
    ours = {name: {one.requirement.specifier for one in every} for name, every in taken.items()}
    theirs = [
        one.found.text
        for name, every in requirement_repairs.located(files, requirement_repairs.all_files(files, path)).items()
        for one in every
        if (name not in ours or (one.requirement.specifier and one.requirement.specifier not in ours[name]))
        and not (name in locked and one.requirement.specifier.contains(locked[name], prereleases=True))
    ]
    return f"{path} asks for {', '.join(theirs)}" if theirs else ""


def together(first: PurePosixPath, told: Iterable[Told], files: Files) -> tuple[PurePosixPath, ...]:
    """List what people are told to install from in one go with a file, in the same block of the same document."""
    by_block: dict[tuple[PurePosixPath, int], list[Told]] = {}
    for line in told:
        by_block.setdefault((line.found.path, line.block), []).append(line)
    for lines in by_block.values():
        paths = [path for path, _ in named(lines, files)]
        if first in paths:
            return tuple(path for path in paths if path == first or _is_for_all(path))
    return (first,)


def _of_setup(files: Files) -> dict[PurePosixPath, Finding]:
    """List the files that `install_requires` of a setup.py is read from, each with the place that names it."""
    path = PurePosixPath("setup.py")
    module = import_graph.tree(path, files[path]) if path in files else None
    nodes = list(ast.walk(module)) if module else []
    assigned = {ast.unparse(one.targets[0]): one.value for one in nodes if isinstance(one, ast.Assign)}
    asked = [one.value for one in nodes if isinstance(one, ast.keyword) and one.arg == "install_requires"]
    asked += [assigned[one.id] for one in asked if isinstance(one, ast.Name) and one.id in assigned]
    return {
        file: Finding(path=path, line=one.lineno, text=one.value)
        for one in (node for value in asked for node in ast.walk(value))
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and (file := PurePosixPath(one.value)) in files
    }


def _is_for_all(path: PurePosixPath) -> bool:
    """Tell whether a file is for whoever starts the app; what is called extra is, where people are told to take it."""
    name = str(path.with_suffix(""))
    purpose = _OTHER_PURPOSE.search(name)
    is_extra = purpose is not None and purpose[1].lower() in {"extra", "extras", "optional"}
    return (purpose is None or is_extra) and _OTHER_MACHINE.search(name) is None


def candidates(
    files: Files,
    told: Collection[Told] = (),
    listed: Collection[PurePosixPath] = (),
    unread: Collection[RequirementFile] = (),
    repository: str = "",
) -> tuple[RequirementFile, ...]:
    """List the files that say what an app requires, the likeliest first.

    Args:
        files: of the tree.
        told: what its documents tell people to type.
        listed: further files that are meant.
        unread: what `unread` has found.
        repository: the name of the tree's.

    Raises:
        RequirementsError: there is none, or the only ones are no text.
    """
    unreadable: list[str] = []
    found: list[tuple[tuple[int, ...], RequirementFile]] = []
    places = {**_projects(told, files, repository), **dict(named(told, files))}
    of_setup = _of_setup(files)
    for path in sorted(path for path in files if is_candidate(path) or path in {*places, *of_setup, *listed}):
        source = decode(path, files[path])
        if isinstance(source, Undecodable):
            unreadable.append(f"{path} cannot be read as text: {source.why}")
            continue
        lines = requirement_sources.lines(source)
        count = sum(isinstance(line, RequirementLine | LocationLine) for line in lines)
        unclear = [line for line in lines if isinstance(line, Unreadable)]
        includes = any(isinstance(line, OptionLine) and "--requirement" in dict(line.options) for line in lines)
        if path.name in _PROJECT and not count:
            unreadable += [f"{path}:{line.line}: {line.why}" for line in unclear[:1]]
            continue  # a computed list; what it is computed from is another file
        if count or unclear or includes or all(isinstance(line, EmptyLine) for line in lines):
            rank, why = _judged(path, count, places.get(path), of_setup.get(path))
            found.append((rank, RequirementFile(path=path, count=count, why=why)))
    ranked = tuple(one for _, one in sorted(found, key=lambda item: (item[0], item[1].path)))
    if not any(one.count for one in ranked):
        raise RequirementsError(
            unreadable[0] if unreadable else "no file of that commit says what the app requires",
            remedy="name the file with --requirements FILE (requirement files, pyproject.toml, setup.cfg, setup.py and "
            "conda's environment.yml are read), or give another commit; what only a Pipfile, a computed list, a "
            "notebook or a Dockerfile says, write into the requirements.txt of a fork, and give the address of that",
            evidence=[*unreadable[1:], *(f"{one.path}: {one.why}" for one in unread)],
        )
    return ranked


def _judged(
    path: PurePosixPath, count: int, place: Finding | None, of_setup: Finding | None
) -> tuple[tuple[int, ...], str]:
    name = str(path.with_suffix(""))
    purpose, machine = _OTHER_PURPOSE.search(name), _OTHER_MACHINE.search(name)
    depth = len(path.parts) - 1
    if not count:
        kind, why = 9, "it requires nothing"
    elif purpose:
        kind, why = 8, f"it is for {purpose[1].lower()}"
    elif machine:
        kind, why = 7, f"it is for {_SPELLED.get(word := machine[1].lower(), word.upper())}"
    elif place is not None:
        kind = 3 if _CONDA.fullmatch(path.name) else int(path.name not in _PLAIN)
        why = f"{place.path}:{place.line} says to install from it"
    elif of_setup is not None:
        kind, why = 2, f"{of_setup.path}:{of_setup.line} takes from it what the package requires"
    elif path.name in _PLAIN:
        kind, why = 0, "its name is the one that pip users install from"
    elif path.name in _PROJECT:
        kind, why = 1 + _PROJECT.index(path.name), "it says what the package requires"
    elif _CONDA.fullmatch(path.name):
        kind, why = 5, "it is for conda; only what stands below its `pip:` is read"
    else:
        kind, why = 4, "it is a requirement file of another name"
    if depth and kind < 7:
        why += f", in {path.parent}"
    return (kind >= 7, place is None and of_setup is None, depth, kind), why


def machine(path: PurePosixPath) -> str:
    """Say for which kind of machine a file is by its name; "" for any."""
    found = _OTHER_MACHINE.search(str(path.with_suffix("") if path.suffix in {".txt", ".in"} else path))
    return found[1].lower() if found else ""


def fitting_machine(ranked: tuple[RequirementFile, ...], accelerator: str) -> tuple[RequirementFile, ...]:
    """Put a file of that format first that is named after the wanted machine, such as `requirements_cpu.txt`."""
    named = re.compile(rf"(?i)(?:^|[-_./]){re.escape(accelerator)}(?=[-_./\d]|$)")
    alike = [one for one in ranked if one.path.suffix == ranked[0].path.suffix and len(one.path.parts) == 1]
    first = [one for one in alike if named.search(str(one.path.with_suffix("")))]
    return (*first, *(one for one in ranked if one not in first)) if first and first[0].count else ranked
