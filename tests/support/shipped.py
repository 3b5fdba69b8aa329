"""The catalogue of this repository, read once for all tests of a process that only look at it."""

from __future__ import annotations

from pathlib import Path

from patchlock.catalogue.reader import Catalogue

CATALOGUE = Catalogue(root=Path(__file__).parent.parent.parent)
APPS, PROFILES = CATALOGUE.read_all()
