"""Turn the files of patches against common problems into values, and say what an app takes of them; reads no file."""

from __future__ import annotations

import dataclasses

from patchlock.catalogue import _apps_and_profiles, _rule_tables
from patchlock.catalogue.table_reader import Allowed, Table
from patchlock.model.app import SharedSet
from patchlock.model.errors import nearest
from patchlock.model.patch import Patch

FOLDER = "patches/shared"
REQUIREMENTS = "{requirements}"
"""Stands among `paths` for the requirement files of the app."""


def shared_set(root: Table, name: str, profiles: Allowed) -> SharedSet:
    """Read a set's file; the ids of its patches begin with its name from here on."""
    table = root.table("set")
    read = table.read(
        SharedSet,
        name=name,
        patches=tuple(_named(name, patch) for patch in _apps_and_profiles.patches(root, profiles)),
        rules=_rule_tables.rules(root, profiles),
        is_expected=False,
    )
    for number, patch in enumerate(read.patches):
        if patch.op_name == "codemod":
            root.problem(f"patch[{number}].op", "a shared set has no codemods, which are code of one app")
    table.finish()
    return read


def _named(name: str, patch: Patch) -> Patch:
    return dataclasses.replace(patch, id=f"{name}-{patch.id}", after=tuple(f"{name}-{one}" for one in patch.after))


def requested_sets(root: Table) -> tuple[str, ...]:
    """Name the sets that an app's file asks for."""
    return root.table("app").texts("shared", ())


def taken(root: Table, sets: tuple[SharedSet, ...], names: tuple[str, ...]) -> tuple[SharedSet, ...]:
    """Give the sets as an app takes them, in its order, without what it leaves out.

    Args:
        root: the app's whole file.
        sets: those that it asks for, as far as there are such.
        names: of all sets that there are.
    """
    table = root.table("app")
    asked, without, expected = requested_sets(root), table.texts("without", ()), table.texts("expect", ())
    for name in asked:
        if name not in names:
            table.problem("shared", f'there is no shared set "{name}"', nearest(name, names))
        elif asked.count(name) > 1:
            table.problem("shared", f'"{name}" is named twice')
    ids = [patch.id for one in sets for patch in one.patches]
    for name in without:
        if name not in ids:
            table.problem("without", f'no shared set of this app has a patch "{name}"', nearest(name, ids))
    for name in expected:
        if name not in asked:
            table.problem("expect", f'this app has no shared set "{name}"', nearest(name, asked))
    files = table.texts("requirements", ())
    return tuple(
        dataclasses.replace(
            one,
            patches=tuple(with_requirement_files(patch, files) for patch in one.patches if patch.id not in without),
            is_expected=one.name in expected,
        )
        for one in sets
    )


def with_requirement_files(patch: Patch, files: tuple[str, ...]) -> Patch:
    """Give a set's patch with an app's requirement files in the place of `{requirements}`."""
    paths = (file for path in patch.paths for file in (files if path == REQUIREMENTS else (path,)))
    return dataclasses.replace(patch, paths=tuple(dict.fromkeys(paths)))
