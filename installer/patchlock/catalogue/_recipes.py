"""Turn `[[recipe]]` and `[[in-tree]]` tables into values, noting every mistake; reads no file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from patchlock.catalogue.table_reader import Allowed, Table
from patchlock.model.recipes import InTree, Recipe, SourceArchive

if TYPE_CHECKING:
    from patchlock.model.patch import Patch

_OURS = frozenset({"HOME", "TMPDIR", "TMP", "TEMP", "PYTHONNOUSERSITE", "PYTHONPATH", "PYTHONHOME", "MAX_JOBS"})
"""Variables that a build is given by us."""


def recipes(root: Table, profiles: Allowed, patches: Callable[[Table], tuple[Patch, ...]]) -> tuple[Recipe, ...]:
    """Read the `[[recipe]]` tables of a file, in the order of the builds; `patches` reads those of one."""
    found: list[Recipe] = []
    for table in root.tables("recipe"):
        recipe = table.read(
            Recipe, {"profiles": profiles}, patches=patches(table), archive=table.optional("archive", SourceArchive)
        )
        _check_build(table, recipe)
        earlier = {other.name for other in found}
        for name in recipe.after:
            if name not in earlier:
                table.problem("after", f"no recipe of {name} comes earlier", "write it first")
        if any(patch.op_name == "codemod" for patch in recipe.patches):
            table.problem("patch", "a codemod is for apps", "use another op")
        if any(patch.advisory for patch in recipe.patches):
            table.problem("patch", "what is built is patched completely or not at all", "remove `advisory`")
        if _scope(recipe) in map(_scope, found):
            table.problem("name", f"there is a recipe of {recipe.name} for the same versions already")
        found.append(recipe)
        table.finish()
    return tuple(found)


def _scope(recipe: Recipe) -> tuple[object, ...]:
    return (recipe.name, recipe.versions, recipe.profiles, recipe.platforms)


def in_tree(root: Table, profiles: Allowed) -> tuple[InTree, ...]:
    """Read the `[[in-tree]]` tables of an app's file."""
    found: list[InTree] = []
    for table, one in root.rows("in-tree", InTree, {"profiles": profiles}):
        _check_build(table, one)
        if one.id in {other.id for other in found}:
            table.problem("id", f'the id "{one.id}" is taken by another in-tree build')
        found.append(one)
    return tuple(found)


def _check_build(table: Table, one: Recipe | InTree) -> None:
    jobs = one.jobs
    if jobs.memory_per_job_gb < 1 or jobs.reserve_gb < 0 or not 1 <= jobs.least <= jobs.most:
        table.problem("jobs", "each job needs memory, and `min` is at least 1 and at most `max`")
    for name in sorted(one.environment.keys() & _OURS):
        table.problem("environment", f"{name} is set by patchlock", "use `jobs` for MAX_JOBS")
