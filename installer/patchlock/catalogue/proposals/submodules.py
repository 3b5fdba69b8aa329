"""Which of the repositories that lie in a tree the app asks for; pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from patchlock.catalogue.proposals.findings import Files, Issue
from patchlock.catalogue.proposals.imports import Imports
from patchlock.model.app import Submodule


def asked_for(listed: Iterable[Submodule], files: Files) -> tuple[Submodule, ...]:
    """Choose the submodules that an import names, or a requirement or a program's words by their folder."""
    code = [data for path, data in files.items() if path.suffix == ".py"]
    told = [data for path, data in files.items() if path.name != ".gitmodules"]

    def is_asked_for(one: Submodule) -> bool:
        name = re.escape(re.sub(r"[-.]", "_", one.path.name)).encode()
        imported = re.compile(rb"(?mi)^[ \t]*(?:from|import)[ \t][^\n]*\b%s\b" % name)
        folder = str(one.path).encode(errors="surrogateescape")
        return any(imported.search(data) for data in code) or any(folder in data for data in told)

    return tuple(filter(is_asked_for, listed))


def issues(listed: Collection[Submodule], imports: Imports, missing: Collection[str]) -> tuple[Issue, ...]:
    """Tell of submodules that the code imports: their files are not in the clone.

    Args:
        listed: all submodules.
        imports: of the app's files.
        missing: modules that the program imports at its start and nothing brings.
    """
    found = []
    for one in listed:
        places = tuple(each.found for each in imports.all() if of_module([one], each.module) is not None)
        if places:
            is_at_start = any(of_module([one], module) is not None for module in missing)
            found.append(
                Issue(
                    name="submodule-at-the-start" if is_at_start else "submodule",
                    title=f"it imports from the submodule {one.path}",
                    means="its files are missing: it could not be fetched",
                    found=places,
                    remedy=f"check that {one.url} can be reached, "
                    f'and write `submodules = ["{one.path}"]` in [upstream]',
                )
            )
    return tuple(found)


def of_module(listed: Collection[Submodule], module: str) -> Submodule | None:
    """Find the submodule that a Python module most likely lies in: by its folder's name, or that of a folder above."""
    parts = [re.sub(r"[-.]", "_", part).lower() for part in module.split(".")]
    for one in listed:
        names = [re.sub(r"[-.]", "_", part).lower() for part in one.path.parts]
        if names[-1] in parts or (parts[0] in names and len(parts) == 1):
            return one
    return None
