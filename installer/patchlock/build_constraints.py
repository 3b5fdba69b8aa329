"""The file beside a lock that pins what builds its sdists: `<lock>.build.txt`; written and compared, pure."""

from __future__ import annotations

import dataclasses
import hashlib
import json

from patchlock.lockfile import LockedPackage
from patchlock.model import Sha256

FORMAT = 1
"""Raised when the meaning of the file changes."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class BuildConstraints:
    """One wheel for everything that the builds of a lock's sdists require."""

    sdists: tuple[str, ...]
    """`name==version`, sorted."""
    packages: tuple[LockedPackage, ...]
    """Sorted by name."""


def render(constraints: BuildConstraints, command: str) -> str:
    """Write the file; the same constraints give the same text.

    Args:
        constraints: what to write.
        command: that makes the file anew.
    """
    lines = [
        "# /// patchlock-build",
        f"# format = {FORMAT}",
        f"# builds = {json.dumps(constraints.sdists)}",
        "# ///",
        f"# Written by `{command}` beside its lock, which names the sha256 of this file; uv takes it:",
        "# `uv pip sync --build-constraints <this file> --require-build-hashes`.",
        *(str(package) for package in constraints.packages),
    ]
    return "\n".join(lines) + "\n"


def beside(lock: str) -> str:
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
