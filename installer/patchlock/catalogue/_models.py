"""Turn `[[model]]` tables into values, noting every mistake; reads no file."""

from __future__ import annotations

from pathlib import PurePosixPath

from patchlock.catalogue.table_reader import Allowed, Table
from patchlock.model.models import Model


def models(root: Table, profiles: Allowed) -> tuple[Model, ...]:
    """Read the `[[model]]` tables of an app's file."""
    found: list[Model] = []
    seen: set[tuple[str, str, str, PurePosixPath]] = set()
    for table, model in root.rows("model", Model, {"profiles": profiles}):
        _check_place(table, model)
        for file in model.files:
            if (key := (model.repository, model.into, model.hub_cache, PurePosixPath(file.name or file.path))) in seen:
                table.problem("files", f"{key[-1]} is there twice", "make one of them")
            seen.add(key)
        found.append(model)
    return tuple(found)


def _check_place(table: Table, model: Model) -> None:
    for key, folder in (("into", model.into), ("cache", model.hub_cache)):
        if folder.startswith("/") or ".." in PurePosixPath(folder).parts:
            table.problem(key, f'"{folder}" must be a folder of the app')
    if model.into and model.hub_cache:
        table.problem("cache", "a model has one place", "write either `into` or `cache`")
    if not model.is_hub:
        if not model.into:
            table.problem("into", "nothing says where the app looks for it", 'write into = "…", a folder of the app')
        for key in ("revision", "cache"):
            if table.has(key):
                table.problem(key, "it is for models of Hugging Face", "remove the key")
    if not model.files:
        table.problem("files", "it names no file", 'write files = [{ path = "…" }]')
    for file in model.files:
        if model.repository.startswith("http:") and not file.sha256:
            table.problem("files", f"{file.path}: what comes without encryption needs a sha256", "write it, or https")
        if file.name and not model.into:
            table.problem("files", f"{file.path}: a cache has its own names", "remove `as`")
        if file.bytes < 0:
            table.problem("files", f"{file.path}: bytes must be a number above 0")
