"""All the values that flow through patchlock, frozen and already parsed; holds no behaviour beyond naming."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal, Protocol

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.check_kinds import Check, SmokeImport
from patchlock.fits import Fit, Platform, Successor
from patchlock.identities import CommitId, Sha256
from patchlock.lazily import dataclass
from patchlock.lock_rules import LockRules
from patchlock.needs import Need
from patchlock.overlays import Overlay
from patchlock.places import Origin
from patchlock.recipes import InTree, Recipe
from patchlock.sources import Edit, SourceText

# --- patches ----------------------------------------------------------------------------------------------------------


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
    DRIFTED = "drifted by the user"


BLOCKING = frozenset({OutcomeKind.AMBIGUOUS, OutcomeKind.REQUIRED_AT_IMPORT, OutcomeKind.UNPARSABLE})
"""Outcomes with which a patch is not applied, so that nothing may be installed."""


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


@dataclass(frozen=True, kw_only=True)
class Located:
    """What an op found in one file."""

    edits: tuple[Edit, ...] = ()
    """Not overlapping, in any order."""
    sites: tuple[Site, ...] = ()
    """Places that need the patch; one or more edits each."""
    settled: tuple[Site, ...] = ()
    """Places that are already as the patch wants them."""
    refusals: tuple[Refusal, ...] = ()


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


@dataclass(frozen=True, kw_only=True)
class Patch:
    """One declared change with an id and a why; its `op` does the work."""

    id: str
    why: str
    source: str
    """URL or document that shows the trouble."""
    paths: tuple[str, ...]
    """Globs over POSIX paths from the app's folder (`**` crosses folders)."""
    literal: tuple[str, ...]
    """A file without any of these (ASCII, any encoding) is never parsed; empty: every file of `paths` is."""
    profiles: tuple[str, ...]
    """Only for these profiles; empty: for all."""
    op_name: str
    op: Op
    ensures: tuple[Ensure, ...]
    expect: Expect
    after: tuple[str, ...]
    """Ids of patches of the same app that go first."""
    origin: Origin
    executed: tuple[SmokeImport, ...] = ()
    """What must hold when the patched code runs; see `planning.executed`."""
    optional: str = ""
    """Only where a person chooses this name; "": always. Several patches may share one."""
    gives: str = ""
    """What is to be had by choosing it, and what it costs; a clause, "" where another patch of that name says it."""
    helps: tuple[str, ...] = ()
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


# --- catalogue --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RecordedWheel:
    """One wheel of an index, as the index answered."""

    name: NormalizedName
    version: Version
    filename: str
    url: str
    sha256: Sha256
    requires: tuple[Requirement, ...]
    """From the wheel's METADATA; without specifiers where the source had none."""
    source: str
    uploaded: str = ""
    """When the index took it, an RFC 3339 time; "" where that is not known."""


@dataclass(frozen=True, kw_only=True)
class RecordedSdist:
    """One sdist that only this index has; what it requires stands in a [[metadata]] table."""

    name: NormalizedName
    version: Version
    filename: str
    url: str
    sha256: Sha256
    source: str


@dataclass(frozen=True, kw_only=True)
class Keep:
    """Which wheels of an index are recorded."""

    distributions: tuple[Requirement, ...]
    """One for each distribution; its specifier bounds the versions."""
    pythons: tuple[Version, ...]
    """Major and minor only."""
    platforms: tuple[Platform, ...]


