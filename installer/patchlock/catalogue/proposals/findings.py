"""What is found in a clone, and what is proposed for it, as values."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from packaging.utils import NormalizedName

from patchlock.model.identities import CommitId
from patchlock.model.visible_text import visible_name

if TYPE_CHECKING:
    from patchlock.catalogue.authoring.assembly import Written

Files = Mapping[PurePosixPath, bytes]

_LONGEST = 100
"""Characters of an excerpt."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One place in upstream's files."""

    path: PurePosixPath
    line: int
    """1-based."""
    text: str
    patch: str = dataclasses.field(default="", compare=False)
    """Id of the shared set's patch that is about it; "" where none is."""

    def __str__(self) -> str:
        return visible_name(f"{self.path}:{self.line}: {self.text}")


def excerpt(text: str) -> str:
    """Give a piece of a file in one line, cut after a word where it is long."""
    words = " ".join(text.split())
    if len(words) <= _LONGEST:
        return words
    start = words[: _LONGEST + 1]
    return f"{start.rpartition(' ')[0] or start[:-1]} …"


@dataclass(frozen=True, kw_only=True)
class Issue:
    """One kind of trouble, and all places that have it."""

    name: str
    """A shared set's, or one of ours."""
    title: str
    means: str
    """What it does on a machine without an NVIDIA card; a clause."""
    found: tuple[Finding, ...]
    """By path and line."""
    remedy: str
    """What the proposal does about it; a clause."""
    is_at_start: bool = True
    """What is missing is imported as the app's modules are; otherwise it is missed where it is used."""
    is_reached: bool = True
    """The program may come to its places; otherwise nothing shows that it ever does."""
    is_late: bool = False
    """It comes to them no sooner than when some of its code asks for that file."""
    is_slower: bool = False
    """The app works with it, on the CPU or slowly."""
    is_doubtful: bool = False
    """It may do nothing at all: whether it counts cannot be read."""
    is_left: bool = False
    """Nothing of the proposal does anything about it: the remedy is what a person has to do."""


STOPS = ("stops the start", "stops the first use", "may stop a use", "slower", "cosmetic")
"""What an issue does, worst first."""
_FIRST_USE = frozenset(
    [
        "av-wheel",
        "device-helper",
        "needs-compiler",
        "no-run-time-pip",
        "onnxruntime-one-provider",
        "removed-interface",
        "submodule",
        "torch-load-weights-only",
    ]
)
_SLOWER = frozenset({"sdist-only"})
_COSMETIC = frozenset({"pip-option", "torch-pin"})


def stops(issue: Issue) -> str:
    """Say what an issue does where nobody does anything about it, one of `STOPS`."""
    if issue.name in _COSMETIC or issue.is_doubtful:
        return STOPS[4]
    if issue.name in _SLOWER or issue.is_slower:
        return STOPS[3]
    if not issue.is_reached:
        return STOPS[2]
    if issue.name in _FIRST_USE or not issue.is_at_start or issue.is_late:
        return STOPS[1]
    return STOPS[0]


def of_program(
    issues: Iterable[Issue],
    started: Collection[PurePosixPath],
    idle: Mapping[PurePosixPath, Collection[int]],
    requirements: Collection[PurePosixPath],
) -> tuple[Issue, ...]:
    """Tell the places of each issue of Python files apart by whether a program may come to them.

    Args:
        issues: what was found.
        started: the files that it runs as it starts.
        idle: the files to which it may come, with the lines to which it does not.
        requirements: the files that say what it requires; a setup.py among them is no code of the program.
    """
    places: dict[Issue, list[Finding]] = {}
    for issue in issues:
        worst = stops(dataclasses.replace(issue, is_reached=True, is_late=False))
        paths = {one.path for one in issue.found}
        is_of_code = all(path.suffix == ".py" for path in paths) and not paths <= {*requirements} and worst in STOPS[:2]
        for one in issue.found:
            is_reached = not is_of_code or (one.path in idle and one.line not in idle[one.path])
            is_late = is_of_code and is_reached and worst == STOPS[0] and one.path not in started
            kind = dataclasses.replace(issue, found=(), is_reached=is_reached, is_late=is_late)
            places.setdefault(kind, []).append(one)
        if not issue.found:
            places.setdefault(issue, [])
    return tuple(dataclasses.replace(issue, found=tuple(found)) for issue, found in places.items())


