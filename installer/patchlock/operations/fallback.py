"""Where a profile does not work on this machine: the next one that does, proved and used in its place."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from patchlock.environments import generations
from patchlock.hardware import stored_choice
from patchlock.locks.lock_request import Request, read_sealed_lock
from patchlock.model.errors import (
    LockMissingError,
    NoProfileFitsError,
    NotReadyError,
    PatchlockError,
    RefusedError,
    VerifyError,
)
from patchlock.model.progress import Progress
from patchlock.operations import _session, lifecycle, readiness
from patchlock.operations.install import InstallResult

FAILURES = (VerifyError, NotReadyError)
"""What says that a profile does not work on this machine."""
_NOT_THERE = (LockMissingError, RefusedError)

NextRequest = Callable[[Mapping[str, str]], Request]
"""Makes the request for the profile that fits best, but for those that were tried, with the reasons."""


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """What was installed in the place of something that does not work."""

    request: Request
    report: InstallResult
    failed: Mapping[str, str]
    """Profiles that do not work on this machine, and why."""


def offer(failed: Request, why: str, next_request: NextRequest) -> Request | None:
    """Name what could be installed instead: the next profile that has a lock, and all that it needs on this machine."""
    if failed.profile.back_end == "cpu":
        return None
    reasons = {failed.profile.name: why}
    while (request := _next(next_request, reasons)) is not None:
        try:
            found = readiness.assess(request, read_sealed_lock(request)[0])
        except PatchlockError as error:
            reasons[request.profile.name] = error.what
            continue
        if not found.stops:
            return request
        reasons[request.profile.name] = str(found.stops[0])
    return None


def install_instead(
    failed: Request,
    error: PatchlockError,
    next_request: NextRequest,
    attempt: Callable[[Request], InstallResult],
    progress: Progress,
) -> Replacement:
    """Install the next profile that works on this machine, and use it from now on in the place of the one that failed.

    Killed anywhere, what was in use is in use, and the same command goes on.

    Args:
        failed: what does not work.
        error: why.
        next_request: names the next one.
        attempt: installs and proves one.
        progress: told what goes on.

    Raises:
        PatchlockError: `error`, where no other works either; its evidence says why.
    """
    lifecycle.recover(failed, progress)
    reasons = {failed.profile.name: error.what}
    evidence = list(error.evidence)
    while (request := _next(next_request, reasons)) is not None:
        progress.note(f"{request.profile.name} is tried in its place")
        try:
            with _standing_in(failed, request, progress):
                report = attempt(request)
                if report.unproved is not None:
                    raise report.unproved
        except (*FAILURES, *_NOT_THERE) as why:
            reasons[request.profile.name] = why.what
            evidence.append(f"{request.profile.name}: {in_one_line(why)}")
            progress.note(f"{request.profile.name} does not work here: {in_one_line(why)}")
            continue
        if generations.current(failed.installation) is None and failed.installation.folder.exists():
            lifecycle.uninstall(failed, progress, purge=False)
        return Replacement(request=request, report=report, failed=reasons)
    error.evidence = tuple(evidence)
    raise error


def _next(next_request: NextRequest, reasons: Mapping[str, str]) -> Request | None:
    try:
        request = next_request(reasons)
    except NoProfileFitsError:
        return None
    return request if request.profile.name not in reasons else None


def in_one_line(error: PatchlockError) -> str:
    """Say what failed and what shows it."""
    return "; ".join((error.what, *(line.strip() for line in error.evidence)))


@contextlib.contextmanager
def _standing_in(failed: Request, request: Request, progress: Progress) -> Iterator[None]:
    """Let an installation stand in for another one from the moment in which it can be used."""
    if generations.current(failed.installation) is None:
        yield
        return
    before = _write_stand_in(failed, request.profile.name, progress)
    try:
        yield
    except BaseException:
        _write_stand_in(failed, before, progress)
        raise


def _write_stand_in(failed: Request, instead: str, progress: Progress) -> str:
    """Write down what stands in for an installation; gives what did before."""
    with _session.lock(failed.installation, progress):
        kept = stored_choice.read(failed.installation.folder)
        stored_choice.write(failed.installation.folder, dataclasses.replace(kept, instead=instead))
    return kept.instead
