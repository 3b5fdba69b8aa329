"""Read from a lock what says which needs an app has of the machine: the files it brings, and what it builds."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.catalogue.proposals.system_needs import Locked
from patchlock.distributions import sdists, wheel_facts
from patchlock.model.errors import SdistError
from patchlock.model.lockfile import Lock
from patchlock.model.policy import wheel_tags


def read(lock: Lock, tables: Iterable[str], cache: Path) -> Locked:
    """Read a lock.

    Args:
        lock: the app's.
        tables: TOML of the app's `[[build]]` and `[[metadata]]`.
        cache: patchlock's, with what is kept of wheels and sdists.
    """
    folder = cache / wheel_facts.FOLDER
    rules = [tomllib.loads(table) for table in tables]
    brought = {
        (canonicalize_name(one["name"]), canonicalize_name(Requirement(line).name))
        for one in _rows(rules, "metadata")
        for line in one["build"]
    }
    paths: list[str] = []
    tools: dict[NormalizedName, dict[str, bool]] = {}
    for package in lock.packages:
        sha256 = package.upstream.sha256
        if wheel_tags(package.upstream) is None:
            there = (cache / "sdists" / sha256).glob("*")
            found = next((path for path in there if path.name.endswith((".tar.gz", ".zip"))), None)
            with contextlib.suppress(SdistError):
                asked = sdists.build_tools(found) if found is not None else {}
                tools[package.name] = {k: v for k, v in asked.items() if (package.name, k) not in brought}
        elif wheel_facts.known_roots(folder, sha256) is not None:
            paths += (file.path for file in wheel_facts.contents(folder, sha256))
    return Locked(
        names=frozenset(package.name for package in lock.packages),
        paths=paths,
        tools=tools,
        platforms={
            canonicalize_name(name): tuple(one.get("platforms", ()))
            for one in _rows(rules, "build")
            for name in one["names"]
        },
    )


def _rows(rules: Iterable[dict[str, Any]], word: str) -> Iterator[dict[str, Any]]:
    for one in rules:
        yield from one.get(word, ())
