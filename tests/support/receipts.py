"""Receipts for tests, and installations in small that have nothing but one: a test says only what matters to it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from miniature import WHEN

from patchlock.environments import generations
from patchlock.environments.generations import Receipt
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.installation import Installation

_ORDINARY = Receipt(
    id="0123456789ab",
    app="mini",
    profile="tiny",
    platform="linux-x86_64",
    python="3.11.7",
    upstream=CommitId("1" * 40),
    applied=CommitId("2" * 40),
    inputs=Sha256("3" * 64),
    lock=Sha256("4" * 64),
    packages=3,
    made=WHEN,
    sequence=1,
    environment={},
    patched={},
    present={},
    checks=(),
)


def receipt(**values: Any) -> Receipt:
    """Make a receipt of the miniature, other values by their names."""
    return dataclasses.replace(_ORDINARY, **values)


def install(home: Path, **values: Any) -> tuple[Installation, Path]:
    """Write a receipt into a home and let its generation be the one in use; give that one's folder too."""
    made = receipt(**values)
    installation = Installation(folder=home / f"{made.app}@{made.profile}")
    folder = generations.generation(installation, made.id)
    folder.mkdir(parents=True)
    generations.write_receipt(folder, made)
    generations.switch(installation, made.id)
    return installation, folder