def ranked(issues: Iterable[Issue]) -> tuple[Issue, ...]:
    """Put the issues in order: the worst first, and of those that are as bad the one with most places."""
    return tuple(sorted(issues, key=lambda issue: (STOPS.index(stops(issue)), -len(issue.found), issue.name)))


@dataclass(frozen=True, kw_only=True)
class ProposedPatch:
    """A patch of the app's own, and why it is proposed."""

    comment: str
    """One or more sentences."""
    written: Written


@dataclass(frozen=True, kw_only=True)
class SetChoice:
    """A shared set that is taken."""

    name: str
    why: str
    """A clause: what it found, or what calls for it."""
    without: tuple[str, ...] = ()
    """Patches that are left out."""


@dataclass(frozen=True, kw_only=True)
class RequirementFile:
    """A file that says what the app requires, and what speaks for or against it."""

    path: PurePosixPath
    count: int
    """Requirements in it."""
    why: str
    """A clause."""


@dataclass(frozen=True, kw_only=True)
class Launching:
    """How the app seems to be started."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    why: str
    others: tuple[str, ...]
    """Other commands that may be meant."""


@dataclass(frozen=True, kw_only=True)
class AppMetadata:
    """What the app's file says beside patches; each with where it was read."""

    title: str
    license: str
    license_from: str
    python: str
    python_from: str
    launch: Launching
    imports: tuple[str, ...]
    """Modules whose import proves that the environment fits; the app's own last."""


@dataclass(frozen=True, kw_only=True)
class SystemNeed:
    """A program or library of the machine."""

    name: str
    """Of `profiles/needs/`."""
    why: str
    found: Finding
    is_required: bool = False
    """Without it the app cannot be installed."""
    platforms: tuple[str, ...] = ()
    """Empty: all."""
    is_of_requirement: bool = False
    """A requirement of a requirement needs it, which stands in no line of the app's; `found` is the first of these."""

    @property
    def told(self) -> str:
        """Name it with its place, or with its reason where it has none."""
        return f"{self.name} ({self.why if self.is_of_requirement else f'{self.found.path}:{self.found.line}'})"


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """All of a proposed `app.toml`."""

    name: str
    url: str
    branch: str
    commit: CommitId
    facts: AppMetadata
    requirements: RequirementFile
    together: tuple[PurePosixPath, ...]
    """All files that people are told to install from in one go, that one among them."""
    alternatives: tuple[RequirementFile, ...]
    sets: tuple[SetChoice, ...]
    sections: tuple[ProposedPatch, ...]
    needs: tuple[SystemNeed, ...]
    issues: tuple[Issue, ...]
    tables: tuple[str, ...] = ()
    """TOML of further tables, such as `[[build]]`."""
    submodules: tuple[str, ...] = ()
    """Folders of those whose files the app needs."""
    extras: tuple[NormalizedName, ...] = ()
    """Of the project files, that are taken."""
    as_of: str = ""
    """Until when locks take files; "": until the commit's time."""
    remarks: tuple[str, ...] = ()
    """What a person has to look at; sentences without a full stop."""

    def link(self, path: PurePosixPath, line: int = 0) -> str:
        """Name a place of upstream as a reader can open it."""
        page = self.url.removesuffix(".git")
        file = quote(str(path), safe="/!$&'()*+,;=:@", errors="surrogateescape")
        return f"{page}/blob/{self.commit}/{file}" + (f"#L{line}" if line else "")
