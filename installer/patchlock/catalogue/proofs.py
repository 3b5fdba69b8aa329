"""What was proved of pairs on real machines: the reports that the catalogue keeps. No report, no claim."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchlock.core.atomic_files import has_sha256
from patchlock.model.errors import CatalogueError, Problem
from patchlock.model.identities import Sha256

FOLDER = "profiles/proofs"
"""Has `<profile>/<app>.<name>.json`, each as `patchlock verify APP --report FILE.json` writes it."""
LEVELS = ("loads", "computes", "starts")
LEGEND = (
    "locked: checked without the machine; loads: the packages can be imported; computes: the device gave right numbers"
    "; starts: the app came up"
)
"""What each level means; `locked` holds without a report."""
_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Proof:
    """One report."""

    app: str
    profile: str
    platform: str
    lock: str
    """Sha256 of the lock that was installed."""
    date: str
    """YYYY-MM-DD."""
    devices: tuple[str, ...]
    """As their drivers call them."""
    levels: frozenset[str]
    """Of `LEVELS`, those that hold."""
    file: str
    """Path from the catalogue's root."""


def read(root: Path) -> tuple[Proof, ...]:
    """Read all reports of a catalogue, the newest first.

    Raises:
        CatalogueError: files are not what `verify --report` writes, or stand where they do not belong; names all.
    """
    found, problems = [], []
    for path in sorted(root.glob(f"{FOLDER}/*/*.json")):
        file = path.relative_to(root).as_posix()
        try:
            proof = _proof(json.loads(path.read_text(encoding="utf-8")), file)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(_problem(file, f"it is not a report of `patchlock verify --report`: {error}"))
            continue
        if path.parent.name != proof.profile or path.name.partition(".")[0] != proof.app:
            problems.append(_problem(file, f"it is about {proof.app} on {proof.profile}"))
        found.append(proof)
    if problems:
        raise CatalogueError(problems)
    return tuple(sorted(found, key=lambda proof: proof.date, reverse=True))


def _problem(file: str, what: str) -> Problem:
    remedy = f"write it again, to {FOLDER}/<profile>/<app>.<a word for the machine>.json"
    return Problem(file=file, line=1, key="", what=what, remedy=remedy)


def _proof(data: dict[str, Any], file: str) -> Proof:
    if data["format"] != _FORMAT:
        raise ValueError(f"its format is {data['format']}, and not {_FORMAT}")
    return Proof(
        app=str(data["app"]),
        profile=str(data["profile"]),
        platform=str(data["platform"]),
        lock=str(data["lock"]),
        date=str(data["date"]),
        devices=tuple(str(one) for one in data["devices"].values()),
        levels=frozenset(level for level in LEVELS if data["levels"][level] is True),
        file=file,
    )


def is_of_older_lock(root: Path, proof: Proof) -> bool:
    """Say whether the lockfile was written again since the report."""
    folder, names = root / "lockfiles" / proof.app, (proof.profile, f"{proof.profile}.{proof.platform}")
    return not any(has_sha256(folder / f"{name}.txt", Sha256(proof.lock)) for name in names)


def of_pair(proofs: Iterable[Proof], app: str, profile: str, platform: str) -> tuple[Proof, ...]:
    """Give the reports on one app, profile and platform, in order."""
    return tuple(one for one in proofs if (one.app, one.profile, one.platform) == (app, profile, platform))
