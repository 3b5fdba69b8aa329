"""What a lock is resolved from; a value."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.utils import NormalizedName

from patchlock.catalogue.reader import Catalogue
from patchlock.locks import wheel_choice
from patchlock.model.app import App, PairLike, rules_of
from patchlock.model.fits import Platform
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.lock_rules import LockRules
from patchlock.model.profile import Profile
from patchlock.model.recipes import OtherBuild, fits
from patchlock.model.recorded_index import RecordedIndex, RecordedSdist, RecordedWheel
from patchlock.patches import requirements_for_locks
from patchlock.patches.requirements_for_locks import AskedRequirements, Pin

RecordedFiles = tuple[RecordedWheel | RecordedSdist, ...]


def fitting(index: RecordedIndex, pair: PairLike) -> RecordedFiles:
    """Keep the files of a recorded index that a pair may install: wheels that run there, sdists that may be built."""
    wheels = (w for w in index.wheels if wheel_choice.best_wheel([w.filename], pair.platform, pair.profile))
    return (*wheels, *(sdist for sdist in index.sdists if sdist.name in rules_of(pair).source_builds))


def untimed(files: RecordedFiles) -> frozenset[NormalizedName]:
    """Name the distributions to which no cut-off applies: the record does not say when each file was uploaded."""
    return frozenset(file.name for file in files if isinstance(file, RecordedSdist) or not file.uploaded)


def last_day(cut_off: str) -> str:
    """Name the last day whose files a cut-off lets in, for a person: at midnight it is the day before."""
    return (datetime.datetime.fromisoformat(cut_off) - datetime.timedelta(seconds=1)).date().isoformat()


@dataclass(frozen=True, kw_only=True)
class ResolutionInputs:
    """All that a lock is made from."""

    app: App
    profile: Profile
    platform: Platform
    indexes: tuple[RecordedIndex, ...]
    commit: CommitId
    as_of: str
    """Files uploaded later are not considered: an RFC 3339 time in UTC, or "" for no bound."""
    newer: Mapping[NormalizedName, str]
    """Distribution → its own cut-off, beyond the catalogue's exceptions."""
    patched_by: Mapping[NormalizedName, tuple[str, ...]]
    """Distribution → patches that edited its requirement."""
    requirements: Mapping[PurePosixPath, bytes]
    """The patched requirement files and every file that they include, by path from the app's folder."""
    inputs: Mapping[str, Sha256]
    """What is written into the lock for `lock --check`."""
    catalogue: Catalogue
    """Where the tables of what fits together stand."""
    cache: Path
    """Folder for what was read of wheels."""

    @functools.cached_property
    def asked(self) -> AskedRequirements:
        """What these files ask for."""
        return requirements_for_locks.walk(
            self.app.requirement_files,
            self.requirements,
            wanted=self.app.optional_lists,
            directory=self.app.directory,
        )[0]

    @property
    def rules(self) -> LockRules:
        """The profile's rules and the app's."""
        return rules_of(self)

    @property
    def other_builds(self) -> tuple[OtherBuild, ...]:
        """What is built that is no sdist of the lock: in the app's own tree, and from source by choice."""
        here = self.profile.name, self.platform.name
        trees = [OtherBuild(id=one.id, requires=one.requires) for one in self.app.in_tree if fits(one, *here)]
        sources = [
            OtherBuild(id=f"{one.name} from source", requires=one.archive.requires)
            for one in (*self.app.recipes, *self.profile.recipes)
            if one.archive and fits(one, *here)
        ]
        return (*trees, *sources)

    @property
    def cut_offs(self) -> Mapping[NormalizedName, str]:
        """Distribution → its own cut-off; "" for no bound."""
        return {rule.name: rule.until for rule in self.rules.newer} | dict(self.newer)

    @property
    def pins(self) -> tuple[Pin, ...]:
        """Requirements that name their one file by address and sha256."""
        return requirements_for_locks.pins(self.asked)
