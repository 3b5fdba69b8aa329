"""A patch, what it does to a file, and what became of it; values."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Annotated, Literal, Protocol

from patchlock.model.checks import SmokeImport
from patchlock.model.origins import Origin
from patchlock.model.table_fields import Filled, Matches, Parsed, ProfileNames
from patchlock.model.text_files import Edit, SourceText


class OutcomeKind(enum.Enum):
    """What became of one patch in one file. Silence is not an outcome."""

    NEEDED = "needed"
    ALREADY_OURS = "already ours"
    FIXED_UPSTREAM = "fixed upstream"
    PARTLY_FIXED = "partly fixed"
    GONE = "gone"
    MOVED = "moved"
    NEW_SITES = "new sites"
    AMBIGUOUS = "ambiguous"
    REQUIRED_AT_IMPORT = "required at import"
    UNPARSABLE = "unparsable upstream"
    BROKEN = "broken upstream"
    """No Python can run the file, so that it is left as it is; the patch goes on with the others."""
    PASSED_OVER = "passed over"
    """One of many files that the patch searches cannot be read, and is left as it is; it goes on with the others."""
    LEFT_OUT = "left out"
    """A person does not want the patch here, or it is advisory and could not do all that it says."""
    DRIFTED = "drifted by the user"

    @property
    def shown(self) -> str:
        """Its name for a person; what a patch wants may be there by upstream or by a patch before it."""
        return {"fixed upstream": "already fixed", "gone": "not needed here"}.get(self.value, self.value)


NOTHING, WAITS, WITH_EDITS = "nothing there needs it", "waits for", "with your edits"
OTHERWISE = "in your file"
"""Details of an outcome: of a patch that is gone; the beginning of one where both sides of a conflict stand in the
file, and of one whose place is as we left it in a file that the user has edited."""
BLOCKING = frozenset({OutcomeKind.AMBIGUOUS, OutcomeKind.REQUIRED_AT_IMPORT, OutcomeKind.UNPARSABLE})
"""Outcomes with which a patch is not applied, so that nothing may be installed if it is required."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """One place in a file."""

    line: int
    """1-based."""
    text: str
    """The line or expression as it stands there, for a message."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A place that an op found and will not touch."""

    line: int
    kind: Literal[OutcomeKind.AMBIGUOUS, OutcomeKind.REQUIRED_AT_IMPORT, OutcomeKind.UNPARSABLE, OutcomeKind.BROKEN]
    why: str
    is_edit: bool = False
    """It is about what the patch writes, in a form that somebody has edited; where the file has what the patch promises
    all the same, it is settled."""

    @classmethod
    def ambiguous(cls, line: int, why: str) -> Refusal:
        """Refuse a place that could be meant in more than one way, or cannot be changed."""
        return cls(line=line, kind=OutcomeKind.AMBIGUOUS, why=why)


@dataclass(frozen=True, kw_only=True)
class Located:
    """What an op found in one file."""

    edits: tuple[Edit, ...] = ()
    """Not overlapping, in any order."""
    sites: tuple[Site, ...] = ()
    """Places that need the patch; one or more edits each."""
    companions: frozenset[int] = field(default=frozenset(), compare=False)
    """Lines of sites at which nothing is wrong, and which only go with what is changed elsewhere."""
    settled: tuple[Site, ...] = ()
    """Places that are already as the patch wants them."""
    is_alike: bool = False
    """Some of what is settled is an edited form of what the patch writes, known by what it does."""
    refusals: tuple[Refusal, ...] = ()
    after: Located | None = field(default=None, compare=False, repr=False)
    """What the op finds in the result of its edits, where it has looked at that to prove them; else None."""


class Op(Protocol):
    """The work of one kind of patch. An op is a frozen dataclass; its fields are the keys of the patch's table."""

    def locate(self, source: SourceText) -> Located:
        """Find where a file needs the patch, and how to edit it. Pure; never raises for what upstream wrote."""
        ...


class Ensure(Protocol):
    """What must hold in a patched file; shares no code with the ops."""

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say what does not hold, one clause each; an empty tuple is a pass."""
        ...


@dataclass(frozen=True, kw_only=True)
class Expect:
    """How many places the author of a patch saw; 0 means "any number"."""

    sites: int = 0
    exact: bool = False
    """Another number than `sites` is ambiguous, not merely reported as new sites."""


_WORDS = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_NO_WORDS = '"{}" must be lower-case words joined by "-"'


def _inside(text: str) -> str:
    if text.startswith("/") or "\\" in text or ".." in text.split("/"):
        raise ValueError(f'"{text}" must be a POSIX path inside the app\'s folder')
    return text


@dataclass(frozen=True, kw_only=True)
class Patch:
    """One declared change with an id and a why; its `op` does the work."""

    id: Annotated[str, Matches('the id "{}" must be lower-case words joined by "-"', _WORDS)]
    why: str
    source: str
    """URL or document that shows the trouble."""
    paths: Annotated[tuple[str, ...], Filled(), Parsed(_inside)]
    """Globs over POSIX paths from the app's folder (`**` crosses folders)."""
    literal: tuple[str, ...] = ()
    """A file without any of these (ASCII, any encoding) is never parsed; empty: every file of `paths` is."""
    profiles: ProfileNames = ()
    """Only for these profiles; empty: for all."""
    op_name: str
    op: Op
    ensures: tuple[Ensure, ...]
    expect: Expect = Expect()
    after: tuple[str, ...] = ()
    """Ids of patches of the same app that go first."""
    advisory: bool = False
    """If it cannot do what it says, it is left out with a warning; otherwise nothing is applied then."""
    origin: Origin
    executed: tuple[SmokeImport, ...] = ()
    """What must hold when the patched code runs; see `patches.outcomes.smoke_checks`."""
    optional: Annotated[str, Matches(_NO_WORDS, _WORDS)] = ""
    """Only where a person chooses this name; "": always. Several patches may share one."""
    gives: str = ""
    """What is to be had by choosing it, and what it costs; a clause, "" where another patch of that name says it."""
    helps: Annotated[tuple[str, ...], Matches(_NO_WORDS, _WORDS)] = ()
    """Compute kernels whose failure recommends it."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one patch in one file, or in the whole app where no file is named."""

    patch: str
    op: str
    kind: OutcomeKind
    path: PurePosixPath | None
    sites: tuple[Site, ...]
    detail: str
    """A clause for a person; "" where the kind says it all."""


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """One file before and after all patches."""

    path: PurePosixPath
    before: bytes | None
    """`None` where the patches make the file."""
    after: bytes
    is_executable: bool = False
    """Of a file that the patches make; others stay as they are."""


@dataclass(frozen=True, kw_only=True)
class Patched:
    """The result of all patches over all sources."""

    changes: tuple[FileChange, ...]
    """Sorted by path; only files whose bytes differ."""
    outcomes: tuple[Outcome, ...]
    """In the order of the patches, then by path; at least one for each patch."""
    failures: tuple[str, ...] = ()
    """`<patch>: <path>: <what does not hold>`, for each `ensure` that failed; such a patch was left out."""
    advisory: frozenset[str] = frozenset()
    """Ids of the patches that may be left out."""
