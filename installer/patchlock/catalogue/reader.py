"""Find the catalogue and read its TOML files, with every mistake of a file reported at once; writes nothing."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patchlock.catalogue import (
    _apps_and_profiles,
    _layers,
    _needs,
    _toml_files,
    agreement,
    codemods,
    distributions,
    policy,
    profile_summaries,
    shared_sets,
)
from patchlock.catalogue import _indexes as catalogue__indexes
from patchlock.catalogue.distributions import Distribution
from patchlock.catalogue.location import checked_root
from patchlock.catalogue.table_reader import Report, Table
from patchlock.model import build_constraints
from patchlock.model.app import App, SharedSet
from patchlock.model.backends import BACK_ENDS
from patchlock.model.devices import Card
from patchlock.model.errors import (
    CatalogueError,
    Problem,
    UnknownAppError,
    UnknownDistributionError,
    UnknownProfileError,
    nearest,
)
from patchlock.model.fits import Platform
from patchlock.model.lock_rules import LockRules
from patchlock.model.needs import Resource
from patchlock.model.patch import Patch
from patchlock.model.policy import Rules
from patchlock.model.profile import Profile
from patchlock.model.recorded_index import RecordedIndex

if TYPE_CHECKING:
    from patchlock.catalogue.expectations import Expectation
    from patchlock.model.troubles import Trouble


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """A folder with `profiles/`, `patches/` and `lockfiles/`."""

    root: Path
    is_trusted: bool = True
    """Whether it may run code of its own: codemods, cases of patched distributions, builds, checks."""
    # The large files are read once for all pairs of a command, which may be locked side by side.
    _indexes: dict[str, RecordedIndex] = dataclasses.field(default_factory=dict, repr=False, compare=False)
    _rules: list[Rules] = dataclasses.field(default_factory=list, repr=False, compare=False)
    _one_at_a_time: threading.Lock = dataclasses.field(default_factory=threading.Lock, repr=False, compare=False)

    def require_trusted(self) -> None:
        """Stop where code of the catalogue would run that nobody has agreed to.

        Raises:
            UntrustedCatalogueError: it did not come with patchlock.
        """
        if not self.is_trusted:
            raise agreement.untrusted_error(self.root)

    @property
    def _untrusted(self) -> Path | None:
        return None if self.is_trusted else self.root

    def app_names(self) -> tuple[str, ...]:
        """List the apps, sorted."""
        return tuple(sorted(path.parent.name for path in self.root.glob("patches/*/app.toml")))

    def profile_names(self) -> tuple[str, ...]:
        """List the profiles, sorted."""
        return tuple(sorted(path.stem for path in self.root.glob("profiles/*.toml")))

    def app(self, name: str) -> App:
        """Read one app.

        Raises:
            UnknownAppError: there is none of that name.
            CatalogueError: its file has mistakes; carries all of them.
        """
        if name not in self.app_names():
            raise UnknownAppError(f'there is no app "{name}"', remedy=nearest(name, self.app_names()))
        app = _toml_files.read(
            self.root,
            f"patches/{name}/app.toml",
            lambda table: _apps_and_profiles.app(
                table, name, self.profile_names(), self.resource_names(), self._shared_of(table), self.app_names()
            ),
        )
        self._require_patched(app.rules, app.origin.file)
        folder = self.root / "patches" / name
        return dataclasses.replace(
            app,
            patches=codemods.bind(app.patches, folder, self._untrusted),
            checks=_layers.bind(app.checks, folder, app.origin.file),
        )

    def shared_names(self) -> tuple[str, ...]:
        """List the shared sets of patches, sorted."""
        return tuple(sorted(path.stem for path in self.root.glob(f"{shared_sets.FOLDER}/*.toml")))

    def shared(self, name: str) -> SharedSet:
        """Read one shared set of patches, as no app has it yet.

        Raises:
            CatalogueError: its file has mistakes; carries all of them.
        """
        file = f"{shared_sets.FOLDER}/{name}.toml"
        return _toml_files.read(
            self.root, file, lambda table: shared_sets.shared_set(table, name, self.profile_names())
        )

    def _shared_of(self, table: Table) -> tuple[SharedSet, ...]:
        names = self.shared_names()
        read = tuple(self.shared(name) for name in dict.fromkeys(shared_sets.requested_sets(table)) if name in names)
        return shared_sets.taken(table, read, names)

    def shared_beside(self, values: Mapping[str, object]) -> tuple[tuple[SharedSet, ...], tuple[SharedSet, ...]]:
        """Give the shared sets that an app's file takes, and all others as it would take them.

        Args:
            values: the file, which may have mistakes.

        Raises:
            CatalogueError: the file of a set has mistakes.
        """
        table = Table(values, Report(file="", text=""))
        taken = self._shared_of(table)
        names = {one.name for one in taken}
        others = tuple(self.shared(name) for name in self.shared_names() if name not in names)
        return taken, shared_sets.taken(table, others, self.shared_names())

    def profile(self, name: str) -> Profile:
        """Read one profile.

        Raises:
            UnknownProfileError: there is none of that name.
            CatalogueError: its file has mistakes; carries all of them.
        """
        if name not in self.profile_names():
            raise UnknownProfileError(f'there is no profile "{name}"', remedy=nearest(name, self.profile_names()))
        profile = _toml_files.read(
            self.root,
            f"profiles/{name}.toml",
            lambda table: _apps_and_profiles.profile(table, name, self.index_names(), self.resource_names()),
        )
        self._require_patched(profile.rules, profile.origin.file)
        return profile

    def _require_patched(self, rules: LockRules, file: str) -> None:
        known = self.distribution_names() if rules.distributions else ()
        unknown = [
            Problem(
                file=file,
                line=rule.origin.line,
                key="distribution.name",
                what=f'there is no patch for a distribution "{rule.name}"',
                remedy=nearest(rule.name, known),
            )
            for rule in rules.distributions
            if rule.name not in known
        ]
        if unknown:
            raise CatalogueError(unknown)

    def index_names(self) -> tuple[str, ...]:
        """List the recorded indexes, sorted."""
        return tuple(sorted(path.stem for path in self.root.glob("profiles/indexes/*.toml")))

    def index(self, name: str) -> RecordedIndex:
        """Read one recorded index.

        Raises:
            CatalogueError: its file has mistakes; carries all of them.
        """
        with self._one_at_a_time:
            if name not in self._indexes:
                file = f"profiles/indexes/{name}.toml"
                self._indexes[name] = _toml_files.read(
                    self.root, file, lambda table: catalogue__indexes.index(table, name)
                )
            return self._indexes[name]

    def resource_names(self) -> tuple[str, ...]:
        """List what an app or a profile may need of a machine, sorted."""
        return tuple(sorted(path.stem for path in self.root.glob("profiles/needs/*.toml")))

    def has_resource(self, name: str) -> bool:
        """Say whether there is a resource of that name."""
        return (self.root / f"profiles/needs/{name}.toml").is_file()

    def resource(self, name: str) -> Resource:
        """Read how something is found on a machine, and how it is installed.

        Raises:
            CatalogueError: its file has mistakes; carries all of them.
        """
        return _toml_files.read(self.root, f"profiles/needs/{name}.toml", lambda table: _needs.resource(table, name))

    def cards(self) -> tuple[Card, ...]:
        """Read the table of devices.

        Raises:
            CatalogueError: its files have mistakes; carries all of them.
        """
        return profile_summaries.cards(self.root)

    def troubles(self) -> tuple[Trouble, ...]:
        """Read the known troubles of machines, sorted by name.

        Raises:
            CatalogueError: files have mistakes; carries all of all files.
        """
        from patchlock.catalogue._troubles import reader  # most commands ask for none

        found: list[Trouble] = []
        problems: list[Problem] = []
        for name in sorted(path.stem for path in self.root.glob("profiles/troubles/*.toml")):
            file = f"profiles/troubles/{name}.toml"
            try:
                read = functools.partial(reader.trouble, name=name)
                found.append(_toml_files.read(self.root, file, read))
            except CatalogueError as error:
                problems += error.problems
        if problems:
            raise CatalogueError(problems)
        return tuple(found)

    def expectations(self, back_end: str) -> tuple[Expectation, ...]:
        """Read which kernels are known to fail on a back end; a catalogue without such a file knows of none.

        Raises:
            CatalogueError: the file has mistakes; carries all of them.
        """
        from patchlock.catalogue import expectations  # as above

        file = f"profiles/expectations/{back_end}.toml"
        return _toml_files.read(self.root, file, expectations.expectations) if (self.root / file).is_file() else ()

    def rules(self) -> Rules:
        """Read the rules of locks; a catalogue without `profiles/policy/` has none.

        Raises:
            CatalogueError: a file has mistakes; carries all of that file.
        """
        with self._one_at_a_time:
            if not self._rules:
                self._rules.append(self._read_rules())
            return self._rules[0]

    def _read_rules(self) -> Rules:
        folder = "profiles/policy"
        families = tuple(
            _toml_files.read(self.root, file, lambda table, file=file: policy.family(table, file))  # type: ignore[misc]
            for file in sorted(f"{folder}/{path.name}" for path in self.root.glob(f"{folder}/*-family.toml"))
        )
        has = {path.name for path in self.root.glob(f"{folder}/*.toml")}
        pairs, shared, wheels, free = "broken-pairs.toml", "shared-folders.toml", "wheels.toml", "arch-free.toml"
        held, left = "placeholders.toml", "unclaimed.toml"
        return Rules(
            families=families,
            pairs=_toml_files.read(self.root, f"{folder}/{pairs}", policy.pairs) if pairs in has else (),
            folders=_toml_files.read(self.root, f"{folder}/{shared}", policy.folders) if shared in has else (),
            wheels=_toml_files.read(self.root, f"{folder}/{wheels}", policy.wheels) if wheels in has else {},
            arch_free=_toml_files.read(self.root, f"{folder}/{free}", policy.arch_free) if free in has else (),
            placeholders=_toml_files.read(self.root, f"{folder}/{held}", policy.placeholders) if held in has else (),
            unclaimed=_toml_files.read(self.root, f"{folder}/{left}", policy.unclaimed) if left in has else (),
        )

    def distribution_names(self) -> tuple[str, ...]:
        """List the third-party distributions that we patch, sorted."""
        return tuple(sorted(path.parent.name for path in self.root.glob("patches/distributions/*/patch.toml")))

    def distribution(self, name: str) -> Distribution:
        """Read the patches of one distribution.

        Raises:
            UnknownDistributionError: there are none for it.
            CatalogueError: its file has mistakes; carries all of them.
        """
        known = self.distribution_names()
        if name not in known:
            raise UnknownDistributionError(
                f'there is no patch for a distribution "{name}"', remedy=nearest(name, known)
            )
        folder = f"patches/distributions/{name}"
        has_cases = (self.root / folder / "cases.py").is_file()
        read = _toml_files.read(
            self.root,
            f"{folder}/patch.toml",
            lambda table: distributions.distribution(table, name, folder, has_cases, self.profile_names()),
        )
        bound = codemods.bind(read.patches, self.root / folder, self._untrusted)
        return dataclasses.replace(read, patches=bound, untrusted=self._untrusted)

    def lock_path(self, app: App, profile: Profile, platform: Platform) -> Path:
        """Name the lockfile of a pair: `<profile>.txt`, or one for each platform where a profile has several."""
        suffix = f".{platform.name}" if len(profile.platforms) > 1 else ""
        return self.root / "lockfiles" / app.name / f"{profile.name}{suffix}.txt"

    @staticmethod
    def build_path(lock: Path) -> Path:
        """Name the file beside a lock that pins what builds its sdists: `<profile>.build.txt`."""
        return lock.with_name(build_constraints.filename_for(lock.name))

    def read_all(self) -> tuple[tuple[App, ...], tuple[Profile, ...]]:
        """Read every app and profile.

        Raises:
            CatalogueError: carries all mistakes of all files.
        """
        problems: list[Problem] = []
        apps: list[App] = []
        profiles: list[Profile] = []
        for name in self.app_names():
            try:
                apps.append(self.app(name))
            except CatalogueError as error:
                problems += error.problems
        for name in self.profile_names():
            try:
                profiles.append(self.profile(name))
            except CatalogueError as error:
                problems += error.problems
        for read, names in ((self.resource, self.resource_names()), (self.shared, self.shared_names())):
            for name in names:
                try:
                    read(name)
                except CatalogueError as error:
                    problems += error.problems
        try:
            self.cards()
        except CatalogueError as error:
            problems += error.problems
        for path in sorted(self.root.glob("profiles/expectations/*.toml")):
            try:
                self.expectations(path.stem)
            except CatalogueError as error:
                problems += error.problems
            if path.stem not in BACK_ENDS:
                problems.append(_no_back_end(path.stem))
        if problems:
            raise CatalogueError(list(dict.fromkeys(problems)))  # a shared set's are those of each app that takes it
        return tuple(apps), tuple(profiles)


def _no_back_end(name: str) -> Problem:
    file = f"profiles/expectations/{name}.toml"
    what = f'there is no back end "{name}"'
    return Problem(file=file, line=0, key="", what=what, remedy=nearest(name, BACK_ENDS))


def find(folder: Path | None, home: Path | None = None) -> Catalogue:
    """Open the catalogue that the user names, the checkout's, or the one in the wheel.

    Args:
        folder: as the user names it.
        home: see `catalogue.agreement.is_trusted`.

    Raises:
        UsageError: the named folder holds no catalogue.
    """
    root = checked_root(folder)
    return Catalogue(root=root, is_trusted=folder is None or agreement.is_trusted(root, home))


def patch_file(path: Path, home: Path | None = None) -> tuple[Patch, ...]:
    """Read a file of nothing but `[[patch]]` tables, as `patch new` writes it.

    Its codemods run where its folder is trusted as a catalogue is.

    Args:
        path: the file.
        home: see `catalogue.agreement.is_trusted`.

    Raises:
        CatalogueError: it has mistakes; carries all of them.
    """
    folder = path.absolute().parent
    return codemods.bind(
        _toml_files.read(path.parent, path.name, lambda t: _apps_and_profiles.patches(t, may_lack=True)),
        folder,
        None if agreement.is_trusted(folder, home) else folder,
    )