@dataclass(frozen=True, kw_only=True)
class RecordedIndex:
    """An index answer kept in the catalogue, so that uv can lock from it offline."""

    name: str
    url: str
    wheels: tuple[RecordedWheel, ...]
    origin: Origin
    keep: Keep | None = None
    """None where nobody has said; then the index cannot be refreshed."""
    sdists: tuple[RecordedSdist, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A kind of machine that we support."""

    name: str
    title: str
    source: str
    python: Version
    """Major and minor only."""
    platforms: tuple[Platform, ...]
    specificity: int
    arch: str
    """What the accelerator's compiled code is for: `sm_110`, `gfx1201`; "" where no wheel has to have any."""
    fits: tuple[Fit, ...] = ()
    """What it demands of a machine, one of them; empty: every machine of its platforms."""
    trials: tuple[Fit, ...] = ()
    """Machines that it may run on, though nobody has tried."""
    successor: Successor | None = None
    """A profile that is better on the same machines."""
    back_end: str = "cpu"
    """What computes there, a key of `backends.BACK_ENDS`."""
    indexes: tuple[str, ...]
    from_pypi: tuple[NormalizedName, ...] = ()
    """Distributions that are taken from PyPI although the recorded indexes have some files of them."""
    rules: LockRules
    recipes: tuple[Recipe, ...] = ()
    environment: Mapping[str, str]
    """Variables for every process that runs in the environment."""
    overlays: tuple[Overlay, ...] = ()
    checks: tuple[Check, ...]
    needs: tuple[Need, ...] = ()
    """What such a machine must have beyond Python packages."""
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class EmbeddedUpstream:
    """A miniature upstream that lives in the catalogue and becomes a git clone at install."""

    folder: PurePosixPath
    """From the catalogue's root."""
    commit: CommitId
    """Of the clone that is made from the folder."""
    date: str
    """When that commit says it was made: RFC 3339, UTC; also the default cut-off of locks."""


@dataclass(frozen=True, kw_only=True)
class GitUpstream:
    """A public repository."""

    url: str
    commit: CommitId


Upstream = EmbeddedUpstream | GitUpstream


@dataclass(frozen=True, kw_only=True)
class Listens:
    """Where a launched app can be reached, and what lets it be reached from outside its container."""

    port: int
    """TCP."""
    environment: Mapping[str, str]
    """Variables that let it listen on all addresses."""
    arguments: tuple[str, ...]
    """Words after the command that do so; neither of the two where it does so anyway."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How the app is started, from its folder in the clone."""

    command: tuple[str, ...]
    """The first word is looked up in the environment first."""
    environment: Mapping[str, str]
    """Defaults; a variable that the user has set wins."""
    says: str
    """What a person does next, or ""."""
    beside: Mapping[str, str]
    """Variable → another app of the catalogue that this one starts, see `patchlock.beside`."""
    listens: Listens | None = None
    """None: it serves nothing."""


@dataclass(frozen=True, kw_only=True)
class RefusedPair:
    """A pair that cannot be, and why."""

    profile: str
    platforms: tuple[str, ...]
    """Empty: all platforms of the profile."""
    why: str
    source: str


@dataclass(frozen=True, kw_only=True)
class SharedSet:
    """Patches and rules against one common disease, for any app that names the set."""

    name: str
    title: str
    source: str
    patches: tuple[Patch, ...]
    """Their ids begin with the set's name."""
    rules: LockRules
    is_expected: bool = False
    """An app says that the set must find something there."""
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class App:
    """An upstream application that we patch."""

    name: str
    title: str
    license: str
    source: str
    upstream: Upstream
    branch: str
    directory: PurePosixPath
    """The app's folder in the clone, `.` for the root."""
    requirement_files: tuple[PurePosixPath, ...]
    """From the app's folder."""
    python: SpecifierSet
    """Python versions that the app's code and pins allow."""
    rules: LockRules
    recipes: tuple[Recipe, ...] = ()
    in_tree: tuple[InTree, ...] = ()
    patches: tuple[Patch, ...]
    """Those of the shared sets go first."""
    shared: tuple[SharedSet, ...] = ()
    """As the app takes them; `patches` and `rules` hold what is in them."""
    launch: Launch
    checks: tuple[Check, ...]
    refusals: tuple[RefusedPair, ...]
    needs: tuple[Need, ...] = ()
    """What the app needs of a machine beyond Python packages."""
    origin: Origin
