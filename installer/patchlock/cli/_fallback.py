"""Where a profile does not work on this machine: ask a person for the next one, take it, or say how to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from patchlock.cli import _options, _output
from patchlock.model.errors import PatchlockError
from patchlock.operations import fallback

if TYPE_CHECKING:
    from patchlock.locks.lock_request import Request
    from patchlock.model.progress import Progress
    from patchlock.operations.install import InstallResult

FAILURES = fallback.FAILURES


def take(
    request: Request,
    error: PatchlockError,
    next_request: fallback.NextRequest,
    attempt: Callable[[Request], InstallResult],
    progress: Progress,
    *,
    is_wanted: bool,
    as_json: bool,
) -> fallback.Replacement | None:
    """Bring about what works in the place of what does not, where somebody wants it; else say in the error how.

    Args:
        request: what does not work.
        error: why; gets the way out.
        next_request: names the next profile.
        attempt: installs and proves one.
        progress: told what goes on.
        is_wanted: somebody has said so beforehand.
        as_json: nobody can be asked.

    Raises:
        PatchlockError: it is wanted, and no other profile works.
    """
    if is_wanted:
        progress.note(f"{request.profile.name} does not work here: {fallback.in_one_line(error)}")
    else:
        offered = fallback.offer(request, error.what, next_request)
        if offered is None:
            return None
        error.remedy = f"{error.remedy}; " if error.remedy else ""
        error.remedy += (
            f"or `patchlock install {request.app.name} --profile {request.profile.name} --fallback` installs it on "
            f"{offered.profile.name}, proves that and uses it instead of this"
        )
        if as_json or not _output.can_ask():
            return None
        _output.echo(f"{request.profile.name} does not work on this machine: {error.what}", err=True)
        for line in error.evidence:
            _output.echo(f"  {line}", err=True)
        if not _output.agreed(f"Install {request.app.name} on {offered.profile.name} instead?", default=True):
            return None
    return fallback.install_instead(request, error, next_request, attempt, progress)


def other_profile(request: Request, catalogue: Path | None) -> str:
    """Name the profile that could be installed where this one does not work any more; "" for none.

    Args:
        request: what does not work.
        catalogue: that the user names, where there may be other profiles.
    """

    def next_request(failed: Mapping[str, str]) -> Request:
        return _options.request(catalogue, request.app.name, None, failed=failed)

    with contextlib.suppress(PatchlockError):
        if (offered := fallback.offer(request, "its checks failed", next_request)) is not None:
            return offered.profile.name
    return ""
