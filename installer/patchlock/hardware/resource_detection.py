"""Look for programs, libraries, files and variables on this machine; runs only what says its version."""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from patchlock.core import process, shared_libraries
from patchlock.hardware._linux import device_nodes
from patchlock.hardware.preflight import NOTHING, DetectedResource
from patchlock.model.errors import PatchlockError
from patchlock.model.needs import Resource

_PATIENCE = 10.0
"""Seconds that a program has to say its version."""


def detect(resource: Resource, system: str, *, root: Path = Path("/"), ask_version: bool) -> DetectedResource:
    """Look for a resource, as whoever uses it would.

    Args:
        resource: what is looked for.
        system: `linux`, `windows` or `macos`.
        root: of the file system.
        ask_version: whether its version matters.
    """
    names = resource.sought(system)
    match resource.kind:
        case "program":
            found = next(filter(None, (_program(name, root) for name in names)), "")
            return (
                read_version(found, resource)
                if found and ask_version and resource.arguments
                else DetectedResource(where=found)
            )
        case "library":
            return DetectedResource(
                where=next(filter(None, (shared_libraries.find(name, system, root) for name in names)), "")
            )
        case "file":
            return next(filter(None, (_file(path, resource, root) for path in _paths(names, root))), NOTHING)
        case "variable":
            return next((_variable(name) for name in names if os.environ.get(name)), NOTHING)
        case _:
            return NOTHING


def read_version(program: str, resource: Resource) -> DetectedResource:
    """Ask a program for its version; that it fails is its trouble."""
    try:
        done = process.run(program, *resource.arguments, env=process.environment(), timeout=_PATIENCE)
    except PatchlockError as error:
        said = next((line.strip() for line in reversed(error.evidence) if line.strip()), error.what)
        return DetectedResource(where=program, trouble=said)
    said = f"{done.text}\n{done.stderr}"
    found = re.search(resource.pattern, said)
    return DetectedResource(where=program, version=found[1] if found else "")


def _program(name: str, root: Path) -> str:
    if "/" not in name:
        return shutil.which(name) or ""
    return next((str(path) for path in _paths([name], root) if os.access(path, os.X_OK)), "")


def _paths(names: Iterable[str], root: Path) -> Iterator[Path]:
    """Find the files of paths and globs; variables such as %ProgramFiles% and ~ are filled in."""
    for name in names:
        expanded = os.path.expandvars(os.path.expanduser(name))  # noqa: PTH111 - variables first, then a glob
        at = expanded if os.name == "nt" else os.path.join(root, expanded.lstrip("/"))  # noqa: PTH118
        yield from (Path(found) for found in sorted(glob.glob(at)))  # noqa: PTH207


def _file(path: Path, resource: Resource, root: Path) -> DetectedResource:
    mode = os.R_OK | (os.W_OK if resource.writable else 0)
    where = str(path) if root == Path("/") or os.name == "nt" else f"/{path.relative_to(root).as_posix()}"
    if os.access(path, mode):
        return DetectedResource(where=where)
    verb = "open" if resource.writable else "read"
    return DetectedResource(where=where, trouble=f"you may not {verb} it", group=device_nodes.group_of(path))


def _variable(name: str) -> DetectedResource:
    value = os.environ[name]
    if ("/" in value or "\\" in value) and not Path(value).exists():
        return DetectedResource(where=f"{name}={value}", trouble="what it names does not exist")
    return DetectedResource(where=f"{name}={value}")
