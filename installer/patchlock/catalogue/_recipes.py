"""Turn `[[recipe]]` and `[[in-tree]]` tables into values, noting every mistake; reads no file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from patchlock.catalogue.table_reader import Table, distribution, requirement, specifiers
from patchlock.model.errors import nearest
from patchlock.model.platforms import PLATFORMS
from patchlock.model.recipes import InTree, Jobs, Recipe

if TYPE_CHECKING:
    from patchlock.model.patch import Patch

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_NOTHING = canonicalize_name("nothing")
_OURS = frozenset({"HOME", "TMPDIR", "TMP", "TEMP", "PYTHONNOUSERSITE", "PYTHONPATH", "PYTHONHOME", "MAX_JOBS"})
"""Variables that a build is given by us."""


def recipes(
    root: Table, profiles: tuple[str, ...] | None, patches: Callable[[Table], tuple[Patch, ...]]
) -> tuple[Recipe, ...]:
    """Read the `[[recipe]]` tables of a file, in their order, which is that of the builds.

    Args:
        root: the whole file.
        profiles: names of the profiles that there are; None accepts any.
        patches: reads the `[[recipe.patch]]` tables of one.
    """
    found: list[Recipe] = []
    for table in root.tables("recipe"):
        recipe = _recipe(table, profiles, patches)
        earlier = {other.name for other in found}
        for name in recipe.after:
            if name not in earlier:
                table.problem("after", f"no recipe of {name} stands earlier", "write it first")
        if any(patch.op_name == "codemod" for patch in recipe.patches):
            table.problem("patch", "a codemod is for apps", "use another op")
        if _scope(recipe) in map(_scope, found):
            table.problem("name", f"there is a recipe of {recipe.name} for the same versions already")
        found.append(recipe)
        table.finish()
    return tuple(found)


def _scope(recipe: Recipe) -> tuple[object, ...]:
    return (recipe.name, recipe.versions, recipe.profiles, recipe.platforms)


def _recipe(table: Table, profiles: tuple[str, ...] | None, patches: Callable[[Table], tuple[Patch, ...]]) -> Recipe:
    return Recipe(
        name=table.parse("name", distribution, _NOTHING),
        versions=table.parse("versions", specifiers, SpecifierSet(), ""),
        environment=_environment(table),
        jobs=_jobs(table),
        patches=patches(table),
        needs=_programs(table),
        after=table.each("after", distribution),
        test=table.texts("test", ()),
        test_with=table.each("test-with", distribution),
        why=table.text("why"),
        source=table.text("source"),
        profiles=_known(table, "profiles", profiles),
        platforms=_known(table, "platforms", tuple(PLATFORMS)),
        origin=table.origin(),
    )


def in_tree(root: Table, profiles: tuple[str, ...] | None) -> tuple[InTree, ...]:
    """Read the `[[in-tree]]` tables of an app's file; `profiles` as for `recipes`."""
    found: list[InTree] = []
    for table in root.tables("in-tree"):
        one = InTree(
            id=table.parse("id", _name, "nothing"),
            folder=table.parse("folder", _inside, PurePosixPath()),
            requires=table.each("requires", requirement),
            command=_filled(table, "command"),
            products=_globs(table),
            environment=_environment(table),
            jobs=_jobs(table),
            needs=_programs(table),
            why=table.text("why"),
            source=table.text("source"),
            profiles=_known(table, "profiles", profiles),
            platforms=_known(table, "platforms", tuple(PLATFORMS)),
            origin=table.origin(),
        )
        if one.id in {other.id for other in found}:
            table.problem("id", f'the id "{one.id}" is taken by another in-tree build')
        found.append(one)
        table.finish()
    return tuple(found)


def _jobs(table: Table) -> Jobs:
    row = table.table("jobs", required=False)
    jobs = Jobs(
        memory_per_job_gb=row.integer("memory-per-job-gb", 1),
        reserve_gb=row.integer("reserve-gb", 1),
        least=row.integer("min", 1),
        most=row.integer("max", 64),
    )
    row.finish()
    if jobs.memory_per_job_gb < 1 or jobs.reserve_gb < 0 or not 1 <= jobs.least <= jobs.most:
        table.problem("jobs", "each job needs memory, and `min` is at least 1 and at most `max`")
        return Jobs()
    return jobs


def _environment(table: Table) -> Mapping[str, str]:
    variables = table.mapping("environment")
    for name in sorted(variables.keys() & _OURS):
        table.problem("environment", f"{name} is set by patchlock", "use `jobs` for MAX_JOBS")
    return variables


def _programs(table: Table) -> tuple[str, ...]:
    names = table.texts("needs", ())
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9+._-]+", name):
            table.problem("needs", f'"{name}" is not the name of a program')
    return names


def _filled(table: Table, key: str) -> tuple[str, ...]:
    words = table.texts(key)
    if table.has(key) and not words:
        table.problem(key, "it is empty")
    return words


def _globs(table: Table) -> tuple[str, ...]:
    globs = _filled(table, "products")
    for glob in globs:
        try:
            path = _inside(glob)
        except ValueError as error:
            table.problem("products", str(error))
        else:
            if "**" in path.parts or any(mark in part for part in path.parts[:-1] for mark in "*?["):
                table.problem("products", f'"{glob}" may have wildcards in its last part alone')
    return globs


def _inside(text: str) -> PurePosixPath:
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts or "\\" in text or ".git" in path.parts:
        raise ValueError(f'"{text}" must be a POSIX path inside the folder')
    return path


def _name(text: str) -> str:
    if not _ID.fullmatch(text):
        raise ValueError(f'the id "{text}" must be lower-case words joined by "-"')
    return text


def _known(table: Table, key: str, known: tuple[str, ...] | None) -> tuple[str, ...]:
    names = table.texts(key, ())
    for name in names:
        if known is not None and name not in known:
            table.problem(key, f'there is no {key.removesuffix("s")} "{name}"', nearest(name, known))
    return names
