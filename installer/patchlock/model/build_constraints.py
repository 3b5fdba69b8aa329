"""The file beside a lock that pins what builds its sdists: `<lock>.build.txt`; written and compared, pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from patchlock.model.errors import LockFormatError
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage

FORMAT = 1
"""Raised when the meaning of the file changes."""

_LINE = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64})(?: # (?P<why>.*))?"
)


@dataclass(frozen=True, kw_only=True)
class BuildConstraints:
    """One wheel for everything that the builds of a lock's sdists require."""

    sdists: tuple[str, ...]
    """`name==version`, sorted."""
    in_tree: tuple[str, ...] = ()
    """Ids of what is built in the app's own tree, and of what can be built from source by choice; sorted."""
    packages: tuple[LockedPackage, ...]
    """Sorted by name."""


def render(constraints: BuildConstraints, command: str) -> str:
    """Write the file; the same constraints give the same text."""
    import tomlkit  # which is only for who writes

    head: dict[str, object] = {"format": FORMAT, "builds": constraints.sdists}
    if constraints.in_tree:
        head["in-tree"] = constraints.in_tree
    lines = [
        "# /// patchlock-build",
        *(f"# {line}" for line in tomlkit.dumps(head).splitlines()),
        "# ///",
        f"# Written by `{command}` beside its lock, which names the sha256 of this file; uv takes it:",
        "# `uv pip sync --build-constraints <this file> --require-build-hashes`.",
        *(str(package) for package in constraints.packages),
    ]
    return "\n".join(lines) + "\n"


def parse(text: str, file: str) -> tuple[LockedPackage, ...]:
    """Read what the file pins.

    Raises:
        LockFormatError: it is none that patchlock wrote.
    """
    packages = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        try:
            version = Version(found["version"] if found else "")
        except InvalidVersion as error:
            raise LockFormatError(
                "a line must be one distribution with exactly one sha256",
                where=f"{file}:{number}",
                remedy="it is never written by hand: run `patchlock lock` for its app",
            ) from error
        assert found is not None  # noqa: S101 - or its version would be none
        name, sha256, why = canonicalize_name(found["name"]), Sha256(found["sha256"]), found["why"] or ""
        packages.append(LockedPackage(name=name, version=version, url="", sha256=sha256, why=why))
    return tuple(packages)


def filename_for(lock: str) -> str:
    """Name the file beside a lock: `<lock>.build.txt` for `<lock>.txt`."""
    return f"{lock.removesuffix('.txt')}.build.txt"


def digest(text: str) -> Sha256:
    """Digest the file, as its lock names it."""
    return Sha256(hashlib.sha256(text.encode()).hexdigest())


def objections(named: str, data: bytes | None, file: str) -> tuple[str, ...]:
    """Say why a file is not the one that a lock names, one clause each.

    Args:
        named: the sha256 in the lock; "" where its packages need no build.
        data: the file as it is; None where there is none.
        file: its name, for messages.
    """
    if not named:
        return () if data is None else (f"{file} is there, and the lock needs no build",)
    if data is None:
        return (f"{file}, which pins what builds its sdists, is missing",)
    found = hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()
    return () if found == named else (f"{file} was changed since the lock was written",)
