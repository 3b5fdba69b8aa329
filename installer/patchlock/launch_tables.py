"""Read the `[launch]` table of an app's file: how it is started, and where it can be reached; pure."""

from __future__ import annotations

from patchlock.model import Launch, Listens
from patchlock.tables import Table

_LAST_PORT = 65535


def launch(table: Table) -> Launch:
    """Read the table.

    Args:
        table: `[launch]`; empty where the file has none.
    """
    read = Launch(
        command=table.texts("command"),
        environment=table.mapping("environment"),
        says=table.text("says", ""),
        listens=_listens(table.table("listens")) if table.has("listens") else None,
    )
    if table.has("command") and not read.command:
        table.problem("command", "it is empty")
    table.finish()
    return read


def _listens(table: Table) -> Listens:
    known = table.has("port")
    read = Listens(
        port=table.integer("port"), environment=table.mapping("environment"), arguments=table.texts("arguments", ())
    )
    if known and not 0 < read.port <= _LAST_PORT:
        table.problem("port", f"it must be the number of a port, 1 to {_LAST_PORT}")
    table.text("source")
    table.finish()
    return read
