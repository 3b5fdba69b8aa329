"""The scratch catalogue in which the locks of a proposed app are tried; the user's is not touched."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from patchlock.catalogue.proposals import document
from patchlock.catalogue.proposals.findings import Proposal
from patchlock.catalogue.proposals.importers import Importers
from patchlock.catalogue.reader import Catalogue
from patchlock.core.atomic_files import atomic_write
from patchlock.locks.lock_request import Request
from patchlock.model.app import SharedSet
from patchlock.model.fits import Platform
from patchlock.model.profile import Profile


@dataclass(frozen=True, kw_only=True)
class LockSettings:
    """Where and for what locks are tried."""

    catalogue: Catalogue
    """A scratch one, which has profiles and shared sets."""
    cache: Path
    profile: Profile
    platform: Platform
    date: str
    """Of the commit: RFC 3339."""
    source: str | None
    solve: bool
    """Write the smallest edits that resolve a conflict into the proposal."""
    seconds: float
    """For all explanations of a pair together, and for the reasons of all further pairs."""
    sets: Mapping[str, SharedSet]
    importers: Callable[[], Importers] = Importers
    """Gives the imports of the app, which are asked for only where something has to go."""
    tell: Callable[[str], None] = lambda _: None
    """Is called with what goes on."""

    def pair(self, proposal: Proposal) -> str:
        """Name the pair."""
        return f"{proposal.name} × {self.profile.name} × {self.platform.name}"


def create_scratch_catalogue(catalogue: Catalogue, folder: Path) -> Catalogue:
    """Make a catalogue without apps, with the profiles and patches of another one."""
    for part in ("profiles", "patches/shared", "patches/distributions"):
        if (catalogue.root / part).is_dir():
            shutil.copytree(catalogue.root / part, folder / part)
    (folder / "patches").mkdir(exist_ok=True)
    return Catalogue(root=folder, is_trusted=catalogue.is_trusted)


def write(proposal: Proposal, root: Path) -> Path:
    """Write a proposal into a catalogue, over the one that is there."""
    path = root / "patches" / proposal.name / "app.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, document.render(proposal))
    return path


def request_for(proposal: Proposal, trying: LockSettings) -> Request:
    """Write a proposal into the scratch catalogue, and give the pair."""
    write(proposal, trying.catalogue.root)
    return Request(
        app=trying.catalogue.app(proposal.name),
        profile=trying.profile,
        platform=trying.platform,
        catalogue=trying.catalogue,
        home=trying.catalogue.root / "home",
        cache=trying.cache,
        source=trying.source,
    )
