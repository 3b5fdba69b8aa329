"""Which variables of the environment belong to an observed machine; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from patchlock.model.host_vocabulary import VARIABLES


def chosen(environ: Mapping[str, str]) -> dict[str, str]:
    """Take the variables that choose devices, libraries and packages; an empty one says something, too.

    PYTHONPATH is ours, and says nothing of the machine, where a launcher has started patchlock.
    """
    own = {"PYTHONPATH"} if "PATCHLOCK_BOOTSTRAP" in environ else set[str]()
    return {name: environ[name] for name in VARIABLES if name in environ and name not in own}


def rocm_on_path(path: str, separator: str) -> str:
    """Name the folders of PATH that belong to a ROCm or a HIP SDK, in order."""
    return separator.join(folder for folder in path.split(separator) if re.search(r"rocm|[\\/]hip\b", folder.lower()))
