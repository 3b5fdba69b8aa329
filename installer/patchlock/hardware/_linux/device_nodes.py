"""Look at the device nodes that accelerators use, and whether this process may open them; opens none."""

from __future__ import annotations

import fnmatch
import os
import sys
from pathlib import Path

from patchlock.core.bounded_files import FileReader
from patchlock.model.host_vocabulary import NODES
from patchlock.model.hosts import Node


def nodes(files: FileReader) -> list[Node]:
    """List the nodes that are there, in the order of the vocabulary, then of their numbers."""
    found: list[Node] = []
    for pattern in NODES:
        folder, _, name = pattern.rpartition("/")
        names = fnmatch.filter(files.names(folder[1:]), name)
        found += [_node(files, f"{folder}/{one}") for one in sorted(names, key=lambda one: (len(one), one))]
    return found


def _node(files: FileReader, path: str) -> Node:
    where = files.root / path[1:]
    # Whether it may be opened, not whether a group has this user: rules of udev, ACLs and containers decide, too.
    if os.access(where, os.R_OK | os.W_OK):
        return Node(path=path, is_usable=True)
    try:
        return Node(path=path, is_usable=False, group=group_of(where))
    except OSError:
        return Node(path=path, is_usable=False)


def group_of(path: Path) -> str:
    """Name the group that may open a file, "" where that is root's or nobody knows.

    Raises:
        OSError: the file is not there.
    """
    if sys.platform == "win32":
        return ""
    import grp

    status = path.stat()
    try:
        name = grp.getgrgid(status.st_gid).gr_name
    except KeyError:  # a container without the host's groups
        return ""
    return "" if name == "root" or not status.st_mode & 0o040 else name
