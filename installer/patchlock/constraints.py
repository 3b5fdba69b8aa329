"""Constraints from the lock, for installers that an app calls while it runs: what is locked keeps its version."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from patchlock.lockfile import Lock

FILE = "constraints.txt"
"""In a generation."""


def write(environment: Path, lock: Lock) -> None:
    """Write one `name==version` for each distribution of the lock."""
    lines = [f"{package.name}=={package.version}\n" for package in lock.packages]
    (environment / FILE).write_text("".join(lines), encoding="utf-8", newline="\n")


def variables(environment: Path) -> Mapping[str, str]:
    """Give the variables that make pip and uv keep to the lock, wherever they are called from.

    The path is an address, because both take a list of paths with spaces between. pip's own configuration files stay
    in force: they name the user's mirror and proxy, and a variable wins over them. A stand-alone pip that an app finds
    outside the environment may not touch that other Python either (PIP_REQUIRE_VIRTUALENV).

    Source: https://pip.pypa.io/en/stable/topics/configuration/ and https://docs.astral.sh/uv/reference/environment/
    """
    if not (environment / FILE).is_file():  # of a generation that an older patchlock made
        return {"PIP_REQUIRE_VIRTUALENV": "1"}
    address = (environment / FILE).absolute().as_uri()
    return {"PIP_CONSTRAINT": address, "UV_CONSTRAINT": address, "PIP_REQUIRE_VIRTUALENV": "1"}
