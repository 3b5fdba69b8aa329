"""Turn the `[[need]]` tables and the files of `profiles/needs/` into values, noting every mistake; reads no file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

from packaging.specifiers import SpecifierSet

from patchlock.catalogue.table_reader import Table, specifiers
from patchlock.model.errors import nearest
from patchlock.model.needs import DRIVERS, KINDS, RULES, Kind, Need, Resource
from patchlock.model.package_managers import DISTRIBUTIONS, MANAGERS
from patchlock.model.platforms import PLATFORMS

_SYSTEMS = ("linux", "windows", "macos")


def needs(root: Table, profiles: tuple[str, ...] | None, resources: tuple[str, ...] | None) -> tuple[Need, ...]:
    """Read the `[[need]]` tables of a file.

    Args:
        root: the whole file.
        profiles: names of the profiles that there are; None accepts any.
        resources: names of the files in `profiles/needs/`; None accepts any.
    """
    return tuple(_needs(root, profiles, resources))


def _needs(root: Table, profiles: tuple[str, ...] | None, resources: tuple[str, ...] | None) -> Iterator[Need]:
    seen: set[tuple[str, tuple[str, ...], tuple[str, ...]]] = set()
    for table in root.tables("need"):
        need = Need(
            name=table.text("name"),
            why=table.text("why"),
            source=table.text("source"),
            versions=table.parse("versions", specifiers, SpecifierSet(), ""),
            required=table.boolean("required", True),
            platforms=_known(table, "platforms", "platform", tuple(PLATFORMS)),
            profiles=_known(table, "profiles", "profile", profiles),
        )
        if need.name and resources is not None and need.name not in resources:
            table.problem("name", f"there is no profiles/needs/{need.name}.toml", nearest(need.name, resources))
        if (key := (need.name, need.platforms, need.profiles)) in seen:
            table.problem("name", f'"{need.name}" is needed twice', "make one table of them")
        seen.add(key)
        table.finish()
        yield need


def _known(table: Table, key: str, what: str, known: tuple[str, ...] | None) -> tuple[str, ...]:
    names = table.texts(key, ())
    for name in names:
        if known is not None and name not in known:
            table.problem(key, f'there is no {what} "{name}"', nearest(name, known))
    return names


def resource(root: Table, name: str) -> Resource:
    """Read a file of `profiles/needs/`.

    Args:
        root: the whole file.
        name: the file's name without its ending.
    """
    table, version = root.table("need"), root.table("version", required=False)
    kind = table.text("kind")
    if kind and kind not in KINDS:
        table.problem("kind", f'there is no kind "{kind}"', nearest(kind, KINDS))
    read = Resource(
        name=name,
        kind=cast("Kind", kind),
        title=table.text("title"),
        source=table.text("source"),
        find=_find(root.table("find"), kind),
        writable=table.boolean("writable", False),
        arguments=version.texts("arguments", ()),
        pattern=version.parse("pattern", _pattern, "", ""),
        packages=_packages(root.table("packages", required=False)),
        commands=_commands(root.table("commands", required=False)),
    )
    if bool(read.arguments) != bool(read.pattern):
        version.problem("", "arguments and pattern belong together")
    if kind and kind != "program" and read.arguments:
        version.problem("arguments", "only a program can be asked", "leave [version] out")
    version.finish()
    table.finish()
    return read


def _pattern(text: str) -> str:
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"it is no regular expression: {error}") from error
    if text and groups < 1:
        raise ValueError("it needs a group around the version")
    return text


def _find(table: Table, kind: str) -> Mapping[str, tuple[str, ...]]:
    allowed = {"driver": DRIVERS, "rule": RULES}.get(kind)
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
