"""Write down what sdists require, from their static files, so that nobody has to run their code to learn it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from packaging.version import Version

from patchlock.distributions import mirrors, sdist_metadata, sdists
from patchlock.distributions.sdist_metadata import SdistMetadata
from patchlock.locks import _resolve
from patchlock.locks.resolution_inputs import ResolutionInputs
from patchlock.model.errors import MetadataMissingError, PatchlockError
from patchlock.model.lock_rules import LockRules, Metadata
from patchlock.model.lockfile import LockedPackage
from patchlock.model.sdist import Sdist

_ROUNDS = 10
"""An sdist may require another, and so on; deeper than this is a mistake."""


def read_metadata(sdist: Sdist, cache: Path) -> SdistMetadata:
    """Fetch an sdist, if need be, and read what it says about itself; runs none of it.

    Raises:
        HashMismatchError: the server gave other bytes.
        NetworkError: the server does not answer.
        DownloadError: it does not have the file.
        SdistError: the file is no sdist.
    """
    return sdist_metadata.read(sdists.static_files(sdists.fetch(sdist, cache)))


def failing_builds(packages: Iterable[LockedPackage], cache: Path) -> tuple[str, ...]:
    """Say of the sdists of a lock that are on this machine why their builds may fail, a clause each."""
    archives = {one: sdists.cached(one.sha256, cache) for one in packages if one.why.endswith("sdist")}
    told = {one: sdist_metadata.read(sdists.static_files(path)).fails for one, path in archives.items() if path}
    return tuple(f"{one.name} {one.version}: {fails}" for one, fails in told.items() if fails)


def proposed(order: ResolutionInputs, unstated: tuple[Sdist, ...], cache: Path) -> MetadataMissingError:
    """Say what to write into an app's file, for all sdists that a lock would take, also those that sdists ask for.

    Args:
        order: what was to be locked.
        unstated: the sdists that the resolver met first.
        cache: patchlock's, where sdists are kept.

    Raises:
        PatchlockError: as `read_metadata`.
    """
    found = _read_all(order, unstated, cache)
    named = ", ".join(str(sdist) for sdist in found)
    tables = "\n\n".join(sdist_metadata.as_table(sdist, found[sdist]) for sdist in found)
    return MetadataMissingError(
        f"{named} {'says' if len(found) == 1 else 'say'} only by running setup.py or a build backend what is required",
        where=order.app.origin.file,
        remedy="write it down there once, as read from the static files; look it through first:",
        evidence=tables.splitlines(),
    )


def stated(order: ResolutionInputs, cache: Path) -> tuple[ResolutionInputs, str]:
    """Add to an order what the sdists that it takes require; gives the `[[metadata]]` tables, too, "" for none.

    Raises:
        PatchlockError: as `read_metadata`.
    """
    if not (unstated := _next(order)):
        return order, ""
    found = _read_all(order, unstated, cache)
    return _with(order, found), "\n\n".join(sdist_metadata.as_table(sdist, found[sdist]) for sdist in found)


def _read_all(order: ResolutionInputs, unstated: tuple[Sdist, ...], cache: Path) -> dict[Sdist, SdistMetadata]:
    found: dict[Sdist, SdistMetadata] = {}
    new = unstated
    for _ in range(_ROUNDS):
        for sdist in new:
            known = dataclasses.replace(sdist, url=mirrors.with_password(sdist.url))
            found[sdist] = read_metadata(known, cache)
        new = tuple(sdist for sdist in _next(_with(order, found)) if sdist not in found)
        if not new:
            break
    return found


def _next(order: ResolutionInputs) -> tuple[Sdist, ...]:
    """Ask again with what is known; whatever else is wrong is for the next `patchlock lock` to say."""
    try:
        _resolve.resolve(order)
    except MetadataMissingError as error:
        return error.sdists
    except PatchlockError:
        pass
    return ()


def _with(order: ResolutionInputs, found: dict[Sdist, SdistMetadata]) -> ResolutionInputs:
    """Add to an order what was found."""
    metadata = tuple(
        Metadata(
            name=sdist.name,
            version=sdist.version or Version(statement.version or "0"),
            requires=statement.requires,
            build=statement.build,
            why="",
            source="",
            profiles=(),
            origin=order.app.origin,
        )
        for sdist, statement in found.items()
    )
    rules = order.app.rules + LockRules(metadata=metadata)
    return dataclasses.replace(order, app=dataclasses.replace(order.app, rules=rules))
