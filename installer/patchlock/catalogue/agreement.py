"""Which catalogues may run code of their own here: the one that came with patchlock, and those that a person agreed to.

Codemods, cases of patched distributions, builds, and the checks of an install are code, and a catalogue chooses it.
"""

from __future__ import annotations

import os
from pathlib import Path

from patchlock.catalogue.location import catalogue_root
from patchlock.core import atomic_files, command_lines, file_lock
from patchlock.model.errors import UntrustedCatalogueError

VARIABLE = "PATCHLOCK_TRUSTED_CATALOGUES"
"""Folders, separated as in PATH; what lies in one of them is trusted too."""
_FILE, _LOCK = "catalogues.txt", "catalogues.lock"
FILES = (_FILE, _LOCK)
"""What is kept in the home."""
_HEAD = "# Catalogues of others that may run code on this machine. Written by `patchlock trust`.\n"


def is_trusted(root: Path, home: Path | None) -> bool:
    """Say whether a catalogue may run code here.

    Args:
        root: its folder.
        home: of all installations, where the agreements are kept; None looks for none.
    """
    place = root.resolve()
    if place == catalogue_root(None).resolve() or (home is not None and place in known(home)):
        return True
    named = [Path(text).resolve() for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]
    return any(place.is_relative_to(folder) for folder in named)


def known(home: Path) -> tuple[Path, ...]:
    """List the folders that a person agreed to, sorted."""
    try:
        text = (home / _FILE).read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return ()
    return tuple(Path(line) for line in text.splitlines() if line and not line.startswith("#"))


def change(root: Path, home: Path, *, trusted: bool) -> bool:
    """Write down, or withdraw, that a catalogue may run code here.

    Returns:
        Whether that is new.
    """
    place = root.resolve()
    home.mkdir(parents=True, exist_ok=True)
    with file_lock.hold(home / _LOCK, wait=60):
        before = set(known(home))
        after = before | {place} if trusted else before - {place}
        lines = "".join(f"{one}\n" for one in sorted(after))
        if after != before:
            atomic_files.atomic_write(home / _FILE, f"{_HEAD}{lines}".encode(errors="surrogateescape"))
        return after != before


def untrusted_error(root: Path) -> UntrustedCatalogueError:
    """Say that a catalogue may not run code, and how a person agrees."""
    folder = command_lines.quoted(str(root))
    return UntrustedCatalogueError(
        "this catalogue did not come with patchlock, and what was asked for runs code that it chooses: codemods, "
        "builds, checks",
        where=str(root),
        remedy=f"read it; if you trust whoever writes there, run `patchlock trust {folder}` once",
    )
