"""Values as items of tomlkit, laid out as the catalogue's files have them; and the files that other tools read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tomlkit.items import Array, InlineTable, Item, String

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def item(content: object) -> Item:
    """Make an item of a value: a number, a text, a list or a table in one line; what else there is, of its text."""
    import tomlkit  # takes longer than a quick command

    if isinstance(content, (bool, int)):
        return tomlkit.item(content)
    if isinstance(content, (tuple, list)):
        return array(content)
    if isinstance(content, Mapping):
        return _inline(content)
    return _string(str(content))


def render(values: Mapping[str, object]) -> str:
    """Write the configuration of another tool; a list of tables is written as `[[key]]`, once for each."""
    import tomlkit

    document = tomlkit.document()
    for key, value in values.items():
        if not isinstance(value, list):
            document.append(key, item(value))
            continue
        tables = tomlkit.aot()
        for row in value:
            table = tomlkit.table()
            for name, content in row.items():
                table.append(name, item(content) if isinstance(content, Mapping) else tomlkit.item(content))
            tables.append(table)
        if tables:
            document.append(key, tables)
    return tomlkit.dumps(document)


def array(content: Iterable[object]) -> Array:
    """Make a list in one line."""
    import tomlkit

    made = tomlkit.array()
    for value in content:
        made.append(item(value))
    return made


def _inline(content: Mapping[str, object]) -> InlineTable:
    """Write `{ key = "value" }`; tomlkit alone leaves out the spaces at its ends."""
    import tomlkit

    table = tomlkit.inline_table()
    items = [item(value) for value in content.values()]
    if items:
        items[0].trivia.indent = items[-1].trivia.trail = " "
    for key, value in zip(content, items, strict=True):
        table.append(key, value)
    return table


def _string(text: str) -> String:
    """Write a text of several lines, or with quotes, as it is read best: as it is."""
    import tomlkit
    from tomlkit.items import String, StringType, Trivia

    is_plain = "'''" not in text and not text.endswith("'") and not _UNPRINTABLE.search(text)
    if "\n" in text.rstrip("\n") and is_plain:
        # Readers drop a line's end that follows the quotes; tomlkit writes none.
        return String(StringType.MLL, text, f"\n{text}", Trivia())
    is_literal = "\n" not in text and "'" not in text and is_plain and ('"' in text or "\\" in text)
    return tomlkit.string(text, literal=is_literal)
