"""Read from a lock what says which needs an app has: the files it brings, what it builds, and the code of that."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.catalogue.proposals.system_needs import Locked
from patchlock.distributions import sdists, wheel_facts
from patchlock.model.errors import SdistError
from patchlock.model.lockfile import Lock, LockedPackage
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
            found = sdists.cached(sha256, cache)
            with contextlib.suppress(SdistError):
                asked = sdists.build_tools(found) if found is not None else {}
                tools[package.name] = {k: v for k, v in asked.items() if (package.name, k) not in brought}
        elif wheel_facts.known_roots(folder, sha256) is not None:
            paths += (file.path for file in wheel_facts.contents(folder, sha256))
    return Locked(
        names={package.name: package.version for package in lock.packages},
        paths=paths,
        tools=tools,
        platforms={
            canonicalize_name(name): tuple(one.get("platforms", ()))
            for one in _rows(rules, "build")
            for name in one["names"]
        },
    )


def sdist_code(packages: Iterable[LockedPackage], cache: Path) -> Mapping[PurePosixPath, bytes]:
    """Read the Python files of locked sdists that are in the cache, each below its name and version."""
    found: dict[PurePosixPath, bytes] = {}
    for package in packages:
        is_built = wheel_tags(package.upstream) is None
        archive = sdists.cached(package.upstream.sha256, cache) if is_built else None
        with contextlib.suppress(SdistError):
            files = sdists.static_files(archive, lambda path: path.suffix == ".py") if archive is not None else {}
            found |= {PurePosixPath(f"{package.name}-{package.version}", path): data for path, data in files.items()}
    return found


def _rows(rules: Iterable[dict[str, Any]], word: str) -> Iterator[dict[str, Any]]:
    for one in rules:
        yield from one.get(word, ())
