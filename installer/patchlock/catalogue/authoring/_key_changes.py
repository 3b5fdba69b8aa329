"""Recognise changed, new and removed keys of TOML, JSON and YAML files, and say them as ops."""

from __future__ import annotations

from collections.abc import Iterator

from patchlock.catalogue.authoring.drafts import Draft, ensures, op, slug
from patchlock.model.text_files import SourceText
from patchlock.patches import key_changes

_ENDINGS = frozenset({".toml", ".json", ".yaml", ".yml"})


def recognise(before: SourceText, after: SourceText) -> Iterator[Draft]:
    """Give the ops that change the keys of one file into the other's."""
    if before.path.suffix.lower() not in _ENDINGS:
        return
    for change in key_changes.compare(before, after):
        name = slug(*change.key[-2:])
        if change.value is None:
            made, checks = op("delete-key", key=change.key), ensures(("no-key", {"key": change.key}))
            word = "delete-key"
        else:
            fields: dict[str, object] = {"key": change.key, "value": change.value}
            made = op("set-key", **fields)
            checks = ensures(("key", fields | {"key": change.afterwards or change.key}))
            word = "set-key"
        if made is not None:
            yield Draft(op_name=word, op=made, slug=slug(word, name), ensures=checks)
