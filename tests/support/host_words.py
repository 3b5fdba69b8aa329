"""What a machine says in words that the closed vocabulary does not have."""

from __future__ import annotations

from patchlock.model.errors import nearest
from patchlock.model.host_vocabulary import LIBRARIES, SETTINGS, VARIABLES, VERSIONS, unknown_nodes
from patchlock.model.hosts import Host


def unknown_names(host: Host) -> list[str]:
    """Name what a machine says in words that are none of these, one sentence each; empty where all are known."""
    known = {"versions": VERSIONS, "libraries": LIBRARIES, "settings": SETTINGS, "variables": VARIABLES}
    said = {
        "versions": host.versions,
        "libraries": host.libraries,
        "settings": host.settings,
        "variables": host.variables,
    }
    found = [
        f"{key}.{name} is not known; {nearest(name, known[key])}"
        for key, values in said.items()
        for name in values
        if name not in known[key]
    ]
    found += [
        f"settings.{name} is {value!r}, and can be {', '.join(SETTINGS[name].values)}"
        for name, value in host.settings.items()
        if name in SETTINGS and SETTINGS[name].values and value not in SETTINGS[name].values
    ]
    return found + [f"nodes has {node}, which is not known" for node in unknown_nodes(one.path for one in host.nodes)]
