"""Read the `[launch]` table of an app's file: how it is started, with what beside it, and where it is reached; pure."""

from __future__ import annotations

from patchlock.errors import nearest
from patchlock.model import Launch, Listens
from patchlock.tables import Table

_LAST_PORT = 65535


def launch(table: Table, app: str, apps: tuple[str, ...] | None = None) -> Launch:
    """Read the table.

    Args:
        table: `[launch]`; empty where the file has none.
        app: the app's name.
        apps: names of the apps that there are; None accepts any.
    """
    read = Launch(
        command=table.texts("command"),
        environment=table.mapping("environment"),
        says=table.text("says", ""),
        beside=table.mapping("beside"),
        listens=_listens(table.table("listens")) if table.has("listens") else None,
    )
    for variable, other in read.beside.items():
        others = [one for one in apps or (other,) if one != app]
        if other not in others:
            table.problem(f"beside.{variable}", f'there is no other app "{other}"', nearest(other, others))
        if variable in read.environment:
            table.problem(f"beside.{variable}", "it is in launch.environment too")
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
