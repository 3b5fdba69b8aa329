"""An app: an upstream application that is patched, as its file says; values."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Protocol

from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidName, NormalizedName, canonicalize_name

from patchlock.model.checks import Check, SoundCheck
from patchlock.model.fits import Platform
from patchlock.model.identities import CommitId
from patchlock.model.lock_rules import LockRules
from patchlock.model.models import Model
from patchlock.model.needs import MemoryNeed, Need
from patchlock.model.origins import Origin
from patchlock.model.patch import Patch
from patchlock.model.profile import Profile
from patchlock.model.recipes import InTree, Recipe
from patchlock.model.refusals import RefusedPair
from patchlock.model.table_fields import Filled, FilledTexts, Key, Parsed


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


@dataclass(frozen=True, kw_only=True)
class Submodule:
    """A repository that lies in a folder of another one."""

    name: str
    """In `.gitmodules`."""
    path: PurePosixPath
    url: str
    commit: CommitId


def list_name(text: str) -> NormalizedName:
    """Parse the name of an extra or a group.

    Raises:
        ValueError: it is none, in one clause.
    """
    try:
        return canonicalize_name(text, validate=True)
    except InvalidName as error:
        raise ValueError(f'"{text}" is not the name of an extra or a group') from error


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
    path: str = "/"
    """Of the page that answers once the app is ready."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How the app is started, from its folder in the clone."""

    command: FilledTexts
    """The first word is looked up in the environment first."""
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Defaults; a variable that the user has set wins."""
    says: str = ""
    """What a person does next, or ""."""
    help: tuple[str, ...] = ("--help",)
    """Words with which a program that serves nothing shows that it starts, and ends with exit code 0."""
    companion_apps: Annotated[Mapping[str, str], Key("beside")] = dataclasses.field(default_factory=dict)
    """Variable → another app of the catalogue that this one starts, see `environments.generations`."""
    listens: Listens | None = None
    """None: it serves nothing."""

    @property
    def is_placeholder(self) -> bool:
        """Whether it is a Python alone, as in the draft of an app whose program nobody has named yet."""
        return len(self.command) == 1 and PurePosixPath(self.command[0]).name.startswith("python")


@dataclass(frozen=True, kw_only=True)
class MissingOption:
    """What a person may ask for with `--with`, and cannot have."""

    names: FilledTexts
    """Under which he may ask for it: `training`, `deepspeed`."""
    why: str
    """Why not, a clause after "it cannot be had: "."""
    instead: str
    """What he can do now, a clause."""
    source: str


@dataclass(frozen=True, kw_only=True)
class SharedSet:
    """Patches and rules against one common problem, for any app that names the set."""

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
class OptionalLists:
    """Which of a project's optional requirements are wanted, by their normalised names."""

    extras: tuple[NormalizedName, ...] = ()
    groups: tuple[NormalizedName, ...] = ()


@dataclass(frozen=True, kw_only=True)
class App:
    """An upstream application that we patch."""

    name: str
    title: str
    license: str
    source: str
    upstream: Upstream
    branch: str
    as_of: str = ""
    """Until when files may have been uploaded that a new lock takes: RFC 3339, UTC; "": until the commit's time."""
    submodules: tuple[PurePosixPath, ...] = ()
    """Folders of the clone in which another repository has to be, at the commit that upstream's tree names."""
    directory: PurePosixPath
    """The app's folder in the clone, `.` for the root."""
    requirement_files: Annotated[tuple[PurePosixPath, ...], Key("requirements"), Filled(), Parsed(PurePosixPath)]
    """From the app's folder."""
    extras: Annotated[tuple[NormalizedName, ...], Parsed(list_name)] = ()
    """Of these files, beside what the app needs in any case."""
    groups: Annotated[tuple[NormalizedName, ...], Parsed(list_name)] = ()
    """Dependency groups of these files."""
    installs_nothing: bool = False
    """The files may ask for no package at all."""
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
    trials: tuple[RefusedPair, ...] = ()
    """Pairs that have a lock and are known not to work on some machines: taken where a person names the profile."""
    needs: tuple[Need, ...] = ()
    """What the app needs of a machine beyond Python packages."""
    memory: tuple[MemoryNeed, ...] = ()
    """What it takes of the machine's and of the card's."""
    missing_options: tuple[MissingOption, ...] = ()
    models: tuple[Model, ...] = ()
    """What it downloads itself, or a person has to put there."""
    origin: Origin

    @property
    def sounds(self) -> tuple[SoundCheck, ...]:
        """The jobs that make a sound; `bench` measures the first."""
        return tuple(check for check in self.checks if isinstance(check, SoundCheck))

    @property
    def optional_lists(self) -> OptionalLists:
        """The wanted extras and groups."""
        return OptionalLists(extras=self.extras, groups=self.groups)


def joined_ref(commit: CommitId, paths: Iterable[PurePosixPath]) -> str:
    """Name the ref that holds a commit with the files of submodules in it."""
    digest = hashlib.sha256("\0".join(sorted(map(str, paths))).encode(errors="surrogateescape")).hexdigest()[:12]
    return f"refs/patchlock/joined/{commit}-{digest}"


class PairLike(Protocol):
    """An app on a platform of a profile, whatever else is with it."""

    @property
    def app(self) -> App:
        """The app."""
        ...

    @property
    def profile(self) -> Profile:
        """The kind of machine."""
        ...

    @property
    def platform(self) -> Platform:
        """One of the profile's."""
        ...


def rules_of(pair: PairLike) -> LockRules:
    """Join the rules of the profile and of the app, as they are on the platform."""
    return (pair.profile.rules + pair.app.rules.of(pair.profile.name)).on(pair.platform.name)
