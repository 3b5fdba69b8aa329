"""One file, one owner: which files of an environment several distributions have written; reads RECORDs and these files.

uv writes into each RECORD all that it has unpacked, whatever the wheel's own RECORD leaves out.
"""

from __future__ import annotations

import os
import posixpath
import sys
from collections.abc import Iterable
from pathlib import Path

from packaging.utils import NormalizedName

from patchlock.distributions import policy
from patchlock.environments import _record_digests
from patchlock.environments.inspection import Contents
from patchlock.locks.reasons import with_files
from patchlock.model.errors import WheelError
from patchlock.model.lock_rules import PolicyException
from patchlock.model.lockfile import Lock

_IS_CASELESS = sys.platform in {"win32", "darwin"}


def written_twice(contents: Contents) -> dict[str, tuple[NormalizedName, ...]]:
    """List the files that several distributions have written with different bytes, by path from site-packages.

    Where all promise the same digest, and the file has it, nobody is harmed: parts of a namespace are often equal.
    """
    found: dict[str, dict[NormalizedName, tuple[str, str]]] = {}
    for distribution, rows in contents.rows.values():
        for path, digest, _ in rows:
            found.setdefault(_place(path), {})[distribution.name] = (digest, path)
    return {
        place: tuple(sorted(owners))
        for place, owners in found.items()
        if len(owners) > 1 and not _is_same(contents.packages, {digest for digest, _ in owners.values()}, place)
    }


def _place(path: str) -> str:
    """Name the place on the disk: Windows and macOS take `A.py` and `a.py` for one file."""
    plain = path.replace(os.sep, "/")
    if ".." in plain or "./" in plain or "//" in plain:
        plain = posixpath.normpath(plain)
    return plain.casefold() if _IS_CASELESS else plain


def _is_same(packages: Path, digests: set[str], place: str) -> bool:
    if len(digests) != 1 or "" in digests:
        return False
    try:
        return _record_digests.compare(str(packages / place), next(iter(digests)))[0]
    except OSError:  # it is missing, of which others speak
        return True


def objections(contents: Contents, lock: Lock, exceptions: Iterable[PolicyException]) -> tuple[str, ...]:
    """Say which distributions of a lock overwrite each other's files, a clause each.

    Args:
        contents: what the RECORDs of the environment say.
        lock: what it was made from; distributions that are not in it are passed over.
        exceptions: of the app and the profile.
    """
    locked = {package.name for package in lock.packages}
    paths = {path: names for path, names in written_twice(contents).items() if locked.issuperset(names)}
    if not paths:
        return ()
    packages = with_files(lock.packages, lock.provenance.app, lock.provenance.profile)
    return tuple(one.what for one in policy.written_twice(paths, packages, exceptions))


def require_one_owner(environment: Path, contents: Contents, lock: Lock, exceptions: Iterable[PolicyException]) -> None:
    """Stop where a distribution has overwritten files of another one.

    Raises:
        WheelError: says which, and which files.
    """
    if found := objections(contents, lock, exceptions):
        raise WheelError(
            found[0] + (f" (and {len(found) - 1} more)" if len(found) > 1 else ""),
            where=str(environment),
            remedy="nothing was switched to it: drop one of them from the lock, or declare an [[exception]] with its "
            "reason, and lock again",
            evidence=found[1:],
        )
