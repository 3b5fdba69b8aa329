"""Fetching the models of an installed app, and saying how much they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patchlock.environments import generations, models
from patchlock.environments.models import LocatedFile
from patchlock.locks.lock_request import Request
from patchlock.model.errors import DownloadError, ModelError, NetworkError
from patchlock.model.models import ModelSize, When, sizes_by_time
from patchlock.model.progress import Progress
from patchlock.operations import _session


def fetch(request: Request, progress: Progress) -> tuple[LocatedFile, ...]:
    """Bring every file of the app's models to where the app looks for it, and check those that are there.

    Killed anywhere, each file is there whole and right or not at all, and the next fetch goes on.

    Returns:
        What was brought, as it was before.

    Raises:
        NotInstalledError: the app is not installed, so that it looks nowhere.
        HashMismatchError, NetworkError, DownloadError, DiskFullError: as `environments.models.bring`.
        ModelError: the same, after all other files.
    """
    installation = request.installation
    generations.require_current(installation, request.app.name)

    brought: list[LocatedFile] = []
    refused: list[ModelError] = []
    with _session.lock(installation, progress), models.hold(request):
        located = models.locate(request)
        models.require_room(request, [one for one in located if one.state == "missing"])
        for number, one in enumerate(located):
            with progress.stage("model"):
                progress.say(str(one.file.path))
                try:
                    is_new = models.bring(request, one, progress.transfer, progress.note)
                except ModelError as error:  # of this file alone
                    refused.append(error)
                    progress.say(f"{one.file.path} of {one.model.repository} was not fetched")
                    continue
                except (NetworkError, DownloadError) as error:
                    others = [models.by_hand(other) for other in located[number + 1 :] if other.state == "missing"]
                    missing = (f"missing, too: {text}" for text in dict.fromkeys(others))
                    error.evidence = (*error.evidence, *map(str, refused), *missing)
                    raise
                progress.say(f"{one.file.path} of {one.model.repository}{'' if is_new else ' was there'}")
            if is_new:
                brought.append(one)
    if refused:
        first, *more = refused
        first.evidence = (*first.evidence, *map(str, more))
        raise first
    return tuple(brought)


@dataclass(frozen=True, kw_only=True)
class ModelSummary:
    """How much an app downloads beside its packages."""

    missing: Mapping[When, ModelSize]
    """What is not where it looks, by the time at which it is downloaded."""
    files: int
    """All that are declared."""
    missing_files: int


def summary(request: Request, *, on_paper: bool = False) -> ModelSummary:
    """Count what the app would still download.

    Args:
        request: the pair.
        on_paper: the machine is another one, of which nobody knows what is there: all of it.
    """
    located = models.locate(request) if request.app.models else ()
    missing = [one for one in located if on_paper or one.state == "missing"]
    return ModelSummary(
        missing=sizes_by_time((one.model, one.file) for one in missing),
        files=len(located),
        missing_files=len(missing),
    )
