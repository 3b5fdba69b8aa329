"""Turn the `[[need]]` tables and the files of `profiles/needs/` into values, noting every mistake; reads no file."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from patchlock.catalogue.table_reader import Allowed, Table
from patchlock.model.conditions import VERSIONED
from patchlock.model.errors import nearest
from patchlock.model.needs import RULES, MemoryNeed, Need, Resource
from patchlock.model.package_managers import DISTRIBUTIONS, MANAGERS
from patchlock.model.platforms import PLATFORMS

_SYSTEMS = ("linux", "windows", "macos")


def needs(root: Table, profiles: Allowed, resources: Allowed) -> tuple[Need, ...]:
    """Read the `[[need]]` tables of a file; `resources` are the files in `profiles/needs/`."""
    found = []
    seen: set[tuple[str, tuple[str, ...], tuple[str, ...]]] = set()
    known = {"profiles": profiles, "platforms": tuple(PLATFORMS), "resources": resources}
    for table, need in root.rows("need", Need, known):
        if (key := (need.name, need.platforms, need.profiles)) in seen:
            table.problem("name", f'"{need.name}" is needed twice', "make one table of them")
        seen.add(key)
        found.append(need)
    return tuple(found)


def memory(root: Table, profiles: Allowed) -> tuple[MemoryNeed, ...]:
    """Read the `[[memory]]` tables of a file."""
    found = []
    for table, need in root.rows("memory", MemoryNeed, {"profiles": profiles, "platforms": tuple(PLATFORMS)}):
        for key, count in (("ram", need.ram), ("device", need.device)):
            if table.has(key) and not _LEAST_MEMORY <= count <= _MOST_MEMORY:
                table.problem(
                    key, f"{count} is not a number of bytes that an app takes", "write it in bytes: 4_000_000_000"
                )
        if not need.ram and not need.device:
            table.problem("", "it says neither ram nor device", "write device = 4_000_000_000, or ram, in bytes")
        found.append(need)
    return tuple(found)


_LEAST_MEMORY, _MOST_MEMORY = 10**7, 10**13
"""Bytes; what lies outside was meant in another unit."""


def resource(root: Table, name: str) -> Resource:
    """Read a file of `profiles/needs/`."""
    table, version = root.table("need"), root.table("version", required=False)
    read = table.read(
        Resource,
        name=name,
        find={},
        arguments=version.texts("arguments", ()),
        pattern=version.parse("pattern", _pattern, "", ""),
        packages=_packages(root.table("packages", required=False)),
        commands=_commands(root.table("commands", required=False)),
    )
    read = dataclasses.replace(read, find=_find(root.table("find"), read.kind))
    if bool(read.arguments) != bool(read.pattern):
        version.problem("", "arguments and pattern belong together")
    if read.kind and read.kind != "program" and read.arguments:
        version.problem("arguments", "only a program can be asked", "leave [version] out")
    version.finish()
    table.finish()
    return read


def _pattern(text: str) -> str:
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"it is not a regular expression: {error}") from error
    if text and groups < 1:
        raise ValueError("it needs a group around the version")
    return text


def _find(table: Table, kind: str) -> Mapping[str, tuple[str, ...]]:
    allowed = {"version": tuple(VERSIONED), "rule": RULES}.get(kind)
    found = {system: table.texts(system) for system in ("any", *_SYSTEMS) if table.has(system)}
    if not found:
        table.problem("", "it names nothing to look for", 'write any = ["…"], or one list for each system')
    for system, names in found.items():
        for name in names:
            if allowed is not None and name not in allowed:
                table.problem(system, f'there is no {kind} "{name}"', nearest(name, allowed))
    table.known(("any", *_SYSTEMS))
    table.finish()
    return found


def _packages(table: Table) -> Mapping[str, tuple[str, ...]]:
    known = (*MANAGERS, *DISTRIBUTIONS)
    found = {key: table.texts(key) for key in known if table.has(key)}
    for key, names in found.items():
        for name in names:
            if not re.fullmatch(r"[A-Za-z0-9@][A-Za-z0-9@+._/:-]*", name):
                table.problem(key, f'"{name}" is not the name of a package')
    table.known(known)
    table.finish()
    return found


def _commands(table: Table) -> Mapping[str, str]:
    known = (*_SYSTEMS, *DISTRIBUTIONS)
    found = {key: table.text(key) for key in known if table.has(key)}
    table.known(known)
    table.finish()
    return found
