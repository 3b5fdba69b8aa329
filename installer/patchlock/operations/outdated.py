"""Which installed apps have something newer: another lock in the catalogue, or commits on upstream's branch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from patchlock.catalogue import app_summaries
from patchlock.catalogue.app_summaries import AppSummary
from patchlock.environments import installation_states, kept_catalogue
from patchlock.environments.installation_states import InstallationState
from patchlock.model.errors import CatalogueError, UnknownAppError, UpstreamError
from patchlock.model.installation import Installation
from patchlock.worktree import upstream_cache


@dataclass(frozen=True, kw_only=True)
class Newer:
    """What an installation could have."""

    state: InstallationState
    upstream: str
    """The commit of upstream's branch, where that is another one than is installed; else ""."""
    branch: str
    failure: str
    """Why upstream could not be asked; else ""."""

    @property
    def is_outdated(self) -> bool:
        """Whether there is something newer."""
        return self.state.state == "stale" or bool(self.upstream)


def look(home: Path, root: Path, tell: Callable[[str], None]) -> tuple[Newer, ...]:
    """Compare every installation with the catalogue and with its upstream, which is asked over the network.

    Args:
        home: of the installations.
        root: the catalogue's.
        tell: told which app is looked at.
    """
    found = []
    for state in installation_states.states(home, root):
        if state.used is None:
            continue
        tell(state.installation.app)
        found.append(_newer(root, state))
    return tuple(found)


def _newer(root: Path, state: InstallationState) -> Newer:
    installed = state.used.upstream if state.used else ""
    try:
        app = _summary(root, state.installation)
        there = upstream_cache.branch_commit(app.url, app.branch) if app.url else installed
    except (CatalogueError, UnknownAppError, UpstreamError) as error:
        return Newer(state=state, upstream="", branch="", failure=error.what)
    return Newer(state=state, upstream="" if there == installed else there, branch=app.branch, failure="")


def _summary(root: Path, installation: Installation) -> AppSummary:
    """Read an app from the catalogue, or from what its installation keeps of the one that it was made from."""
    try:
        return app_summaries.read_summary(root, installation.app)
    except UnknownAppError:
        kept = kept_catalogue.root(installation)
        if kept is None:
            raise
        return app_summaries.read_summary(kept, installation.app)
